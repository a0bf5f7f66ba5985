"""The stored material that sweeps and golden sets name by its id."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import polars as pl

from core.errors import InputError, UnknownNameError
from core.records import Batch, Collection, GoldenSet
from core.store import Snapshot
from core.views.library.export import records

if TYPE_CHECKING:  # the engines take a second to load, which reading a plan does not need
    from core.golden.job import Kind, Ranked


class StoreShelf:
    """Reads from one revision of a store; see `core.pipeline.sweep.sources.Shelf`."""

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

    def gradings(self, golden_set_id: str) -> pl.DataFrame:
        """The acts of judging behind a golden set."""
        return self._snapshot.gradings(golden_set_id)

    def ranked(self, collection_id: str, names: Sequence[str] | None, depth: int) -> list[Ranked]:
        """The first ranks of runs on the collection's own passages; all of them where none is named.

        Raises:
            UnknownNameError: If a named run is none of these.
        """
        from core.golden.job import Ranked  # noqa: PLC0415 - loads the engines

        runs = self._snapshot.runs(collection_id).filter(
            pl.col("has_rankings") & pl.col("chunking").is_null()
        )
        known = runs["run_id"].to_list()
        for name in names or ():
            if name not in known:
                raise UnknownNameError("run", name, known, where=collection_id)
        chosen = runs if names is None else runs.filter(pl.col("run_id").is_in(list(names)))
        found = []
        for row in chosen.sort("run_id").iter_rows(named=True):
            rows = self._snapshot.rankings([row["run_id"]], stage="final").filter(pl.col("rank") <= depth)
            mode = json.loads(row["spec"]).get("mode")
            kind: Kind = mode if mode in ("dense", "sparse") else "hybrid"
            found.append(Ranked(row["label"], kind, rows.select("query_id", "passage_id", "rank")))
        return found
