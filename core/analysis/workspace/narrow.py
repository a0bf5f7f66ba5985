"""A workspace narrowed to what is comparable: the same queries, well judged, like averages, one machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np
import polars as pl

from core.analysis.workspace import comparable
from core.analysis.workspace.clusters import about_groups, one_known
from core.analysis.workspace.comparable import APART, Comparability
from core.analysis.workspace.query_sets import (
    ANY,
    ENOUGH,
    EVERY_SET,
    LEAST,
    WORDS,
    QuerySets,
    among,
    asked_in,
    chosen_runs,
    holes,
    judged_everywhere,
    out_of_reach,
    query_sets,
    well_judged,
)
from core.analysis.workspace.scope import Ids, Judging, Latency, Quality, Scope
from core.analysis.workspace.scores import evidence
from core.analysis.workspace.stacks import runs_in, stack_table
from core.analysis.workspace.units import other_units
from core.errors import InputError
from core.number_format import count as counted
from core.number_format import percent
from core.prices import PriceBook
from core.store import Snapshot

SPREAD = 0.05  # Difference in two stacks' share of holes from which they count as unevenly judged
_CAVEAT = (
    "They are no random sample: judged is what some stack brought to the judges, and stacks like that one "
    "fare better on them."
)
_SHARES = {"half": "at least half", "most": "at least 80 %", "all": "everything"}
_ANY = Judging()


@dataclass(frozen=True)
class Offer:
    """Choices if stacks are unevenly judged."""

    k: int  # the cutoff
    fewest: float = 0.0  # share of holes in the Top-K of the stack with the fewest, 0..1
    most: float = 0.0  # of the one with the most
    # Word of `LEAST` → queries left; only those with `ENOUGH`, if it matters
    left: Mapping[str, int] = field(default_factory=dict)
    everywhere: int = 0  # queries that every golden set judges; 0 if that isn't offered


def judging_offer(snapshot: Snapshot, scope: Scope, quality: Quality) -> Offer:
    """Find out whether the ranked runs of a workspace are evenly judged, and list the options."""
    golden = scope.golden_set_id
    run_ids = chosen_runs(snapshot, scope).filter("has_rankings")["run_id"].to_list()
    if golden is None or quality.measure is None or not run_ids:
        return Offer(quality.k)
    graded = evidence(snapshot, run_ids, golden, only=among(snapshot, scope))
    asked = asked_in(graded, snapshot.timings)
    n = len(graded.query_ids)
    shares = holes(graded, quality.k).sum(axis=1) / np.maximum(asked.sum(axis=1), 1) / quality.k
    fewest, most = float(shares.min()), float(shares.max())
    left = {}
    for word, least in LEAST.items() if most - fewest >= SPREAD else ():
        left[word] = int((asked.all(axis=0) & well_judged(graded, quality.k, least)).sum())
    common = 0
    if snapshot.golden_sets(scope.collection_id).height > 1:
        common = len(judged_everywhere(snapshot, scope.collection_id) & set(graded.query_ids))
    return Offer(
        k=quality.k,
        fewest=fewest,
        most=most,
        left={word: count for word, count in left.items() if ENOUGH <= count < n},
        everywhere=common if ENOUGH <= common < n else 0,
    )


class NarrowChoices:
    """How runs that differ are compared: on comparable parts, or unchanged; a page asks its visitor instead.

    Attributes:
        offers: Whether remarks name the controls of the page.
    """

    offers = False

    def __init__(self, judging: Judging = _ANY, *, as_they_are: bool = False) -> None:
        self._judging, self._as_they_are = judging, as_they_are

    def shared(self, sets: QuerySets) -> bool:
        """Return whether only queries that all compared stacks have count."""
        return sets.differ and not self._as_they_are

    def together(self) -> bool:
        """Return whether averages with a different basis share one scale."""
        return self._as_they_are

    def judging(self, scope: Scope, offer: Callable[[Scope], Offer]) -> tuple[Judging, tuple[str, ...]]:
        """Return how well a query must be judged to count, and the alternatives."""
        del scope, offer
        return self._judging, ()

    def machine(self, names: list[str]) -> str | None:
        """Return the machine whose latencies are compared, if there are several; None = all."""
        return None if self._as_they_are else names[0]


@dataclass(frozen=True)
class Narrowed:
    """Comparable runs and queries."""

    scope: Scope  # the workspace with the queries that count, without incomparable runs
    latency: Latency  # the latency, from one machine
    table: pl.DataFrame  # the stack table of the two
    compared: Comparability  # the differences


@dataclass(frozen=True)
class Reads:
    """Read functions for narrowing; a page supplies cached ones."""

    stacks: Callable[[Snapshot, Scope, Quality, Latency, PriceBook], pl.DataFrame] = stack_table
    sets: Callable[[Snapshot, Scope, Quality], QuerySets] = query_sets
    offer: Callable[[Snapshot, Scope, Quality], Offer] = judging_offer


READS = Reads()


def narrow(
    snapshot: Snapshot,
    scope: Scope,
    quality: Quality,
    latency: Latency,
    book: PriceBook,
    *,
    choices: NarrowChoices | None = None,
    reads: Reads = READS,
) -> Narrowed:
    """Narrow a workspace to what is comparable.

    Args:
        scope: The workspace as requested.
        choices: How runs that differ are compared.

    Returns:
        The workspace to decide on, and remarks on the rest.

    Raises:
        InputError: If too few queries are judged as well as required.
    """
    choices = choices or NarrowChoices()
    together = cache(choices.together)  # a page asks once
    others, units = other_units(snapshot, chosen_runs(snapshot, scope))
    apart = _named(snapshot, scope, others) if units and not together() else {}
    scope = replace(scope, apart=Ids.of(apart))
    sets = reads.sets(snapshot, scope, quality)
    if shared := choices.shared(sets):
        everything = bool(sets.apart) and together()
        apart |= {} if everything else _named(snapshot, scope, out_of_reach(sets))
        counted = sets.every if everything else sets.shared
        scope = replace(scope, shared=counted, lacked=sets.lacked, apart=Ids.of(apart))
    table = reads.stacks(snapshot, scope, quality, latency, book)
    unlike = (comparable.foreign_figures(table), comparable.other_texts(table))
    foreign = {run_id: why for odd, _ in unlike for run_id, why in odd.items()}
    words = "; ".join(filter(None, (units, *(said for _, said in unlike))))
    odd = bool(units or foreign)
    if foreign and not together():
        names = dict(table.select("run_id", "name").iter_rows())
        apart |= {run_id: (names[run_id], why) for run_id, why in foreign.items()}
        scope = replace(scope, apart=Ids.of(apart))
        table = reads.stacks(snapshot, scope, quality, latency, book)
    wanted, more = choices.judging(scope, lambda asked: reads.offer(snapshot, asked, quality))
    if wanted:
        scope = _well_judged(snapshot, scope, wanted)
        table = reads.stacks(snapshot, scope, quality, latency, book)
    machines = comparable.machines(table)
    if len(machines) > 1:
        latency = replace(latency, machine=choices.machine(list(machines)))
        table = reads.stacks(snapshot, scope, quality, latency, book)
    latency = replace(latency, answering=comparable.answering(table))
    said = (
        comparable.about_queries(sets, shared=shared or wanted.least > 0, offer=choices.offers),
        *about_judging(scope, len(among(snapshot, scope) or ())),
        comparable.about_figures(words, odd=odd, together=odd and together(), offer=choices.offers),
        comparable.about_machines(machines, latency.machine),
    )
    if one_known(snapshot, scope.golden_set_id):  # others are unjudged by design, which is stated
        more = ()
    out = pl.DataFrame(sorted(apart.values()), schema=APART, orient="row")
    told = Comparability(tuple(filter(None, said)), out, more, about_groups(table))
    return Narrowed(scope, latency, table, told)


def _named(snapshot: Snapshot, scope: Scope, why: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Return the names of excluded runs and the reasons, by run_id."""
    names = dict(runs_in(snapshot, scope).select("run_id", "name").iter_rows())
    return {run_id: (names[run_id], reason) for run_id, reason in why.items()}


