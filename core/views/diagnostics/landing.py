"""Diagnoses in the store: written, and read back."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from core.records import Batch
from core.store import Snapshot, Store


def work_of(store: Path) -> Path:
    """The folder of all diagnoses whose figures go into a store."""
    return store.absolute().parent / "diagnostics"


def land(store: Store, batch: Batch) -> None:
    """Write figures; those of the same embedder, dimension and language take the place of earlier ones."""
    there = set(store.read().collections()["collection_id"])
    names = [each.collection_id for each in batch.collections]
    with store.write("diagnose", ", ".join(names)[:500]) as writer:
        writer.add(batch, replacing=[name for name in names if name in there])


def diagnosed(snapshot: Snapshot, diagnosis: str) -> pl.DataFrame:
    """Return the figures of all diagnoses of a kind ("names", "noise")."""
    there = set(snapshot.collections()["collection_id"])
    rows = snapshot.diagnostics([name for name in snapshot.sizes("diagnostics")["id"] if name in there])
    return rows.filter(diagnosis=diagnosis)
