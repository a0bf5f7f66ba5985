"""Documents in, passages out, each with the exact characters of its document that it covers.

`chunk` cuts the documents of a collection, on several processes if there is much to cut. The passages belong
to its part "<collection>@<name>", and the chunks say where each lies; grades anchored to characters are
derived from that (`core.pipeline.anchors`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import polars as pl

from core.arrays import Ints, Vectors
from core.errors import InputError
from core.jobs import cores, spread
from core.pipeline.chunk.methods import CHUNKERS, canonical, chunking_name
from core.pipeline.chunk.work import ChunkWork, Span
from core.providers.embed.base import TokenEmbedder
from core.records import Collection, JsonMap, part_id
from core.tables import TABLES, frame, schema

_Pool = Callable[[Vectors], Vectors]
PARALLEL_FROM = 20_000_000
"""Number of characters from which several processes are worth their start (about two seconds)."""
_BLOCK = 2_000_000  # Characters that one task takes
_PIECES = schema("source start_char:int64 end_char:int64 title text tokens:int32 tokenizer")


def late_vectors(token_vectors: Vectors, token_spans: Ints, chunk_spans: Ints, pool: _Pool) -> Vectors:
    """Return vectors of the chunks of one document."""
    if len(token_vectors) != len(token_spans):
        raise ValueError(f"{len(token_vectors)} token vectors, {len(token_spans)} spans")
    first = np.searchsorted(token_spans[:, 1], chunk_spans[:, 0], side="right")
    last = np.searchsorted(token_spans[:, 0], chunk_spans[:, 1], side="left")
    pooled = np.zeros((len(chunk_spans), token_vectors.shape[1]), dtype=np.float32)
    for row, (left, right) in enumerate(zip(first, last, strict=True)):
        if left < right:
            pooled[row] = pool(token_vectors[left:right])
    return pooled


def vectors_of(
    documents: pl.DataFrame,
    chunks: pl.DataFrame,
    embedder: TokenEmbedder,
    *,
    on_document: Callable[[int, int], None] | None = None,
) -> Vectors:
    """Return vectors of all chunks of a collection, document by document."""
    if not isinstance(embedder, TokenEmbedder):
        raise InputError(
            f"{getattr(embedder, 'name', embedder)} gives no vectors of tokens.",
            where="chunker: late",
            do="Use a local encoder, or a chunker without late.",
        )
    vectors = np.zeros((chunks.height, embedder.dim), dtype=np.float32)
    texts = dict(documents.select("source", "text").iter_rows())
    groups = chunks.with_row_index("row").partition_by("source", as_dict=True, maintain_order=True)
    for done, ((source,), rows) in enumerate(groups.items(), 1):
        if source not in texts:
            raise InputError(f"The document {source!r} is not there.", where="chunks")
        tokens = embedder.embed_tokens(texts[source])
        spans = rows.select("start_char", "end_char").to_numpy()
        vectors[rows["row"].to_numpy()] = late_vectors(tokens.vectors, tokens.spans, spans, embedder.pooled)
        if on_document is not None:
            on_document(done, len(groups))
    return vectors


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunked:
    """The passages that one chunker made."""

    name: str | None  # Name of the chunking, for `Run.chunking`; None for "none"
    chunker: JsonMap  # The chunker with all of its parameters
    # The collection that the passages belong to: the part "<whole>@<name>", or for "none" the whole itself
    collection: Collection
    # Frame of `TABLES["passages"]` in the order of the documents; passage_id is "<source>#<name>:<number from
    # 0>" (for "none" the source), title is the metadata put before the text, tokens counts both as searched
    # (title, line end, text), source is the document
    passages: pl.DataFrame
    # Frame of `TABLES["chunks"]`: row by row the place of each passage (with "none", empty documents have no
    # row); its text is ``document[start_char:end_char]``
    chunks: pl.DataFrame


def chunk(documents: pl.DataFrame, chunker: JsonMap, *, collection: Collection) -> Chunked:
    """Cut documents into passages.

    Raises:
        UnknownNameError: If there is no such chunker.
        InputError: If a parameter is out of range, a document occurs twice, or none has text.
    """
    whole, name = canonical(chunker), chunking_name(chunker)
    rows = _complete(documents)
    workers = cores() if int(rows["text"].str.len_chars().sum()) >= PARALLEL_FROM else 1
    pieces = spread(partial(_cut, whole), list(_blocks(rows)), workers, lambda parts: pl.concat(list(parts)))
    if not (pieces["text"].str.strip_chars() != "").any():
        raise InputError("No document has text.", where="documents")
    part = _part(collection, name, whole)
    number = pl.int_range(pl.len()).over("source")
    own = pl.format("{}#{}:{}", "source", pl.lit(name), number) if name else pl.col("source")
    passages = pieces.with_columns(passage_id=own, collection_id=pl.lit(part.collection_id))
    return Chunked(
        name=name,
        chunker=whole,
        collection=part,
        passages=frame("passages", passages.select(list(TABLES["passages"])).to_dict()),
        chunks=frame(
            "chunks", passages.filter(pl.col("text") != "").select(list(TABLES["chunks"])).to_dict()
        ),
    )


def as_stored(
    chunker: JsonMap, passages: pl.DataFrame, chunks: pl.DataFrame, *, whole: Collection
) -> Chunked:
    """Return documents as they were cut before, from the passages and the places that were kept."""
    name, method = chunking_name(chunker), canonical(chunker)
    part = _part(whole, name, method)
    return Chunked(name=name, chunker=method, collection=part, passages=passages, chunks=chunks)


def _complete(documents: pl.DataFrame) -> pl.DataFrame:
    absent = [pl.lit(None).alias(name) for name in ("title", "headings", "pages") if name not in documents]
    rows = documents.with_columns(absent).select("source", "title", "text", "headings", "pages")
    if rows["source"].n_unique() < rows.height:
        again = rows.filter(~pl.col("source").is_first_distinct())["source"][0]
        raise InputError(f"The document {again!r} stands twice.", where="documents", do="Name each once.")
    return rows


def _part(whole: Collection, name: str | None, chunker: JsonMap) -> Collection:
    if name is None:
        return whole
    options = ", ".join(f"{key} {value}" for key, value in chunker.items() if key != "method")
    return Collection(
        collection_id=part_id(whole.collection_id, name),
        name=f"{whole.name}, {name}",
        source=whole.source,
        notes=f"Cut by {chunker['method']} ({options}).",
        part_of=whole.collection_id,
    )


def _blocks(rows: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Yield the documents in blocks of about equal size."""
    if rows.is_empty():
        yield rows
        return
    ends = rows["text"].str.len_chars().cum_sum()
    for block in rows.with_columns(block=ends // _BLOCK).partition_by("block", maintain_order=True):
        yield block.drop("block")


def _cut(chunker: JsonMap, documents: pl.DataFrame) -> pl.DataFrame:
    """Cut some documents: columns of `_PIECES`."""
    split, whole = CHUNKERS[chunker["method"]].split, chunker["method"] == "none"
    rows = []
    for document in documents.iter_rows(named=True):
        work = ChunkWork(document, chunker)
        for start, end in split(work) if whole else _exact(work, split(work)):
            title = (document["title"] if whole else work.metadata(start)) or None
            text = work.text[start:end]
            prefix = f"{title}\n" if title else ""
            tokens = work.gauge.count(start, end, prefix) if whole else work.tokens(start, end)
            rows.append((document["source"], start, end, title, text, tokens, chunker["tokenizer"]))
    return pl.DataFrame(rows, schema=_PIECES, orient="row")


def _exact(work: ChunkWork, spans: Iterable[Span]) -> Iterator[Span]:
    """Yield the spans without blanks at their ends; one that turns out too long is cut again."""
    for start, end in spans:
        parts = [(start, end)] if work.tokens(start, end) <= work.options["size"] else work.cut(start, end)
        for part in parts:
            left, right = work.trimmed(*part)
            if left < right:
                yield left, right
