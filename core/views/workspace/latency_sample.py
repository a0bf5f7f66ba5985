"""The latency of single queries in the scope of the sidebar; generation is modelled where nobody timed it."""

from __future__ import annotations

import json
from collections.abc import Mapping

import polars as pl

from core.prices.cost import mean_usage
from core.stats.generation import GENERATE, Generation
from core.stats.latency import TOTAL, per_query
from core.store import Snapshot
from core.views.workspace.scope import Latency

_NAMES = ["run_id", "query_id", "ms"]


def sample(snapshot: Snapshot, runs: pl.DataFrame, latency: Latency) -> pl.DataFrame:
    """One latency per run and query."""
    timings = snapshot.timings(runs["run_id"].to_list())
    if latency.scope != "end-to-end":
        rows = per_query(timings, scope=latency.scope).filter(pl.col("stage") == TOTAL)
        return rows.select(*_NAMES, pl.lit(False).alias("modelled"))
    path = per_query(timings, scope="path").filter(pl.col("stage") == TOTAL).select(_NAMES)
    answered = per_query(timings, stages=[GENERATE]).filter(pl.col("stage") == GENERATE)
    both = path.join(answered.select("run_id", "query_id", pl.col("ms").alias("answer")), on=_NAMES[:2])
    added = modelled_ms(snapshot, runs, latency.generation)
    rest = path.join(answered.select("run_id").unique(), on="run_id", how="anti").join(added, on="run_id")
    measured = both.select(*_NAMES[:2], pl.col("ms") + pl.col("answer"), pl.lit(False).alias("modelled"))
    modelled = rest.select(*_NAMES[:2], pl.col("ms") + pl.col("added"), pl.lit(True).alias("modelled"))
    return pl.concat([measured, modelled])


def modelled_ms(snapshot: Snapshot, runs: pl.DataFrame, generation: Generation | None) -> pl.DataFrame:
    """What generation adds to the latency of each run, modelled.

    Args:
        snapshot: Where to read.
        runs: run_id and spec.
        generation: The model; None = none.

    Returns:
        run_id, prompt (tokens), added (ms); no rows without a model. The prompt is what the run recorded as
        the generator's input, else its chunks sent × tokens per chunk.
    """
    schema = {"run_id": pl.String, "prompt": pl.Float64, "added": pl.Float64}
    if generation is None:
        return pl.DataFrame(schema=schema)
    recorded = _recorded(snapshot, runs["run_id"].to_list())
    rows = []
    for run_id, spec in runs.select("run_id", "spec").iter_rows():
        sent = json.loads(spec).get("chunks_sent")
        prompt = recorded.get(run_id, generation.prompt(sent if isinstance(sent, int) else None))
        rows.append((run_id, prompt, generation.ms(prompt)))
    return pl.DataFrame(rows, schema=schema, orient="row")


def _recorded(snapshot: Snapshot, run_ids: list[str]) -> Mapping[str, float]:
    """Mean prompt tokens of the runs that recorded them."""
    usage = snapshot.usage(run_ids).filter((pl.col("stage") == GENERATE) & (pl.col("unit") == "input_tokens"))
    means = mean_usage(usage).drop_nulls("amount").group_by("run_id").agg(pl.col("amount").sum())
    return dict(means.select("run_id", "amount").iter_rows())
