"""Grades for a store's passages derived from imported spans: those of every chunking's chunks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from core.analysis.export import records
from core.importers.formats.spans import JudgedSpans
from core.number_format import count
from core.pipeline.anchors import Derived, anchor, judged
from core.pipeline.chunk import Chunked
from core.records import Batch, Collection, GoldenSet, part_id
from core.store import Snapshot
from core.tables import TABLES, frame
from core.work.imports.versions import Settled


@dataclass(frozen=True)
class StoredDocuments:
    """Documents of stored collections, for importers of spans: their passages one by one."""

    snapshot: Snapshot = field(repr=False, compare=False)  # the data to read
    revision: int  # its revision

    @classmethod
    def of(cls, snapshot: Snapshot) -> StoredDocuments:
        """Return the documents at one revision."""
        return cls(snapshot, snapshot.revision)

    def __call__(self, collection_id: str, sources: Sequence[str]) -> pl.DataFrame:
        """Return the named documents that the collection has: source, text."""
        rows = self.snapshot.passages(collection_id, sources)
        return rows.select(source="passage_id", text=pl.col("text").fill_null(""))


def with_grades(snapshot: Snapshot, settled: Settled) -> tuple[Settled, str]:
    """Add to an import with spans the grades they imply for the searchable passages.

    These are the chunks of every stored chunking of the collection, and its own passages if
    they are the documents. Existing grades stay, unless the spans are replaced.
    """
    imported = settled.made
    if JudgedSpans.name not in {file.format for file in imported.detected}:
        return settled, ""  # an export includes its derived grades
    spans = imported.frames["spans"].lazy().collect()
    brought = {golden.golden_set_id: golden for golden in imported.golden_sets}
    known = {golden.golden_set_id: golden for golden in records(GoldenSet, snapshot.golden_sets(parts=True))}
    known |= brought
    graded = [
        derived
        for name in spans["golden_set_id"].unique().sort()
        if name in known
        for derived in _derived(snapshot, settled, known[name], spans.filter(golden_set_id=name))
    ]
    if not graded:
        return settled, ""
    fresh = tuple(derived.golden_set for derived in graded if derived.golden_set.golden_set_id not in brought)
    rows = [derived.judgements.lazy().select(list(TABLES["judgements"])) for derived in graded]
    if "judgements" in imported.frames:
        rows.insert(0, imported.frames["judgements"].lazy())
    frames = {**imported.frames, "judgements": pl.concat(rows)}
    stored = set(snapshot.golden_sets(parts=True)["golden_set_id"])
    again = {golden.golden_set_id for golden in fresh} & stored
    whole = replace(imported, golden_sets=(*imported.golden_sets, *fresh), frames=frames)
    return replace(settled, made=whole, replacing=settled.replacing | again), _said(graded)


def _derived(
    snapshot: Snapshot, settled: Settled, golden: GoldenSet, spans: pl.DataFrame
) -> Iterator[Derived]:
    """Yield grades for every chunking for which the golden set has none.

    If its spans are new, these are all chunkings.
    """
    name = golden.golden_set_id
    graded = set(snapshot.golden_sets(parts=True).filter(pl.col("judgements") > 0)["golden_set_id"])
    if name in settled.replacing:
        graded -= {
            golden_id for golden_id in graded if golden_id == name or golden_id.startswith(part_id(name, ""))
        }
    if "judgements" in settled.made.frames:
        rows = settled.made.frames["judgements"].lazy()
        graded |= set(rows.select(pl.col("golden_set_id").unique()).collect().to_series())
    for chunked in _chunkings(snapshot, settled, golden.collection_id, spans["source"].unique().to_list()):
        own = part_id(name, chunked.name)
        if own not in graded and chunked.chunks.height:
            yield judged(golden, spans, chunked)


def _chunkings(
    snapshot: Snapshot, settled: Settled, collection_id: str, sources: list[str]
) -> Iterator[Chunked]:
    """Yield the documents that are passages, and the chunks of each chunking, without their texts."""
    yield whole(collection_id, _documents(snapshot, settled, collection_id, sources))
    yield from chunks_of(snapshot, collection_id)


def with_chunks_graded(snapshot: Snapshot, batch: Batch) -> Batch:
    """Add to new chunkings of a stored collection's documents the grades of their chunks.

    They are derived from the spans of each golden set, otherwise from its grades of whole documents.
    """
    parts = {part.collection_id: part for part in batch.collections if part.part_of}
    if not parts or "chunks" not in batch.frames:
        return batch
    chunks = batch.frames["chunks"].lazy().collect().partition_by("collection_id", as_dict=True)
    known = {*snapshot.golden_sets(parts=True)["golden_set_id"]}
    known |= {golden.golden_set_id for golden in batch.golden_sets}
    graded = [
        derived
        for (name,), rows in chunks.items()
        if name in parts
        for derived in _graded(snapshot, parts[str(name)], rows)
        if derived.golden_set.golden_set_id not in known
    ]
    if not graded:
        return batch
    rows = [derived.judgements.lazy() for derived in graded]
    if "judgements" in batch.frames:
        rows.insert(0, batch.frames["judgements"].lazy())
    sets = (*batch.golden_sets, *(derived.golden_set for derived in graded))
    return replace(batch, golden_sets=sets, frames={**batch.frames, "judgements": pl.concat(rows)})


def _graded(snapshot: Snapshot, part: Collection, chunks: pl.DataFrame) -> Iterator[Derived]:
    """Yield the grades of every golden set of a collection for the chunks of one of its parts."""
    collection = part.part_of or ""
    chunked = _chunked(part.collection_id.removeprefix(part_id(collection, "")), part, chunks)
    for golden in records(GoldenSet, snapshot.golden_sets(collection)):
        spans = snapshot.spans(golden.golden_set_id)
        if spans.is_empty():
            documents = snapshot.passages(collection, chunks["source"].unique().to_list())
            itself = whole(collection, [documents]).chunks
            spans, _ = anchor(snapshot.judgements(golden.golden_set_id), itself)
        if spans.height:
            yield judged(golden, spans, chunked)


def chunks_of(snapshot: Snapshot, collection_id: str) -> Iterator[Chunked]:
    """Yield the chunks of each stored chunking of a collection's documents, without their texts."""
    parts = snapshot.collections(parts=True).filter(part_of=collection_id)
    for row in parts.iter_rows(named=True):
        part: dict[str, Any] = {key: row[key] for key in Collection.__dataclass_fields__}
        name = row["collection_id"].removeprefix(part_id(collection_id, ""))
        yield _chunked(name, Collection(**part), snapshot.chunks(row["collection_id"]))


