"""Late chunking: a document is encoded whole, and each chunk's vector comes from its tokens in context.

After Günther et al., arXiv:2409.04701, as in the thesis §3.5: token vectors of the whole document, then the
mean over the tokens that the chunk's characters fall on. Documents longer than the encoder reads at once are
read in overlapping windows by the encoder (`TokenEmbedder.embed_tokens`).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl
from numpy.typing import NDArray

from core.errors import InputError
from core.providers.embed.base import TokenEmbedder
from core.providers.embed.vectors import Vectors

Pool = Callable[[Vectors], Vectors]


def late_vectors(
    token_vectors: Vectors,
    token_spans: NDArray[np.int64],
    chunk_spans: NDArray[np.int64],
    pool: Pool | None = None,
) -> Vectors:
    """Vectors of the chunks of one document."""
    if len(token_vectors) != len(token_spans):
        raise ValueError(f"{len(token_vectors)} token vectors, {len(token_spans)} spans")
    first = np.searchsorted(token_spans[:, 1], chunk_spans[:, 0], side="right")
    last = np.searchsorted(token_spans[:, 0], chunk_spans[:, 1], side="left")
    made = np.zeros((len(chunk_spans), token_vectors.shape[1]), dtype=np.float32)
    pool = pool or _unit_mean
    for row, (left, right) in enumerate(zip(first, last, strict=True)):
        if left < right:
            made[row] = pool(token_vectors[left:right])
    return made


def _unit_mean(vectors: Vectors) -> Vectors:
    mean: Vectors = vectors.mean(axis=0, dtype=np.float64).astype(np.float32)
    length = float(np.linalg.norm(mean))
    return mean / np.float32(length) if length else mean


def vectors_of(
    documents: pl.DataFrame,
    chunks: pl.DataFrame,
    embedder: TokenEmbedder,
    *,
    on_document: Callable[[int, int], None] | None = None,
) -> Vectors:
    """Vectors of all chunks of a collection, document by document."""
    if not isinstance(embedder, TokenEmbedder):
        raise InputError(
            f"{getattr(embedder, 'name', embedder)} gives no vectors of tokens.",
            where="chunker: late",
            do="Use a local encoder, or a chunker without late.",
        )
    made = np.zeros((chunks.height, embedder.dim), dtype=np.float32)
    texts = dict(documents.select("source", "text").iter_rows())
    groups = chunks.with_row_index("row").partition_by("source", as_dict=True, maintain_order=True)
    for done, ((source,), rows) in enumerate(groups.items(), 1):
        if source not in texts:
            raise InputError(f"The document {source!r} is not there.", where="chunks")
        tokens = embedder.embed_tokens(texts[source])
        spans = rows.select("start_char", "end_char").to_numpy()
        made[rows["row"].to_numpy()] = late_vectors(tokens.vectors, tokens.spans, spans, embedder.pooled)
        if on_document is not None:
            on_document(done, len(groups))
    return made
