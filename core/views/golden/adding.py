"""Manual grades added to a golden set of the store: the choices offered, and the set written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from core.analysis.export import records
from core.analysis.workspace.clusters import one_known
from core.errors import InputError, UnknownNameError
from core.golden.adding import AddedCounts, AddedGrades, ancestry, described, name_for, over, refuse_other
from core.golden.book import PAIR, Queue
from core.pipeline.anchors import anchor, judged
from core.pipeline.chunk import Chunked
from core.records import Batch, GoldenSet
from core.store import Snapshot, Store
from core.tables import frame
from core.views.golden.chunks import whole_of
from core.work.imports.anchored import chunks_of, whole

_FILLS_IN = ("by value", "holes of stacks")  # Samplings of passages that the golden set lacks


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
    """Return the graded documents that are passages of the collection."""
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
