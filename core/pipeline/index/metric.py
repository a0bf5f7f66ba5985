"""What "near" means between vectors, and which of it fits which vectors.

* cosine: vectors are scaled to unit length in the index (the vectors given are not changed); the score is the
  inner product, -1 to 1. A vector of zeros has cosine 0 with everything.
* ip: the inner product of the vectors as they are. Between vectors of different lengths the long ones win
  whatever they say; a model that lacked normalisation fell from 52 % to 12 % Recall@5 that way (thesis on RAG
  methods, §7.2.3 and Table 7.1). So it is refused for them, unless their model was trained for it and that is
  said.
* l2: the Euclidean distance, with a minus: higher is better here, too.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from core.errors import InputError, UnknownNameError
from core.providers.embed import Vectors

METRICS = ("cosine", "ip", "l2")

BLOCK_ROWS = 65_536
"""Vectors that are read, scaled and added at once: a small share of what stays on disk."""

_UNIT_TOLERANCE = 0.005
"""How far from 1 the length of a normalised vector may be; vendors send rounded numbers."""


def check_metric(
    metric: str,
    vectors: Vectors | None = None,
    *,
    normalised: bool | None = None,
    allow_unnormalised: bool = False,
    where: str = "metric",
) -> None:
    """Refuse a metric that does not fit the vectors."""
    if metric not in METRICS:
        raise UnknownNameError("metric", metric, METRICS, where=where)
    if metric != "ip" or allow_unnormalised:
        return
    if vectors is not None:
        _require_unit(row_lengths(vectors), where)
    elif normalised is False:
        raise _not_normalised("The model does not normalise its vectors", where)


def _require_unit(lengths: NDArray[np.float32], where: str) -> None:
    # Texts without content are vectors of zeros; they are nobody's neighbours.
    off = (lengths > 0) & (np.abs(lengths - 1) > _UNIT_TOLERANCE)
    if off.any():
        share = f"{np.count_nonzero(off):,} of {len(lengths):,} vectors are not normalised"
        spread = f"lengths from {lengths[off].min():.3g} to {lengths[off].max():.3g}"
        raise _not_normalised(f"{share} ({spread})", where)


def _not_normalised(found: str, where: str) -> InputError:
    return InputError(
        f"{found}: by inner product long vectors win whatever they say.",
        where=where,
        do="Use the metric cosine or l2, or allow it for a model that was trained for the inner product.",
    )


def blocks(vectors: Vectors) -> Iterator[Vectors]:
    """The rows in parts of at most `BLOCK_ROWS`, as float32."""
    for start in range(0, len(vectors), BLOCK_ROWS):
        yield np.ascontiguousarray(vectors[start : start + BLOCK_ROWS], dtype=np.float32)


def row_lengths(vectors: Vectors, *, what: str = "vectors") -> NDArray[np.float32]:
    """Euclidean length of every row."""
    with np.errstate(over="ignore"):  # a length beyond float32 is refused below
        parts = [np.sqrt(np.linalg.vecdot(block, block)) for block in blocks(vectors)]
    lengths: NDArray[np.float32] = parts[0] if len(parts) == 1 else np.concatenate(parts)
    if np.isfinite(lengths).all():
        return lengths
    odd = np.flatnonzero(~np.isfinite(lengths))
    raise InputError(
        f"{len(odd):,} of {len(lengths):,} vectors hold a number that is not finite (first: {odd[0]}).",
        where=what,
        do="Embed these texts again.",
    )


def unit(block: Vectors, lengths: NDArray[np.float32], *, out: Vectors | None = None) -> Vectors:
    """Scaled copies [n, dim] of rows of these lengths, put into `out` if given; zeros stay zeros."""
    divisors = lengths if lengths.all() else np.where(lengths > 0, lengths, np.float32(1))
    return np.divide(block, divisors[:, np.newaxis], out=out, dtype=np.float32)
