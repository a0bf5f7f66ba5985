"""Quality, latency and cost of every query at every depth that a routing can choose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from core.decide.routing.policies import BY_CANDIDATE, Depths, Floats, replayed, replayed_ms, replayed_usage
from core.prices import PriceBook
from core.prices.cost import cost_per_1k
from core.records import Basis
from core.stats.latency import TOTAL, per_query
from core.store import Snapshot
from core.views.what_if.deeper import latency_by_depth
from core.views.what_if.routing.families import Known, Option
from core.views.workspace.comparable import machine
from core.views.workspace.costs import run_totals
from core.views.workspace.latencies import sample
from core.views.workspace.query_sets import among
from core.views.workspace.scope import Latency, Quality, Scope
from core.views.workspace.scores import Evidence, Grades, at_cutoff, evidence

RERANK = "rerank"


@dataclass(frozen=True, slots=True)
class Asked:
    """What the sidebar says."""

    scope: Scope  # the workspace
    quality: Quality  # measure and cutoff
    latency: Latency  # percentile and scope
    book: PriceBook  # prices


class Times:
    """Latency per query of the options: measured, or modelled from the deepest run that was timed.

    Attributes:
        modelled: How smaller depths were modelled, in words; None where none was.
    """

    def __init__(
        self, snapshot: Snapshot, table: pl.DataFrame, asked: Asked, options: Sequence[Option]
    ) -> None:
        self._snapshot, self._asked = snapshot, asked
        self._ids = list(dict.fromkeys(option.run_id for option in options))
        self._runs = table.filter(pl.col("run_id").is_in(self._ids))
        whole = sample(snapshot, self._runs, asked.latency)
        self._guessed = set(whole.filter("modelled")["run_id"])
        stages = per_query(snapshot.timings(self._ids)).filter(pl.col("stage") != TOTAL)
        totals = whole.select("run_id", pl.lit(TOTAL).alias("stage"), "query_id", "ms")
        self._rows = pl.concat([stages, totals])
        timed = set(whole["run_id"]) - self._elsewhere(asked.latency.machine)
        depth = {option.run_id: option.deep or option.depth or 0 for option in options}
        self._timed = timed
        self._donor = max(timed, key=lambda run_id: depth.get(run_id, 0), default=None)
        self._depth = depth
        self.modelled: str | None = None

    def _elsewhere(self, chosen: str | None) -> set[str]:
        """Runs that were timed on another machine than the chosen one, or than the first."""
        rows = self._runs.select("run_id", "environment", "origin").iter_rows()
        found = {run_id: machine(environment, origin) for run_id, environment, origin in rows}
        same = chosen or found[self._ids[0]]
        return {run_id for run_id, name in found.items() if name != same}

    def reranked(self, option: Option) -> bool:
        """Whether the option has a reranker."""
        run = self._runs.row(by_predicate=pl.col("run_id") == option.run_id, named=True)
        return (run["reranker"] or "none") != "none"

    def of(self, option: Option) -> tuple[pl.DataFrame, str | None]:
        """query_id and ms of an option, and how they are known; no rows where they are not."""
        if option.deep is None and option.run_id in self._timed:
            origin = self._runs.row(by_predicate=pl.col("run_id") == option.run_id, named=True)["origin"]
            basis = Basis.IMPORTED if origin == "import" else Basis.MEASURED
            basis = Basis.MODELLED if option.run_id in self._guessed else basis
            return self._stage(option.run_id, TOTAL), str(basis)
        donor = option.run_id if option.deep is not None else self._donor
        deep = self._depth.get(donor or "", 0)
        if donor is None or donor not in self._timed or option.depth is None or deep < option.depth:
            return self._rows.clear(), None
        if not self.reranked(option):
            return self._rows.clear(), None
        return self._scaled(donor, option.depth, deep), str(Basis.MODELLED)

    def spent(
        self, option: Option, stages: Sequence[str], *, embeds_anew: bool = False
    ) -> pl.DataFrame | None:
        """What a query has taken at an option by the end of some stages; None = nothing counts."""
        if not stages:
            return None
        whole, basis = self.of(option)
        if stages == (TOTAL,) and embeds_anew:
            return whole
        if stages == (TOTAL,):
            embedded = self._stage(option.run_id, "embed").rename({"ms": "embed"})
            rest = whole.join(embedded, on="query_id", how="left")
            return rest.with_columns(pl.col("ms") - pl.col("embed").fill_null(0.0))
        if basis == Basis.MODELLED:
            donor = option.run_id if option.deep is not None else str(self._donor)
            line = self._line(donor)
            rows = self._stage(donor, RERANK)
            return rows.with_columns(
                replayed_ms(pl.col("ms"), option.depth or 0, self._depth[donor], line).alias("ms")
            )
        return self._stage(option.run_id, RERANK)

    def _stage(self, run_id: str, stage: str) -> pl.DataFrame:
        return self._rows.filter((pl.col("run_id") == run_id) & (pl.col("stage") == stage)).select(
            "query_id", "ms"
        )

    def _scaled(self, donor: str, depth: int, deep: int) -> pl.DataFrame:
        line = self._line(donor)
        by = "along the line fitted over K" if line else "in proportion to K"
        self.modelled = f"from the run at K = {deep}, its reranker's time {by}"
        rows = self._stage(donor, TOTAL).join(
            self._stage(donor, RERANK).rename({"ms": "rerank"}), on="query_id", how="inner"
        )
        scaled = replayed_ms(pl.col("rerank"), depth, deep, line)
        return rows.select("query_id", (pl.col("ms") - pl.col("rerank") + scaled).alias("ms"))

    def _line(self, donor: str) -> tuple[float, float] | None:
        """Slope and intercept of the donor's reranker, where its depths were fitted."""
        fitted = latency_by_depth(self._snapshot, self._asked.scope).filter(pl.col("run_id") == donor)
        if fitted.is_empty() or fitted["slope"][0] is None:
            return None
        return float(fitted["slope"][0]), float(fitted["intercept"][0])


