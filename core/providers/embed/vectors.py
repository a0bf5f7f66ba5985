"""Arrays of vectors, and what they have in common."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from core.errors import InputError

Vectors = NDArray[np.float32]


def unit_rows(vectors: Vectors) -> Vectors:
    """Scale every row [n, dim] to unit length; rows of zeros stay zeros."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: Vectors = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return scaled


def require_dim(name: str, dim: int, allowed: Sequence[int]) -> None:
    """Refuse a dimension that a model lacks.

    Raises:
        InputError: If `dim` is not among `allowed`.
    """
    if dim not in allowed:
        shown = ", ".join(map(str, allowed))
        raise InputError(f"{name} has no {dim} dimensions.", where="dim", do=f"Choose one of {shown}.")


def shortened(vectors: Vectors, dim: int, *, scale: bool) -> Vectors:
    """The first `dim` numbers of every row [n, ≥ dim], scaled to unit length where asked."""
    cut = np.ascontiguousarray(vectors[:, :dim], dtype=np.float32)
    return unit_rows(cut) if scale else cut
