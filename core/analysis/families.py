"""Families to route between, of stacks that differ only in K or rewrite, and the signals that decide."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
import polars as pl

from core.analysis.workspace.query_sets import chosen_runs
from core.analysis.workspace.scope import Scope
from core.axes import KEYS, SAID_K
from core.decide.routing import missing, replayed
from core.diagnostics.noise import NONE, kin
from core.errors import ClqError
from core.pipeline.ranking import SIGNALS, signals
from core.providers.config import ModelConfig
from core.providers.rerank import Reranker, make_reranker
from core.records import stack_label
from core.store import Snapshot

REPLAYED = (10, 20, 30, 50, 75, 100, 150)
"""Depths at which a deeper run of a pointwise reranker is replayed, if nobody measured them."""
TYPED = "as typed"  # Name of the option without a rewrite
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


class Sent(NamedTuple):
    """Answers that a reader wrote from the first passages of a stack."""

    reader: str | None
    prompt: str | None
    temperature: float | None
    scorer: str
    k: int


@dataclass(frozen=True, slots=True)
class Option:
    """A depth (or stack) that a query can be sent to."""

    label: str  # its name in a routing: "K = 50", or the stack's name
    run_id: str  # the run that it is measured by, or replayed from
    depth: int | None  # candidate depth K; None if the stack does not say
    deep: int | None = None  # K of the run that it is replayed from; None = measured by its own run
    sent: Sent | None = None  # the answers that it is judged by; None = the ranking itself


@dataclass(frozen=True, slots=True)
class Family:
    """Stacks that differ only in their candidate depth, or only in the rewrite of the query."""

    name: str  # the stack's name without its K; with its query perturbation, if it differs in rewrites
    reranker: str | None  # its reranker, or None
    options: tuple[Option, ...]  # by rising K
    refused: str = ""  # why depths below the deepest cannot be replayed; "" if they can, or need not be
    rewrites: bool = False  # whether its options are rewritten queries or not, instead of depths
    answers: bool = False  # whether its options are numbers of passages sent to a reader, instead of depths


def families(table: pl.DataFrame) -> list[Family]:
    """Return the families among the stacks with rankings, those with a choice of depths first.

    Returns:
        One per specification without K, the best quality first; if a stack has several runs, the best counts.
        Families of one depth and no reranker, which nothing can be replayed from, come last.
    """
    rows = table.filter(
        pl.col("has_rankings") & pl.col("quality").is_not_null() & pl.col("candidates").is_not_null()
    )
    keys = pl.Series("family", [without_depth(spec) for spec in rows["spec"]], dtype=pl.String)
    rows = rows.with_columns(keys).sort("quality", "name", descending=[True, False])
    bare = pl.col("name").cast(pl.String).str.replace_all(SAID_K, "").last().over("family")
    rows = rows.with_columns(bare=bare).with_columns(alone=pl.col("family").n_unique().over("bare") == 1)
    grouped = [
        _family(group.unique("candidates", keep="first", maintain_order=True).sort("candidates"))
        for group in rows.partition_by("family", maintain_order=True)
    ]
    return sorted(grouped, key=lambda family: len(family.options) < 2 and family.reranker is None)


def without_depth(spec: str) -> str:
    """Return a specification without its candidate depth, as a key."""
    parts = {name: value for name, value in json.loads(spec).items() if name != "candidates"}
    return json.dumps(parts, sort_keys=True, ensure_ascii=False)


def _family(group: pl.DataFrame) -> Family:
    deepest = group.row(-1, named=True)
    spec = json.loads(deepest["family"])
    reranker = None if (deepest["reranker"] or "none") == "none" else str(deepest["reranker"])
    options = tuple(
        Option(f"K = {depth}", run_id, depth)
        for depth, run_id in group.select("candidates", "run_id").iter_rows()
    )
    name = deepest["bare"] if deepest["alone"] else stack_label(spec)
    return Family(name, reranker, options)


def rewriting(snapshot: Snapshot, scope: Scope) -> list[Family]:
    """Return the stacks of a workspace that were run on queries both as typed and rewritten.

    Returns:
        One per stack and perturbation of the queries, perturbed ones first (a clean query has little to
        rewrite); its options are the newest run as typed, then those of each rewrite by name.
    """
    runs = snapshot.runs(scope.collection_id).filter("has_rankings")
    runs = runs.filter(~pl.col("run_id").is_in(list(scope.apart.ids)))
    in_scope = {member.family for member in kin(chosen_runs(snapshot, scope)).values()}
    by_perturb: dict[tuple[str, str], dict[str, str]] = {}
    for run_id, member in kin(runs).items():
        if member.family in in_scope:
            by_perturb.setdefault((member.family, member.perturb), {})[member.rewrite] = run_id
    both = sorted(
        (not perturb, family, perturb) for (family, perturb), runs in by_perturb.items() if len(runs) > 1
    )
    return [
        _rewritten(family, perturb, by_perturb[family, perturb])
        for _, family, perturb in both
        if NONE in by_perturb[family, perturb]
    ]


def _rewritten(family: str, perturb: str, by_rewrite: Mapping[str, str]) -> Family:
    spec = json.loads(family)
    names = sorted(by_rewrite, key=lambda name: (name != NONE, name))
    options = (
        Option(TYPED if name == NONE else name, by_rewrite[name], spec.get("candidates")) for name in names
    )
    label = " · ".join(filter(None, (stack_label(spec), perturb)))
    reranker = spec.get("reranker")
    return Family(
        f"{label}, rewritten or not", None if reranker == NONE else reranker, tuple(options), rewrites=True
    )


def with_replays(snapshot: Snapshot, table: pl.DataFrame, family: Family) -> Family:
    """Add the depths that the deepest run of a family can be replayed at, or the reason why it cannot.

    Args:
        family: One of `families`; without a reranker it stays as it is.
    """
    if family.reranker is None or family.rewrites:
        return family
    deepest = family.options[-1]
    run = table.row(by_predicate=pl.col("run_id") == deepest.run_id, named=True)
    refused = refusal(snapshot, run)
    if refused:
        return replace(family, refused=refused)
    measured = {option.depth for option in family.options}
    more = [
        Option(f"K = {depth}", deepest.run_id, depth, deepest.depth)
        for depth in REPLAYED
        if depth not in measured and depth < (deepest.depth or 0)
    ]
    return replace(
        family, options=tuple(sorted((*family.options, *more), key=lambda option: option.depth or 0))
    )


def refusal(snapshot: Snapshot, run: Mapping[str, Any]) -> str:
    """Explain why smaller depths cannot be replayed from a run, or return "" if they can."""
    name, spec = str(run["reranker"]), json.loads(run["spec"])
    reranker = _reranker(name, json.loads(run["manifest"]))
    if reranker is None:
        return f"whether {name} scores passages one by one is not known here"
    if not reranker.pointwise:
        return (
            f"{name} is listwise: it reads the whole pool at once and may order fewer passages differently, "
            "so every K has to be run"
        )
    if shaped := next((key.replay for name, key in KEYS.items() if key.replay and spec.get(name)), ""):
        return shaped
    pool = snapshot.rankings([run["run_id"]], stage="pool")
    if pool.is_empty():
        return "its candidate pool is not stored"
    gone = missing(snapshot.rankings([run["run_id"]], stage="final"), pool)
    if gone and not reranker.selective:
        return f"its final ranking lacks {gone:,} passages of the pool, so their scores are not known"
    return ""


def _reranker(name: str, manifest: Mapping[str, Any]) -> Reranker | None:
    """Return the model that scored the pool, or its configuration in the evaluation; None if unknown."""
    models = (manifest.get("sweep") or {}).get("models") or {}
    try:
        own = {name: ModelConfig.model_validate(models[name])} if name in models else None
        return make_reranker(name, models=own, ready=False)
    except (ClqError, ValueError, TypeError):
        return None


def idle(family: Family, cutoff: int) -> bool:
    """Return whether deeper pools cannot change the first passages: nothing reorders them."""
    return family.reranker is None and (family.options[0].depth or 0) >= cutoff


def usual_stacks(table: pl.DataFrame) -> list[str]:
    """Return two stacks to start with: the fastest, or cheapest, one with rankings, and the best one.

    It is the best of those that score differently from the fastest, if any does.
    """
    rows = table.filter(pl.col("has_rankings") & pl.col("quality").is_not_null())
    first = rows.sort("latency_ms", "cost", "name", nulls_last=True)["name"].head(1)
    others = rows.filter(~pl.col("name").is_in(first.to_list()))
    fastest = rows.filter(pl.col("name").is_in(first.to_list())).select("quality")
    apart = others.join(fastest, on="quality", how="anti")
    best = (others if apart.is_empty() else apart).sort("quality", "name", descending=[True, False])
    return [*first, *best["name"].head(1)]


def stacks_as_options(table: pl.DataFrame, names: Sequence[str]) -> list[Option]:
    """Return any stacks as options, the cheapest first: by latency, then by cost, unknown ones last."""
    rows = table.filter(pl.col("name").is_in(list(names)) & pl.col("has_rankings"))
    rows = rows.sort("latency_ms", "cost", "name", nulls_last=True)
    return [
        Option(name, run_id, depth)
        for name, run_id, depth in rows.select("name", "run_id", "candidates").iter_rows()
    ]


@dataclass(frozen=True, slots=True, eq=False)
class Signal:
    """A signal over some queries."""

    key: str  # its name in the table "signals", or "tag:<name>"
    label: str  # display name
    known: Known  # when it is known
    hard_is_high: bool  # whether queries with high values are the uncertain ones, not those with low values
    values: Mapping[str, float]  # query_id → number; empty for tags
    tags: Mapping[str, str]  # query_id → tag; empty for numbers

    def urgency(self, query_ids: tuple[str, ...]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """Return how much each query asks for a deeper pool [Q], higher = more; NaN = unknown."""
        urgencies = np.array([self.values.get(query_id, np.nan) for query_id in query_ids])
        return urgencies if self.hard_is_high else -urgencies


def available(snapshot: Snapshot, shallowest: Option, collection_id: str) -> list[Signal]:
    """Return the signals that exist for the queries of the shallowest depth.

    Returns:
        Recorded signals if the run has them, otherwise computed from its stored scores; those of the dense
        search first, then of the pool, of the reranker, and a signal per kind of tag.
    """
    rows = _computed(snapshot, shallowest)
    if shallowest.deep is None:
        recorded = snapshot.signals([shallowest.run_id]).select("query_id", "signal", "value")
        rows = pl.concat([recorded, rows]).unique(["query_id", "signal"], keep="first", maintain_order=True)
    rows = rows.filter(pl.col("value").is_finite())
    signals_of = []
    for prefix in ("dense_", "", "rerank_"):
        for name in ("top_margin", "score_gap", "score_entropy", "top1"):
            mine = rows.filter(pl.col("signal") == f"{prefix}{name}")
            if mine["value"].n_unique() > 1:
                values = dict(mine.select("query_id", "value").iter_rows())
                known: Known = "rerank" if prefix == "rerank_" else "pool"
                label = f"{_WORDS[name]} {_OF[prefix]}"
                signals_of.append(Signal(f"{prefix}{name}", label, known, name in _HIGH_IS_HARD, values, {}))
    return [*signals_of, *_tags(snapshot, collection_id)]


def _computed(snapshot: Snapshot, option: Option) -> pl.DataFrame:
    """Return query_id, signal, value from the scores of a run's rankings."""
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
        by_query = [signals(scores) for scores in scored["score"].to_list()]
        columns = [
            pl.Series(name, [by_name[name] for by_name in by_query], dtype=pl.Float64) for name in SIGNALS
        ]
        wide = pl.DataFrame([scored["query_id"], *columns])
        long = wide.unpivot(index="query_id", variable_name="signal", value_name="value")
        parts.append(
            long.with_columns((pl.lit(prefix) + pl.col("signal")).alias("signal")).select(parts[0].columns)
        )
    return pl.concat(parts)


def _tags(snapshot: Snapshot, collection_id: str) -> list[Signal]:
    """Return a signal per kind of tag ("type" of "type=narrow") that has two values or more."""
    rows = snapshot.queries(collection_id).select("query_id", pl.col("tags").alias("tag")).explode("tag")
    rows = rows.drop_nulls("tag").with_columns(
        pl.col("tag").str.split_exact("=", 1).struct.rename_fields(["kind", "of"]).alias("parts")
    ).unnest("parts").drop_nulls("of")  # fmt: skip
    signals = []
    for kind in rows["kind"].unique().sort():
        mine = rows.filter(pl.col("kind") == kind)
        if 1 < mine["tag"].n_unique() <= max(2, mine.height // 3):
            tags = dict(mine.unique("query_id", keep="first").select("query_id", "of").iter_rows())
            signals.append(Signal(f"{TAG}{kind}", f"tag “{kind}” of the query", "before", True, {}, tags))
    return signals
