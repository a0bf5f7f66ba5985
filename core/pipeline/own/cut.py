"""Passages that a pipeline cut itself, as a chunking: those it returned, and the rest of the documents.

Only the passages that it returned are known. The rest is cut into pieces of similar length, so that judged
places that the pipeline never found count as missed, as with any other chunking.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from statistics import median

import polars as pl

from core.pipeline.own.parts import DocumentPart, DocumentShelf
from core.providers.tokens import ESTIMATE, counter
from core.records import Batch, Collection, part_id
from core.tables import frame

_OTHERS = re.compile(r"[^A-Za-z0-9._-]+")
_SHORT, _HASH = 40, 6  # Characters of a label, and of a run's id, in the name of a chunking
_LEAST = 200  # Characters of a piece of the rest


@dataclass(frozen=True, slots=True)
class OwnChunking:
    """The passages of one pipeline, as the chunks of a chunking."""

    name: str  # of the chunking
    batch: Batch  # its part of the collection, passages and chunks
    passage_ids: pl.Series  # by position on the shelf, documents as well


def own_chunking(
    collection_id: str, run_id: str, label: str, shelf: DocumentShelf, used: Iterable[int]
) -> OwnChunking:
    """Return the passages of a run as a chunking of the documents.

    Args:
        used: Positions on the shelf of the passages that the run retrieved.
    """
    short = _OTHERS.sub("-", label).strip("-.")[:_SHORT]
    name = "-".join(filter(None, ("own", short, run_id.removeprefix("r-")[:_HASH])))
    parts = {at: _part(shelf, at) for at in sorted(set(used))}
    rest = _rest(shelf, list(parts.values()))
    names = shelf.ids

    def named(part: DocumentPart) -> str:
        return f"{names[part.document]}#{name}:{part.start}-{part.end}"

    every = sorted({*parts.values(), *rest})
    own = part_id(collection_id, name)
    count = counter(ESTIMATE).count
    texts = [shelf.documents[part.document][part.start : part.end] for part in every]
    columns = {
        "collection_id": [own] * len(every),
        "passage_id": list(map(named, every)),
        "source": [names[part.document] for part in every],
    }
    passages = {
        **columns,
        "text": texts,
        "tokens": list(map(count, texts)),
        "tokenizer": [ESTIMATE] * len(every),
    }
    places = {
        **columns,
        "start_char": [part.start for part in every],
        "end_char": [part.end for part in every],
    }
    collection = Collection(
        collection_id=own,
        name=f"{collection_id}, passages of {label}",
        notes="What the pipeline returned, and the rest of the documents in pieces about as long.",
        part_of=collection_id,
    )
    ids = [named(parts[at]) if at in parts else "" for at in range(len(shelf) + len(shelf.parts))]
    return OwnChunking(
        name,
        Batch(
            collections=(collection,),
            frames={"passages": frame("passages", passages), "chunks": frame("chunks", places)},
        ),
        pl.Series("passage_id", ids, dtype=pl.String),
    )


def _part(shelf: DocumentShelf, at: int) -> DocumentPart:
    return shelf.parts[at - len(shelf)] if at >= len(shelf) else DocumentPart(at, 0, len(shelf.documents[at]))


def _rest(shelf: DocumentShelf, parts: list[DocumentPart]) -> Iterator[DocumentPart]:
    """Yield the text outside all parts, cut at word ends."""
    size = max(_LEAST, int(median(part.end - part.start for part in parts)))
    covered: dict[int, list[DocumentPart]] = {}
    for part in sorted(parts):
        covered.setdefault(part.document, []).append(part)
    for document, text in enumerate(shelf.documents):
        at = 0
        for part in (*covered.get(document, ()), DocumentPart(document, len(text), len(text))):
            yield from _pieces(document, text, at, part.start, size)
            at = max(at, part.end)


def _pieces(document: int, text: str, start: int, end: int, size: int) -> Iterator[DocumentPart]:
    while start < end:
        cut = end if end - start <= size else max(text.rfind(blank, start, start + size) for blank in "\n ")
        cut = cut if cut > start else min(start + size, end)
        piece = text[start:cut]
        left = start + len(piece) - len(piece.lstrip())
        if piece.strip():
            yield DocumentPart(document, left, left + len(piece.strip()))
        start = cut
