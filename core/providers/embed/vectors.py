"""Arrays of vectors, and the replies that carry them: cut, scaled, divided into those of texts, added up."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from core.errors import InputError
from core.providers.base import Amount, Reply, total

Vectors = NDArray[np.float32]


def unit_rows(vectors: Vectors) -> Vectors:
    """Scale every row [n, dim] to unit length; rows of zeros stay zeros."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: Vectors = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return scaled


def require_dim(name: str, dim: int, allowed: Sequence[int]) -> None:
    """Refuse a dimension that a model lacks."""
    if dim not in allowed:
        shown = ", ".join(map(str, allowed))
        raise InputError(f"{name} has no {dim} dimensions.", where="dim", do=f"Choose one of {shown}.")


def shortened(vectors: Vectors, dim: int, *, scale: bool) -> Vectors:
    """The first `dim` numbers of every row [n, ≥ dim], scaled to unit length where asked."""
    cut = np.ascontiguousarray(vectors[:, :dim], dtype=np.float32)
    return unit_rows(cut) if scale else cut


def with_value(reply: Reply[Vectors], value: Vectors) -> Reply[Vectors]:
    """The same reply with another value."""
    return Reply(
        value, reply.usage, reply.ms, reply.waited_ms, reply.attempts, reply.fresh, dict(reply.details)
    )


def shares(reply: Reply[Vectors], weights: Sequence[float]) -> list[Reply[Vectors]]:
    """A batch's reply text by text; usage and time are divided in proportion to the weights."""
    whole = sum(weights)
    return [
        Reply(vector, _part(reply.usage, weight / whole), reply.ms * weight / whole, attempts=reply.attempts)
        for vector, weight in zip(reply.value, weights, strict=True)
    ]


def _part(usage: Sequence[Amount], share: float) -> tuple[Amount, ...]:
    return tuple(
        Amount(each.item, each.unit, None if each.amount is None else each.amount * share, each.basis)
        for each in usage
    )


class Sums:
    """Adds replies up without keeping their vectors."""

    def __init__(self) -> None:
        self._usage: Reply[None] = Reply(None)
        self._ms = self._waited_ms = 0.0
        self._attempts = self._calls = self._recalled = 0

    def add(self, reply: Reply[Vectors], texts: int) -> None:
        """Add the reply of this many texts."""
        self._usage = Reply(None, total([self._usage, reply]))
        if reply.fresh:
            self._ms += reply.ms
            self._waited_ms += reply.waited_ms
            self._attempts += reply.attempts
            self._calls += 1
        else:
            self._recalled += texts

    def reply(self, vectors: Vectors) -> Reply[Vectors]:
        """The sum, with these vectors."""
        details = {"calls": self._calls, "recalled": self._recalled}
        usage = self._usage.usage
        fresh = self._calls > 0
        return Reply(vectors, usage, self._ms, self._waited_ms, self._attempts, fresh, details)
