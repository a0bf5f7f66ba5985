"""A deterministic embedder without a model: words hashed to directions.

Texts that share words have similar vectors, so that searches over it behave sensibly; it is for tests and
for trying the product without any model, never for results.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from core.errors import InputError
from core.providers.base import Purpose
from core.providers.embed.base import LocalEmbedder
from core.providers.embed.batches import Vectors, unit_rows


class FakeEmbedder(LocalEmbedder):
    """Sum of one pseudo-random direction per distinct lower-case word, scaled to unit length."""

    name = provider = "fake"

    def __init__(self, dim: int = 64) -> None:
        if dim < 1:
            raise InputError(f"An embedder cannot have {dim} dimensions.", where="dim", do="Use 1 or more.")
        self.dim = self.full_dim = dim

    def encode(self, texts: Sequence[str], purpose: Purpose) -> Vectors:  # noqa: ARG002 - one for both
        """Embed texts by hashing their words: float32 [len(texts), dim], unit rows."""
        sums = np.zeros((len(texts), self.dim), dtype=np.float32)
        for row, text in enumerate(texts):
            for word in sorted(set(text.lower().split())):
                sums[row] += _direction(word, self.dim)
        return unit_rows(sums)


@lru_cache(maxsize=2**15)  # a corpus has few words, each of them often
def _direction(word: str, dim: int) -> Vectors:
    digest = hashlib.shake_128(word.encode()).digest(dim)
    return np.frombuffer(digest, dtype=np.uint8).astype(np.float32) - np.float32(127.5)
