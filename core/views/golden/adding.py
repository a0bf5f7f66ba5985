"""Manual grades added to a golden set of the store: the choices offered, and the set written.

Grades of chunks become spans of their documents, so that they apply to any chunker.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from core.analysis.export import records
from core.analysis.workspace.clusters import one_known
from core.errors import InputError, UnknownNameError
from core.golden.adding import AddedCounts, AddedGrades, ancestry, described, name_for, over, refuse_other
from core.golden.book import PAIR, Book, Queue
from core.golden.by_hand import by_people
from core.pipeline.anchors import anchor, judged
from core.pipeline.chunk import Chunked
from core.records import Batch, GoldenSet, part_id
from core.store import Snapshot, Store
from core.tables import TABLES, frame
from core.work.imports.anchored import chunks_of, whole

_PLACE = ("query_id", "source", "start_char", "end_char")
_FILLS_IN = ("by value", "holes of stacks")  # Samplings of passages that the golden set lacks


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


def base_of(snapshot: Snapshot, queue: Queue) -> str:
    """Return the golden set that a queue's grades can be added to, the one drawn from, or ""."""
    known = snapshot.golden_sets(whole_of(snapshot, queue.collection_id))["golden_set_id"]
    return queue.base if queue.mode == "grade" and queue.base in known else ""


def usual(snapshot: Snapshot, queue: Queue) -> bool:
    """Return whether the grades of a queue are added unless the judge decides otherwise.

    They are if the golden set names the places that questions were made from, which a few grades would
    replace, or if the passages were drawn because it lacks them.
    """
    base = base_of(snapshot, queue)
    known = ancestry(snapshot.golden_sets(), base)[0] if base else None
    return bool(base) and (queue.sampling in _FILLS_IN or one_known(snapshot, known))


def read(snapshot: Snapshot, golden_set_id: str) -> AddedGrades:
    """Read a golden set's grades; those of chunks count as grades of their documents.

    Raises:
        UnknownNameError: If there is no golden set of that name.
        InputError: If it has no grades.
    """
    known = snapshot.golden_sets(parts=True)
    rows = known.filter(golden_set_id=golden_set_id)
    if rows.is_empty():
        raise UnknownNameError("golden set", golden_set_id, snapshot.golden_sets()["golden_set_id"])
    (golden,) = records(GoldenSet, rows)
    judgements, spans = snapshot.judgements(golden_set_id), snapshot.spans(golden_set_id)
    of_chunks = golden.collection_id != whole_of(snapshot, golden.collection_id)
    tied = [rows.row(0, named=True)] if of_chunks else []
    if spans.is_empty() and judgements.is_empty():
        tied = list(known.filter(part_of=golden_set_id).iter_rows(named=True))
    for part in tied:
        chunks = snapshot.chunks(part["collection_id"])
        placed = anchor(snapshot.judgements(part["golden_set_id"]), chunks)[0]
        spans = pl.concat([spans, placed.with_columns(golden_set_id=pl.lit(golden_set_id))])
    if of_chunks:
        judgements = judgements.clear()
    if spans.is_empty() and judgements.is_empty():
        raise InputError(f"The golden set {golden_set_id} has no grades.", do="Name another one.")
    return AddedGrades(golden, judgements, spans)


def grades_in(batch: Batch) -> AddedGrades:
    """Return the grades of a golden set about to be written."""
    golden = batch.golden_sets[0]
    rows = {table: batch.frames.get(table, frame(table, [])).lazy() for table in ("judgements", "spans")}
    own = {table: some.filter(golden_set_id=golden.golden_set_id).collect() for table, some in rows.items()}
    return AddedGrades(golden, own["judgements"], own["spans"])


