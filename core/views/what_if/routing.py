"""Quality, latency and cost of every query at every depth available to routing.

Depths of a ranking, or numbers of passages sent to a reader (answers judged by their score), with limits on
a way of answering: all queries at one depth, or each at the depth chosen by a rule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from core.analysis.depth import latency_by_depth
from core.analysis.families import Family, Known, Option, Sent
from core.analysis.readers import Answered, answered, label_of
from core.analysis.workspace.answers import TRIAL, as_name, as_word
from core.analysis.workspace.clusters import groups
from core.analysis.workspace.comparable import machine
from core.analysis.workspace.figures.costs import run_totals
from core.analysis.workspace.figures.latencies import sample
from core.analysis.workspace.query_sets import among
from core.analysis.workspace.scope import MEAN, Answering, Percentile, Quality
from core.analysis.workspace.scores import Evidence, at_cutoff, evidence
from core.analysis.workspace.view import View
from core.answers import TOP_K
from core.arrays import Floats, Grades
from core.decide.axes import COST, LATENCY, QUALITY, Axis
from core.decide.routing import BY_CANDIDATE, Depths, replayed, replayed_ms, replayed_usage
from core.metrics.rates import ANY
from core.prices.cost import cost_per_1k
from core.readers.curves import CURVE, POINT, by_query
from core.records import Basis
from core.stats.intervals import Labels
from core.stats.latency import TOTAL, per_query
from core.store import Snapshot

RERANK = "rerank"
COSTLESS = "The signal is known before the reader is asked, so looking at it costs nothing."
MADE_UP = f"The answers are those of {TRIAL}, which makes them up: what a router gains here is no evidence."
OF_READER = "Cost is that of the reader alone, as retrieval is the same; its latency is not compared."
_OWN = (LATENCY.key, COST.key, QUALITY.key)  # axes on which a way has its own numbers


class Times:
    """Latency per query of the options: measured, or modelled from the deepest run that was timed.

    Attributes:
        modelled: How smaller depths were modelled, in words; None if none was.
    """

    def __init__(self, view: View, options: Sequence[Option]) -> None:
        snapshot, table = view.snapshot, view.table
        ids = list(dict.fromkeys(option.run_id for option in options))
        runs = table.filter(pl.col("run_id").is_in(ids))
        whole = sample(snapshot, runs, view.latency)
        stages = per_query(snapshot.timings(ids)).filter(pl.col("stage") != TOTAL)
        totals = whole.select("run_id", pl.lit(TOTAL).alias("stage"), "query_id", "ms")
        self._rows = pl.concat([stages, totals])
        self._runs = {row["run_id"]: row for row in runs.iter_rows(named=True)}
        self._guessed = set(whole.filter("modelled")["run_id"])
        machines = {name: machine(run["environment"], run["origin"]) for name, run in self._runs.items()}
        same = view.latency.machine or machines[ids[0]]
        self._timed = {name for name in whole["run_id"].unique() if machines[name] == same}
        self._depth = {option.run_id: option.deep or option.depth or 0 for option in options}
        self._donor = max(self._timed, key=lambda run_id: self._depth.get(run_id, 0), default=None)
        self._lines = partial(latency_by_depth, snapshot, view.scope)
        self.modelled: str | None = None

    def reranked(self, option: Option) -> bool:
        """Return whether the option has a reranker."""
        return (self._runs[option.run_id]["reranker"] or "none") != "none"

    def of(self, option: Option) -> tuple[pl.DataFrame, str | None]:
        """Return query_id and ms of an option, and how they are known; no rows if unknown."""
        if option.deep is None and option.run_id in self._timed:
            imported = self._runs[option.run_id]["origin"] == "import"
            basis = Basis.IMPORTED if imported else Basis.MEASURED
            basis = Basis.MODELLED if option.run_id in self._guessed else basis
            return self._stage(option.run_id, TOTAL), str(basis)
        donor, deep = self._donor_of(option)
        known = donor in self._timed and option.depth is not None and deep >= option.depth
        if not known or not self.reranked(option):
            return self._rows.clear(), None
        by = "along the line fitted over K" if self._line(donor) else "in proportion to K"
        self.modelled = f"from the run at K = {deep}, its reranker's time {by}"
        rows = self._stage(donor, TOTAL)
        rows = rows.join(self._stage(donor, RERANK).rename({"ms": "rerank"}), on="query_id", how="inner")
        scaled = rows.select("query_id", pl.col("ms") - pl.col("rerank") + self._replayed(option, "rerank"))
        return scaled, str(Basis.MODELLED)

    def spent(self, option: Option, stage: str, *, embeds_anew: bool) -> pl.DataFrame:
        """Return the time a query has taken at an option by the end of a stage, as far as it counts."""
        whole, basis = self.of(option)
        if stage == TOTAL:
            if embeds_anew:
                return whole
            embedded = self._stage(option.run_id, "embed").rename({"ms": "embed"})
            rest = whole.join(embedded, on="query_id", how="left")
            return rest.with_columns(pl.col("ms") - pl.col("embed").fill_null(0.0))
        if basis == Basis.MODELLED:
            rows = self._stage(self._donor_of(option)[0], RERANK)
            return rows.with_columns(self._replayed(option, "ms").alias("ms"))
        return self._stage(option.run_id, RERANK)

    def _donor_of(self, option: Option) -> tuple[str, int]:
        """Return the run that an option is modelled from, and its K; "" and 0 if there is none."""
        donor = (option.run_id if option.deep is not None else self._donor) or ""
        return donor, self._depth.get(donor, 0)

    def _replayed(self, option: Option, column: str) -> pl.Expr:
        donor, deep = self._donor_of(option)
        return replayed_ms(pl.col(column), option.depth or 0, deep, self._line(donor))

    def _stage(self, run_id: str, stage: str) -> pl.DataFrame:
        return self._rows.filter(run_id=run_id, stage=stage).select("query_id", "ms")

    def _line(self, donor: str) -> tuple[float, float] | None:
        """Return slope and intercept of the donor's reranker, if its depths were fitted."""
        fitted = self._lines().filter(run_id=donor).drop_nulls("slope")
        return next(fitted.select("slope", "intercept").iter_rows(), None)


