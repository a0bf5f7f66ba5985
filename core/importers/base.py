"""Parts that all formats share: the options, the result of reading, and the abstract format."""

from __future__ import annotations

import textwrap
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar

import polars as pl

from core.answers import parted
from core.importers.meaning import RowMeaning, TableAs
from core.importers.read.member import Archive, Member, ReadLimits, head_lines, members_of
from core.importers.read.number_format import Reading
from core.importers.read.ordering import OwnIds, TieOrder
from core.importers.read.text import require_text
from core.importers.report import FileReport, ReportParts, file_report
from core.records import Batch, Collection, GoldenSet, Run
from core.tables import Frame, Pieces, frame, schema

SURE, LIKELY, RESEMBLES = 0.95, 0.7, 0.3
"""Confidence of a format: unmistakable marks found; right shape; right shape, but something is missing."""
ACCEPTED = 0.5  # From this confidence on a format may read what was offered
LOOK_ROWS = 20  # Rows of a preview
DocumentsOf = Callable[[str, Sequence[str]], pl.DataFrame]
"""Returns those of the named documents of a collection (its id) that are available: source, text."""
TOLD = schema("passage_id text source start:int64 end:int64 heading")
"""What a file says of a passage beside its id; it is not stored, but finds the passage in a collection."""
_WIDTH = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The user's choices, each with a default that the notes mention."""

    format: str | None = None  # Name of a format, or the beginning of several ("trec"); None = by content
    # The same for single files, by their names in `preview`; it takes precedence over the format for all
    formats: Mapping[str, str] = field(default_factory=dict)
    label: str | None = None  # Name for the run; with several runs it is put before their own names
    collection_id: str | None = None  # Collection that the rankings and judgements belong to
    collection_name: str | None = None  # The collection's name for people, if it is not its id
    # Whether the user named it; formats whose files name collections themselves check this
    collection_given: bool = False
    golden_set_id: str | None = None  # Golden set that the judgements make
    # How grades become 1..5: a name of `GRADE_MAPPINGS` or text such as "0→1, 1→3, 2→5"
    grades: str | None = None
    split: str | None = None  # Which BEIR split to take; "all" for each as a separate golden set
    sheet: str | None = None  # Which sheet of a workbook to take
    # Whether results of tasks other than retrieval and reranking are taken too (MTEB)
    all_tasks: bool = False
    # Meaning → column of a table, for names that are not recognised: a role, or a recognised column name such
    # as "latency_p95_s" or "nDCG@10"
    columns: Mapping[str, str] = field(default_factory=dict)
    row: RowMeaning | None = None  # What a row of a table is; None = whatever its columns make of it
    without: frozenset[str] = frozenset()  # Columns of tables that are left out
    # Column of tables → how its ambiguous numbers are read
    numbers: Mapping[str, Reading] = field(default_factory=dict)
    # The settings of single tables, by file names of `preview`; they take precedence over those for all
    tables: Mapping[str, TableAs] = field(default_factory=dict)
    pool: str | None = None  # Name of the candidate pool's convention, if a table has pool rows
    # "trec_eval": rankings with scores are ordered as it does, whatever their ranks
    tie_order: TieOrder = "file"
    # What to strip from ids ("queries", "passages") before they are used: "doc-*" keeps what the star stands
    # for
    strip: Mapping[str, str] = field(default_factory=dict)
    # Fields of metadata that say what an asker may see
    permissions: frozenset[str] = frozenset()
    own_ids: OwnIds = "keep"  # "drop": a passage with the id of its query is left out of that ranking
    # Names of files and folders, as in `preview`, that are left out
    skip: frozenset[str] = frozenset()
    # Collections that the store has already; no new record is made for them
    known_collections: frozenset[str] = frozenset()
    # Returns the named documents of a collection (by its id) that the caller has: source, text
    documents: DocumentsOf | None = None
    limits: ReadLimits = field(default_factory=ReadLimits)  # Bounds on untrusted input

    def __post_init__(self) -> None:
        for what, name in (
            ("The label", self.label),
            ("The collection", self.collection_id),
            ("The collection", self.collection_name),
            ("The golden set", self.golden_set_id),
        ):
            require_text(what, name)

    def table_as(self, name: str) -> TableAs:
        """Return the user's settings for the table in a file."""
        return self.tables.get(name) or TableAs(self.columns, self.row, self.without, self.numbers)


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Something that was skipped: count, reason, first occurrence, and whether it is part of a file."""

    count: int
    reason: str
    first: str = ""
    # "column", "key" or "file" for a part listed in a `FileReport`; "" for rows, cells and the like
    part: str = ""


@dataclass(frozen=True, slots=True)
class Detected:
    """The recognised format of a file or folder."""

    name: str
    format: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Import:
    """The result of reading; nothing is written until its batch is given to the store.

    Attributes:
        collections, golden_sets, runs, frames: The parts of the batch.
        texts: Texts given with ids ("queries", "passages"): id, text. They are not stored, but tell
            whether ids mean the same as in a collection.
        left_out: What was skipped.
        reports: The columns or keys of every file: taken, or left out with the reason.
        notes: Decisions made on the way, as sentences.
        detected: The format in which each offered file was read.
        held: What the frames need for as long as they are used: spools of rows on disk.
        told: The origin of ranked passages beside their ids, as far as files state it: frame of `TOLD`.
        incumbents: Runs of the stacks that run today.
    """

    collections: tuple[Collection, ...] = ()
    golden_sets: tuple[GoldenSet, ...] = ()
    runs: tuple[Run, ...] = ()
    frames: Mapping[str, Frame] = field(default_factory=dict)
    texts: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    left_out: tuple[LeftOut, ...] = ()
    reports: tuple[FileReport, ...] = ()
    notes: tuple[str, ...] = ()
    detected: tuple[Detected, ...] = ()
    held: tuple[object, ...] = ()
    told: pl.DataFrame = field(default_factory=TOLD.to_frame)
    incumbents: tuple[str, ...] = ()

    @classmethod
    def of(cls, batch: Batch) -> Import:
        """Return a batch in the form in which it would be read."""
        return cls(**{each.name: getattr(batch, each.name) for each in fields(Batch)})

    @property
    def batch(self) -> Batch:
        """Return the batch that one transaction adds to the store."""
        return Batch(**{each.name: getattr(self, each.name) for each in fields(Batch)})

    @property
    def taken(self) -> dict[str, int]:
        """Rows per table, tables of few things first; tables without rows are left out."""
        few = {"collections": self.collections, "golden sets": self.golden_sets, "runs": self.runs}
        counts = {name: len(things) for name, things in few.items()}
        for name, rows in self.frames.items():
            parts = rows.frames if isinstance(rows, Pieces) else (rows.lazy(),)
            counts[name] = sum(part.select(pl.len()).collect().item() for part in parts)
        return {name: count for name, count in counts.items() if count}


def merged(parts: Iterable[Import]) -> Import:
    """Merge several imports; a collection that several parts name is kept once."""
    parts = tuple(parts)
    by_table: dict[str, list[Frame]] = {}
    for part in parts:
        for table, rows in part.frames.items():
            by_table.setdefault(table, []).append(rows)
    collections: dict[str, Collection] = {}
    for part in parts:
        for collection in part.collections:
            collections.setdefault(collection.collection_id, collection)
    return Import(
        collections=tuple(collections.values()),
        golden_sets=tuple(golden_set for part in parts for golden_set in part.golden_sets),
        runs=tuple(run for part in parts for run in part.runs),
        frames={table: _together(by_table[table]) for table in sorted(by_table)},
        texts={
            what: pl.concat(part.texts[what] for part in parts if what in part.texts)
            for what in sorted({what for part in parts for what in part.texts})
        },
        left_out=tuple(entry for part in parts for entry in part.left_out),
        reports=tuple(entry for part in parts for entry in part.reports),
        notes=tuple(dict.fromkeys(note for part in parts for note in part.notes)),
        detected=tuple(entry for part in parts for entry in part.detected),
        held=tuple(entry for part in parts for entry in part.held),
        told=pl.concat([TOLD.to_frame(), *(part.told for part in parts)]).unique(maintain_order=True),
        incumbents=tuple(run_id for part in parts for run_id in part.incumbents),
    )


def counted(counts: Mapping[str, int], first: str = "") -> tuple[LeftOut, ...]:
    """Return one entry per reason for leaving something out; reasons with a count of zero are dropped."""
    return tuple(LeftOut(count, reason, first) for reason, count in counts.items() if count)


def frames_of(**tables: pl.DataFrame | list[dict[str, Any]]) -> dict[str, Frame]:
    """Return frames of declared tables that have rows.

    An answer may come with the one grade that it has.
    """
    answers = tables.get("answers", pl.DataFrame())
    if isinstance(answers, pl.DataFrame) and "grade" in answers.columns:
        tables = {**parted(answers), **{name: rows for name, rows in tables.items() if name != "answers"}}
    return {
        table: frame(table, rows.to_dict() if isinstance(rows, pl.DataFrame) else rows)
        for table, rows in tables.items()
        if len(rows)
    }


def placed(timings: pl.DataFrame) -> pl.DataFrame:
    """Add the position of each query within its pass to rows that are in the order of measuring."""
    keys = [name for name in ("run_id", "stage", "repeat") if name in timings.columns]
    return timings.with_columns(place=pl.int_range(1, pl.len() + 1).over(keys))


def summed(left: Iterable[LeftOut]) -> tuple[LeftOut, ...]:
    """Merge entries of many files by reason: one each, with the total count and the first place."""
    by_reason: dict[str, LeftOut] = {}
    for entry in left:
        before = by_reason.get(entry.reason, replace(entry, count=0))
        by_reason[entry.reason] = replace(before, count=before.count + entry.count)
    return tuple(by_reason.values())


def _together(frames: Sequence[Frame]) -> Frame:
    if len(frames) == 1:
        return frames[0]
    rows = [part.frames if isinstance(part, Pieces) else (part.lazy(),) for part in frames]
    flat = tuple(frame for some in rows for frame in some)
    return Pieces(flat) if any(isinstance(part, Pieces) for part in frames) else pl.concat(flat)


@dataclass(frozen=True, slots=True)
class Look:
    """The beginning of a file."""

    rows: pl.DataFrame  # its first rows as text
    columns: tuple[str, ...] = ()  # names of the columns, if it is a table
    # meaning → column as recognised, if it is a table
    mapping: Mapping[str, str] = field(default_factory=dict)
    row: RowMeaning | None = None  # what one row is, if known
    # column → measure and stack, where columns name both
    grid: Mapping[str, tuple[str, str]] = field(default_factory=dict)


class Format(ABC):
    """One foreign format, which recognises itself by content and reads archives of its kind."""

    name: str  # Short name, as in ``--as``; a family shares a beginning ("trec-run", "trec-qrels")
    title: str  # What people read
    takes: Mapping[str, str]  # Table that it can fill → what of the format fills it, in words; "" = unchanged
    recognised: str  # How a file of this kind is recognised, in words
    traps: tuple[str, ...] = ()  # What is left out or refused although it exists, each as a sentence
    # A sentence on what was built from documentation alone, without trying a file that the tool wrote
    untried: str = ""
    units: str = ""  # What is converted, in words; empty = nothing is
    names_collection: int = 0  # How well its file or folder name suits as the name of a collection
    maps_columns: bool = False  # Whether the user may say what its columns mean
    # Whether its measures are known to lie in their ranges: tables check each cell against them, and so did
    # the store
    in_ranges: bool = False
    # Whether it is read after the other files of an offer, with access to their documents
    needs_documents: bool = False
    mixed: bool = False  # Whether one file of it makes a folder its own, whatever else lies there
    # Kind of file → its columns or keys, each with the reason it is left out (`TAKEN`: it is not), or the
    # reason for the whole file; the first entry holds for files of unknown kind
    known: ClassVar[Mapping[str, ReportParts | str]] = {}

    @property
    def brings(self) -> tuple[str, ...]:
        """The tables that the format can fill."""
        return tuple(self.takes)

    def kind(self, member: Member) -> str | None:  # noqa: ARG002
        """Return which of its kinds a file is, judging by its head, or None (or empty) if none."""
        return None

    def sniff(self, probe: Archive) -> float:
        """Return the confidence, 0..1, that an archive (folder, or one file) is entirely of this format."""
        kinds = map(self.kind, probe.members)
        return SURE if (any(kinds) if self.mixed else all(kinds)) else 0.0

    @abstractmethod
    def read(self, archives: Sequence[Archive], options: Options) -> Import:
        """Read all archives of this format that were offered together.

        Args:
            archives: The archives that `sniff` accepted.
            options: The user's decisions; `collection_id` is always set.

        Raises:
            InputError: Naming file, line and column.
        """

    def mine(self, probe: Archive) -> tuple[Member, ...]:
        """Return the files of an accepted archive that it will read.

        The rest is offered to the other formats.
        """
        return tuple(filter(self.kind, probe.members)) or probe.members

    def parts(self, member: Member, options: Options) -> ReportParts | str | None:  # noqa: ARG002
        """Return the known parts of a file, as in `known`; others are left out as not recognised."""
        return self.known.get(self.kind(member) or "", next(iter(self.known.values()), None))

    def reports(self, archives: Sequence[Archive], options: Options) -> Iterator[FileReport]:
        """Yield the report of every file that was read, part by part."""
        for member in members_of(archives):
            if (parts := self.parts(member, options)) is not None:
                yield file_report(member, parts)

    def choices(self, archives: Sequence[Archive]) -> Mapping[str, tuple[str, ...]]:  # noqa: ARG002
        """Return options that the user has to choose between, each with its values."""
        return {}

    def look(self, archive: Archive, options: Options) -> Look:  # noqa: ARG002
        """Return the first rows, for a preview."""
        lines = head_lines(archive.members[0], LOOK_ROWS)
        if len(lines) == 1:  # a file with a single line shows more than its beginning
            lines = textwrap.wrap(lines[0][: _WIDTH * LOOK_ROWS], _WIDTH)
        lines = [line[:500] for line in lines]
        return Look(pl.DataFrame({"line": lines}, schema={"line": pl.String}))

    def why_not(self, probe: Archive) -> str:  # noqa: ARG002
        """Explain why an archive that merely resembles this format is refused, or "" if it fits."""
        return ""