def grown(snapshot: Snapshot, to: str, hand: AddedGrades) -> Batch:
    """Build a golden set from a stored one and manual grades, with its parts for every chunking.

    Args:
        to: Its id; if the grades were added to it before, the result is a later version of it.
        hand: The grades, which need not be in the store yet.

    Raises:
        UnknownNameError: If there is no golden set of that name.
        InputError: If they judge different collections, or the new name is taken.
    """
    if to == hand.golden.golden_set_id:
        raise InputError(f"{to} cannot be added to itself.", do="Name the golden set of what was known.")
    known = snapshot.golden_sets()
    name, parents = name_for(known, to, hand.golden.golden_set_id, hand.golden.judge)
    refuse_other(known, name, parents)
    all_grades = [*(read(snapshot, parent) for parent in parents[:-1]), hand]
    collections = {whole_of(snapshot, grades.golden.collection_id) for grades in all_grades}
    if len(collections) > 1:
        raise InputError(
            f"These golden sets judge different collections: {', '.join(sorted(collections))}.",
            do="Name golden sets of one collection.",
        )
    (collection,) = collections
    return _put_together(snapshot, name, collection, all_grades)


def _put_together(
    snapshot: Snapshot, name: str, collection_id: str, all_grades: Sequence[AddedGrades]
) -> Batch:
    chunkings = list(chunks_of(snapshot, collection_id))
    anchored = any(grades.spans.height for grades in all_grades)
    documents = _documents(snapshot, collection_id, all_grades if anchored or chunkings else ())
    own = [_itself(grades, documents) for grades in all_grades]
    rows, *added = own
    counts = AddedCounts()
    if anchored and rows.spans.is_empty():
        rows = replace(rows, spans=_placed(rows.judgements, documents))
    for hand in added:
        judgements, spans, more = over(rows, hand)
        rows, counts = replace(rows, judgements=judgements, spans=spans), counts + more
    sizes = [each.judgements.height + each.spans.height for each in own]
    golden = described(name, all_grades, counts, collection_id, sizes)
    judgements = _named(rows.judgements, name)
    spans = _named(rows.spans if anchored else _placed(rows.judgements, documents), name)
    if own[0].judgements.height < all_grades[0].judgements.height:  # documents got theirs from spans
        derived = judged(golden, spans, documents).judgements
        judgements = pl.concat([judgements, derived.join(judgements, on=PAIR, how="anti")])
    parts = [judged(golden, spans, chunking) for chunking in chunkings]
    frames = {
        "judgements": pl.concat([judgements, *(part.judgements for part in parts)]),
        "spans": spans if anchored else spans.clear(),
    }
    return Batch(
        golden_sets=(golden, *(part.golden_set for part in parts)),
        frames={table: some.sort(some.columns[:3]) for table, some in frames.items() if some.height},
    )


def _documents(snapshot: Snapshot, collection_id: str, all_grades: Sequence[AddedGrades]) -> Chunked:
    named = [grades.judgements["passage_id"] for grades in all_grades]
    named += [grades.spans["source"] for grades in all_grades]
    ids = sorted(set().union(*(some.to_list() for some in named)))
    return whole(collection_id, [snapshot.passages(collection_id, ids)] if ids else [])


def _named(rows: pl.DataFrame, golden_set_id: str) -> pl.DataFrame:
    return rows.with_columns(golden_set_id=pl.lit(golden_set_id))


def _itself(known: AddedGrades, documents: Chunked) -> AddedGrades:
    """Return a golden set without the grades that documents have only from its spans."""
    if known.spans.is_empty() or known.judgements.is_empty():
        return known
    derived = judged(known.golden, known.spans, documents).judgements
    return replace(known, judgements=known.judgements.join(derived, on=[*PAIR, "grade"], how="anti"))


def _placed(judgements: pl.DataFrame, documents: Chunked) -> pl.DataFrame:
    """Return grades of whole documents as spans, from which chunks get theirs."""
    return anchor(judgements, documents.chunks)[0]


def write_added(store: Store, hand: str, to: str) -> GoldenSet:
    """Add the grades of a golden set to another one and write both together, in one transaction.

    Raises:
        UnknownNameError: If one does not exist.
        InputError: If they cannot be combined.
    """
    snapshot = store.read()
    batch = grown(snapshot, to, read(snapshot, hand))
    golden = batch.golden_sets[0]
    with store.write("judge", f"{golden.golden_set_id}: {golden.notes}"[:500]) as writer:
        writer.add(batch, replacing=[each.golden_set_id for each in batch.golden_sets])
    return golden
