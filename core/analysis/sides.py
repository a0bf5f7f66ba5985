"""Data of page Compare: quality, latency and cost of a few stacks, and their differences.

For one pair also queries that flip, tags, rankings, and the sources of the difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from core.analysis.paired import LOSSES, OPEN, TIES, WINS, alike, tested, with_verdict
from core.analysis.per_query import query_table
from core.analysis.workspace.clusters import EACH, FEW_GROUPS, Groups, groups
from core.analysis.workspace.comparable import machine
from core.analysis.workspace.figures.latencies import sample
from core.analysis.workspace.query_sets import among
from core.analysis.workspace.scope import MEAN, Latency, Percentile, Quality, Scope
from core.analysis.workspace.scores import Evidence, at_cutoff, evidence
from core.arrays import Floats
from core.decide.axes import COST, LATENCY, QUALITY
from core.decide.rules import Decision
from core.decide.ties import CHEAPER
from core.metrics import Measure
from core.records import is_group
from core.stats.correlation import AGREEMENT
from core.stats.intervals import Labels, Sample
from core.stats.latency import inflation, quantile_gap
from core.stats.means import mean_interval
from core.stats.significance import ROUNDING, Setup
from core.store import Snapshot
from core.tables import Row, schema

SAME = "the same"
SIDES = schema(
    "axis stack against value:float value_against:float difference:float low:float high:float n:int64 "
    "clusters:int32 cluster_kind p_holm:float p_adjusted:float verdict note"
)
"""Columns of `sides`."""
AVERAGES = "no interval: averages only"


@dataclass(frozen=True)
class Closer:
    """One pair of stacks, looked at closely; differences are second − first."""

    queries: pl.DataFrame  # from `flips`
    tags: pl.DataFrame  # from `by_tag`
    sources: pl.DataFrame  # from `sources`
    alike: pl.DataFrame | None  # from `alike`
    pools: tuple[str, ...]  # the conventions of the two candidate pools, if they differ

    @property
    def same(self) -> bool:
        """Whether both rank the same passages in the same order on every query."""
        rows = self.alike
        if rows is None or rows.is_empty():
            return False
        return bool((rows["overlap"] == 1).all() and (rows["tau"].fill_null(1.0) == 1).all())


def look_closer(
    snapshot: Snapshot,
    scope: Scope,
    quality: Quality,
    runs: pl.DataFrame,
    *,
    pair: tuple[str, str],
    setup: Setup,
) -> Closer:
    """Compare two stacks, by their run ids, query by query."""
    first, second = pair
    same = alike(snapshot, runs, quality.k, first, second)
    queries = flips(query_table(snapshot, scope, quality.by_query, second, first, as_zero=True), setup, same)
    pools = runs.filter(pl.col("run_id").is_in(pair))["proc_pool"].fill_null("none").unique().sort().to_list()
    return Closer(
        queries=queries,
        tags=by_tag(queries, setup, groups(snapshot, scope)),
        sources=sources(snapshot, scope, quality, pair, setup),
        alike=same,
        pools=tuple(pools) if len(pools) > 1 else (),
    )


def flips(queries: pl.DataFrame, setup: Setup, alike: pl.DataFrame | None) -> pl.DataFrame:
    """Add outcome (better, tie, worse), overlap and tau; flips first, the largest difference first."""
    limit = setup.tolerance + ROUNDING
    gain = pl.col("delta") if setup.higher_is_better else -pl.col("delta")
    outcome = (
        pl.when(gain > limit).then(pl.lit(WINS))
        .when(gain < -limit).then(pl.lit(LOSSES))
        .when(pl.col("delta").is_not_null()).then(pl.lit(TIES))
    )  # fmt: skip
    same = pl.DataFrame(schema=AGREEMENT) if alike is None else alike
    rows = queries.join(same, on="query_id", how="left", maintain_order="left").with_columns(outcome=outcome)
    order = [pl.col("outcome") == TIES, pl.col("delta").abs(), pl.col("query_id")]
    return rows.sort(order, descending=[False, True, False], nulls_last=True)


def by_tag(rows: pl.DataFrame, setup: Setup, alike: Groups) -> pl.DataFrame:
    """Compare a pair on the queries of each tag; the tags form one family."""
    known = rows.filter(pl.col("delta").is_not_null()).sort("query_id")
    tagged = known.select("query_id", pl.col("tags").alias("tag")).explode("tag").drop_nulls().unique()
    tagged = tagged.filter([not is_group(tag) for tag in tagged["tag"]])
    sizes = tagged.group_by("tag").len().filter((pl.col("len") > 1) & (pl.col("len") < known.height))
    names = sizes["tag"].sort().to_list()
    table = np.full((2, 1), 0.0)
    if names:
        masks = np.array([[name in tags for tags in known["tags"].to_list()] for name in names])
        values = known.select("other", "score").to_numpy().T
        table = np.where(masks[:, None, :], values[None], np.nan).reshape(2 * len(names), -1)
    first = np.arange(0, 2 * len(names), 2)
    asked = (alike, known["query_id"].to_list() if names else [""])
    rows = tested(table, (first.tolist(), (first + 1).tolist()), setup, asked)
    return (
        with_verdict(rows, higher_is_better=setup.higher_is_better)
        .drop("first", "second")
        .insert_column(0, pl.Series("tag", names, dtype=pl.String))
    )


def sources(
    snapshot: Snapshot, scope: Scope, quality: Quality, pair: Sequence[str], setup: Setup
) -> pl.DataFrame:
    """Compare a pair in the measure, its ceiling in the candidate pool and the share reached (one family).

    It is empty if the measure has no ceiling.
    """
    measure, ceiling = quality.measure, quality.ceiling
    if measure is None or ceiling is None or scope.golden_set_id is None:
        return pl.DataFrame()
    only = among(snapshot, scope)
    graded = evidence(snapshot, list(pair), scope.golden_set_id, (measure, ceiling), only=only)
    wanted = {
        measure: "what the user gets",
        ceiling: "what the candidate pool holds: retrieval",
        ceiling.renamed(f"%{ceiling.name}"): "how much of it is brought up: ordering",
    }
    asked = (groups(snapshot, scope), graded.query_ids)
    rows = pl.concat([tested(_sample(graded, each, asked[0]), ([0], [1]), setup, asked) for each in wanted])
    names = pl.Series("measure", [str(scored_measure) for scored_measure in wanted])
    return rows.select(names, pl.Series("says", list(wanted.values())), pl.exclude("first", "second"))


def _sample(graded: Evidence, measure: Measure, alike: Groups) -> Sample:
    """Return the sample to average over queries; a ratio of means for %PROC, as published (metrics.md §2)."""
    labels = alike.labels(graded.query_ids)
    if measure.name.startswith("%"):
        ceiling, actual = measure.name.removeprefix("%"), measure.inner or ""
        above, below = (at_cutoff(graded, measure.renamed(name)) for name in (actual, ceiling))
        return Sample.ratios(above, below, labels)
    return Sample.means(at_cutoff(graded, measure), labels)


def unpaired(rows: pl.DataFrame, scope: Scope, quality: Quality, reports: Sequence[str] = ()) -> str:
    """Explain why stacks cannot be paired by query, so that only averages compare; "" if they can.

    Args:
        reports: Run ids of those that report per-query scores instead of being scored here.
    """
    ranked = pl.col("has_rankings")
    if rows["run_id"][0] in reports and len(reports) > 1:
        return ""
    if not rows["has_rankings"].any() and not reports:
        return "They came without per-query data: only their averages are known."
    if rows["has_rankings"].any() and (scope.golden_set_id is None or quality.measure is None):
        unknown = f"{quality.bare} is known from aggregates only, so its queries cannot be paired."
        unjudged = "No golden set of this collection could score their rankings."
        return unknown if scope.golden_set_id else unjudged
    alone = rows.filter(~ranked, ~pl.col("run_id").is_in(list(reports)))["name"].to_list()
    if alone and (rows["name"][0] in alone or rows.height - len(alone) < 2):
        return f"{' and '.join(alone)} came without per-query data: only averages are known."
    if not rows["has_rankings"][0] or rows.filter(ranked).height < 2:
        return "Scores made here and elsewhere cannot be paired query by query."
    return ""


def sides(
    snapshot: Snapshot,
    table: pl.DataFrame,
    names: Sequence[str],
    rows: pl.DataFrame | None,
    *,
    latency: Latency,
    jitter: float,
    alike: Groups = EACH,
) -> pl.DataFrame:
    """Return how the first of some stacks differs from each other one in quality, latency and cost.

    Args:
        rows: `differences` of the first with each stack that can be paired with it; None if none can.
        jitter: Difference in latency up to which latencies are the same; ms.
        alike: The groups of the queries.

    Returns:
        `SIDES`, a row per axis and other stack: the difference is stack − against, with its paired interval
        if there are per-query results, otherwise without and with the reason in note.
    """
    runs = table.filter(pl.col("name").is_in(names))
    stacks = {row["name"]: row for row in runs.iter_rows(named=True)}
    paired = {} if rows is None else {row["first"]: row for row in rows.iter_rows(named=True)}
    timed = sample(snapshot, runs.filter(pl.col("latency_ms").is_not_null()), latency)
    one, rows_of_sides = stacks[names[0]], []
    for name in names[1:]:
        other = stacks[name]
        gaps = {
            QUALITY.key: _quality(one, other, paired.get(name)),
            LATENCY.key: _latency(one, other, timed, jitter, (latency.percentile, alike)),
            COST.key: _cost(one, other),
        }
        rows_of_sides += [
            {"axis": key, "stack": names[0], "against": name, **gap} for key, gap in gaps.items()
        ]
    return pl.DataFrame(rows_of_sides, schema=SIDES).with_columns(pl.col("low", "high").fill_nan(None))


def _gap(one: Row, other: Row, column: str) -> dict[str, Any]:
    mine, theirs = one[column], other[column]
    apart = None if mine is None or theirs is None else mine - theirs
    return {"value": mine, "value_against": theirs, "difference": apart}


def _quality(one: Row, other: Row, pair: Row | None) -> dict[str, Any]:
    gap = _gap(one, other, QUALITY.column)
    if pair is None:
        return {**gap, "note": "not scored" if gap["difference"] is None else AVERAGES}
    names = ("difference", "low", "high", "n", "clusters", "cluster_kind", "p_holm", "p_adjusted", "verdict")
    kept = {name: pair[name] for name in names}
    equal = pair["difference"] == 0 and pair["low"] == pair["high"]
    return {**gap, **kept, **({"verdict": SAME} if equal else {})}


def _latency(
    one: Row, other: Row, timed: pl.DataFrame, jitter: float, of: tuple[Percentile, Groups]
) -> dict[str, Any]:
    gap = _gap(one, other, LATENCY.column)
    if gap["difference"] is None:
        return {**gap, "note": _why(one, other, LATENCY.column, "latency_note") or LATENCY.missing}
    if machine(one["environment"], one["origin"]) != machine(other["environment"], other["origin"]):
        return {**gap, "note": "timed on different machines"}
    mine, theirs = (
        timed.filter(run_id=row["run_id"]).select("query_id", "ms", "serial") for row in (one, other)
    )
    both = mine.join(theirs, on="query_id", suffix="_other").sort("query_id")
    notes = [] if both.height > 1 else [AVERAGES]
    if both.height > 1:
        (percentile, alike), first, second = of, both["ms_other"].to_numpy(), both["ms"].to_numpy()
        labels = alike.labels(both["query_id"].to_list())
        serials = both.select(pl.col("serial_other", "serial").fill_null(0.0).max()).row(0)
        apart, low, high = (
            _mean_gap(second - first, max(serials), labels)
            if percentile == MEAN
            else quantile_gap(first, second, percentile, serials)
        )
        gap |= {"difference": apart, "low": low, "high": high, "n": both.height}
        if labels is not None and percentile == MEAN:
            gap |= {"clusters": int(labels.max()) + 1, "cluster_kind": alike.kind}
    verdict = LOSSES if gap["difference"] > 0 else WINS
    if abs(gap["difference"]) <= jitter:
        verdict = SAME
        notes.append(f"within the jitter of {jitter:.3g} ms")
    elif both.height > 1 and np.isnan(low):
        verdict = FEW_GROUPS
    elif both.height > 1 and low <= 0 <= high:
        verdict = OPEN
    return {**gap, "verdict": verdict, "note": "; ".join(notes) or None}


def _mean_gap(apart: Floats, phi: float, labels: Labels | None) -> tuple[float, float, float]:
    """Return the mean of paired differences with its 95 % interval; `phi` as in `quantile_gap`."""
    gap, wider = float(apart.mean()), float(inflation([phi], None)[0]) ** 0.5
    ends = mean_interval(apart, "differences", clusters=labels)
    low, high = (gap + wider * (float(end[0]) - gap) for end in ends)
    return gap, low, high


def _cost(one: Row, other: Row) -> dict[str, Any]:
    gap = _gap(one, other, COST.column)
    if gap["difference"] is None:
        unknown = _why(one, other, COST.column, "cost_missing") or _why(one, other, COST.column, "cost_note")
        return {**gap, "note": unknown or COST.missing}
    noise = max(CHEAPER, *(row.get("cost_noise") or 0.0 for row in (one, other)))
    if abs(gap["difference"]) <= noise * min(one["cost"], other["cost"]):
        timed = ": within the jitter of timing" if noise > CHEAPER else ""
        said = f"less than {100 * noise:.2g} % apart{timed}" if gap["difference"] else None
        return {**gap, "verdict": SAME, "note": said}
    return {**gap, "verdict": LOSSES if gap["difference"] > 0 else WINS}


def _why(one: Row, other: Row, column: str, note: str) -> str | None:
    """Explain why a number of one of the two is unknown."""
    return next((row[note] for row in (one, other) if row[column] is None and row[note]), None)


def usual(table: pl.DataFrame, decision: Decision) -> list[str]:
    """Return the default stacks to look at: the decision's two, then the best of the table.

    Stacks within the limits come first.
    """
    ids = [decision.run_ids[row] for row in (decision.chosen, decision.runner_up) if row is not None]
    down = [True, decision.quality.higher_is_better, False]
    within = pl.col("run_id").is_in(decision.run_ids.filter(pl.Series(decision.feasible)).implode())
    best = table.sort(within, "quality", "name", descending=down, nulls_last=True)
    names = dict(table.select("run_id", "name").iter_rows())
    return list(dict.fromkeys([*(names[run_id] for run_id in ids if run_id in names), *best["name"]]))
