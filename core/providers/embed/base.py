"""What every embedder is: a name, a dimension and one method that turns texts into vectors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from core.errors import ClqError, InputError

Vectors = NDArray[np.float32]


class Embedder(ABC):
    """Turns texts into vectors of one dimension.

    A subclass sets the attributes and writes `embed_batch`; batching, order and checks live here.

    Attributes:
        name: Registry name, as it stands in `Stack.spec["embedder"]`.
        dim: Length of every vector.
        normalised: Whether every vector of a text with content has unit length, so that the inner product
            is the cosine.
        full_dim: A dimension whose vectors, cut to `dim` and scaled to unit length, are this embedder's
            vectors (Matryoshka models); `dim` itself for others. A corpus is then embedded once for all.
        batch_size: The most texts that `embed_batch` is given at once.
    """

    name: str
    dim: int
    normalised: bool = True
    full_dim: int
    batch_size: int = 64

    @abstractmethod
    def embed_batch(self, texts: Sequence[str]) -> Vectors:
        """Embed at most `batch_size` texts.

        Args:
            texts: One or more texts; a text may be empty.

        Returns:
            float32 [len(texts), dim]; a text without content gives zeros.
        """

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed any number of passages, in their order.

        Args:
            texts: Any number of texts.

        Returns:
            float32 [len(texts), dim], C-contiguous.

        Raises:
            ClqError: If the provider returns another number of vectors or another dimension.
        """
        vectors = np.zeros((len(texts), self.dim), dtype=np.float32)
        # Texts of similar length share a batch: padded encoders then waste little.
        order = sorted(range(len(texts)), key=lambda at: len(texts[at]))
        for start in range(0, len(order), self.batch_size):
            rows = order[start : start + self.batch_size]
            vectors[rows] = self._checked([texts[at] for at in rows])
        return vectors

    def embed_query(self, text: str) -> Vectors:
        """Embed one query: float32 [dim]."""
        vector: Vectors = self._checked([text])[0]
        return vector

    def _checked(self, texts: Sequence[str]) -> Vectors:
        vectors = self.embed_batch(texts)
        if vectors.shape != (len(texts), self.dim):
            raise ClqError(
                f"Embedder {self.name} returned vectors of shape {vectors.shape} for {len(texts)} texts"
                f" of {self.dim} dimensions.",
                do="Check the model's name and dimension.",
            )
        return vectors


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
