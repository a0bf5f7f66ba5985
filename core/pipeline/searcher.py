"""What a search engine is to the rest of the pipeline: a local index now, a server later.

`core.pipeline.bm25.Bm25Index` and `core.pipeline.dense.DenseIndex` have this shape; an engine on a server
(PostgreSQL with pgvector, Elasticsearch) needs no more to take their place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

from core.pipeline.hits import Hits
from core.providers.embed import Vectors
from core.records import JsonMap

if TYPE_CHECKING:
    from core.pipeline.bm25 import Bm25Index
    from core.pipeline.dense import DenseIndex

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
