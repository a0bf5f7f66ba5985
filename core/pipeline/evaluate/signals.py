"""Figures of single queries that are neither time nor usage: what an approximate index lost."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl

from core.pipeline.dense import INDEXES, DenseIndex, ann_recall
from core.pipeline.evaluate.measure import Results
from core.pipeline.evaluate.steps import Graph, Route, Step
from core.pipeline.hits import Hits
from core.records import frame

EXACT = next(name for name, kind in INDEXES.items() if kind.exact)
ANN_RECALL = "ann_recall"


class Signals:
    """Computes signals of routes; exact searches are done once for all indexes over the same vectors.

    Args:
        graph: How deep the steps go.
        results: What the steps made of the queries.
        index: Opens an index.
    """

    def __init__(self, graph: Graph, results: Results, index: Callable[[Step], DenseIndex]) -> None:
        self._graph, self._results, self._index = graph, results, index
        self._exact: dict[Step, list[Hits]] = {}

    def frame(self, run_id: str, route: Route, query_ids: pl.Series) -> pl.DataFrame:
        """Rows of the table "signals"."""
        rows = [
            {"run_id": run_id, "query_id": query_id, "signal": signal, "k": k, "value": value}
            for signal, k, values in self._of(route)
            for query_id, value in zip(query_ids, values, strict=True)
            if value is not None and np.isfinite(value)
        ]
        return frame("signals", rows)

    def mean_recall(self, route: Route) -> float | None:
        """Mean share of the exact neighbours that the route's index finds; None if it is exact."""
        values = [
            v for name, _, found in self._of(route) if name == ANN_RECALL for v in found if v is not None
        ]
        return round(float(np.mean(values)), 6) if values else None

    def _of(self, route: Route) -> list[tuple[str, int | None, list[float | None]]]:
        """Signal, depth and values per query."""
        search = next((step for step in route.steps if step.kind == "search"), None)
        if search is None or INDEXES[search.built.params["name"]].exact:
            return []
        depth = int(route.stack.spec["fusion"]["depth"]) if route.pool is not search else route.depth
        pairs = zip(self._results.values[search], self._exact_hits(search), strict=True)
        return [(ANN_RECALL, depth, [ann_recall(found, exact, depth) for found, exact in pairs])]

    def _exact_hits(self, search: Step) -> list[Hits]:
        built, embed = search.built, search.inputs[0]
        flat = Step("index", {**built.params, "name": EXACT, "params": {}}, built.needs)
        key = Step("exact", {}, (embed, flat))
        if key not in self._exact:
            vectors = np.stack(self._results.values[embed])
            deepest = max(
                depth
                for step, depth in self._graph.depths.items()
                if step.kind == "search" and step.inputs[0] == embed and step.built.needs == built.needs
            )
            index = self._index(flat)
            self._exact[key] = [index.search(vector, deepest) for vector in vectors]
        return self._exact[key]
