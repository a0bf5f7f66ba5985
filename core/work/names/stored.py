"""Diagnoses in the store: existing ones, and storing the figures of a new one."""

from __future__ import annotations

import polars as pl

from core.records import Batch
from core.store import Snapshot, Store, Writer


def store_results(store: Store, batch: Batch) -> None:
    """Store figures; they replace earlier ones of the same embedder, dimension and language."""
    names = ", ".join(collection.collection_id for collection in batch.collections)
    with store.write("diagnose", names[:500]) as writer:
        add(writer, store.read(), batch)


def add(writer: Writer, snapshot: Snapshot, batch: Batch) -> None:
    """Add figures to a transaction; they restore deleted collections and replace earlier figures."""
    known, deleted = (set(snapshot.collections(removed=gone)["collection_id"]) for gone in (False, True))
    names = [collection.collection_id for collection in batch.collections]
    writer.restore("collection", [name for name in names if name in deleted])
    writer.add(batch, replacing=[name for name in names if name in known | deleted])


def diagnosed(snapshot: Snapshot, diagnosis: str) -> pl.DataFrame:
    """Return the figures of all diagnoses of a kind ("names", "noise")."""
    there = set(snapshot.collections()["collection_id"])
    rows = snapshot.diagnostics([name for name in snapshot.sizes("diagnostics")["id"] if name in there])
    return rows.filter(diagnosis=diagnosis)
