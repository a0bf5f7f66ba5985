"""Fusion of rankings of the same corpus into one.

Reciprocal rank fusion looks at ranks only. The weighted sum and the convex combination look at scores, which
engines give on scales of their own, so they bring each ranking to a common scale first:

* minmax: (s − lowest) / (highest − lowest), 0 to 1. Where all scores are equal, and so for a single passage,
  every passage gets 1.
* zscore: (s − mean) / standard deviation. Where all scores are equal, every passage gets 0.
* none: s itself, for engines that share a scale.

A passage that a leg did not find within the depth has no score there. It is given the lowest that the leg
gave, which is 0 with minmax (also where all scores are equal); a leg that found nothing counts for nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from core.errors import InputError
from core.params import Method, Param, method_of, number, read_options, whole
from core.pipeline.ranking.hits import Hits, top_k
from core.records import JsonMap

Scores = NDArray[np.float64]


def reciprocal_rank_fusion(legs: Sequence[Hits], k: int, *, constant: int = 60, depth: int = 100) -> Hits:
    """Fuse rankings by the sum of 1 / (constant + rank) (Cormack, Clarke and Büttcher, SIGIR 2009)."""
    ranked = [leg.passages[:depth] for leg in legs]
    weights = np.concatenate([1.0 / (constant + 1.0 + np.arange(len(leg))) for leg in ranked])
    passages, positions = np.unique(np.concatenate(ranked), return_inverse=True)
    scores = np.zeros(len(passages))
    np.add.at(scores, positions, weights)
    return top_k(passages, scores, k)


def weighted_sum(
    legs: Sequence[Hits], k: int, *, weights: Sequence[float], normalise: str = "minmax", depth: int = 100
) -> Hits:
    """Fuse rankings by the weighted sum of their scores on a common scale."""
    cut = [Hits(leg.passages[:depth], leg.scores[:depth]) for leg in legs]
    passages = np.unique(np.concatenate([leg.passages for leg in cut]))
    scores = np.zeros(len(passages))
    for leg, weight in zip(cut, weights, strict=True):
        if len(leg.passages):
            found, missing = NORMALISE[normalise](leg.scores)
            column = np.full(len(passages), missing)
            column[np.searchsorted(passages, leg.passages)] = found
            scores += weight * column
    return top_k(passages, scores, k)


def _minmax(scores: Scores) -> tuple[Scores, float]:
    low, high = scores.min(), scores.max()
    return (np.ones_like(scores) if low == high else (scores - low) / (high - low)), 0.0


def _zscore(scores: Scores) -> tuple[Scores, float]:
    # The mean of equal numbers need not be that number, so their deviation need not be 0.
    spread = 0.0 if scores.min() == scores.max() else scores.std()
    found = np.zeros_like(scores) if spread == 0 else (scores - scores.mean()) / spread
    return found, float(found.min())


def _as_it_is(scores: Scores) -> tuple[Scores, float]:
    return scores, float(scores.min())


NORMALISE: Mapping[str, Callable[[Scores], tuple[Scores, float]]] = MappingProxyType(
    {"minmax": _minmax, "zscore": _zscore, "none": _as_it_is}
)
"""Name to what brings the scores of a ranking to a common scale, with the score of what it lacks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fusion(Method):
    """A way to fuse."""

    fuse: Callable[[Sequence[Hits], int, JsonMap], Hits]  # does it, with read options
    weighted: bool = False  # whether it takes one weight per leg
    legs: int | None = None  # how many legs it takes; None for any number


def _rrf(legs: Sequence[Hits], k: int, options: JsonMap) -> Hits:
    return reciprocal_rank_fusion(legs, k, constant=whole(options, "constant"), depth=whole(options, "depth"))


def _weighted(legs: Sequence[Hits], k: int, options: JsonMap) -> Hits:
    weights, normalise = options["weights"], options["normalise"]
    return weighted_sum(legs, k, weights=weights, normalise=normalise, depth=whole(options, "depth"))


def _convex(legs: Sequence[Hits], k: int, options: JsonMap) -> Hits:
    alpha = number(options, "alpha")
    return _weighted(legs, k, {**options, "weights": (1 - alpha, alpha)})


_DEPTH = Param(name="depth", default=100, low=1, high=100_000, text="How much of each ranking takes part.")
_NORMALISE = Param(
    name="normalise",
    default="minmax",
    choices=tuple(NORMALISE),
    text="How the scores of each ranking come to a common scale.",
)
FUSIONS: Mapping[str, Fusion] = MappingProxyType(
    {
        fusion.name: fusion
        for fusion in (
            Fusion(
                name="rrf",
                text="Reciprocal rank fusion: sum of 1 / (constant + rank).",
                fuse=_rrf,
                options=(
                    Param(name="constant", default=60, low=0, high=100_000, text="Damps the first ranks."),
                    _DEPTH,
                ),
            ),
            Fusion(
                name="weighted",
                text="Weighted sum of scores on a common scale.",
                fuse=_weighted,
                options=(_NORMALISE, _DEPTH),
                weighted=True,
            ),
            Fusion(
                name="convex",
                text="(1 − alpha) · sparse + alpha · dense, scores on a common scale.",
                fuse=_convex,
                options=(
                    Param(
                        name="alpha",
                        default=0.5,
                        low=0.0,
                        high=1.0,
                        text="Weight of the second leg, the dense one (Bruch, Gai and Ingber, TOIS 2023).",
                    ),
                    _NORMALISE,
                    _DEPTH,
                ),
                legs=2,
            ),
        )
    }
)


def fusion_options(spec: JsonMap, *, legs: int = 2) -> JsonMap:
    """Check a fusion and fill in the defaults."""
    method, given = method_of("fusion", spec, FUSIONS)
    fusion, where = FUSIONS[method], f"fusion {method}"
    if fusion.legs not in (None, legs):
        raise InputError(
            f"Found {legs} legs.", where=where, do=f"Fuse {fusion.legs}, or choose another method."
        )
    weights = {"weights": _weights(given.pop("weights", None), legs, where)} if fusion.weighted else {}
    return {"method": method, **weights, **read_options(fusion.options, given, where=where)}


def _weights(given: object, legs: int, where: str) -> list[float]:
    if given is None:
        return [1 / legs] * legs
    numbers = isinstance(given, list | tuple) and all(
        isinstance(weight, float | int) and not isinstance(weight, bool) and 0 <= weight < np.inf
        for weight in given
    )
    if not isinstance(given, list | tuple) or not numbers or len(given) != legs or not sum(given):
        raise InputError(
            f"weights={given!r} are not allowed.",
            where=where,
            do=f"Give {legs} numbers of 0 or more, not all 0: one per leg, the sparse one first.",
        )
    return [float(weight) for weight in given]


def fuse(spec: JsonMap, legs: Sequence[Hits], k: int) -> Hits:
    """Fuse rankings as a specification says."""
    options = fusion_options(spec, legs=len(legs))
    return FUSIONS[options["method"]].fuse(legs, k, options)
