"""Excel workbooks (.xlsx), checked, then read by a bounded process: a hostile one could take all memory.

Values are read as saved: formulas are not computed, macros are ignored.
"""

from __future__ import annotations

import importlib.util
import io
import re
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from core.errors import InputError
from core.importers.read.headers import MOST_ROWS, headed
from core.importers.read.member import BROKEN, GIB, MIB, Member, ReadLimits, check_unfolded, per_member
from core.importers.read.source import WORKBOOK
from core.importers.read.tabular import READ_ERRORS
from core.importers.read.text import quoted, shown
from core.sandbox import Bounded

ZIP = b"PK\x03\x04"
OLD = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # First bytes of .xls and encrypted workbooks
_MOST_ROWS, _MOST_COLUMNS = 1_048_576, 16_384
_MOST_CELLS = 50_000_000
"""Cells of the smallest rectangle around a sheet's cells, all of which the reader keeps in memory."""
_MOST_TEXT = 1 << 31
_AS_CSV = "Save its sheets as CSV."
_READER = Bounded(Path(__file__).with_name("sheets.py"), memory=6 * GIB, seconds=300)
_OVERLAP = 512
_CELL = re.compile(rb"<(?:\w{1,20}:)?c\s[^<>]*?\br\s*=\s*[\"']([A-Za-z]{1,9})(\d{1,9})[\"']")
_ROW = re.compile(rb"<(?:\w{1,20}:)?row\s[^<>]*?\br\s*=\s*[\"'](\d{1,9})[\"']")
_SHARED = re.compile(rb"<(?:\w{1,20}:)?c\s[^<>]*?\bt\s*=\s*[\"']s[\"'][^<>]*>\s*<(?:\w{1,20}:)?v>(\d{1,9})<")
_SHEET = re.compile(rb"<(?:\w{1,20}:)?sheet\s([^<>]*)>")
_AWAY = re.compile(rb"\bstate\s*=\s*[\"'](?:hidden|veryHidden)[\"']")
_TEXT_END = re.compile(rb"</(?:\w{1,20}:)?si>")


@dataclass(frozen=True, slots=True)
class Workbook:
    """A checked workbook."""

    name: str  # the file, for messages
    sheets: tuple[str, ...]  # names of its visible sheets, in order
    hidden: tuple[str, ...]  # names of the hidden sheets
    macros: bool  # whether it holds macros; they are ignored
    _cells: Mapping[str, pl.DataFrame | str]  # sheet → its cells as text, or why it cannot be read

    def columns(self, sheet: str) -> list[str]:
        """Return the column names of a sheet, or [] if it is empty."""
        return self.rows(sheet, 1)[0].columns

    def rows(self, sheet: str, most: int | None = None) -> tuple[pl.DataFrame, pl.Series]:
        """Return a sheet's cells as text under the names of its header, which empty rows may precede."""
        cells = self._cells[sheet]
        if isinstance(cells, str):
            raise _unreadable(self.name, cells)
        cells = cells if most is None else cells.head(most + 100 + MOST_ROWS)
        cells = cells.with_columns(pl.all().str.strip_chars().replace("", None)) if cells.width else cells
        filled = cells.with_row_index("line", offset=1).filter(
            pl.any_horizontal(pl.all().exclude("line").is_not_null())
        )
        if filled.is_empty():
            return pl.DataFrame(), pl.Series("line", [], dtype=pl.Int64)
        lines, body = filled["line"].cast(pl.Int64), filled.drop("line")
        header, taken = headed(body.head(MOST_ROWS).rows()) or (body.row(0), 1)
        named = {column: name for column, name in zip(body.columns, header, strict=True) if name}
        names = list(named.values())
        again = next((name for name in names if names.count(name) > 1), None)
        if again:
            problem = f"The column {quoted(again)} occurs twice."
            raise InputError(problem, where=f"{self.name}, sheet {shown(sheet)}")
        body = body.select(list(named)).rename(named).slice(taken, most)
        kept = body.select(pl.any_horizontal(pl.all().is_not_null())).to_series()
        return body.filter(kept), lines.slice(taken, most).filter(kept)


@per_member
def is_workbook(member: Member) -> bool:
    """Return whether a file is a zip archive with a workbook in it."""
    if not member.head.startswith(ZIP):
        return False
    try:
        with zipfile.ZipFile(io.BytesIO(member.read())) as packed:
            return WORKBOOK in packed.namelist()
    except (InputError, *BROKEN):
        return False


def open_workbook(member: Member) -> Workbook:
    """Check and read a workbook."""
    opened = _opened(member)
    if isinstance(opened, InputError):
        raise opened
    return opened


@per_member
def _opened(member: Member) -> Workbook | InputError:
    try:
        return _checked(member)
    except InputError as error:  # returned, since every format asks
        return error


