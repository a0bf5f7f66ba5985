"""Quality, latency and cost of every query at every depth that a routing can choose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from core.decide.routing.policies import Depths, Floats
from core.decide.routing.replay import BY_CANDIDATE, replayed, replayed_usage
from core.prices import PriceBook
from core.prices.cost import cost_per_1k
from core.records import Basis
from core.stats.latency import TOTAL
from core.store import Snapshot
from core.views.what_if.routing.families import Option
from core.views.what_if.routing.signals import Known
from core.views.what_if.routing.times import RERANK, Asked, Times
from core.views.workspace.priced import run_totals
from core.views.workspace.query_sets import among
from core.views.workspace.scores import Evidence, Grades, at_cutoff, evidence

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
        snapshot: Where to read.
        table: The stack table.
        asked: What the sidebar says.
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
    probe = times.spent(options[0], stages)
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
        notes.append(f"The signal is known after the shallow search: a query sent deeper {again}.")
    return notes
