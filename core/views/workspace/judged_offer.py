"""Comparing on well judged queries only, where the stacks are not judged alike: what is left."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from core.errors import InputError
from core.store import Snapshot
from core.views import text
from core.views.workspace.chosen import chosen_runs
from core.views.workspace.judged import ANY, EVERY_SET, LEAST, WORDS, holes, judged_everywhere, well_judged
from core.views.workspace.query_sets import ENOUGH, among, asked_in
from core.views.workspace.scope import Judging, Quality, Scope
from core.views.workspace.scores import evidence

SPREAD = 0.05
"""From this difference of two stacks' share of holes on they are not judged alike."""
_CAVEAT = (
    "They are no random sample: judged is what some stack brought to the judges, and stacks like that one "
    "fare better on them."
)
_SHARES = {"half": "at least half", "most": "at least 80 %", "all": "everything"}


@dataclass(frozen=True)
class Offer:
    """What may be chosen.

    Attributes:
        k: The cutoff.
        n: Queries that the stacks are compared on otherwise.
        fewest: Share of holes in the Top-K of the stack that has fewest, 0..1.
        most: Of the one that has most.
        left: Word of `judged.LEAST` → queries left; only those with `ENOUGH`, where it matters.
        everywhere: Queries that every golden set judges; 0 where that is not on offer.
    """

    k: int
    n: int = 0
    fewest: float = 0.0
    most: float = 0.0
    left: Mapping[str, int] = field(default_factory=dict)
    everywhere: int = 0


def judging_offer(snapshot: Snapshot, scope: Scope, quality: Quality) -> Offer:
    """Find out whether the ranked runs of a workspace are judged alike, and what could be done.

    Args:
        snapshot: Where to read.
        scope: The workspace.
        quality: Measure and cutoff.
    """
    none, golden = Offer(quality.k), scope.golden_set_id
    run_ids = chosen_runs(snapshot, scope).filter("has_rankings")["run_id"].to_list()
    if golden is None or quality.measure is None or not run_ids:
        return none
    found = evidence(snapshot, run_ids, golden, only=among(snapshot, scope))
    asked = asked_in(found, snapshot.timings)
    n = len(found.query_ids)
    shares = holes(found, quality.k).sum(axis=1) / np.maximum(asked.sum(axis=1), 1) / quality.k
    fewest, most = float(shares.min()), float(shares.max())
    left = {
        word: int((asked.all(axis=0) & well_judged(found, quality.k, least)).sum())
        for word, least in LEAST.items()
        if most - fewest >= SPREAD
    }
    return Offer(
        k=quality.k,
        n=n,
        fewest=fewest,
        most=most,
        left={word: count for word, count in left.items() if ENOUGH <= count < n},
        everywhere=_everywhere(snapshot, scope, found.query_ids),
    )


def _everywhere(snapshot: Snapshot, scope: Scope, queries: tuple[str, ...]) -> int:
    if snapshot.golden_sets(scope.collection_id).height < 2:
        return 0
    common = len(judged_everywhere(snapshot, scope.collection_id) & set(queries))
    return common if ENOUGH <= common < len(queries) else 0


def narrowed(snapshot: Snapshot, scope: Scope, wanted: Judging) -> Scope:
    """The workspace on well judged queries only.

    Raises:
        InputError: If fewer than `ENOUGH` are left.
    """
    narrow = replace(scope, judging=wanted)
    left = len(among(snapshot, narrow) or ())
    if wanted and left < ENOUGH:
        raise InputError(
            f"Only {text.count(left, 'query is', 'queries are')} judged so well for every run; it takes "
            f"{ENOUGH}.",
            do="Choose fewer runs or a smaller cutoff, or ask for less to be judged.",
        )
    return narrow


def about_judging(scope: Scope, n: int) -> tuple[str, ...]:
    """What to say where only well judged queries count.

    Args:
        scope: The workspace.
        n: Queries that are left.
    """
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
    """What to say where well judged queries could be chosen, and are not."""
    said = []
    if offer.left and not scope.judging.least:
        left = ", ".join(f"{_SHARES[word]}: n = {count}" for word, count in offer.left.items())
        said.append(
            f"The stacks are not judged alike: of their Top-{offer.k} {text.percent(offer.fewest)} to "
            f"{text.percent(offer.most)} is unjudged and counts as 0. “Judged” in the sidebar compares on "
            f"queries that are judged in every stack ({left})."
        )
    if offer.everywhere and not scope.judging.everywhere:
        said.append(
            f"The golden sets of this collection judge different queries. “{EVERY_SET}” in the sidebar keeps "
            f"the n = {offer.everywhere} that all judge, so that what one says can be laid beside another."
        )
    return tuple(said)


def judging(quality: Quality, word: str = ANY, *, everywhere: bool = False) -> Judging:
    """What is wanted, by the word of `core.views.workspace.judged.LEAST`, or any."""
    least = LEAST.get(word, 0.0)
    return Judging(quality.k if least else 0, least, everywhere)
