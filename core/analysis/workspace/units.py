"""The units that runs of a workspace retrieve: whole documents, or passages of them; their scales differ.

A document is found more easily than its answering passage, and a found document gives its reader
much more to read. Both may be judged by the same positions in the documents, so scores alone do not show it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import polars as pl

from core.number_format import count
from core.store import Snapshot
from core.store.read.memory import Memory

Unit = Literal["documents", "passages"]
DOCUMENTS: Unit = "documents"
PASSAGES: Unit = "passages"
WHOLE = "whole documents"
"""Suffix of the label of a run that retrieves documents although others retrieve passages of them."""
_WORDS: Mapping[str, str] = {DOCUMENTS: WHOLE, PASSAGES: "passages"}
_QUERIES = 200  # Maximum number of queries of a run whose first result is checked
_KEPT = Memory(8 << 20)


def units(snapshot: Snapshot, collection_id: str) -> Mapping[str, Unit]:
    """Return what each ranked run of a collection retrieves, by run_id; some are unknown.

    A run that searched the chunks of a chunking retrieves passages. For any other it follows from its
    first ranks: ids that passages, chunks or judged positions belong to are those of documents. Where each
    document is one passage, both are the same.
    """
    key = (str(snapshot.catalogue.path), snapshot.revision, snapshot.everything, collection_id)
    return _KEPT.once(key, lambda: _units(snapshot, collection_id), lambda found: 100 * len(found))


def _units(snapshot: Snapshot, collection_id: str) -> dict[str, Unit]:
    runs = snapshot.runs(collection_id).filter("has_rankings")
    found: dict[str, Unit] = dict.fromkeys(runs.drop_nulls("chunking")["run_id"], PASSAGES)
    firsts = snapshot.firsts(runs.filter(pl.col("chunking").is_null())["run_id"].to_list(), _QUERIES)
    ids = firsts["passage_id"].unique().to_list()
    documents = snapshot.cut_up(collection_id, ids) if ids else set()
    passages = set(ids) - documents
    if documents:
        parts = snapshot.collections(parts=True).filter(part_of=collection_id)["collection_id"]
        passages &= set(snapshot.existing("passages", [collection_id, *parts], "passage_id", ids))
    of: Mapping[Unit, set[str]] = {DOCUMENTS: documents, PASSAGES: passages}
    for (run_id,), rows in firsts.partition_by("run_id", as_dict=True).items():
        ranked = set(rows["passage_id"])
        found |= {str(run_id): unit for unit, held in of.items() if len(ranked & held) * 2 > len(ranked)}
    if DOCUMENTS in found.values() and _one_to_one(snapshot, collection_id, runs, found):
        return dict.fromkeys(found, PASSAGES)
    return found


def _one_to_one(
    snapshot: Snapshot, collection_id: str, runs: pl.DataFrame, found: Mapping[str, Unit]
) -> bool:
    """Return whether every passage that runs retrieve is the only one of its document."""
    passages = runs.filter(pl.col("run_id").replace_strict(found, default=None) == PASSAGES)
    if passages.is_empty() or passages["chunking"].null_count():
        return False
    sizes = dict(snapshot.collections(parts=True).select("collection_id", "passages").iter_rows())
    parts = [f"{collection_id}@{name}" for name in passages["chunking"].unique()]
    return all(
        sizes.get(part) == sizes[collection_id] and snapshot.chunks(part)["source"].is_unique().all()
        for part in parts
    )


def searched_whole(snapshot: Snapshot, collection_id: str) -> list[str]:
    """Return runs that retrieve whole documents of a collection although others retrieve passages."""
    of = units(snapshot, collection_id)
    whole = [run_id for run_id, unit in of.items() if unit == DOCUMENTS]
    return whole if len(whole) < len(of) else []


def other_units(snapshot: Snapshot, runs: pl.DataFrame) -> tuple[dict[str, str], str]:
    """Return runs of one collection that retrieve another unit than most of them do.

    Args:
        runs: Rows of `Snapshot.runs`.

    Returns:
        Why each of them does not compare, by run_id, and a sentence without its end; "" if all match.
    """
    of = units(snapshot, runs["collection_id"][0]) if runs.height else {}
    if len({*of.values()}) < 2:
        return {}, ""
    known = runs.with_columns(unit=pl.col("run_id").replace_strict(of, default=None, return_dtype=pl.String))
    counts = known.drop_nulls("unit").group_by("unit").agg(pl.len().alias("runs"), pl.min("created_at"))
    if counts.height < 2:
        return {}, ""
    counts = counts.sort("runs", "created_at", descending=[True, False])
    (usual, others), (other, few) = counts.select("unit", "runs").iter_rows()
    does = count(few, "stack retrieves", "stacks retrieve")
    words = f"{does} {_WORDS[other]}, {count(others, 'other')} {_WORDS[usual]}"
    why = f"retrieves {_WORDS[other]}, most retrieve {_WORDS[usual]}"
    return dict.fromkeys(known.filter(unit=other)["run_id"], why), words
