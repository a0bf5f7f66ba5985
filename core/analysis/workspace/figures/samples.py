"""Results per query of the stacks of a workspace, on the union of their queries."""

from __future__ import annotations

import numpy as np
import polars as pl

from core.analysis.workspace.clusters import groups
from core.analysis.workspace.figures.beside import by_query
from core.analysis.workspace.figures.latencies import sample
from core.analysis.workspace.figures.reported import QueryScores
from core.analysis.workspace.query_sets import scores_by_query
from core.analysis.workspace.scope import Latency, Quality, Scope
from core.arrays import Floats
from core.decide.axes import BESIDE, MOVING, floats
from core.decide.joint import JointSample
from core.decide.ties import bands
from core.stats.latency import SHARES
from core.store import Snapshot


def joint_sample(
    snapshot: Snapshot, table: pl.DataFrame, scope: Scope, *, quality: Quality, latency: Latency
) -> JointSample | None:
    """Return quality and latency per query of the stacks of a table, on the union of their queries.

    Returns:
        The sample in the order of the table, or None if no stack has results per query.
    """
    ids = table["run_id"].to_list()
    scored = _long(scores_by_query(snapshot, table, scope, quality))
    proven = table.filter(pl.col("quality").is_not_null())["run_id"]
    if proven.is_empty():  # scores without evidence give no chances
        return None
    scored = scored.filter(pl.col("run_id").is_in(proven.implode()))
    measured = sample(snapshot, table, latency)
    alike = dict(measured.group_by("run_id").agg(pl.col("serial").max().fill_null(0.0)).iter_rows())
    timed = measured.select("run_id", "query_id", pl.col("ms").alias("value"))
    beside = {}
    for axis in BESIDE:
        if (scores := by_query(snapshot, table, scope, quality, axis)) is not None:
            beside[axis] = _long(scores)
    if scope.shared:  # a resample draws from the queries that count
        timed = timed.filter(pl.col("query_id").is_in(scored["query_id"].implode()))
    every = (scored, timed, *beside.values())
    queries = pl.concat([rows["query_id"] for rows in every]).unique().sort()
    if queries.is_empty():
        return None
    unvaried = np.full((len(ids), len(queries)), np.nan)
    return JointSample(
        quality=_matrix(scored, ids, queries),
        latency_ms=_matrix(timed, ids, queries),
        cost=floats(table, "cost"),
        fixed_quality=floats(table, "quality"),
        fixed_latency=floats(table, "latency_ms"),
        share=SHARES.get(latency.percentile),
        beside={axis.key: (_matrix(rows, ids, queries), axis.read(table)) for axis, rows in beside.items()}
        | {axis.key: (unvaried, axis.read(table)) for axis in MOVING},
        band=bands(table, None),
        cost_noise=floats(table, "cost_noise"),
        query_ids=tuple(queries),
        clusters=groups(snapshot, scope).labels(queries.to_list()),
        serial=np.array([alike.get(run_id, 0.0) for run_id in ids]),
    )


def _long(scores: QueryScores | None) -> pl.DataFrame:
    """Return run_id, query_id, value of the scored queries."""
    schema = {"run_id": pl.String, "query_id": pl.String, "value": pl.Float64}
    if scores is None:
        return pl.DataFrame(schema=schema)
    rows = {
        "run_id": np.repeat(np.array(scores.run_ids), len(scores.query_ids)),
        "query_id": np.tile(np.array(scores.query_ids), len(scores.run_ids)),
        "value": scores.values.ravel(),
    }
    return pl.DataFrame(rows, schema=schema).filter(pl.col("value").is_not_nan())


def _matrix(rows: pl.DataFrame, ids: list[str], queries: pl.Series) -> Floats:
    """Return values by run and query [S, Q]; NaN if there is none."""
    values = np.full((len(ids), len(queries)), np.nan)
    if rows.height:
        run = rows["run_id"].replace_strict(ids, range(len(ids)), return_dtype=pl.Int64)
        query = rows["query_id"].replace_strict(queries, range(len(queries)), return_dtype=pl.Int64)
        values[run.to_numpy(), query.to_numpy()] = rows["value"].to_numpy()
    return values
