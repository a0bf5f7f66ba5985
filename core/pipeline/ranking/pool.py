"""Makes a candidate pool: rankings of the same corpus fused into one, near copies taken out.

**Fusion.** Reciprocal rank fusion looks at ranks only. The weighted sum and the convex combination look at
scores, which engines give on scales of their own, so they bring each ranking to a common scale first:

* minmax: (s − lowest) / (highest − lowest), 0 to 1. Where all scores are equal, and so for a single passage,
  every passage gets 1.
* zscore: (s − mean) / standard deviation. Where all scores are equal, every passage gets 0.
* none: s itself, for engines that share a scale.

A passage that a leg did not find within the depth has no score there. It is given the lowest that the leg
gave, which is 0 with minmax (even if all scores are equal); a leg that found nothing counts for nothing.

**Copies** are taken out before a pool is cut, so that no slot is spent twice (CLQ §6). A pool is examined in
its order: the first of every group of copies stays, what is too much like a passage that stayed is dropped,
until K are found or `look` times K were looked at.

* exact: the same text, apart from case and blanks.
* minhash: estimated Jaccard similarity of the texts' shingles of words (Broder, 1997), seeded.
* cosine: similarity of the vectors that the stack searches.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.errors import InputError
from core.params import Method, Param, method_of, read_method, read_options
from core.pipeline.ranking import Hits, top_k
from core.records import JsonMap

Scores = NDArray[np.float64]
_Alike = NDArray[np.bool_]  # [n, n]: which passages of a pool are copies of one another
LEGS = 2  # Rankings of a hybrid: the sparse one, the dense one
_SEED = 20251112
_DEPTH = Param(name="depth", default=100, low=1, high=100_000, text="How much of each ranking takes part.")
_LOOK = Param(
    name="look", default=2, low=1, high=10, text="How many times K of the ranking is looked at, at most."
)


def reciprocal_rank_fusion(
    legs: Sequence[Hits],
    k: int,
    *,
    constant: int = 60,
    depth: int = 100,
    weights: Sequence[float] | None = None,
) -> Hits:
    """Fuse rankings by the sum of 1 / (constant + rank) (Cormack, Clarke and Büttcher, SIGIR 2009).

    `weights` is one factor per ranking; by default all count alike.
    """
    ranked, factors = [leg.passages[:depth] for leg in legs], weights or [1.0] * len(legs)
    shares = [
        factor / (constant + 1.0 + np.arange(len(leg))) for factor, leg in zip(factors, ranked, strict=True)
    ]
    passages, positions = np.unique(np.concatenate(ranked), return_inverse=True)
    scores = np.zeros(len(passages))
    np.add.at(scores, positions, np.concatenate(shares))
    return top_k(passages, scores, k)


def _boosted(legs: Sequence[Hits], k: int, options: JsonMap) -> Hits:
    """Fuse by reciprocal ranks; outstanding scores in the first leg, the sparse one, count more.

    There a passage counts 1 + boost · (its score − the score at rank `level`, or 0 if there is none) / the
    best score times, at least once: rare words give high scores that few passages share.
    """
    depth, constant, level = options["depth"], options["constant"], options["level"]
    ranked = [leg.passages[:depth] for leg in legs]
    weights = [1.0 / (constant + 1.0 + np.arange(len(leg))) for leg in ranked]
    sparse = legs[0].scores[:depth]
    if len(sparse) and sparse[0] > 0:
        usual = max(float(sparse[level - 1]), 0.0) if len(sparse) >= level else 0.0
        weights[0] *= 1 + options["boost"] * np.maximum(sparse - usual, 0) / sparse[0]
    passages, positions = np.unique(np.concatenate(ranked), return_inverse=True)
    scores = np.zeros(len(passages))
    np.add.at(scores, positions, np.concatenate(weights))
    return top_k(passages, scores, k)


def _weighted(legs: Sequence[Hits], k: int, options: JsonMap) -> Hits:
    """Fuse rankings by the weighted sum of their scores on a common scale."""
    depth, normalise = options["depth"], NORMALISE[options["normalise"]]
    cut = [Hits(leg.passages[:depth], leg.scores[:depth]) for leg in legs]
    passages = np.unique(np.concatenate([leg.passages for leg in cut]))
    scores = np.zeros(len(passages))
    for leg, weight in zip(cut, options["weights"], strict=True):
        if len(leg.passages):
            normalised, missing = normalise(leg.scores)
            column = np.full(len(passages), missing)
            column[np.searchsorted(passages, leg.passages)] = normalised
            scores += weight * column
    return top_k(passages, scores, k)


def _minmax(scores: Scores) -> tuple[Scores, float]:
    low, high = scores.min(), scores.max()
    return (np.ones_like(scores) if low == high else (scores - low) / (high - low)), 0.0


def _zscore(scores: Scores) -> tuple[Scores, float]:
    # The mean of equal numbers need not be that number, so their deviation need not be 0.
    spread = 0.0 if scores.min() == scores.max() else scores.std()
    scaled = np.zeros_like(scores) if spread == 0 else (scores - scores.mean()) / spread
    return scaled, float(scaled.min())


NORMALISE: Mapping[str, Callable[[Scores], tuple[Scores, float]]] = MappingProxyType(
    {"minmax": _minmax, "zscore": _zscore, "none": lambda scores: (scores, float(scores.min()))}
)
"""Functions, by name, that scale a ranking's scores and return the score of a missing passage."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fusion(Method):
    """A way to fuse."""

    fuse: Callable[[Sequence[Hits], int, JsonMap], Hits]  # the function, with read options


