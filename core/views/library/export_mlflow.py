"""What MLflow is told of a store's runs: settings of the stack, scores with interval and n, latency, cost."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import polars as pl

from core.exporters.mlflow import Tracked
from core.metrics import Measure
from core.prices import PriceBook
from core.store import Snapshot
from core.views.scoring.table import score_table
from core.views.workspace.latencies import latencies
from core.views.workspace.scope import Latency, Scope
from core.views.workspace.stacks import costs, runs_in

MEASURES = "RA-nWG@10,N-Recall4+@10,nDCG@10"


def tracked(snapshot: Snapshot, scope: Scope, measures: Sequence[Measure], book: PriceBook) -> list[Tracked]:
    """Gather parameters and metrics of the runs of a workspace.

    Args:
        snapshot: Where to read.
        scope: The workspace.
        measures: Each with its cutoff.
        book: Prices.

    Returns:
        One entry per run, by name: what is unknown or not applicable is not among its metrics.

    Raises:
        InputError: If a measure has no cutoff.
    """
    runs = runs_in(snapshot, scope)
    numbers: dict[str, dict[str, float]] = {run_id: {} for run_id in runs["run_id"]}
    for row in score_table(snapshot, runs, scope.golden_set_id, measures).iter_rows(named=True):
        if row["value"] is not None:
            name = row["measure"]
            ends = {"": row["value"], " low": row["ci_low"], " high": row["ci_high"], " n": row["n"]}
            known = {f"{name}{end}": float(value) for end, value in ends.items() if value is not None}
            numbers[row["run"]] |= known
    for latency in (Latency("p50"), Latency("p95")):
        told = latencies(snapshot, runs, latency)
        _add(numbers, told, "latency_ms", f"latency_{latency.percentile}_ms")
    _add(numbers, costs(snapshot, runs, book), "cost", "usd_per_1k_queries")
    return [
        Tracked(
            name=row["name"],
            created_at=row["created_at"],
            params=_params(row, scope, book),
            metrics=numbers[row["run_id"]],
            tags={"clq.run_id": row["run_id"], "clq.stack_id": row["stack_id"], "clq.origin": row["origin"]},
        )
        for row in runs.iter_rows(named=True)
    ]


def _add(numbers: Mapping[str, dict[str, float]], rows: pl.DataFrame, column: str, name: str) -> None:
    for run_id, value in rows.select("run_id", column).drop_nulls().iter_rows():
        numbers[run_id][name] = float(value)


def _params(row: Mapping[str, str], scope: Scope, book: PriceBook) -> dict[str, str]:
    about = {"collection": scope.collection_id, "golden_set": scope.golden_set_id, "pool": row["pool"]}
    spec = _flat(json.loads(row["spec"]))
    known = {name: value for name, value in about.items() if value is not None}
    return {**known, "prices": book.name, **spec}


def _flat(spec: Mapping[str, object], before: str = "") -> dict[str, str]:
    """Settings within settings under dotted names; what is not set is left out."""
    found: dict[str, str] = {}
    for name, value in spec.items():
        if isinstance(value, Mapping):
            found |= _flat(value, f"{before}{name}.")
        elif value is not None:
            found[before + name] = value if isinstance(value, str) else json.dumps(value)
    return found
