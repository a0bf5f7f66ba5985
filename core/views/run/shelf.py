"""Stored collections and golden sets as batches, for sweeps that name them by their id."""

from __future__ import annotations

import polars as pl

from core.errors import InputError, UnknownNameError
from core.records import Batch, Collection, GoldenSet
from core.store import Snapshot
from core.views.library.export import records


class StoreShelf:
    """Reads from one revision of a store; see `core.pipeline.sweep.sources.Shelf`.

    Args:
        snapshot: The revision.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def collection(self, collection_id: str) -> Batch:
        """A collection with passages, questions and its golden set, if it has only one.

        Raises:
            UnknownNameError: If there is none of this id.
            InputError: If it has no passages with text, as after an import of rankings alone.
        """
        known = self._snapshot.collections()
        rows = known.filter(pl.col("collection_id") == collection_id)
        if rows.is_empty():
            raise UnknownNameError("collection", collection_id, known["collection_id"])
        if not rows["passages"].item():
            found = "The collection has no passages in the store."
            raise InputError(found, where=collection_id, do="Import its corpus, or name a path.")
        golden = self._snapshot.golden_sets(collection_id)["golden_set_id"].to_list()
        judged = self.golden_set(golden[0]) if len(golden) == 1 else Batch()
        return Batch(
            collections=tuple(records(Collection, rows)),
            golden_sets=judged.golden_sets,
            frames={
                "passages": self._snapshot.passages(collection_id),
                "queries": self._snapshot.queries(collection_id),
                **judged.frames,
            },
        )

    def golden_set(self, golden_set_id: str) -> Batch:
        """A golden set with its judgements and spans.

        Raises:
            UnknownNameError: If there is none of this id.
        """
        known = self._snapshot.golden_sets()
        rows = known.filter(pl.col("golden_set_id") == golden_set_id)
        if rows.is_empty():
            raise UnknownNameError("golden set", golden_set_id, known["golden_set_id"])
        frames = {
            "judgements": self._snapshot.judgements(golden_set_id),
            "spans": self._snapshot.spans(golden_set_id),
        }
        return Batch(
            golden_sets=tuple(records(GoldenSet, rows)),
            frames={table: some for table, some in frames.items() if some.height},
        )
