"""Which queries the scores of several runs rest on: the shared ones, each run's own, or every judged one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import polars as pl

from core.views.workspace.comparable import about_queries
from core.views.workspace.query_sets import ENOUGH, Mask, QuerySets, asked_in, overlap
from core.views.workspace.scores import Evidence

NOT_ASKED = "not ranked: nothing says that the run was asked this query"


class Over(StrEnum):
    """Which judged queries count."""

    SHARED = "shared"
    OWN = "own"
    ALL = "all"


@dataclass(frozen=True)
class Counted:
    """Rankings on the queries that count.

    Attributes:
        found: Their grades.
        hidden: [runs, queries], what is not known though it stands there; None where all is known.
        why: Per run why.
        said: What was done, in words; empty where every run was asked every judged query.
    """

    found: Evidence
    hidden: Mask | None = None
    why: tuple[str, ...] = ()
    said: str = ""


def counted(found: Evidence, timings: Callable[[Sequence[str]], pl.DataFrame], over: Over | None) -> Counted:
    """Leave out what the runs were not asked."""
    asked = asked_in(found, timings)
    sets = overlap(found.run_ids, asked)
    over = over or (Over.SHARED if sets.differ else Over.ALL)
    if not sets.differ and not sets.unasked:
        return Counted(found)
    if over is Over.ALL:
        return Counted(found, said=f"{about_queries(sets, shared=False, offer=False)} {_otherwise(over)}")
    if over is Over.OWN:
        said = (
            f"Of {sets.judged} judged queries the runs were asked {sets.fewest} to {sets.most}; each is "
            f"scored on its own, so their values do not compare. {_otherwise(over)}"
        )
        return Counted(found, ~asked, (NOT_ASKED,) * len(found.run_ids), said)
    return _shared(found, asked, sets)


def _shared(found: Evidence, asked: Mask, sets: QuerySets) -> Counted:
    apart = np.array([run_id in sets.apart for run_id in found.run_ids])
    places = np.flatnonzero(asked[~apart].all(axis=0))
    why = tuple(_why(sets, run_id) for run_id in found.run_ids)
    hidden = np.repeat(apart[:, None], len(places), axis=1) if apart.any() else None
    said = f"{about_queries(sets, shared=True, offer=False)} {_otherwise(Over.SHARED)}"
    return Counted(found.among({found.query_ids[place] for place in places.tolist()}), hidden, why, said)


def _why(sets: QuerySets, run_id: str) -> str:
    if run_id not in sets.apart:
        return ""
    asked = f"was asked {sets.apart[run_id]} of {sets.judged} judged queries"
    return f"{asked}, fewer than {ENOUGH} of them with the others"


_WORDS = {
    Over.SHARED: "shared compares the runs on what all were asked",
    Over.OWN: "own scores each on what it was asked",
    Over.ALL: "all counts a query not ranked as 0",
}


def _otherwise(over: Over) -> str:
    """The other ways, as options of the command line."""
    others: Sequence[str] = [words for each, words in _WORDS.items() if each is not over]
    return f"(--queries: {'; '.join(others)})"