def _rrf(legs: Sequence[Hits], k: int, options: JsonMap) -> Hits:
    return reciprocal_rank_fusion(
        legs, k, **{key: value for key, value in options.items() if key != "method"}
    )


def _convex(legs: Sequence[Hits], k: int, options: JsonMap) -> Hits:
    return _weighted(legs, k, {**options, "weights": (1 - options["alpha"], options["alpha"])})


_NORMALISE = Param(
    name="normalise",
    default="minmax",
    choices=tuple(NORMALISE),
    text="How the scores of each ranking come to a common scale.",
)
_FUSIONS = (
    Fusion(
        name="rrf",
        text="Reciprocal rank fusion: sum of 1 / (constant + rank), times the weights where they are given.",
        fuse=_rrf,
        options=(
            Param(name="constant", default=60, low=0, high=100_000, text="Damps the first ranks."),
            _DEPTH,
        ),
    ),
    Fusion(
        name="rrf-boosted",
        text="Reciprocal rank fusion in which passages that stand out by rare words count more (CLQ §5.2).",
        fuse=_boosted,
        options=(
            Param(
                name="boost",
                default=1.0,
                low=0.0,
                high=10.0,
                text="How many times more the sparse leg's best counts, at most; 0 is rrf.",
            ),
            Param(
                name="level",
                default=10,
                low=2,
                high=1000,
                text="Sparse rank whose score is the usual one; only what is above it is boosted.",
            ),
            Param(name="constant", default=60, low=0, high=100_000, text="Damps the first ranks."),
            _DEPTH,
        ),
    ),
    Fusion(
        name="weighted",
        text="Weighted sum of scores on a common scale.",
        fuse=_weighted,
        options=(_NORMALISE, _DEPTH),
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
    ),
)
FUSIONS: Mapping[str, Fusion] = MappingProxyType({fusion.name: fusion for fusion in _FUSIONS})


def fusion_options(spec: JsonMap) -> JsonMap:
    """Check a fusion and fill in the defaults.

    Raises:
        UnknownNameError: If there is no such method or option.
        InputError: If an option is out of range, or there is not one weight per leg.
    """
    method, given = method_of("fusion", spec, FUSIONS)
    where, weights = f"fusion {method}", {}
    if method == "weighted":
        weights = {"weights": _weights(given.pop("weights", [1 / LEGS] * LEGS), where)}
    elif method == "rrf" and "weights" in given:
        numbers = _weights(given.pop("weights"), where)
        weights = {"weights": numbers} if len(set(numbers)) > 1 else {}  # equal ones are the plain fusion
    return {"method": method, **read_options(FUSIONS[method].options, given, where=where), **weights}


def _weights(given: object, where: str) -> list[float]:
    listed = given if isinstance(given, list | tuple) and len(given) == LEGS else ()
    numbers = [
        float(weight)
        for weight in listed
        if isinstance(weight, float | int) and not isinstance(weight, bool) and 0 <= weight < np.inf
    ]
    if len(numbers) < LEGS or not sum(numbers):
        raise InputError(
            f"weights={given!r} are not allowed.",
            where=where,
            do=f"Give {LEGS} numbers of 0 or more, not all 0: one per leg, the sparse one first.",
        )
    return numbers