@dataclass(frozen=True, slots=True, eq=False)
class Routable:
    """All data for judging a routing between some options."""

    options: tuple[Option, ...]  # the depths, the shallowest first
    query_ids: tuple[str, ...]  # the queries that every option scores
    left_out: int  # judged queries that some option cannot score
    depths: Depths  # their quality, latency and cost
    latency_basis: tuple[str | None, ...]  # per option, how its latency is known; None = unknown
    cost_basis: tuple[str | None, ...]  # the same for its cost
    notes: tuple[str, ...]  # what a reader must know, in sentences
    clusters: Labels | None = None  # per query, equal within a group; None = each is independent


@dataclass(frozen=True, slots=True)
class RoutingWay:
    """How a query gets from the shallowest option to a deeper one."""

    known: Known = "before"  # when the signal is known
    one_family: bool = True  # whether the options differ only in their depth, so that they share the search
    # whether the reranker's scores of the first passages hold for a deeper pool, so that only the further
    # passages are sent
    pointwise: bool = True
    rewrites: bool = False  # whether a deeper option rewrites the query, so that nothing is shared


def gather(view: View, options: Sequence[Option], *, way: RoutingWay | None = None) -> Routable | None:
    """Read the data for routing between some options.

    Args:
        options: Two or more, the shallowest first.
        way: How a query gets from the shallowest option to a deeper one; it decides time and cost until then.

    Returns:
        The values, or None if no query is scored at every option.
    """
    judged = _quality(view, options)
    if judged is None:
        return None
    query_ids, scores = judged
    kept = np.isfinite(scores).all(axis=0)
    if not kept.any():
        return None
    ids = tuple(np.array(query_ids)[kept])
    way = way or RoutingWay()
    times = Times(view, options)
    waits = [times.of(option) for option in options]
    paid = [_cost(view, option) for option in options]
    stage = _spent(way, reranked=times.reranked(options[0]))
    probe_ms: Floats | float = 0.0
    again = 0.0
    if stage is not None:
        probe_ms = _column(times.spent(options[0], stage, embeds_anew=way.rewrites), ids)
        again = _paid_again(view, options[0], way, paid[0][0])
    depths = Depths.of(
        scores[:, kept],
        np.stack([_column(rows, ids) for rows, _ in waits]),
        np.array([[cost] for cost, _ in paid]),
        probe_ms=probe_ms,
        probe_cost=again,
        higher_is_better=view.quality.higher_is_better,
    )
    return Routable(
        tuple(options),
        ids,
        int((~kept).sum()),
        depths,
        tuple(basis for _, basis in waits),
        tuple(basis for _, basis in paid),
        tuple(_notes(way, stage, times.modelled)),
        groups(view.snapshot, view.scope).labels(ids),
    )


