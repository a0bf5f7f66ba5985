"""Judging sheets that were filled in outside the dashboard, read as a golden set per judge."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import polars as pl

from core.errors import InputError
from core.importers.base import LOOK_ROWS, SURE, Format, Import, Look, Options, counted, merged
from core.importers.formats.excel import sheet_table
from core.importers.judgements import TWICE, mapping_text
from core.importers.read.member import Archive, Member, members_of
from core.importers.read.rows import again, identified, numbers, refuse, without_repeats
from core.importers.read.tabular import Table, columns, kind_of, read_table
from core.importers.read.text import shown
from core.importers.read.workbook import is_workbook, open_workbook
from core.importers.report import TAKEN, FileReport, settled
from core.importers.runs import slug
from core.records import GoldenSet
from core.tables import frame

COLUMNS = (
    "collection", "queue", "judge", "query_id", "question", "passage_id", "title", "passage", "grade", "note",
)  # fmt: skip
"""The columns of a sheet, in order; the last two are to be filled in."""
SHEET = "judging"  # Name of the sheet in a workbook
_READ = ("collection", "queue", "judge", "query_id", "passage_id", "grade", "note")
# Prefix of a text that a spreadsheet would otherwise have run as a formula
_GUARD = r"^'([=+\-@\t\r\n＝＋－＠])"


class JudgingSheet(Format):
    """Sheets from the page Golden sets."""

    name, title = "judging-sheet", "Judging sheet, filled in (CSV, Excel)"
    takes = {"judgements": "each row with a grade", "gradings": "the same, with its note"}
    recognised = "the columns collection, queue, judge, query_id, passage_id, grade and note"
    traps = (
        "Rows without a grade are left out and counted.",
        "The texts are not read: those of the collection count.",
        "All sheets of one judge make one golden set, named after the collection and the judge.",
    )

    def sniff(self, probe: Archive) -> float:
        if len(probe.members) != 1:
            return 0.0
        return SURE if set(_READ) <= set(_names(probe.members[0])) else 0.0

    def look(self, archive: Archive, options: Options) -> Look:  # noqa: ARG002
        return Look(_opened(archive.members[0], LOOK_ROWS).texts)

    def read(self, archives: Sequence[Archive], options: Options) -> Import:
        """Read all sheets; those of one judge form one golden set."""
        rows = pl.concat([_rows(archive.members[0]) for archive in archives])
        filled = rows.filter(pl.col("grade").is_not_null())
        graded = without_repeats(filled, "file")
        if graded.is_empty():
            problem = "No row has a grade."
            raise InputError(problem, where=str(rows["file"][0]), do="Fill in the column grade with 1 to 5.")
        twice = "Passage {passage_id} is judged twice by {judge} for query {query_id}."
        refuse(again(graded, "judge", "query_id", "passage_id"), twice, do="Keep one of the two rows.")
        sets = graded.partition_by("collection", "judge", maintain_order=True)
        imports = [_set(part, options) for part in sets]
        lost = {"rows without a grade": rows.height - filled.height, TWICE: filled.height - graded.height}
        left = counted(lost, str(rows["file"][0]))
        return merged((*imports, Import(left_out=left)))

    def reports(self, archives: Sequence[Archive], options: Options) -> Iterator[FileReport]:  # noqa: ARG002
        texts = dict.fromkeys(COLUMNS, "the texts of the collection count")
        for member in members_of(archives):
            yield settled(member.name, "column", _names(member), {**texts, **dict.fromkeys(_READ, TAKEN)})


def _names(member: Member) -> list[str]:
    if not is_workbook(member):
        return columns(member)
    try:
        book = open_workbook(member)
        return book.columns(SHEET) if SHEET in book.sheets else []
    except InputError:
        return []


def _opened(member: Member, most: int | None = None) -> Table:
    if is_workbook(member):
        return sheet_table(member, SHEET, most)
    return read_table(member, kind_of(member), most, do=f"A sheet has {', '.join(_READ)}.")


def _rows(member: Member) -> pl.DataFrame:
    table = _opened(member)
    rows = table.taking({name: name for name in _READ}).with_columns(file=pl.lit(table.name))
    if not is_workbook(member):  # texts have several lines, and people know the row
        rows = rows.with_columns(line=pl.int_range(2, pl.len() + 2, dtype=pl.Int64))
    rows = rows.with_columns(pl.col(*_READ).str.replace(_GUARD, "$1"))
    rows = identified(rows, table.name, "collection", "query_id", "passage_id")
    refuse(rows.filter(pl.col("judge").is_null()), "Nobody is named as the judge.", table.name, "judge")
    rows = rows.with_columns(numbers(rows, "grade", table.name, whole=True))
    bad = rows.filter(~pl.col("grade").is_between(1, 5))
    refuse(bad, "The grade is {grade}; it is 1 to 5.", table.name, "grade")
    return rows


def _set(rows: pl.DataFrame, options: Options) -> Import:
    collection, judge = str(rows["collection"][0]), re.sub(r"\s+", " ", shown(rows["judge"][0]))
    collection = options.collection_id if options.collection_given and options.collection_id else collection
    name = options.golden_set_id or slug(f"{collection}-{judge}")
    queues = sorted(set(rows["queue"].drop_nulls()))
    golden = GoldenSet(
        golden_set_id=name,
        collection_id=collection,
        name=shown(name),
        mapping=mapping_text("1-5"),
        judge=judge,
        notes=f"Judged by hand on a sheet: {rows.height} passages.",
        manifest={"made_by": "sheet", "queues": [{"queue": shown(queue)} for queue in queues]},
    )
    graded = rows.with_columns(
        pl.lit(name).alias("golden_set_id"),
        pl.lit(judge).alias("judge"),
        pl.col("grade").cast(pl.Int8),
        pl.col("grade").cast(pl.Int16).alias("raw"),
        pl.col("note").fill_null(""),
    ).drop("collection", "queue", "file", "line")
    acts = frame("gradings", graded.drop("raw").to_dict())
    judged = frame("judgements", graded.drop("note").to_dict())
    return Import(golden_sets=(golden,), frames={"judgements": judged, "gradings": acts})
