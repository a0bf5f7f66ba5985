"""Near copies are taken out of a candidate pool before it is cut, so that no slot is spent twice (CLQ §6).

A pool is looked at in its order: the first of every group of copies stays, what is too much like a passage
that stayed is dropped, until K are found or `look` times K were looked at.

* exact: the same text, apart from case and blanks.
* minhash: estimated Jaccard similarity of the texts' shingles of words (Broder, 1997), seeded.
* cosine: similarity of the vectors that the stack searches.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.params import Method, Param, number, read_method, whole
from core.records import JsonMap

Alike = NDArray[np.bool_]  # [n, n]: which passages of a pool are copies of one another

_SEED = 20251112
BY_VECTORS = "cosine"  # The method that needs the vectors of a stack; stacks without any lack it


@dataclass(frozen=True, slots=True, kw_only=True)
class Dedup(Method):
    """A way to tell copies."""

    mark: Callable[[str, JsonMap], Any] | None  # what of a passage's text is compared
    alike: Callable[[Sequence[Any], JsonMap], Alike]  # which of some marks, or vectors [dim], are copies


def _normalised(text: str, _: JsonMap) -> str:
    return " ".join(text.casefold().split())


def _equal(marks: Sequence[str], _: JsonMap) -> Alike:
    place = np.unique(np.array(marks, dtype=object), return_inverse=True)[1]
    same: Alike = place[:, np.newaxis] == place
    return same


def _minhash(text: str, options: JsonMap) -> NDArray[np.uint64]:
    """Return the least value of every permutation over the text's shingles of words."""
    words, width = _normalised(text, options).split(), whole(options, "words")
    shingles = {" ".join(words[start : start + width]) for start in range(max(1, len(words) - width + 1))}
    digests = (hashlib.blake2b(each.encode("utf-8", "replace"), digest_size=8).digest() for each in shingles)
    hashes = np.array([int.from_bytes(each, "big") for each in digests], dtype=np.uint64)
    size = (2, whole(options, "permutations"))
    factors, offsets = np.random.default_rng(_SEED).integers(0, 1 << 64, size=size, dtype=np.uint64)
    moved = hashes[:, np.newaxis] * (factors | np.uint64(1)) + offsets  # modulo 2^64
    least: NDArray[np.uint64] = (moved >> np.uint64(32)).min(axis=0)
    return least


def _agreeing(marks: Sequence[NDArray[np.uint64]], options: JsonMap) -> Alike:
    table = np.stack(marks)
    share = (table[:, np.newaxis] == table).mean(axis=2)
    alike: Alike = share >= number(options, "threshold")
    return alike


def _close(vectors: Sequence[NDArray[np.floating[Any]]], options: JsonMap) -> Alike:
    table = np.stack(vectors).astype(np.float64)
    table /= np.maximum(np.linalg.norm(table, axis=1, keepdims=True), np.finfo(np.float64).tiny)
    alike: Alike = table @ table.T >= number(options, "threshold")
    return alike


_LOOK = Param(
    name="look", default=2, low=1, high=10, text="How many times K of the ranking is looked at, at most."
)


def _threshold(default: float, text: str) -> Param:
    return Param(name="threshold", default=default, low=0.0, high=1.0, text=text)


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
            _threshold(0.8, "Least Jaccard similarity of copies."),
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
        name=BY_VECTORS,
        text="Drops passages whose vectors, those that the stack searches, are close.",
        mark=None,
        alike=_close,
        options=(_threshold(0.95, "Least cosine similarity of copies."), _LOOK),
    ),
)
DEDUPS: Mapping[str, Dedup] = MappingProxyType({each.name: each for each in _DEDUPS})


def dedup_options(spec: JsonMap) -> JsonMap:
    """Check a suppression and fill in the defaults."""
    return read_method("dedup", DEDUPS, spec)


def kept(alike: Alike, depth: int) -> NDArray[np.int64]:
    """The places of a pool that stay."""
    places: list[int] = []
    for place in range(len(alike)):
        if len(places) == depth:
            break
        if not alike[place, places].any():
            places.append(place)
    return np.array(places, dtype=np.int64)
