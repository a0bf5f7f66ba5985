"""What a router can decide by: how sure the shallowest depth is of itself, and the tags of a query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from core.decide.routing.replay import replayed
from core.pipeline.ranking.signals import SIGNALS, signals
from core.store import Snapshot
from core.views.what_if.routing.families import Option

Known = Literal["before", "pool", "rerank"]
"""When a signal is known: before anything is searched, with the pool, or after the reranker."""

_WORDS: Mapping[str, str] = {
    "top1": "best score",
    "top_margin": "top margin (best minus second score)",
    "score_gap": "score gap (best minus last score)",
    "score_entropy": "score entropy",
}
_OF: Mapping[str, str] = {"": "of the pool", "dense_": "of the dense search", "rerank_": "of the reranker"}
_HIGH_IS_HARD = ("score_entropy",)
TAG = "tag:"


@dataclass(frozen=True, slots=True, eq=False)
class Signal:
    """One signal over some queries."""

    key: str  # its name in the table "signals", or "tag:<name>"
    label: str  # what people read
    known: Known  # when it is known
    hard_is_high: bool  # whether queries with high values are the uncertain ones; else those with low values
    values: Mapping[str, float]  # query_id → number; empty for a tag
    tags: Mapping[str, str]  # query_id → tag; empty for a number

    def urgency(self, query_ids: tuple[str, ...]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """How much each query asks for a deeper pool [Q], higher = more; NaN = unknown."""
        found = np.array([self.values.get(query_id, np.nan) for query_id in query_ids])
        return found if self.hard_is_high else -found


def available(snapshot: Snapshot, shallowest: Option, collection_id: str) -> list[Signal]:
    """The signals that exist for the queries of the shallowest depth.

    Returns:
        Recorded signals where the run has them, else computed from its stored scores; those of the dense
        search first, then of the pool, of the reranker, and a signal per kind of tag.
    """
    rows = _computed(snapshot, shallowest)
    if shallowest.deep is None:
        recorded = snapshot.signals([shallowest.run_id]).select("query_id", "signal", "value")
        rows = pl.concat([recorded, rows]).unique(["query_id", "signal"], keep="first", maintain_order=True)
    rows = rows.filter(pl.col("value").is_finite())
    found = []
    for prefix in ("dense_", "", "rerank_"):
        for name in ("top_margin", "score_gap", "score_entropy", "top1"):
            mine = rows.filter(pl.col("signal") == f"{prefix}{name}")
            if mine["value"].n_unique() > 1:
                values = dict(mine.select("query_id", "value").iter_rows())
                known: Known = "rerank" if prefix == "rerank_" else "pool"
                label = f"{_WORDS[name]} {_OF[prefix]}"
                found.append(Signal(f"{prefix}{name}", label, known, name in _HIGH_IS_HARD, values, {}))
    return [*found, *_tags(snapshot, collection_id)]


def _computed(snapshot: Snapshot, option: Option) -> pl.DataFrame:
    """query_id, signal, value from the scores of a run's rankings."""
    rankings = snapshot.rankings([option.run_id])
    final, pool = (rankings.filter(pl.col("stage") == stage) for stage in ("final", "pool"))
    lists = {"": final} if pool.is_empty() else {"": pool, "rerank_": final}
    if option.depth is not None:
        if not pool.is_empty():
            lists["rerank_"] = replayed(final, pool, option.depth)
        lists[""] = lists[""].filter(pl.col("rank") <= option.depth)
    parts = [pl.DataFrame(schema={"query_id": pl.String, "signal": pl.String, "value": pl.Float64})]
    for prefix, rows in lists.items():
        scored = rows.filter(pl.col("score").is_finite()).group_by("query_id").agg("score").sort("query_id")
        told = [signals(scores) for scores in scored["score"].to_list()]
        columns = [pl.Series(name, [each[name] for each in told], dtype=pl.Float64) for name in SIGNALS]
        wide = pl.DataFrame([scored["query_id"], *columns])
        long = wide.unpivot(index="query_id", variable_name="signal", value_name="value")
        parts.append(
            long.with_columns((pl.lit(prefix) + pl.col("signal")).alias("signal")).select(parts[0].columns)
        )
    return pl.concat(parts)


def _tags(snapshot: Snapshot, collection_id: str) -> list[Signal]:
    """A signal per kind of tag ("type" of "type=narrow") that has two values or more."""
    rows = snapshot.queries(collection_id).select("query_id", pl.col("tags").alias("tag")).explode("tag")
    rows = rows.drop_nulls("tag").with_columns(
        pl.col("tag").str.split_exact("=", 1).struct.rename_fields(["kind", "of"]).alias("parts")
    ).unnest("parts").drop_nulls("of")  # fmt: skip
    found = []
    for kind in rows["kind"].unique().sort():
        mine = rows.filter(pl.col("kind") == kind)
        if 1 < mine["tag"].n_unique() <= max(2, mine.height // 3):
            tags = dict(mine.unique("query_id", keep="first").select("query_id", "of").iter_rows())
            found.append(Signal(f"{TAG}{kind}", f"tag “{kind}” of the query", "before", True, {}, tags))
    return found