_EMPTY_SLOT = -1


@dataclass(frozen=True, slots=True, eq=False)
class Routable:
    """Everything that a routing between some options is judged by."""

    options: tuple[Option, ...]  # the depths, the shallowest first
    query_ids: tuple[str, ...]  # the queries that every option scores
    left_out: int  # judged queries that some option cannot score
    depths: Depths  # their quality, latency and cost
    latency_basis: tuple[str | None, ...]  # per option, how its latency is known; None = it is not
    cost_basis: tuple[str | None, ...]  # the same of its cost
    notes: tuple[str, ...]  # what a reader must know, in sentences


@dataclass(frozen=True, slots=True)
class Way:
    """How a query gets from the shallowest option to a deeper one."""

    known: Known = "before"  # when the signal is known
    one_family: bool = True  # whether the options differ only in their depth, so that they share the search
    # whether the reranker's scores of the first passages hold for a deeper pool, so that only the further
    # passages are sent
    pointwise: bool = True
    rewrites: bool = False  # whether a deeper option asks the query rewritten, so that nothing is shared


def gather(
    snapshot: Snapshot,
    table: pl.DataFrame,
    asked: Asked,
    options: Sequence[Option],
    *,
    way: Way | None = None,
) -> Routable | None:
    """Read what a routing between some options needs.

    Args:
        options: Two or more, the shallowest first.
        way: How a query gets from the shallowest option to a deeper one; decides what it has spent by then.

    Returns:
        The values; None where no query is scored at every option.
    """
    found = _quality(snapshot, asked, options)
    if found is None:
        return None
    query_ids, scores = found
    kept = np.isfinite(scores).all(axis=0)
    if not kept.any():
        return None
    ids = tuple(np.array(query_ids)[kept])
    way = way or Way()
    times = Times(snapshot, table, asked, options)
    waits = [times.of(option) for option in options]
    paid = [_cost(snapshot, table, asked.book, option) for option in options]
    stages = _spent(way, reranked=times.reranked(options[0]))
    probe = times.spent(options[0], stages, embeds_anew=way.rewrites)
    again = _paid_again(snapshot, asked.book, options[0], way, paid[0][0]) if stages else 0.0
    depths = Depths.of(
        scores[:, kept],
        np.stack([_column(rows, ids) for rows, _ in waits]),
        np.array([[cost] for cost, _ in paid]),
        probe_ms=_column(probe, ids) if probe is not None else 0.0,
        probe_cost=again,
        higher_is_better=asked.quality.higher_is_better,
    )
    return Routable(
        tuple(options),
        ids,
        int((~kept).sum()),
        depths,
        tuple(basis for _, basis in waits),
        tuple(basis for _, basis in paid),
        tuple(_notes(way, stages, times.modelled)),
    )


