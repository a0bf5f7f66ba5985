"""What vendors count: tokens and search units of a reranking, bytes of an index."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from core.errors import InputError, UnknownNameError

DOCUMENTS_PER_SEARCH_UNIT = 100
TOKENS_PER_DOCUMENT = 500
"""Cohere: a search unit is one query with up to 100 documents; longer documents count once per 500 tokens."""

GIB = 2**30
LINKS = 32
"""Neighbours that a graph keeps per vector (M of HNSW); 32 take 0.25 GiB a million vectors."""
INDEX_KINDS: Mapping[str, tuple[int, bool]] = {
    "flat": (4, False),
    "int8": (1, False),
    "hnsw-f32": (4, True),
    "hnsw-int8": (1, True),
}
"""Indexes whose bytes are known: bytes per number of a vector, and whether they keep a graph."""
_BYTES_PER_LINK = 4
_BYTES_BESIDE_LINKS = 12  # where a vector's links begin, and its level


def search_units(documents: float, tokens_per_document: float = 0) -> float:
    """Search units of one query."""
    each = max(1, math.ceil(tokens_per_document / TOKENS_PER_DOCUMENT))
    return float(math.ceil(documents * each / DOCUMENTS_PER_SEARCH_UNIT))


def search_units_of(query_tokens: float, document_tokens: Sequence[float]) -> float:
    """Search units of one query, from the length of every document; see `search_units`."""
    parts = (max(1, math.ceil((query_tokens + own) / TOKENS_PER_DOCUMENT)) for own in document_tokens)
    return search_units(sum(parts))


def rerank_tokens(query_tokens: float, document_tokens: Sequence[float]) -> float:
    """Tokens that Voyage bills for one query: query x K + the documents."""
    return query_tokens * len(document_tokens) + math.fsum(document_tokens)


def index_bytes(kind: str, *, vectors: float, dim: float, links: float = LINKS) -> float:
    """Bytes of a dense index, in memory or on disk.

    A vector takes 4 bytes per number in float32 and 1 as int8. A graph keeps 2 M links per vector on its
    ground level and, as 1 / (M - 1) further levels are expected, M / (M - 1) above it (Malkov and Yashunin,
    TPAMI 2020).
    """
    if kind not in INDEX_KINDS:
        raise UnknownNameError("index", kind, INDEX_KINDS)
    if links <= 1:
        raise InputError(f"{links} links are too few for a graph.", do="Give 2 or more.")
    width, graph = INDEX_KINDS[kind]
    linked = _BYTES_PER_LINK * (2 * links + links / (links - 1)) + _BYTES_BESIDE_LINKS if graph else 0.0
    return vectors * (width * dim + linked)
