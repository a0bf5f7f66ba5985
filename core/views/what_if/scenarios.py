"""The scenario matrix: named stacks side by side (CLQ paper §5.5, Table 8)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import polars as pl

from core.errors import UnknownNameError
from core.prices import PriceBook
from core.store import Snapshot
from core.views.scoring.figures import figures
from core.views.workspace.latencies import latencies
from core.views.workspace.scope import Latency, Quality, Scope
from core.views.workspace.stacks import costs

MEASURES = (Quality("N-Recall4+", 10), Quality("RA-nWG", 10), Quality("RA-nWG", 30))
"""The paper's columns."""
ORDER = ("Baseline", "Cost saver", "Quality push", "Efficient small-dim", "High-K check")
"""The paper's scenarios, as published runs name them."""


def named(snapshot: Snapshot, collection_id: str) -> dict[str, str]:
    """Scenarios that runs of a collection are the example of: name → run_id, the paper's in its order."""
    found: dict[str, str] = {}
    for run_id, manifest in snapshot.runs(collection_id).select("run_id", "manifest").iter_rows():
        name = json.loads(manifest).get("scenario")
        if isinstance(name, str):
            found[name] = run_id
    return {name: found[name] for name in sorted(found, key=_place)}


def _place(name: str) -> tuple[int, str]:
    return (ORDER.index(name) if name in ORDER else len(ORDER), name)


def scenario_matrix(
    snapshot: Snapshot,
    scope: Scope,
    scenarios: Mapping[str, str],
    book: PriceBook,
    *,
    latency: Latency | None = None,
    measures: Sequence[Quality] = MEASURES,
) -> pl.DataFrame:
    """Put named stacks side by side."""
    rows = figures(snapshot, scope, measures)
    for run_id in scenarios.values():
        if run_id not in set(rows["run_id"]):
            raise UnknownNameError("run", run_id, rows["run_id"])
    table = (
        rows.join(latencies(snapshot, rows, latency or Latency("p50", "rerank")), on="run_id", how="left")
        .join(costs(snapshot, rows, book), on="run_id", how="left")
        .select(
            "run_id",
            "name",
            "embedder",
            "dim",
            "reranker",
            "candidates",
            "cost",
            "cost_least",
            "cost_missing",
            "cost_note",
            "latency_ms",
            "latency_note",
            *(quality.name for quality in measures),
        )
    )
    wanted = pl.DataFrame(
        {"scenario": list(scenarios), "run_id": list(scenarios.values())},
        schema={"scenario": pl.String, "run_id": pl.String},
    )
    return wanted.join(table, on="run_id", how="left", maintain_order="left")