def _quality(view: View, options: Sequence[Option]) -> tuple[tuple[str, ...], Floats] | None:
    """Return the judged queries, and the measure of each at every option [D, Q]; NaN if not applicable."""
    measure, golden = view.quality.measure, view.scope.golden_set_id
    if measure is None or golden is None:
        return None
    ids = list(dict.fromkeys(option.run_id for option in options))
    graded = evidence(view.snapshot, ids, golden, [measure], only=among(view.snapshot, view.scope))
    scored = at_cutoff(graded, measure)
    rows = []
    for option in options:
        row = graded.run_ids.index(option.run_id)
        if option.deep is None:
            rows.append(scored[row])
        elif not measure.info.needs <= {"pool"}:  # its needs are only known for the original ranking
            rows.append(np.full(scored.shape[1], np.nan))
        else:
            grades = _replayed_grades(view.snapshot, graded, row, option)
            counts = graded.counts_of(row)
            rows.append(graded.rescored(measure, grades[None], counts[None])[0])
    return graded.query_ids, np.stack(rows)


def _replayed_grades(snapshot: Snapshot, graded: Evidence, row: int, option: Option) -> Grades:
    """Return the grades of the final ranking that a smaller K would have given: int8 [queries, depth]."""
    rankings = snapshot.rankings([option.run_id])
    final, pool = (rankings.filter(pl.col("stage") == stage) for stage in ("final", "pool"))
    place = {query_id: at for at, query_id in enumerate(graded.query_ids)}
    kept = replayed(final, pool, option.depth or 0).filter(pl.col("query_id").is_in(graded.query_ids))
    grades = np.full(graded.grades.shape[1:], -1, dtype=np.int8)
    query = kept["query_id"].replace_strict(place, return_dtype=pl.Int64).to_numpy()
    ranks, deep = kept["rank"].to_numpy() - 1, kept["deep_rank"].to_numpy() - 1
    grades[query, ranks] = graded.grades[row, query, deep]
    return grades


def _column(rows: pl.DataFrame, ids: Sequence[str]) -> Floats:
    wanted = pl.DataFrame({"query_id": ids}).join(rows, on="query_id", how="left", maintain_order="left")
    return wanted["ms"].fill_null(np.nan).to_numpy()


def _cost(view: View, option: Option) -> tuple[float, str | None]:
    """Return $ per 1,000 queries of an option and how it is known; NaN and None if unknown."""
    run = view.table.row(by_predicate=pl.col("run_id") == option.run_id, named=True)
    if option.deep is None or option.depth is None:
        cost, basis = run["cost"], run["cost_basis"]
    elif run["cost_per"] is not None:  # no reader answered from depths that were not run
        return np.nan, None
    else:
        usage = replayed_usage(view.snapshot.usage([option.run_id]), option.depth, option.deep)
        whole = run_totals(pl.DataFrame([run]).select("run_id", "manifest", "spec"), usage, view.book)
        cost, basis = whole["usd_per_1k"][0], str(Basis.MODELLED)
    return (np.nan, None) if cost is None else (float(cost), basis)