def _well_judged(snapshot: Snapshot, scope: Scope, wanted: Judging) -> Scope:
    """Return the workspace on well judged queries only, of which there must be `ENOUGH`."""
    scope = replace(scope, judging=wanted)
    left = len(among(snapshot, scope) or ())
    if left < ENOUGH:
        raise InputError(
            f"Only {counted(left, 'query is', 'queries are')} judged so well for every run; it takes "
            f"{ENOUGH}.",
            do="Choose fewer runs or a smaller cutoff, or ask for less to be judged.",
        )
    return scope


def about_judging(scope: Scope, n: int) -> tuple[str, ...]:
    """State that only well judged queries count."""
    wanted, said = scope.judging, []
    if wanted.everywhere:
        said.append(f"Only queries count that every golden set of the collection judges: n = {n}.")
    if wanted.least:
        share = _SHARES[WORDS[wanted.least]]
        said.append(
            f"Only queries count of whose Top-{wanted.k} {share} is judged in every stack: n = {n}. {_CAVEAT}"
        )
    return tuple(said)


def about_offer(offer: Offer, scope: Scope) -> tuple[str, ...]:
    """State that well judged queries could be chosen, but are not."""
    said = []
    if offer.left and not scope.judging.least:
        left = ", ".join(f"{_SHARES[word]}: n = {count}" for word, count in offer.left.items())
        said.append(
            f"The stacks are not judged alike: of their Top-{offer.k} {percent(offer.fewest)} to "
            f"{percent(offer.most)} is unjudged and counts as 0. “Judged” in Settings compares on "
            f"queries that are judged in every stack ({left})."
        )
    if offer.everywhere and not scope.judging.everywhere:
        said.append(
            f"The golden sets of this collection judge different queries. “{EVERY_SET}” in Settings keeps "
            f"the n = {offer.everywhere} that all judge, so that what one says can be laid beside another."
        )
    return tuple(said)


def judging(k: int, word: str = ANY, *, everywhere: bool = False) -> Judging:
    """Return the requested judging, by the word of `LEAST`, or any."""
    least = LEAST.get(word, 0.0)
    return Judging(k if least else 0, least, everywhere)
