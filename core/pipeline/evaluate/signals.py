"""Figures of single queries that are neither time nor usage.

How sure a stack was of itself (`core.pipeline.ranking.hits`) by the scores of its pool; with the prefix
"dense_" by those of the vector search of a hybrid, and with "rerank_" by the reranker's. What an approximate
index found of the exact neighbours ("ann_recall"). What a reranker or a rewrite told about itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from core.pipeline.evaluate.asking import ordered
from core.pipeline.evaluate.measure import Results
from core.pipeline.evaluate.steps import Graph, Route, Step
from core.pipeline.index import INDEXES, ann_recall, is_ann
from core.pipeline.ranking.hits import DenseSearcher, Hits, signals
from core.records import JsonMap
from core.tables import frame

EXACT = next(name for name, kind in INDEXES.items() if kind.exact)
ANN_RECALL = "ann_recall"
TOLD = (
    "chars_per_second", "truncated", "unscored", "discarded", "repaired", "equal_weights", "changed",
    "dropped",
)  # fmt: skip
"""What of a model's details is kept per query."""


class Signal(NamedTuple):
    """One figure, per query in their order; None where there is none."""

    name: str
    k: int | None
    values: Sequence[float | None]


class Signals:
    """Computes signals of routes; exact searches are done once for all indexes over the same vectors."""

    def __init__(self, graph: Graph, results: Results, index: Callable[[Step], DenseSearcher]) -> None:
        self._graph, self._results, self._index = graph, results, index
        self._exact: dict[Step, list[Hits]] = {}
        self._found: dict[tuple[Step, int], list[float | None]] = {}

    def frame(self, run_id: str, route: Route, query_ids: pl.Series) -> pl.DataFrame:
        """Rows of the table "signals"; figures that are not known have none."""
        columns: dict[str, list[Any]] = {"query_id": [], "signal": [], "k": [], "value": []}
        for name, k, values in self._of(route):
            for query_id, value in zip(query_ids, values, strict=True):
                if value is not None and np.isfinite(value):
                    for column, cell in zip(columns.values(), (query_id, name, k, float(value)), strict=True):
                        column.append(cell)
        return frame("signals", {**columns, "run_id": [run_id] * len(columns["value"])})

    def mean_recall(self, route: Route) -> float | None:
        """Mean share of the exact neighbours that the route's index finds; None if it is exact."""
        known = [v for each in self._recall(route) for v in each.values if v is not None]
        return round(float(np.mean(known)), 6) if known else None

    def _of(self, route: Route) -> Iterator[Signal]:
        values = self._results.values
        yield from _certainty("", route.depth, [hits.scores[: route.depth] for hits in values[route.pool]])
        search = _search(route)
        if search is not None and search is not route.source:
            depth = _leg_depth(route)
            yield from _certainty("dense_", depth, [hits.scores[:depth] for hits in values[search]])
        if route.rerank is not None:
            scores = [ordered(found, route.depth) for found in values[route.rerank]]
            yield from _certainty("rerank_", route.depth, scores)
        yield from self._recall(route)
        for step in route.steps:
            yield from _told(step, self._results.details.get(step, ()))

    def _recall(self, route: Route) -> Iterator[Signal]:
        search = _search(route)
        if search is None or not is_ann(search.built.params["name"], search.index_options):
            return
        depth = _leg_depth(route)
        if (search, depth) not in self._found:
            pairs = zip(self._results.values[search], self._exact_hits(search), strict=True)
            self._found[search, depth] = [ann_recall(found, exact, depth) for found, exact in pairs]
        yield Signal(ANN_RECALL, depth, self._found[search, depth])

    def _exact_hits(self, search: Step) -> list[Hits]:
        built, embed = search.built, search.inputs[0]
        exact: JsonMap = {"name": EXACT, "params": {}}
        if not built.needs:  # a table whose vectors are not here compares them itself
            exact = {"params": {**built.params["params"], "exact": "yes"}}
        flat = Step("index", {**built.params, **exact}, built.needs)
        key = Step("exact", {}, (embed, flat))
        if key not in self._exact:
            deepest = max(
                depth
                for step, depth in self._graph.depths.items()
                if step.kind == "search" and step.inputs[0] == embed and step.built.needs == built.needs
            )
            vectors = np.stack(self._results.values[embed])
            self._exact[key] = self._index(flat).search_batch(vectors, deepest)
        return self._exact[key]


def _search(route: Route) -> Step | None:
    return next((step for step in route.steps if step.kind == "search"), None)


def _leg_depth(route: Route) -> int:
    """How much of the vector search a stack uses."""
    search = _search(route)
    fuse = next((step for step in route.steps if step.kind == "fuse" and search in step.inputs), None)
    if fuse is not None:
        return int(fuse.params["fusion"]["depth"])
    look = 1 if route.source is route.pool else int(route.pool.params["dedup"]["look"])
    return route.depth * look


def _certainty(prefix: str, depth: int, scores: Sequence[Any]) -> Iterator[Signal]:
    found = [signals(each) for each in scores]
    for name in found[0]:
        yield Signal(f"{prefix}{name}", depth, [each[name] for each in found])


def _told(step: Step, details: Sequence[Mapping[str, Any]]) -> Iterator[Signal]:
    for name in TOLD:
        values = [each.get(name) for each in details]
        if any(value is not None for value in values):
            yield Signal(f"{step.stage}_{name}", None, values)
