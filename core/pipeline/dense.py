"""Dense retrieval: vector indexes of one kind each behind one interface, by faiss.

All compare by inner product, which is the cosine because the vectors have unit length.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from types import MappingProxyType

import faiss
import numpy as np
from numpy.typing import NDArray

from core.errors import UnknownNameError
from core.pipeline.hits import Hits, top_k
from core.providers.embed import Vectors
from core.records import JsonMap


class DenseIndex(ABC):
    """A vector index, built once and searched one query at a time.

    Args:
        vectors: Unit vectors, float32 [n, dim]; row positions are what a search returns.

    Attributes:
        name: Registry name, as it stands in `Stack.spec["index"]`.
        parameters: What the index was built and is searched with, for the manifest.
    """

    name: str
    parameters: JsonMap = MappingProxyType({})

    def __init__(self, vectors: Vectors) -> None:
        self._index = self._make(vectors.shape[1])
        if not self._index.is_trained:
            self._index.train(vectors)
        self._index.add(vectors)

    @abstractmethod
    def _make(self, dim: int) -> faiss.Index:
        """An empty faiss index for vectors of `dim` dimensions."""

    def _search_parameters(self, k: int) -> faiss.SearchParameters | None:  # noqa: ARG002 - for kinds that need it
        """What faiss is told per search of depth k; None for its defaults."""
        return None

    @cached_property
    def size_bytes(self) -> int:
        """Size of the index when serialised."""
        return int(faiss.serialize_index(self._index).nbytes)

    def search(self, vector: Vectors, k: int) -> Hits:
        """The best passages for one query vector.

        Args:
            vector: float32 [dim], unit length.
            k: How many passages at most, ≥ 1.

        Returns:
            At most k passages (an approximate index may find fewer) with their cosine.
        """
        depth = min(k, self._index.ntotal)
        scores, found = self._index.search(vector[np.newaxis], depth, params=self._search_parameters(depth))
        return _in_corpus_order(found[0], scores[0], k)


def _in_corpus_order(found: NDArray[np.int64], scores: NDArray[np.float32], k: int) -> Hits:
    # faiss fills missing results with -1 and promises no order among equal scores.
    order = np.argsort(found)
    order = order[found[order] >= 0]
    return top_k(found[order], scores[order], k)


class FlatIndex(DenseIndex):
    """Exact search: every vector is compared."""

    name = "flat"

    def _make(self, dim: int) -> faiss.Index:
        return faiss.IndexFlatIP(dim)


class HnswIndex(DenseIndex):
    """Approximate search in a navigable small-world graph over float32 vectors.

    Args:
        vectors: See `DenseIndex`.
        links: Neighbours per node (M).
        ef_construction: Candidates looked at per insertion.
        ef_search: Candidates looked at per search; raised to the depth asked for when that is larger,
            since a search cannot return more than it looks at.
    """

    name = "hnsw-f32"

    def __init__(
        self, vectors: Vectors, *, links: int = 32, ef_construction: int = 200, ef_search: int = 128
    ) -> None:
        self._links, self._ef_construction, self._ef_search = links, ef_construction, ef_search
        super().__init__(vectors)
        self.parameters = {"M": links, "efConstruction": ef_construction, "efSearch": f"max({ef_search}, k)"}

    def _make(self, dim: int) -> faiss.Index:
        index = faiss.IndexHNSWFlat(dim, self._links, faiss.METRIC_INNER_PRODUCT)
        index.hnsw.efConstruction = self._ef_construction
        return index

    def _search_parameters(self, k: int) -> faiss.SearchParameters | None:
        # The stubs of faiss lack this class.
        parameters: faiss.SearchParameters = faiss.SearchParametersHNSW(  # type: ignore[attr-defined]
            efSearch=max(self._ef_search, k)
        )
        return parameters


class Int8Index(DenseIndex):
    """Search over vectors held as 8-bit numbers, scaled per dimension; every vector is compared."""

    name = "int8"

    def _make(self, dim: int) -> faiss.Index:
        return faiss.IndexScalarQuantizer(dim, faiss.ScalarQuantizer.QT_8bit, faiss.METRIC_INNER_PRODUCT)


INDEXES: Mapping[str, type[DenseIndex]] = MappingProxyType(
    {kind.name: kind for kind in (FlatIndex, HnswIndex, Int8Index)}
)


def make_index(name: str, vectors: Vectors) -> DenseIndex:
    """Build an index of a registered kind with its default parameters.

    Args:
        name: A key of `INDEXES`.
        vectors: Unit vectors, float32 [n, dim].

    Raises:
        UnknownNameError: If the name is not registered.
    """
    if name not in INDEXES:
        raise UnknownNameError("index", name, INDEXES)
    return INDEXES[name](vectors)
