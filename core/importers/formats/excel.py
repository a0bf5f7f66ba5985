"""Tables in Excel workbooks: one sheet of each, read as the table importer reads a CSV."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from core.errors import InputError, UnknownNameError
from core.importers.base import LIKELY, LOOK_ROWS, RESEMBLES, Import, Look, Options, counted, merged
from core.importers.formats.table import Opened, TableFormat, opened_as
from core.importers.formats.table.opened import looked_at
from core.importers.meaning import TableAs, meaning
from core.importers.read.piece import Piece, Tree
from core.importers.read.tabular import Table, check_cells, check_header
from core.importers.read.text import shown
from core.importers.read.workbook import OLD, is_workbook, open_workbook


class Excel(TableFormat):
    """Sheets whose columns say what they hold."""

    name, title = "excel", "Excel workbook (.xlsx)"
    recognised = (
        "a workbook with a sheet whose columns are those of a table, or are mapped; the first row that is "
        "not empty names them"
    )
    traps = (
        "Formulas are not computed: what the program that saved the file stored is taken.",
        "Macros are not looked at; hidden sheets are read only when they are named.",
        "Several sheets with tables are asked for (--sheet); the others are left out and counted.",
    )

    def sniff(self, probe: Tree) -> float:
        if len(probe.pieces) != 1:
            return 0.0
        piece = probe.pieces[0]
        if piece.head.startswith(OLD):
            return RESEMBLES
        return 0.0 if not is_workbook(piece) else LIKELY if tables(piece, Options()) else RESEMBLES + 0.1

    def why_not(self, probe: Tree) -> str:
        piece = probe.pieces[0]
        if piece.head.startswith(OLD):
            return "it is an .xls file or a locked one; save it as .xlsx without a password"
        try:
            sheets = open_workbook(piece).sheets
            if sheets:
                self.open_table(piece, Options(sheet=sheets[0]))
        except InputError as error:
            return str(error)
        return "" if sheets else "it has no visible sheet"

    def choices(self, trees: Sequence[Tree]) -> Mapping[str, tuple[str, ...]]:
        sheets = tables(trees[0].pieces[0], Options())
        return {"sheet": sheets} if len(sheets) > 1 else {}

    def look(self, tree: Tree, options: Options) -> Look:
        piece = tree.pieces[0]
        table = sheet_table(piece, _sheet(piece, options, asking=False), LOOK_ROWS)
        columns = table.rows.columns
        means = looked_at(table, _said_of(columns, options, piece.name), piece.name)
        return Look(table.rows, tuple(columns), means.names, means.is_row)

    def read(self, trees: Sequence[Tree], options: Options) -> Import:
        imported = super().read(trees, options)
        return merged((imported, *(_sheet_notes(tree.pieces[0], options) for tree in trees)))

    def open_table(self, piece: Piece, options: Options) -> Opened:
        """The chosen sheet."""
        if not is_workbook(piece):
            raise InputError("This is no .xlsx workbook.", where=piece.name)
        table = sheet_table(piece, _sheet(piece, options, asking=True))
        return opened_as(piece, table, options)


def sheet_table(piece: Piece, sheet: str, most: int | None = None) -> Table:
    """A sheet of a workbook, or its first rows."""
    rows, lines = open_workbook(piece).rows(sheet, most)
    if rows.is_empty():
        raise InputError("The sheet holds no rows below its header.", where=f"{piece.name}, {shown(sheet)}")
    table = Table(f"{piece.name}, sheet {shown(sheet)}", rows, lines)
    check_header(rows.columns, piece)
    check_cells(table, piece.limits)
    return table


def tables(piece: Piece, options: Options) -> tuple[str, ...]:
    """The visible sheets whose columns are those of a table."""
    sheets = []
    with suppress(InputError):
        for sheet in open_workbook(piece).sheets:
            with suppress(InputError):
                columns = open_workbook(piece).columns(sheet)
                said = _said_of(columns, options, piece.name)
                if meaning(columns, said, piece.name).kind is not None:
                    sheets.append(sheet)
    return tuple(sheets)


def _said_of(columns: Sequence[str], options: Options, name: str) -> TableAs:
    """Return what the user said of the columns of a table, as far as they are in this sheet."""
    said = options.table_as(name)
    there = {meant: column for meant, column in said.columns.items() if column in columns}
    return replace(said, columns=there)


def _sheet(piece: Piece, options: Options, *, asking: bool) -> str:
    """The sheet to read: as chosen, else the only one that is a table, else the first."""
    book = open_workbook(piece)
    if options.sheet is not None:
        if options.sheet not in (*book.sheets, *book.hidden):
            raise UnknownNameError("sheet", options.sheet, (*book.sheets, *book.hidden), where=piece.name)
        return options.sheet
    sheets = tables(piece, options)
    if len(sheets) > 1 and asking:
        said = f"Several sheets hold tables: {', '.join(map(shown, sheets[:12]))}."
        raise InputError(said, where=piece.name, do="Choose one (--sheet).")
    if not sheets and not book.sheets:
        raise InputError("The workbook has no visible sheet.", where=piece.name)
    return sheets[0] if sheets else book.sheets[0]


def _sheet_notes(piece: Piece, options: Options) -> Import:
    book, chosen = open_workbook(piece), _sheet(piece, options, asking=True)
    others = [sheet for sheet in (*book.sheets, *book.hidden) if sheet != chosen]
    notes = [f"{piece.name}: the sheet {shown(chosen)} is read; formulas count as they were saved."]
    notes += [f"{piece.name}: its macros were not looked at."] if book.macros else []
    left = counted({"sheets that were not chosen": len(others)}, "".join(others[:1]))
    return Import(notes=tuple(notes), left_out=left)
