"""The band within which latencies of a workspace are not told apart, and where it comes from."""

from __future__ import annotations

import polars as pl

from core.decide.rules import Constraints, Decision
from core.decide.ties import JITTER_MS, jitter, pass_differences
from core.records import Origin
from core.stats.latency import AFTER_RETRIEVAL, per_repeat
from core.store import Snapshot
from core.views import text
from core.views.workspace.scope import Latency

COLUMNS = ("jitter_ms", "jitter_note")
_LOCAL = ("cpu_ms", "gpu_ms")
"""Units of stages that ask no other machine."""
_ASSUMED = "the paper's for published and remote stacks, and where no pass was repeated (CLQ paper §3.2)"


def jitters(snapshot: Snapshot, runs: pl.DataFrame, latency: Latency) -> pl.DataFrame:
    """The jitter band of every run.

    Measured for runs that were timed here, on this machine alone, in several passes: one band for all such
    runs of the collection, shown or not, the 95th percentile of the differences of the p50 between the passes
    of a run. For the others it is the paper's.
    """
    held = snapshot.runs(runs["collection_id"][0]) if runs.height else runs
    here = held.filter(pl.col("origin") == Origin.RUN.value)["run_id"].to_list()
    local = [run_id for run_id in here if run_id not in _remote(snapshot, here, latency)]
    timings = snapshot.timings(local)
    found = pass_differences(per_repeat(timings, scope="rerank" if latency.scope == "rerank" else "path"))
    band, stacks = jitter(found["ms"]), found["run_id"].n_unique()
    words = (
        f"measured: 95th percentile of {text.count(found.height, 'difference')} of the p50 between passes of "
        f"{text.count(stacks, 'stack')}"
    )
    measured = pl.col("run_id").is_in(found["run_id"].unique().to_list())
    return runs.select(
        "run_id",
        pl.when(measured).then(pl.lit(band, pl.Float64)).otherwise(JITTER_MS).alias("jitter_ms"),
        pl.when(measured).then(pl.lit(words)).otherwise(pl.lit(_ASSUMED)).alias("jitter_note"),
    )


def _remote(snapshot: Snapshot, run_ids: list[str], latency: Latency) -> set[str]:
    """Runs of which a stage in the latency asks another machine."""
    stages = pl.col("stage").is_in(AFTER_RETRIEVAL)
    within = pl.lit(latency.scope == "end-to-end") | ~stages
    used = snapshot.usage(run_ids).filter(~pl.col("unit").is_in(_LOCAL), within)
    return set(used["run_id"])


def jitter_words(table: pl.DataFrame, decision: Decision, constraints: Constraints) -> str:
    """The band of the chosen stack, with where it comes from: ``0.017 ms (measured: …)``.

    Args:
        constraints: Says whether a person typed the band.
    """
    if constraints.jitter_ms is not None:
        return f"{decision.jitter_ms:.3g} ms (as typed)"
    known = jitter_kinds(table[decision.chosen or 0] if table.height else table)
    return known[0] if known else f"{JITTER_MS:g} ms ({_ASSUMED})"


def jitter_kinds(table: pl.DataFrame) -> list[str]:
    """Every band of a stack table with where it comes from, the narrowest first."""
    if "jitter_note" not in table.columns:
        return []
    kinds = table.select("jitter_ms", "jitter_note").unique().drop_nulls().sort("jitter_ms")
    return [f"{ms:.3g} ms ({words})" for ms, words in kinds.iter_rows()]
