"""Information in imported files about the passages that they rank, besides the ids in their collection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import polars as pl

from core.analysis.export import StoreShelf
from core.importers import Import
from core.records import part_id
from core.store import Snapshot
from core.tables import Pieces, frame


def ranked_collections(snapshot: Snapshot, imported: Import) -> list[str]:
    """Return stored collections whose passages an import ranks."""
    if "rankings" not in imported.frames or isinstance(imported.frames["rankings"], Pieces):
        return []
    stored = snapshot.collections().filter(pl.col("passages") > 0)["collection_id"]
    return sorted({run.collection_id for run in imported.runs} & set(stored))


class ImportedRankings:
    """The passages that an import ranks in one stored collection."""

    def __init__(self, snapshot: Snapshot, imported: Import, collection_id: str) -> None:
        self.snapshot, self.made, self.name = snapshot, imported, collection_id
        of = (run for run in imported.runs if run.collection_id == collection_id)
        self.runs = [run for run in of if run.chunking is None]  # the others rank known chunks

    @cached_property
    def rows(self) -> pl.DataFrame:
        """Their rankings."""
        own = pl.col("run_id").is_in([run.run_id for run in self.runs])
        return self.made.frames["rankings"].lazy().filter(own).collect()

    @cached_property
    def are_told(self) -> bool:
        """Whether there is more information than the ids; this reads no text."""
        ids = self.rows["passage_id"].unique().to_list()
        unknown = set(ids) - set(self.snapshot.existing("passages", [self.name], "passage_id", ids))
        documents = bool(StoreShelf(self.snapshot).chunks(self.name))
        said = set(self.said(ids)["passage_id"])
        return bool(unknown | said if documents else unknown & said)

    def said(self, ids: Sequence[str]) -> pl.DataFrame:
        """Return the files' information on passages: their location, or the text given with them."""
        brought = self.made.frames.get("passages", frame("passages", [])).lazy()
        texts = brought.select("passage_id", "text", "source").collect()
        told = pl.concat([self.made.told, texts], how="diagonal")
        return told.filter(pl.col("passage_id").is_in(ids)).unique(
            "passage_id", keep="first", maintain_order=True
        )


def are_told(snapshot: Snapshot, imported: Import) -> bool:
    """Return whether there is more information on an import's passages than ids in their collection."""
    return any(
        ImportedRankings(snapshot, imported, name).are_told for name in ranked_collections(snapshot, imported)
    )


def with_chunkings(snapshot: Snapshot, imported: Import) -> Import:
    """Return an import whose runs name the chunking they searched, if all their passages are its chunks."""
    found: dict[str, str] = {}
    for name in ranked_collections(snapshot, imported):
        parts = snapshot.collections(parts=True).filter(part_of=name)["collection_id"].to_list()
        ranked = ImportedRankings(snapshot, imported, name)
        for run in ranked.runs if parts else ():
            ids = ranked.rows.filter(run_id=run.run_id)["passage_id"].unique().to_list()
            held = (part for part in parts if _holds(snapshot, part, ids))
            if part := next(held, ""):
                found[run.run_id] = part.removeprefix(part_id(name, ""))
    runs = (replace(run, chunking=found.get(run.run_id, run.chunking)) for run in imported.runs)
    return replace(imported, runs=tuple(runs)) if found else imported


def _holds(snapshot: Snapshot, part: str, ids: Sequence[str]) -> bool:
    return bool(ids) and len(snapshot.existing("passages", [part], "passage_id", ids)) == len(ids)
