"""Begin a refinement, or go on with one: the way to refine by its name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from core.errors import InputError
from core.golden.refine.base import Refinement, Turns
from core.golden.refine.locks import Locks
from core.golden.refine.plackett import Map
from core.golden.refine.settings import Method, RefineSettings
from core.records import JsonMap

_KINDS: Mapping[Method, type[Locks | Map]] = {"locks": Locks, "map": Map}


def refinement(
    grades: Sequence[float],
    ranks: Sequence[float],
    ids: Sequence[str],
    settings: RefineSettings,
    *,
    seed: str,
) -> Refinement:
    """Begin the refinement of one query.

    Args:
        grades: Grade of each passage, 1..5 (what S5 kept).
        ranks: Its rank in the fused pool, which decides where scores are equal.
        ids: Its id, which decides where ranks are equal, too.
        settings: What to do and when to stop.
        seed: Of the sampling; one per query.

    Raises:
        InputError: If the lengths differ or an id is there twice.
    """
    return _begin(grades, ranks, ids, settings, seed)


def _begin(
    grades: Sequence[float],
    ranks: Sequence[float],
    ids: Sequence[str],
    settings: RefineSettings,
    seed: str,
) -> Turns:
    return _KINDS[settings.method](grades, ranks, ids, settings, seed)


def restore(state: JsonMap) -> Refinement:
    """Go on with what `state` of a refinement returned.

    Args:
        state: As read from JSON.

    Raises:
        InputError: If it is no state.
    """
    try:
        settings = RefineSettings.read(dict(state["settings"]))
        known = _begin(state["grades"], state["ranks"], state["ids"], settings, state["seed"])
        known.replay(state["log"])
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise InputError("This is no checkpoint of a refinement.", do="Begin the query anew.") from error
    return known
