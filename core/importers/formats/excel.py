"""Tables in Excel workbooks: one sheet per workbook, read as the table importer reads a CSV."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from core.errors import InputError, UnknownNameError
from core.importers.base import LIKELY, LOOK_ROWS, RESEMBLES, Import, Look, Options, counted, merged
from core.importers.formats.table import Opened, TableFormat
from core.importers.formats.table.opened import seen
from core.importers.formats.table.turned import turned
from core.importers.meaning import TableAs, meaning
from core.importers.read.member import Archive, Member
from core.importers.read.tabular import Table, check_cells, check_header
from core.importers.read.text import shown
from core.importers.read.workbook import OLD, is_workbook, open_workbook


class Excel(TableFormat):
    """Sheets whose columns show what they hold."""

    name, title = "excel", "Excel workbook (.xlsx)"
    recognised = (
        "a workbook with a sheet whose columns are those of a table, or are mapped; the first row that is "
        "not empty names them"
    )
    traps = (
        *TableFormat.traps,
        "Formulas are not computed: what the program that saved the file stored is taken.",
        "Macros are not looked at; hidden sheets are read only when they are named.",
        "Several sheets with tables are asked for (--sheet); the others are left out and counted.",
    )

    def sniff(self, probe: Archive) -> float:
        if len(probe.members) != 1:
            return 0.0
        member = probe.members[0]
        if member.head.startswith(OLD):
            return RESEMBLES
        return 0.0 if not is_workbook(member) else LIKELY if tables(member, Options()) else RESEMBLES + 0.1

    def why_not(self, probe: Archive) -> str:
        member = probe.members[0]
        if member.head.startswith(OLD):
            return "it is an .xls file or a locked one; save it as .xlsx without a password"
        try:
            sheets = open_workbook(member).sheets
            if sheets:
                self.open_table(member, Options(sheet=sheets[0]))
        except InputError as error:
            return str(error)
        return "" if sheets else "it has no visible sheet"

    def choices(self, archives: Sequence[Archive]) -> Mapping[str, tuple[str, ...]]:
        sheets = tables(archives[0].members[0], Options())
        return {"sheet": sheets} if len(sheets) > 1 else {}

    def look(self, archive: Archive, options: Options) -> Look:
        member = archive.members[0]
        table = turned(sheet_table(member, _sheet(member, options, asking=False), LOOK_ROWS))
        return seen(table, _said_of(table.rows.columns, options, member.name), member.name)

    def read(self, archives: Sequence[Archive], options: Options) -> Import:
        imported = super().read(archives, options)
        return merged((imported, *(_sheet_notes(archive.members[0], options) for archive in archives)))

    def open_table(self, member: Member, options: Options) -> Opened:
        """Return the chosen sheet."""
        if not is_workbook(member):
            raise InputError("This is not an .xlsx workbook.", where=member.name)
        table = sheet_table(member, _sheet(member, options, asking=True))
        return self.upright(member, table, options)


def sheet_table(member: Member, sheet: str, most: int | None = None) -> Table:
    """Return a sheet of a workbook, or its first rows."""
    rows, lines = open_workbook(member).rows(sheet, most)
    if rows.is_empty():
        raise InputError("The sheet holds no rows below its header.", where=f"{member.name}, {shown(sheet)}")
    table = Table(f"{member.name}, sheet {shown(sheet)}", rows, lines)
    check_header(rows.columns, member)
    check_cells(table, member.limits)
    return table


def tables(member: Member, options: Options) -> tuple[str, ...]:
    """Return the visible sheets whose columns form a table."""
    sheets = []
    with suppress(InputError):
        for sheet in open_workbook(member).sheets:
            with suppress(InputError):
                columns = open_workbook(member).columns(sheet)
                said = _said_of(columns, options, member.name)
                known = meaning(columns, said, member.name).kind is not None
                if known or turned(first := sheet_table(member, sheet, LOOK_ROWS)) is not first:
                    sheets.append(sheet)
    return tuple(sheets)


def _said_of(columns: Sequence[str], options: Options, name: str) -> TableAs:
    """Return the user's settings for the columns of a table, limited to those in this sheet."""
    said = options.table_as(name)
    there = {meant: column for meant, column in said.columns.items() if column in columns}
    return replace(said, columns=there)


def _sheet(member: Member, options: Options, *, asking: bool) -> str:
    """Return the sheet to read: the chosen one, otherwise the only table, otherwise the first."""
    book = open_workbook(member)
    if options.sheet is not None:
        if options.sheet not in (*book.sheets, *book.hidden):
            raise UnknownNameError("sheet", options.sheet, (*book.sheets, *book.hidden), where=member.name)
        return options.sheet
    sheets = tables(member, options)
    if len(sheets) > 1 and asking:
        said = f"Several sheets hold tables: {', '.join(map(shown, sheets[:12]))}."
        raise InputError(said, where=member.name, do="Choose one (--sheet).")
    if not sheets and not book.sheets:
        raise InputError("The workbook has no visible sheet.", where=member.name)
    return sheets[0] if sheets else book.sheets[0]


def _sheet_notes(member: Member, options: Options) -> Import:
    book, chosen = open_workbook(member), _sheet(member, options, asking=True)
    others = [sheet for sheet in (*book.sheets, *book.hidden) if sheet != chosen]
    notes = [f"{member.name}: the sheet {shown(chosen)} is read; formulas count as they were saved."]
    notes += [f"{member.name}: its macros were not looked at."] if book.macros else []
    left = counted({"sheets that were not chosen": len(others)}, "".join(others[:1]))
    return Import(notes=tuple(notes), left_out=left)