def _spent(way: RoutingWay, *, reranked: bool) -> str | None:
    """Return the shallowest option's stage that a query sent deeper runs for its signal, if any."""
    if way.known == "before" or (way.known == "pool" and way.one_family and reranked):
        return None
    return RERANK if way.one_family and way.known == "rerank" else TOTAL


def _paid_again(view: View, option: Option, way: RoutingWay, whole: float) -> float:
    """Return the shallowest option's cost that a query sent deeper pays again; $ per 1,000 queries."""
    if not (way.one_family and way.known == "rerank"):
        return whole
    usage = view.snapshot.usage([option.run_id]).filter(pl.col("stage") == RERANK)
    if option.deep is not None and option.depth is not None:
        usage = replayed_usage(usage, option.depth, option.deep)
    if way.pointwise:  # per-passage charges are billed once, per-call charges twice
        usage = usage.filter(~pl.col("unit").is_in(BY_CANDIDATE))
    costs = cost_per_1k(usage, view.book)
    return 0.0 if costs.is_empty() else float(costs["usd_per_1k"].fill_null(np.nan).sum())


def _notes(way: RoutingWay, stage: str | None, modelled: str | None) -> list[str]:
    notes = []
    if modelled:
        notes.append(f"Latency and cost of depths that were not run are modelled {modelled}.")
    if way.known == "pool" and stage is None:
        notes.append("The signal is known before the reranker is asked, so looking at it costs nothing.")
    if stage == RERANK:
        pays = "the passages that it has not sent yet" if way.pointwise else "both calls"
        notes.append(
            "The signal is known after the shallow call of the reranker: a query sent deeper also waits for "
            f"that call, and pays for {pays}."
        )
    if stage == TOTAL:
        again = "searches again" if way.one_family else "goes through both stacks"
        again = "is rewritten and searched again" if way.rewrites else again
        notes.append(f"The signal is known after the shallow search: a query sent deeper {again}.")
    return notes


def families(view: View) -> list[Family]:
    """Return the readers of every stack that answered from two numbers of passages or more."""
    known = answered(view.snapshot, view.scope, view.book)
    scorer = _scorer(known, view.scope.answering)
    ranked = known.runs.filter("has_rankings")
    if scorer is None or ranked.is_empty():
        return []
    rows = _scores(known, scorer).join(ranked.select("run_id", "name"), on="run_id")
    points = rows.select(*POINT, "name").unique().sort("name", *CURVE, "k", nulls_last=True)
    labelled = points.with_columns(label_of(points))
    found = []
    for (stack, label, *curve), part in labelled.group_by("name", "label", *CURVE, maintain_order=True):
        run_id, reader, prompt, temperature = curve
        options = tuple(
            Option(f"k = {k}", str(run_id), None, sent=Sent(reader, prompt, temperature, scorer, k))
            for k in part["k"].to_list()
        )
        if len(options) > 1:
            found.append(Family(f"{stack} · {scorer} of {label}", None, options, answers=True))
    return found


def quality(option: Option, usual: Quality) -> Quality:
    """Return the measure that judges an option: the score of the answers, or the workspace's measure."""
    if option.sent is None:
        return usual
    reader, scorer = as_word(option.sent.reader or ANY), as_word(option.sent.scorer)
    return Quality(str(Answering(reader, scorer).measure()), option.sent.k)


def gather_sent(view: View, options: Sequence[Option]) -> Routable | None:
    """Read scores and costs of the answers from every number of passages; None if no query has all."""
    known = answered(view.snapshot, view.scope, view.book)
    sent = [option.sent for option in options if option.sent is not None]
    rows = _scores(known, sent[0].scorer)
    parts = [
        _at(rows, option).select("query_id", pl.col("value").alias(str(place)))
        for place, option in enumerate(options)
    ]
    table = parts[0]
    for part in parts[1:]:
        table = table.join(part, on="query_id", how="inner")
    if table.is_empty():
        return None
    table = table.sort("query_id")
    every = pl.concat([part.select("query_id") for part in parts])["query_id"].n_unique()
    costs = [_sent_cost(known, option) for option in options]
    depths = Depths.of(
        table.drop("query_id").to_numpy().T / 100, cost=np.array([[cost] for cost in costs]).astype(float)
    )
    notes = [COSTLESS, OF_READER, *([MADE_UP] if sent[0].reader == TRIAL else [])]
    basis = tuple(None if np.isnan(cost) else str(Basis.MEASURED) for cost in costs)
    unknown: tuple[str | None, ...] = (None,) * len(options)
    ids = tuple(table["query_id"])
    alike = known.groups.labels(ids)
    return Routable(tuple(options), ids, every - len(ids), depths, unknown, basis, tuple(notes), alike)