def fuse(spec: JsonMap, legs: Sequence[Hits], k: int) -> Hits:
    """Fuse rankings as a specification says."""
    options = fusion_options(spec)
    return FUSIONS[options["method"]].fuse(legs, k, options)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dedup(Method):
    """A way to recognise copies."""

    mark: Callable[[str, JsonMap], Any] | None  # the mark of a passage's text to compare
    alike: Callable[[Sequence[Any], JsonMap], _Alike]  # which of some marks, or vectors [dim], are copies


def _normalised(text: str, _: JsonMap) -> str:
    return " ".join(text.casefold().split())


def _equal(marks: Sequence[str], _: JsonMap) -> _Alike:
    place = np.unique(np.array(marks, dtype=object), return_inverse=True)[1]
    same: _Alike = place[:, np.newaxis] == place
    return same


def _minhash(text: str, options: JsonMap) -> NDArray[np.uint64]:
    """Return the least value of every permutation over the text's shingles of words."""
    words, width = _normalised(text, options).split(), options["words"]
    shingles = {" ".join(words[start : start + width]) for start in range(max(1, len(words) - width + 1))}
    digests = (
        hashlib.blake2b(shingle.encode("utf-8", "replace"), digest_size=8).digest() for shingle in shingles
    )
    hashes = np.array([int.from_bytes(digest, "big") for digest in digests], dtype=np.uint64)
    size = (2, options["permutations"])
    factors, offsets = np.random.default_rng(_SEED).integers(0, 1 << 64, size=size, dtype=np.uint64)
    moved = hashes[:, np.newaxis] * (factors | np.uint64(1)) + offsets  # modulo 2^64
    least: NDArray[np.uint64] = (moved >> np.uint64(32)).min(axis=0)
    return least


def _agreeing(marks: Sequence[NDArray[np.uint64]], options: JsonMap) -> _Alike:
    table = np.stack(marks)
    share = (table[:, np.newaxis] == table).mean(axis=2)
    alike: _Alike = share >= options["threshold"]
    return alike


def _close(vectors: Sequence[NDArray[np.floating[Any]]], options: JsonMap) -> _Alike:
    table = np.stack(vectors).astype(np.float64)
    table /= np.maximum(np.linalg.norm(table, axis=1, keepdims=True), np.finfo(np.float64).tiny)
    alike: _Alike = table @ table.T >= options["threshold"]
    return alike


_threshold = partial(Param, name="threshold", low=0.0, high=1.0)
_DEDUPS = (
    Dedup(
        name="exact",
        text="Drops passages of the same text, apart from case and blanks.",
        mark=_normalised,
        alike=_equal,
        options=(_LOOK,),
    ),
    Dedup(
        name="minhash",
        text="Drops passages that share most of their shingles of words, as estimated by MinHash.",
        mark=_minhash,
        alike=_agreeing,
        options=(
            _threshold(default=0.8, text="Least Jaccard similarity of copies."),
            Param(name="words", default=3, low=1, high=20, text="Words of a shingle."),
            Param(
                name="permutations",
                default=128,
                low=16,
                high=1024,
                text="Permutations; the estimate's error is about 1 / √permutations.",
            ),
            _LOOK,
        ),
    ),
    Dedup(
        name="cosine",
        text="Drops passages whose vectors, those that the stack searches, are close.",
        mark=None,
        alike=_close,
        options=(_threshold(default=0.95, text="Least cosine similarity of copies."), _LOOK),
        needs_vectors=True,
    ),
)
DEDUPS: Mapping[str, Dedup] = MappingProxyType({dedup.name: dedup for dedup in _DEDUPS})


dedup_options = partial(read_method, "dedup", DEDUPS)
"""Check a suppression and fill in the defaults."""


def kept(alike: _Alike, depth: int) -> NDArray[np.int64]:
    """Return the positions in a pool that are kept."""
    places: list[int] = []
    for place in range(len(alike)):
        if len(places) == depth:
            break
        if not alike[place, places].any():
            places.append(place)
    return np.array(places, dtype=np.int64)
