"""Passages of imported rankings without an id in their collection: found by place, quote or heading.

They are treated like those of a custom pipeline: in a collection of documents they become passages of the
run's own chunking, graded by the judged places of the documents; in one of passages each counts as the
passage that contains it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import polars as pl

from core.errors import InputError
from core.importers import Import
from core.importers.base import counted
from core.importers.meaning import OF_PLACES
from core.importers.read.text import shown
from core.number_format import count
from core.pipeline.own.config import MatchBy
from core.pipeline.own.cut import OwnChunking, own_chunking
from core.pipeline.own.parts import DocumentShelf, shelf_of
from core.pipeline.own.passages import PassageShelf, PlacedBy, ToldPassages
from core.records import Batch, Run
from core.store import Snapshot
from core.tables import Frame, frame
from core.work.imports.told import ImportedRankings, ranked_collections
from core.work.sweep.asked import asked_corpus
from core.work.sweep.own import WAYS

_LOST = "passages that stand nowhere in the collection: they count as unjudged"


@dataclass(frozen=True)
class Placeable:
    """Number of an import's passages without an id in a collection, and how many can be found anyway."""

    collection_id: str
    named: int  # passages in rankings
    known_by: Counter[PlacedBy]  # those found by place or quote, by method
    headed: int  # those that source and heading would also identify

    @property
    def match(self) -> MatchBy:
        """Return the method that finds most of them with the least guessing."""
        return "places" if self.known_by else "headings"

    @property
    def found(self) -> int:
        """Return how many that method finds."""
        return self.known_by.total() or self.headed

    def __str__(self) -> str:
        """Describe it in words: ``48 of 50 passages stand in handbook: 45 by quote, 3 by place``."""
        ways = [f"{number:,} by {WAYS[way]}" for way, number in self.known_by.most_common()]
        ways += [f"{self.headed:,} by {WAYS['heading']}"] if self.headed else []
        of = f"{self.known_by.total() + self.headed:,} of {count(self.named, 'passage')}"
        return f"{of} stand in {shown(self.collection_id)}: {', '.join(ways)}"


def placeable(snapshot: Snapshot, imported: Import) -> tuple[Placeable, ...]:
    """Return the collections that have an import's passages under other names, if these can be recognised."""
    places = (_Places(snapshot, imported, name) for name in ranked_collections(snapshot, imported))
    return tuple(found for each in places if (found := each.found()) is not None)


def with_places(snapshot: Snapshot, imported: Import, match: MatchBy) -> Import:
    """Return an import whose passages are mapped to the collection's.

    Raises:
        InputError: If none can be found that way.
    """
    before = imported
    for name in ranked_collections(snapshot, imported) if match != "ids" else ():
        imported = _Places(snapshot, imported, name).taken(match)
    if imported is before and match != "ids":
        raise InputError(
            "No passage is found by where it is from.",
            where="--match",
            do="Bring source with characters, text or heading of each passage, and name the collection.",
        )
    return _used(imported) if imported is not before else imported


def _used(imported: Import) -> Import:
    """Return the import with the columns that located passages counted as used."""
    reports = []
    for report in imported.reports:
        used = [name for name, why in report.left_out.items() if why == OF_PLACES]
        rest = {name: why for name, why in report.left_out.items() if why != OF_PLACES}
        reports.append(replace(report, taken=(*report.taken, *used), left_out=rest))
    left = tuple(entry for entry in imported.left_out if not entry.reason.endswith(OF_PLACES))
    return replace(imported, reports=tuple(reports), left_out=left)


