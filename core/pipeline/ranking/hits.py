"""What a search returns, the one rule by which equal scores are ordered, and what can be searched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from core.providers.embed import Vectors
from core.records import JsonMap

if TYPE_CHECKING:
    from core.pipeline.index import DenseIndex
    from core.pipeline.index.bm25 import Bm25Index


class Hits(NamedTuple):
    """A ranking of passages by position in the corpus."""

    passages: NDArray[np.int64]  # int64 [n], positions in the corpus, best first, without repetition
    scores: NDArray[np.float64]  # float64 [n], descending; equal scores stand in corpus order


def top_k(passages: NDArray[np.integer[Any]], scores: NDArray[np.floating[Any]], k: int) -> Hits:
    """Rank candidates by score and keep the best, equal scores in corpus order."""
    if len(scores) > k:
        # Everything that reaches the k-th best score stays in, so that a tie at the cut is decided below.
        threshold = np.partition(scores, len(scores) - k)[len(scores) - k]
        kept = np.flatnonzero(scores >= threshold)
        passages, scores = passages[kept], scores[kept]
    order = np.argsort(-scores, kind="stable")[:k]
    return Hits(passages[order].astype(np.int64), scores[order].astype(np.float64))


def top_k_rows(passages: NDArray[np.integer[Any]], scores: NDArray[np.floating[Any]], k: int) -> list[Hits]:
    """`top_k` of many queries, where most rows are in order already."""
    ids, values = passages.astype(np.int64, copy=False), scores.astype(np.float64)
    if ids[:, -1].min() >= 0 and (values[:, 1:] < values[:, :-1]).all():
        return [Hits(row, scored) for row, scored in zip(ids[:, :k], values[:, :k], strict=True)]
    values[ids < 0] = -np.inf
    better = values[:, 1:] > values[:, :-1]
    before = (values[:, 1:] == values[:, :-1]) & (ids[:, 1:] < ids[:, :-1])
    for row in np.flatnonzero((better | before).any(axis=1)):
        order = np.lexsort((ids[row], -values[row]))
        ids[row], values[row] = ids[row][order], values[row][order]
    counts = np.minimum(np.count_nonzero(ids >= 0, axis=1), k).tolist()
    return [Hits(ids[row, :count], values[row, :count]) for row, count in enumerate(counts)]


_One_contra = TypeVar("_One_contra", contravariant=True)
_Many_contra = TypeVar("_Many_contra", contravariant=True)


class Searcher(Protocol[_One_contra, _Many_contra]):
    """Finds passages by their position in a corpus; one query, or many at once with the same answers."""

    @property
    def parameters(self) -> JsonMap:
        """How it was built and searches, for the manifest."""

    @property
    def size_bytes(self) -> int:
        """Bytes that the index takes, without the texts."""

    def search(self, query: _One_contra, k: int, /) -> Hits:
        """At most k passages for one query, k ≥ 1."""

    def search_batch(self, queries: _Many_contra, k: int, /) -> list[Hits]:
        """The same for many queries, in their order."""


SparseSearcher = Searcher[str, Sequence[str]]
"""Asked with a query's text."""

DenseSearcher = Searcher[Vectors, Vectors]
"""Asked with a query's vector, float32 [dim]; with many, float32 [queries, dim]."""

if TYPE_CHECKING:

    def _have_this_shape(sparse: Bm25Index, dense: DenseIndex) -> tuple[SparseSearcher, DenseSearcher]:
        return sparse, dense
