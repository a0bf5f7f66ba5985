"""One search for all ways of honouring filters, over one index or over an index per value of a field."""

from __future__ import annotations

from typing import NamedTuple

from core.arrays import Vectors
from core.pipeline.index.bm25 import Bm25Index
from core.pipeline.index.dense import DenseIndex
from core.pipeline.index.outside import DatabaseIndex
from core.pipeline.index.partitioned import Partitioned
from core.pipeline.index.scope import POST, FilterWay, IndexScope, kept
from core.pipeline.ranking import Hits

Single = Bm25Index | DenseIndex | DatabaseIndex
Searched = Single | Partitioned[Bm25Index] | Partitioned[DenseIndex | DatabaseIndex]


class SearchedFor(NamedTuple):
    """What is searched for."""

    vector: Vectors  # the query's vector, which BM25 does not read
    text: str  # its text


def search(index: Searched, asked: SearchedFor, k: int, *, scope: IndexScope | None, way: FilterWay) -> Hits:
    """Return the best passages that an asker may see, as the way finds them.

    Args:
        scope: What the asker may see; None = all.
    """
    if isinstance(index, Partitioned):
        return index.search(scope, k, lambda part, inner: _inside(part, asked, k, inner))
    if way.kind == POST:
        return kept(_ask(index, asked, k if scope is None else k * way.times, None), scope, k)
    return _ask(index, asked, k, scope)


def _inside(part: Single, asked: SearchedFor, k: int, scope: IndexScope | None) -> Hits:
    """Search a part; one whose index cannot filter is searched whole."""
    if scope is None or isinstance(part, Bm25Index) or part.selects:
        return _ask(part, asked, k, scope)
    return kept(_ask(part, asked, len(part), None), scope, k)


def _ask(index: Single, asked: SearchedFor, k: int, scope: IndexScope | None) -> Hits:
    if isinstance(index, Bm25Index):
        return index.search(asked.text, k, scope)
    if isinstance(index, DatabaseIndex):
        return index.search(asked.vector, k, asked.text, scope)
    return index.search(asked.vector, k, scope)