def whole(collection_id: str, passages: Sequence[pl.DataFrame]) -> Chunked:
    """Return documents that are passages as chunks of themselves, without their texts.

    Args:
        passages: Frames of passages; of those with one id the last counts, and one without a text is ignored.
    """
    itself = Collection(collection_id=collection_id, name=collection_id)
    if not passages:
        return _chunked(None, itself, frame("chunks", []))
    rows = pl.concat([some.select("collection_id", "passage_id", "text") for some in passages])
    rows = rows.unique("passage_id", keep="last", maintain_order=True).filter(pl.col("text") != "")
    placed = rows.select(
        "collection_id",
        "passage_id",
        source="passage_id",
        start_char=pl.lit(0),
        end_char=pl.col("text").str.len_chars(),
    )
    return _chunked(None, itself, frame("chunks", placed.to_dict()))


def _chunked(name: str | None, collection: Collection, chunks: pl.DataFrame) -> Chunked:
    nothing = frame("passages", [])
    return Chunked(name=name, chunker={}, collection=collection, passages=nothing, chunks=chunks)


def _documents(
    snapshot: Snapshot, settled: Settled, collection_id: str, sources: list[str]
) -> list[pl.DataFrame]:
    """Return the passages that are these documents: stored ones, then imported ones."""
    known = collection_id in snapshot.collections()["collection_id"]
    frames = [snapshot.passages(collection_id, sources)] if known else []
    if "passages" in settled.made.frames:
        own = (pl.col("collection_id") == collection_id) & pl.col("passage_id").is_in(sources)
        frames.append(settled.made.frames["passages"].lazy().filter(own).collect())
    return frames


def _said(graded: list[Derived]) -> str:
    rows = sum(derived.judgements.height for derived in graded)
    chunkings = [derived for derived in graded if derived.golden_set.part_of]
    words = f" {count(rows, 'passage')} graded from spans"
    words += f", in {count(len(chunkings), 'chunking')} and as documents." if chunkings else "."
    lost = [chunking for chunking in chunkings if chunking.lost.height]
    for chunking in lost[:5]:
        name = chunking.golden_set.name.rpartition(", ")[2]
        words += f" {count(chunking.lost.height, 'span')} in no chunk of {name} that covers enough of them."
    return words