def _quality(
    snapshot: Snapshot, asked: Asked, options: Sequence[Option]
) -> tuple[tuple[str, ...], Floats] | None:
    """The judged queries, and the measure of each at every option [D, Q]; NaN where not applicable."""
    measure, golden = asked.quality.measure, asked.scope.golden_set_id
    if measure is None or golden is None:
        return None
    ids = list(dict.fromkeys(option.run_id for option in options))
    found = evidence(snapshot, ids, golden, [measure], only=among(snapshot, asked.scope))
    scored = at_cutoff(found, measure)
    rows = []
    for option in options:
        row = found.run_ids.index(option.run_id)
        if option.deep is None:
            rows.append(scored[row])
        elif not measure.info.needs <= {"pool"}:  # what it needs is only known of the ranking as it was
            rows.append(np.full(scored.shape[1], np.nan))
        else:
            grades = _replayed_grades(snapshot, found, row, option)
            counts = found.counts_of(row)
            rows.append(found.rescored(measure, grades[None], counts[None])[0])
    return found.query_ids, np.stack(rows)


def _replayed_grades(snapshot: Snapshot, found: Evidence, row: int, option: Option) -> Grades:
    """The grades of the final ranking that a smaller K would have given: int8 [queries, depth]."""
    rankings = snapshot.rankings([option.run_id])
    final, pool = (rankings.filter(pl.col("stage") == stage) for stage in ("final", "pool"))
    place = {query_id: at for at, query_id in enumerate(found.query_ids)}
    kept = replayed(final, pool, option.depth or 0).filter(pl.col("query_id").is_in(found.query_ids))
    made = np.full(found.grades.shape[1:], _EMPTY_SLOT, dtype=np.int8)
    query = kept["query_id"].replace_strict(place, return_dtype=pl.Int64).to_numpy()
    ranks, deep = kept["rank"].to_numpy() - 1, kept["deep_rank"].to_numpy() - 1
    made[query, ranks] = found.grades[row, query, deep]
    return made


def _column(rows: pl.DataFrame, ids: Sequence[str]) -> Floats:
    values: Mapping[str, float] = dict(rows.select("query_id", "ms").iter_rows())
    return np.array([values.get(query_id, np.nan) for query_id in ids])


def _cost(
    snapshot: Snapshot, table: pl.DataFrame, book: PriceBook, option: Option
) -> tuple[float, str | None]:
    """$ per 1,000 queries of an option and how it is known; NaN and None where it is not."""
    run = table.row(by_predicate=pl.col("run_id") == option.run_id, named=True)
    if option.deep is None or option.depth is None:
        cost, basis = run["cost"], run["cost_basis"]
    elif run["cost_per"] is not None:  # no reader answered from depths that were not run
        return np.nan, None
    else:
        usage = replayed_usage(snapshot.usage([option.run_id]), option.depth, option.deep)
        whole = run_totals(pl.DataFrame([run]).select("run_id", "manifest", "spec"), usage, book)
        cost, basis = whole["usd_per_1k"][0], str(Basis.MODELLED)
    return (np.nan, None) if cost is None else (float(cost), basis)


def _spent(way: Way, *, reranked: bool) -> tuple[str, ...]:
    """The stages of the shallowest option that a query sent deeper goes through for its signal."""
    if way.known == "before" or (way.known == "pool" and way.one_family and reranked):
        return ()
    return (RERANK,) if way.one_family and way.known == "rerank" else (TOTAL,)


def _paid_again(snapshot: Snapshot, book: PriceBook, option: Option, way: Way, whole: float) -> float:
    """What of the shallowest option's cost a query sent deeper pays besides; $ per 1,000 queries."""
    if not (way.one_family and way.known == "rerank"):
        return whole
    usage = snapshot.usage([option.run_id]).filter(pl.col("stage") == RERANK)
    if option.deep is not None and option.depth is not None:
        usage = replayed_usage(usage, option.depth, option.deep)
    if way.pointwise:  # what is billed by passage is billed once, what is billed by call twice
        usage = usage.filter(~pl.col("unit").is_in(BY_CANDIDATE))
    costs = cost_per_1k(usage, book)
    return 0.0 if costs.is_empty() else float(costs["usd_per_1k"].fill_null(np.nan).sum())


def _notes(way: Way, stages: Sequence[str], modelled: str | None) -> list[str]:
    notes = []
    if modelled:
        notes.append(f"Latency and cost of depths that were not run are modelled {modelled}.")
    if way.known == "pool" and not stages:
        notes.append("The signal is known before the reranker is asked, so looking at it costs nothing.")
    if tuple(stages) == (RERANK,):
        pays = "the passages that it has not sent yet" if way.pointwise else "both calls"
        notes.append(
            "The signal is known after the shallow call of the reranker: a query sent deeper also waits for "
            f"that call, and pays for {pays}."
        )
    if tuple(stages) == (TOTAL,):
        again = "searches again" if way.one_family else "goes through both stacks"
        again = "is rewritten and searched again" if way.rewrites else again
        notes.append(f"The signal is known after the shallow search: a query sent deeper {again}.")
    return notes