def _scorer(known: Answered, answering: Answering) -> str | None:
    """Return the scorer set in the workspace, or else its usual one."""
    wanted = as_name(answering.scorer)
    if answering.scorer not in (ANY, ""):
        return wanted if wanted in known.scorers else None
    return next(iter(known.scorers), None)


def _scores(known: Answered, scorer: str) -> pl.DataFrame:
    rows = by_query(known.scores, scorer)
    return rows.filter(pl.col("query_id").is_not_null(), pl.col("mode") == TOP_K, pl.col("k") >= 1)


def _at(rows: pl.DataFrame, option: Option) -> pl.DataFrame:
    """Return an option's rows of a table with the columns of a point."""
    sent = option.sent
    assert sent is not None  # noqa: S101 - options of one family are alike
    return rows.filter(
        pl.col("run_id") == option.run_id,
        pl.col("k") == sent.k,
        *(pl.col(name).eq_missing(pl.lit(value)) for name, value in sent._asdict().items() if name in CURVE),
    )


def _sent_cost(known: Answered, option: Option) -> float:
    """Return $ per 1,000 answers of the reader, or NaN if unknown."""
    row = _at(known.spent.filter(pl.col("mode") == TOP_K), option)["usd_per_1k"]
    return np.nan if row.is_empty() or row[0] is None else float(row[0])


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of a workspace on ways between some options; without limits, every way meets them."""

    sla_ms: float | None = None  # limit on the latency of this percentile
    percentile: Percentile = "p50"
    budget: float | None = None
    floor: float | None = None
    higher_is_better: bool = True
    beside: tuple[str, ...] = ()  # per option the other limits that it breaks, in words; "" if none

    @classmethod
    def of(cls, view: View, options: Sequence[Option]) -> Bounds:
        """Read the bounds from a workspace; a floor applies to its own measure only."""
        limits, decision = view.constraints, view.decision
        rows = {run_id: row for row, run_id in enumerate(view.table["run_id"])}
        others = [(place, axis) for place, axis in enumerate(decision.axes) if axis.key not in _OWN]
        beside = []
        for option in options:
            row = rows.get(option.run_id) if option.deep is None else None
            broken = [
                axis.beyond for place, axis in others if row is not None and decision.over[row, place] > 0
            ]
            beside.append(" and ".join(broken))
        same = quality(options[-1], view.quality) == view.quality if options else True
        return cls(
            limits.sla_ms, view.latency.percentile, limits.budget, limits.min_quality if same else None,
            limits.higher_is_better, tuple(beside),
        )  # fmt: skip

    def broken(self, way: Mapping[str, Any], used: Sequence[int] = ()) -> str | None:
        """Return the limits that a way breaks, as far as its numbers are known, or None.

        Args:
            way: p50, p95, cost and quality; null = unknown.
            used: The options that it uses.
        """
        value, floor = way["quality"], self.floor
        worse = floor is not None and (value < floor if self.higher_is_better else value > floor)
        words = [
            _over(LATENCY, way.get("mean_ms" if self.percentile == MEAN else self.percentile), self.sla_ms),
            _over(COST, way["cost"], self.budget),
            f"{'under' if self.higher_is_better else 'over'} the {QUALITY.limit_word}" if worse else "",
            *(self.beside[place] for place in used if place < len(self.beside)),
        ]
        return " and ".join(dict.fromkeys(filter(None, words))) or None


def _over(axis: Axis, value: float | None, most: float | None) -> str:
    if value is None or most is None or value <= most:
        return ""
    return f"{axis.written(value - most)} {axis.beyond}"
