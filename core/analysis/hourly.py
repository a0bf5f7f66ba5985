"""What a query costs on a machine that is paid by the hour: the hour's price times the run's mean latency."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from core.analysis.workspace.figures.latencies import latencies
from core.analysis.workspace.scope import MEAN, Latency, Scope
from core.analysis.workspace.stacks import runs_in
from core.errors import InputError
from core.prices.book import MS_PER_HOUR
from core.store import Snapshot


def usd_per_query(snapshot: Snapshot, usd_per_hour: Mapping[str, float]) -> dict[str, float]:
    """Return what a query of runs costs, in dollars by run id.

    Args:
        usd_per_hour: What the machine of each run costs, busy with one query at a time.

    Raises:
        InputError: If a run has no mean latency.
    """
    asked = snapshot.runs().filter(pl.col("run_id").is_in(list(usd_per_hour)))
    prices = {}
    for collection in asked["collection_id"].unique():
        runs = runs_in(snapshot, Scope(collection)).filter(pl.col("run_id").is_in(list(usd_per_hour)))
        took = runs.select("run_id", "name").join(latencies(snapshot, runs, Latency(MEAN)), on="run_id")
        for run_id, name, ms in took.select("run_id", "name", "latency_ms").iter_rows():
            if ms is None:
                raise InputError(
                    f"The mean latency of {name!r} is unknown, so an hourly price does not tell its cost.",
                    where="--usd-per-hour",
                    do="Give --usd-per-query.",
                )
            prices[run_id] = usd_per_hour[run_id] * ms / MS_PER_HOUR
    return prices
