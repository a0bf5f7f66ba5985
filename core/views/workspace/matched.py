"""A workspace narrowed to what compares, where nobody can be asked how: what the sidebar does by default."""

from __future__ import annotations

from dataclasses import dataclass, replace

from core.prices import PriceBook
from core.store import Snapshot
from core.views.workspace import comparable
from core.views.workspace.comparable import Comparability
from core.views.workspace.judged_offer import about_judging, narrowed
from core.views.workspace.query_sets import QuerySets, among, query_sets
from core.views.workspace.scope import Apart, Judging, Latency, Quality, Scope
from core.views.workspace.stacks import stack_table

_ANY = Judging()


@dataclass(frozen=True)
class Matched:
    """What compares.

    Attributes:
        scope: The workspace, on the queries that all its runs were asked, without those that do not compare.
        latency: The latency, of one machine.
        compared: What differed.
    """

    scope: Scope
    latency: Latency
    compared: Comparability


def together(
    snapshot: Snapshot, scope: Scope, quality: Quality, latency: Latency, book: PriceBook
) -> Matched:
    """A workspace as it is, with what there is to say about what does not compare in it; see `matched`."""
    sets = query_sets(snapshot, scope)
    table = stack_table(snapshot, scope, quality, latency, book)
    said = (
        comparable.about_queries(sets, shared=False, offer=False),
        comparable.about_figures(comparable.foreign_figures(table)[1], together=True, offer=False),
        comparable.about_machines(comparable.machines(table), None),
    )
    latency = replace(latency, answering=comparable.answering(table))
    return Matched(scope, latency, comparable.comparability(said, {}))


def matched(
    snapshot: Snapshot,
    scope: Scope,
    quality: Quality,
    latency: Latency,
    book: PriceBook,
    *,
    wanted: Judging = _ANY,
) -> Matched:
    """Narrow a workspace to what compares.

    Args:
        snapshot: Where to read.
        scope: The workspace as it was asked for.
        quality: Measure and cutoff.
        latency: Percentile and scope.
        book: Prices.
        wanted: How well queries must be judged to count.

    Returns:
        The workspace to decide on, and what there is to say about the rest.

    Raises:
        InputError: If too few queries are judged so well.
    """
    sets = query_sets(snapshot, scope)
    apart = out_of_reach(snapshot, sets)
    scope = replace(scope, shared=sets.differ, apart=Apart.of(apart))
    table = stack_table(snapshot, scope, quality, latency, book)
    foreign, words = comparable.foreign_figures(table)
    if foreign:
        names = dict(table.select("run_id", "name").iter_rows())
        apart |= {run_id: (names[run_id], why) for run_id, why in foreign.items()}
        scope = replace(scope, apart=Apart.of(apart))
        table = stack_table(snapshot, scope, quality, latency, book)
    found = comparable.machines(table)
    if len(found) > 1:
        latency = replace(latency, machine=next(iter(found)))
        table = comparable.at_machine(table, latency.machine)
    latency = replace(latency, answering=comparable.answering(table))
    scope = narrowed(snapshot, scope, wanted)
    said = (
        comparable.about_queries(sets, shared=sets.differ or wanted.least > 0, offer=False),
        *about_judging(scope, len(among(snapshot, scope) or ())),
        comparable.about_figures(words, together=False, offer=False),
        comparable.about_machines(found, latency.machine),
    )
    return Matched(scope, latency, comparable.comparability(said, apart))


def out_of_reach(snapshot: Snapshot, sets: QuerySets) -> dict[str, tuple[str, str]]:
    """Names of the runs that share too few queries, and why they are out, by run_id."""
    if not sets.apart:
        return {}
    labels = dict(snapshot.runs().select("run_id", "label").iter_rows())
    return {
        run_id: (labels[run_id], f"was asked {asked} of {sets.judged} judged queries")
        for run_id, asked in sets.apart.items()
    }
