"""Judging chunks of documents: grades become spans of the documents, so that they apply to any chunker."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from core.golden.book import Book
from core.golden.by_hand import by_people
from core.pipeline.anchors import judged
from core.records import Batch, GoldenSet, part_id
from core.store import Snapshot
from core.tables import TABLES, frame
from core.work.imports.anchored import chunks_of

_PLACE = ("query_id", "source", "start_char", "end_char")


def whole_of(snapshot: Snapshot, collection_id: str) -> str:
    """Return the collection whose documents a collection of chunks holds, or else the collection itself."""
    wholes = snapshot.collections(parts=True).filter(collection_id=collection_id)["part_of"].to_list()
    return wholes[0] if wholes and wholes[0] else collection_id


def parts_of(snapshot: Snapshot, collection_id: str) -> list[str]:
    """Return the collections of chunks of a collection's documents."""
    return snapshot.collections(parts=True).filter(part_of=collection_id)["collection_id"].sort().to_list()


def judged_in(snapshot: Snapshot, golden_set_id: str, collection_id: str) -> str | None:
    """Return the golden set with the grades of a collection's passages: the given one, or its part.

    It is None if there is none.
    """
    whole = whole_of(snapshot, collection_id)
    chunking = None if whole == collection_id else collection_id.removeprefix(part_id(whole, ""))
    own = part_id(golden_set_id, chunking)
    return own if own in snapshot.golden_sets(parts=True)["golden_set_id"] else None


def landed_chunks(snapshot: Snapshot, book: Book, judge: str, collection_id: str) -> Batch:
    """Build a judge's golden set of documents from grades of their chunks, in any chunking.

    Args:
        collection_id: The collection of the documents.

    Returns:
        The golden set with its spans, and a part with judgements for every chunking in the store;
        grades of the documents themselves are kept.

    Raises:
        InputError: If nothing is graded yet.
    """
    parts = parts_of(snapshot, collection_id)
    said = {name: book.said(name, judge) for name in (collection_id, *parts)}
    golden = by_people(book, judge, collection_id, pl.concat(said.values()))
    name = golden.golden_set_id
    placed = [said[part].join(snapshot.chunks(part), on="passage_id") for part in parts]
    fresh = pl.concat(placed).sort("at").unique(_PLACE, keep="last", maintain_order=True)
    fresh = fresh.with_columns(golden_set_id=pl.lit(name), raw="grade", judge=pl.lit(judge))
    spans = frame("spans", fresh.select(list(TABLES["spans"])).to_dict())
    stored = name in snapshot.golden_sets()["golden_set_id"]
    if stored:
        spans = pl.concat([snapshot.spans(name).join(spans, on=_PLACE, how="anti"), spans])
    graded = [snapshot.judgements(name)] if stored else []
    golden_sets: list[GoldenSet] = [golden]
    for chunking in chunks_of(snapshot, collection_id):
        derived = judged(golden, spans, chunking)
        golden_sets.append(replace(derived.golden_set, name=f"{golden.name}, {chunking.name}"))
        graded.append(derived.judgements)
    acts = [
        frame("gradings", rows.drop("queue_id").with_columns(
            golden_set_id=pl.lit(judged_name(name, collection_id, part)), judge=pl.lit(judge)).to_dict())
        for part, rows in said.items() if rows.height and part in parts
    ]  # fmt: skip
    frames = {"spans": spans.sort(_PLACE), "judgements": pl.concat(graded), "gradings": pl.concat(acts)}
    if not frames["judgements"].height:
        del frames["judgements"]
    return Batch(golden_sets=tuple(golden_sets), frames=frames)


def judged_name(golden_set_id: str, whole: str, part: str) -> str:
    """Return the id of the golden set with the grades of one part of a collection."""
    return part_id(golden_set_id, part.removeprefix(part_id(whole, "")))