def _checked(member: Member) -> Workbook:
    if importlib.util.find_spec("fastexcel") is None:
        problem = "The reader of Excel files is not installed."
        raise InputError(problem, do="Install it: pip install fastexcel.")
    data = member.read()
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as packed:
            macros = _check(packed, member.name, len(data), member.limits)
            states = [bool(_AWAY.search(tag)) for tag in _SHEET.findall(packed.read(WORKBOOK))]
    except (KeyError, *BROKEN) as error:
        raise _unreadable(member.name, str(error) or type(error).__name__) from error
    cells = _apart(data, member.name)
    names = list(cells)
    away = states if len(states) == len(names) else [False] * len(names)
    visible = tuple(name for name, hides in zip(names, away, strict=True) if not hides)
    hidden = tuple(name for name in names if name not in visible)
    return Workbook(member.name, visible, hidden, macros, cells)


def _apart(data: bytes, name: str) -> dict[str, pl.DataFrame | str]:
    """Return the cells of every sheet, read by another process: a few bytes can ask for all memory there is.

    Raises:
        InputError: If it cannot be read within the bounds.
    """
    with tempfile.TemporaryDirectory(prefix="clq-workbook-") as scratch:
        folder = Path(scratch)
        (folder / "workbook.xlsx").write_bytes(data)
        book = str(folder / "workbook.xlsx")
        try:
            said = _READER.ask({"workbook": book, "folder": scratch})
        except ChildProcessError:
            raise _too_much(name) from None
        if "error" in said:
            raise _failed(said["error"], name)
        if sum(file.stat().st_size for file in folder.glob("*.arrow")) > _MOST_TEXT:
            raise InputError(f"It holds more than {_MOST_TEXT:,} bytes of text.", where=name, do=_AS_CSV)
        try:
            return {
                sheet: said["problems"].get(str(at)) or pl.read_ipc((folder / f"{at}.arrow").read_bytes())
                for at, sheet in enumerate(said["sheets"])
            }
        except READ_ERRORS as error:
            raise _unreadable(name, str(error)) from error


def _failed(error: str, name: str) -> InputError:
    if "MemoryError" in error or "memory allocation" in error:
        return _too_much(name)
    return _unreadable(name, error.splitlines()[-1].partition(": ")[2])


def _too_much(name: str) -> InputError:
    problem = "Reading the workbook takes more memory or time than is allowed: it claims more than it holds."
    return InputError(problem, where=name, do=_AS_CSV)


def _unreadable(name: str, why: str) -> InputError:
    reason = shown(why.partition("\n")[0], 200)
    return InputError(f"The workbook cannot be read: {reason}.", where=name)


def _check(packed: zipfile.ZipFile, name: str, stored: int, limits: ReadLimits) -> bool:
    """Refuse a file that would unfold to too much; return whether it has macros."""
    members = packed.infolist()
    if len(members) > limits.members or len({info.filename for info in members}) < len(members):
        raise InputError("The workbook holds too many parts, or one twice.", where=name)
    check_unfolded(name, sum(info.file_size for info in members), stored, limits)
    lengths = np.zeros(0, dtype=np.int64)  # bytes of every shared text, markup included
    for info in members:
        if info.filename.lower().endswith("sharedstrings.xml"):
            ends = [match.end() for match in _TEXT_END.finditer(packed.read(info))]
            lengths = np.diff(ends, prepend=0).astype(np.int64)
    for info in members:
        _check_part(packed, info, name, lengths)
    return any(info.filename.lower().endswith("vbaproject.bin") for info in members)


def _chunks(packed: zipfile.ZipFile, info: zipfile.ZipInfo, name: str) -> Iterator[bytes]:
    """Yield a part in overlapping blocks, verifying its checksum at the end."""
    rest = b""
    with packed.open(info) as part:
        while fresh := part.read(MIB):
            if not rest and b"<!DOCTYPE" in fresh[: MIB // 16].upper():
                raise InputError("Its XML declares a document type.", where=f"{name}/{shown(info.filename)}")
            yield rest + fresh
            rest = (rest + fresh)[-_OVERLAP:]


def _check_part(packed: zipfile.ZipFile, info: zipfile.ZipInfo, name: str, lengths: np.ndarray) -> None:
    rows = columns = text = 0
    for chunk in _chunks(packed, info, name):
        cells = _CELL.findall(chunk)
        columns = max(columns, *map(_column, {letters for letters, _ in cells}), 0)
        rows = max(rows, *{int(digits) for _, digits in cells}, *map(int, _ROW.findall(chunk)), 0)
        if len(lengths):
            used = np.array(_SHARED.findall(chunk), dtype=np.int64)
            text += int(lengths[used[used < len(lengths)]].sum())
    where = f"{name}/{shown(info.filename)}"
    if rows > _MOST_ROWS or columns > _MOST_COLUMNS or rows * columns > _MOST_CELLS:
        problem = f"A sheet spans {rows:,} rows and {columns:,} columns."
        raise InputError(problem, where=where, do="Delete the cells that lie far out, or save it as CSV.")
    if text > _MOST_TEXT:
        raise InputError(f"A sheet holds more than {_MOST_TEXT:,} bytes of text.", where=where)


def _column(letters: bytes) -> int:
    place = 0
    for letter in letters.upper():
        place = place * 26 + letter - 64
    return place