class _Places(ImportedRankings):
    """The passages of an import that one collection may have under other names."""

    def found(self) -> Placeable | None:
        """Return how many can be found; None if none can."""
        if not self.are_told:
            return None
        known: Counter[PlacedBy] = Counter()
        headed = 0
        for told in self._unknown.values():
            at, way = self._shelf.find(told, "places")
            known.update([way] if at is not None else [])
            headed += at is None and self._shelf.under_heading(told) is not None
        return Placeable(self.name, len(self._unknown), known, headed) if known or headed else None

    def taken(self, match: MatchBy) -> Import:
        """Return the import with the found passages, or unchanged if there are none."""
        if not self.are_told:
            return self.made
        found = {name: self._shelf.find(told, match) for name, told in self._unknown.items()}
        known = {name: (at, way) for name, (at, way) in found.items() if at is not None}
        if not known:
            return self.made
        places = {name: at for name, (at, _) in known.items()}
        cut = {run.run_id: self._cut(run, places) for run in self.runs}
        own = {run_id: chunking for run_id, chunking in cut.items() if chunking is not None}
        ways = Counter(way for _, way in known.values())
        listed = ", ".join(f"{number:,} by {WAYS[way]}" for way, number in ways.most_common())
        lost = counted({_LOST: len(self._unknown) - len(known)}, self.name)
        rest = self.made.frames["rankings"].lazy().filter(~pl.col("run_id").is_in(list(cut)))
        rankings = pl.concat(
            [rest.collect(), *(self._named(run, cut[run.run_id], places) for run in self.runs)]
        )
        runs = (
            replace(run, chunking=own[run.run_id].name) if run.run_id in own else run
            for run in self.made.runs
        )
        collections = (each for chunking in own.values() for each in chunking.batch.collections)
        return replace(
            self.made,
            collections=(*self.made.collections, *collections),
            runs=tuple(runs),
            frames={**self._frames([chunking.batch for chunking in own.values()]), "rankings": rankings},
            notes=(*self.made.notes, f"Passages are those of {shown(self.name)}: {listed}."),
            left_out=(*self.made.left_out, *lost),
        )

    def _frames(self, cut: Sequence[Batch]) -> dict[str, Frame]:
        """Return the frames with passages from the runs' own chunking, without those under other names."""
        frames = dict(self.made.frames)
        for table in ("passages", "chunks"):
            known = frames.pop(table, frame(table, [])).lazy().filter(pl.col("collection_id") != self.name)
            rows = pl.concat([known, *(batch.frames[table].lazy() for batch in cut)]).collect()
            frames |= {table: rows} if rows.height else {}
        return frames

    def _cut(self, run: Run, places: Mapping[str, int]) -> OwnChunking | None:
        """Return a run's own chunking of documents; None if all are passages of the collection."""
        used = {
            at
            for name in self.rows.filter(run_id=run.run_id)["passage_id"].unique()
            if (at := self._at(name, places)) is not None
        }
        if not isinstance(self._shelf, DocumentShelf) or max(used, default=0) < len(self._shelf):
            return None
        return own_chunking(self.name, run.run_id, run.label, self._shelf, used)

    def _at(self, name: str, places: Mapping[str, int]) -> int | None:
        return places.get(name, self._shelf.named.get(name))

    def _named(self, run: Run, cut: OwnChunking | None, places: Mapping[str, int]) -> pl.DataFrame:
        """Return the rankings of a run under the collection's names; duplicates count once."""
        rows = self.rows.filter(run_id=run.run_id)
        ids = self._shelf.ids if cut is None else cut.passage_ids
        names = {
            name: ids[at]
            for name in rows["passage_id"].unique()
            if (at := self._at(name, places)) is not None
        }
        order = ("run_id", "stage", "query_id")
        named = rows.with_columns(pl.col("passage_id").replace(names)).sort(*order, "rank")
        once = named.unique([*order, "passage_id"], keep="first", maintain_order=True)
        rank = pl.int_range(1, pl.len() + 1, dtype=pl.Int32).over(order)
        return once.with_columns(rank=rank).select(rows.columns)

    @cached_property
    def _shelf(self) -> PassageShelf:
        return shelf_of(asked_corpus(self.snapshot, self.name))

    @cached_property
    def _unknown(self) -> dict[str, ToldPassages]:
        """Return the data on passages whose id is neither in the collection, nor a part of one."""
        ids = self.rows["passage_id"].unique().to_list()
        said = {row["passage_id"]: row for row in self.said(ids).iter_rows(named=True)}
        told = {
            name: ToldPassages.of([[name], None, said.get(name, {}).get("text"), said.get(name, {})])
            for name in ids
        }
        return {name: one for name, one in told.items() if not self._is_itself(one)}

    def _is_itself(self, told: ToldPassages) -> bool:
        """Return whether a passage is the one with its id."""
        known = self._shelf.known(told)
        return known is not None and self._shelf.find(told, "places")[0] == known
