"""Human-readable numbers: decimal commas, separators of thousands, percent and dollar signs.

A column is read in one way; if some cells have a decimal comma and others a point, each cell decides.
If cells are ambiguous (``1,200`` is 1200 or 1.2), the user decides.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

import numpy as np
import polars as pl

from core.errors import InputError
from core.importers.read.tabular import Table
from core.importers.read.text import place, quoted, shown

Reading = Literal["decimal-comma", "thousands", "percent", "share"]
"""How a column is read: 1,5 is 1.5; 1,500 is 1500; 41.2 is 41.2 %; 0.91 is a share, and 85 is 85 %."""
READINGS: tuple[Reading, ...] = get_args(Reading)
NumberKind = Literal["share", "price", "any", "figure", "plain", "whole"]
"""Whether a column may be in percent, in dollars, in either, or in neither; the last two are not figures, so
that a word such as NaN is not an empty cell, and "whole" holds only whole numbers."""
SAID: Mapping[Reading, str] = {
    "decimal-comma": "decimal comma, point between thousands",
    "thousands": "decimal point, comma between thousands",
    "percent": "percent",
    "share": "shares, and percent above 1",
}
_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_GROUPS = r"[+-]?[1-9]\d{0,2}(?:\.\d{3})+"  # 1.2, or 1200 in a table with decimal commas
_COMMA = rf"(?:{_GROUPS}|[+-]?\d*),\d+(?:[eE][+-]?\d+)?|{_GROUPS}|[+-]?\d+(?:[eE][+-]?\d+)?"
_THOUSANDS = rf"[+-]?[1-9]\d{{0,2}}(?:,\d{{3}})+(?:\.\d*)?|{_NUMBER}"
_EITHER = r"[+-]?[1-9]\d{0,2},\d{3}"
_POINT = r"^[+-]?(?:0|\d{4,})?\.\d|^[+-]?\d+\.(?:\d{1,2}(?:\D|$)|\d{4})"  # can only be a decimal point
_OPEN = r"[+-]?[1-9]\d{0,2}[.,]\d{3}"  # its sign is ambiguous in a single cell
_BY_COMMA = r"[+-]?(?:[1-9]\d{0,2}(?:\.\d{3})+|\d*),\d+|[+-]?[1-9]\d{0,2}(?:\.\d{3}){2,}"
_BETWEEN = r"(\d)[ \u00a0\u2009\u202f'’_](\d{3})\b"  # 1 200, 1'200
_DOLLARS, _PERCENT = r"(?i)(?:us)?\$|\busd\b", r"\s*%$"
_FOREIGN = r"[€£¥₹]|(?i)\b(?:eur|gbp|chf)\b"
NOTHING = ("nan", "na", "n/a", "#n/a", "none", "null", "<na>", "nat", "-", "–", "—")
_TRUTHS: Mapping[str, str] = {"true": "1", "yes": "1", "false": "0", "no": "0"}
"""Words for true and false, if all cells of a measure are such words."""
_SHOWN = 3
_SCALES: tuple[Reading, ...] = ("percent", "share")


def readings(pairs: Sequence[str]) -> dict[str, Reading]:
    """Parse options such as ``latency=thousands`` into column → reading; a name may contain an equals sign.

    Raises:
        InputError: A pair has no equals sign, or its reading is unknown.
    """
    chosen: dict[str, Reading] = {}
    for pair in pairs:
        column, _, reading = pair.rpartition("=")
        known = next((option for option in READINGS if option == reading), None)
        if known is None or not column:
            do = f"For example --numbers latency=thousands; the others are {', '.join(READINGS)}."
            raise InputError(f"{quoted(pair)} is not column=reading.", where="--numbers", do=do)
        chosen[column] = known
    return chosen


@dataclass(frozen=True, slots=True)
class Open:
    """A column whose numbers can be read in two ways."""

    column: str
    cells: tuple[str, ...]  # its first ambiguous cells, unchanged
    ways: Mapping[Reading, tuple[str, ...]]  # these cells in each reading

    def says(self, way: Reading) -> str:
        """Describe the signs in these cells in one reading, or the numbers."""
        if way in _SCALES:
            return SAID[way]
        signs = {",": "comma", ".": "point"}
        decimal = "," if way == "decimal-comma" else "."
        there = [mark for mark in signs if any(mark in cell for cell in self.cells)]
        said = [f"decimal {signs[mark]}" if mark == decimal else f"{signs[mark]} between thousands"
                for mark in there]  # fmt: skip
        return ", ".join(said)


class OpenNumbersError(InputError):
    """Columns can be read in two ways, and neither was chosen.

    Attributes:
        name: File.
        columns: The columns concerned.
    """

    def __init__(self, name: str, where: str, columns: Sequence[Open]) -> None:
        first = columns[0]
        two = " or ".join(f"{values[0]} ({first.says(way)})" for way, values in first.ways.items())
        more = ", ".join(f"`{shown(column.column, 40)}`" for column in columns[1:])
        problem = f"Cannot read {quoted(first.cells[0])}: {two}?{f' Likewise {more}.' if more else ''}"
        ways = " or ".join(f"--numbers '{shown(first.column)}={way}'" for way in first.ways)
        super().__init__(problem, where=where, do=f"Say which ({ways}).")
        self.name, self.columns = name, tuple(columns)


@dataclass(frozen=True, slots=True)
class Conversion:
    """The conversion of one column's cells into plain numbers."""

    kind: NumberKind
    commas: Reading | None = None  # the meaning of commas and dots
    percent: bool = False  # whether its numbers are percent
    mixed: bool = (
        False  # whether each cell by itself settles its comma or point; `commas` applies to cells that don't
    )
    truths: bool = False  # whether its cells are true or false

    def bare(self, cells: pl.Series) -> pl.Series:
        """Return the cells without signs that the column may have, and blanks between thousands."""
        if self.truths:
            return cells.str.to_lowercase().replace_strict(_TRUTHS, default=None, return_dtype=pl.String)
        cleaned = cells.str.replace("\u2212", "-", literal=True).str.replace_all(_BETWEEN, "$1$2")
        cleaned = cleaned.str.replace_all(_BETWEEN, "$1$2")  # the second of three groups is left
        if self.kind in ("price", "any"):
            cleaned = cleaned.str.replace(_DOLLARS, "")
        if self.kind in ("share", "any"):
            cleaned = cleaned.str.replace(_PERCENT, "")
        if self.kind == "figure" and (units := "|".join(re.findall(r"[^\W\d_]+", cells.name))):
            cleaned = cleaned.str.replace(rf"(?i)(\d)\s*(?:{units})\s*$", "$1")  # that of the name, once more
        cleaned = cleaned.str.strip_chars()
        if self.kind in ("plain", "whole"):
            return cleaned
        return pl.select(pl.when(~cleaned.str.to_lowercase().is_in(NOTHING)).then(cleaned)).to_series()

    def plain(self, cells: pl.Series) -> pl.Series:
        """Return the cells as plain numbers; a cell that does not fit stays unchanged, to be refused."""
        bare = self.bare(cells)
        by_comma = bare.str.replace_all(".", "", literal=True).str.replace(",", ".", literal=True)
        by_point = bare.str.replace_all(",", "", literal=True)
        if self.mixed:
            is_open = bare.str.contains(f"^(?:{_OPEN})$")
            commas = bare.str.contains(f"^(?:{_BY_COMMA})$") & ~is_open
            points = bare.str.contains(f"^(?:{_THOUSANDS})$") & ~is_open & ~commas
            commas |= is_open & (self.commas == "decimal-comma")
            points |= is_open & (self.commas == "thousands")
        elif self.commas == "decimal-comma":
            commas, points = bare.str.contains(f"^(?:{_COMMA})$"), bare.is_null()
        else:
            fits = _THOUSANDS if self.commas else _NUMBER
            commas, points = bare.is_null(), bare.str.contains(f"^(?:{fits})$")
        plain = pl.when(bare.is_null()).then(bare).when(commas).then(by_comma).when(points).then(by_point)
        return pl.select(plain.otherwise(cells)).to_series().alias(cells.name)

    def changes(self, cells: pl.Series) -> bool:
        """Return whether any cell changes."""
        return not self.plain(cells).equals(cells)


@dataclass(frozen=True, slots=True)
class Numbers:
    """The conversion of a table's numeric columns."""

    ways: Mapping[str, Conversion] = field(default_factory=dict)  # for columns that are not plain numbers
    notes: tuple[str, ...] = ()
    open: tuple[Open, ...] = ()

    @property
    def percent(self) -> frozenset[str]:
        """The columns whose numbers are in percent."""
        return frozenset(column for column, way in self.ways.items() if way.percent)

    def read(self, table: Table) -> Table:
        """Return the table with plain numbers."""
        there = [column for column in self.ways if column in table.rows.columns]
        if not there:
            return table
        texts = table.taking({column: column for column in there})
        plain = [self.ways[column].plain(texts[column]) for column in there]
        return Table(table.name, table.rows.with_columns(plain), table.lines)


def numbers_in(
    table: Table, kinds: Mapping[str, NumberKind], said: Mapping[str, Reading], *, asking: bool, name: str
) -> Numbers:
    """Find out how the columns of a table are read.

    Args:
        kinds: Columns that hold numbers.
        said: The user's readings of columns; other columns have none.
        asking: Whether ambiguous columns are refused; otherwise they are left unchanged.
        name: File.

    Raises:
        OpenNumbersError: Columns can be read in two ways.
        InputError: A price is in a currency other than dollars, or only some cells have a percent sign.
    """
    texts = table.taking({column: column for column in kinds})
    plain = _decimals(
        texts, [column for column, kind in kinds.items() if kind != "whole" and column not in said]
    )
    kinds = {column: kind for column, kind in kinds.items() if column not in plain}
    ways = {column: _way(table, texts[column], kind, said.get(column)) for column, kind in kinds.items()}
    bare = {column: way.bare(texts[column]).drop_nulls() for column, way in ways.items()}
    asked = {column for column, way in ways.items() if way.commas is None and column not in said}
    comma = {column for column in asked if _all(bare[column], _COMMA) and _any(bare[column], ",")}
    thousands = {column for column in asked if _all(bare[column], _THOUSANDS) and _any(bare[column], ",")}
    ways |= {column: replace(ways[column], commas="decimal-comma") for column in comma - thousands}
    ways |= {column: replace(ways[column], commas="thousands") for column in thousands - comma}
    unsaid = {column: _EITHER for column in ways if column in comma and column in thousands}
    mixed = {column for column in ways if kinds[column] != "whole" and _mixed(bare[column], ways[column])}
    ways |= {column: replace(ways[column], mixed=True) for column in mixed}
    unsaid |= {column: _OPEN for column in mixed & asked if _any(bare[column], f"^(?:{_OPEN})$")}
    by_comma = mixed or any(way.commas == "decimal-comma" for way in ways.values())
    pointed = plain or any(_any(cells, _POINT) for cells in bare.values())
    if by_comma or not pointed:  # so that 1.200 may be 1200
        rest = [column for column in ways if column in asked and column not in comma | thousands | mixed]
        if not by_comma:  # no cell of the table shows what its points mean
            rest = [column for column in rest if kinds[column] in ("figure", "price", "any")]
            rest = [column for column in rest if not table.rows[column].dtype.is_numeric()]
        grouped = [column for column in rest if _any(bare[column], f"^(?:{_GROUPS})$")]
        grouped = [column for column in grouped if _all(bare[column], rf"{_GROUPS}|\d+")]
        sure = {column for column in grouped if _any(bare[column], r"\..*\.")}  # 1.200.000 has no decimals
        ways |= {column: replace(ways[column], commas="decimal-comma") for column in sure}
        unsaid |= {column: _GROUPS for column in grouped if column not in sure}
    whole = [column for column in unsaid if kinds[column] == "whole"]  # 1,200 and 1.200 can only be 1200
    for column in whole:
        commas: Reading = "thousands" if unsaid.pop(column) == _EITHER else "decimal-comma"
        ways[column] = replace(ways[column], commas=commas)
    undecided = [_open(texts[column], ways[column], cell) for column, cell in unsaid.items()]
    if undecided and asking:
        first = texts[undecided[0].column].str.contains(undecided[0].cells[0], literal=True).arg_max()
        raise OpenNumbersError(
            name, place(table.name, table.lines[first or 0], undecided[0].column), undecided
        )
    changed = {column: way for column, way in ways.items() if way.percent or way.changes(texts[column])}
    notes = [note for column, way in changed.items() for note in _notes(texts[column], way, name)]
    return Numbers(changed, tuple(notes), tuple(undecided))


def _decimals(texts: pl.DataFrame, columns: Sequence[str]) -> frozenset[str]:
    """Return the columns that hold plain numbers, at least one of them with a decimal point.

    They need no conversion and are found all at once: nearly all columns of a wide table are like this.
    """
    if not columns or texts.is_empty():
        return frozenset()
    cells = pl.concat(texts.select(columns).get_columns())
    shape = len(columns), texts.height
    plain = cells.str.contains(f"^(?:{_NUMBER})$").fill_null(value=True).to_numpy().reshape(shape)
    pointed = cells.str.contains(_POINT).fill_null(value=False).to_numpy().reshape(shape)
    sure = np.asarray(plain.all(axis=1) & pointed.any(axis=1))
    return frozenset(column for column, good in zip(columns, sure, strict=True) if good)


def _way(table: Table, cells: pl.Series, kind: NumberKind, said: Reading | None) -> Conversion:
    """Return the way to read a column, given its signs and what the user said."""
    if kind == "price" and (place_ := cells.str.contains(_FOREIGN).arg_true()).len():
        problem = f"{quoted(cells[place_[0]])} is not in dollars."
        where = place(table.name, table.lines[place_[0]], cells.name)
        raise InputError(problem, where=where, do="Convert the column to US dollars.")
    if said in _SCALES and kind not in ("share", "any"):
        raise InputError(f"`{shown(cells.name)}` cannot be percent: it is not a measure.", where=table.name)
    known = figures_in(cells)
    signed = signed_percent(known)
    percent = kind == "share" and (said == "percent" or bool(len(signed) and signed.all()))
    if kind == "share" and not percent and signed.any():
        without = known.filter(~signed)[0]
        where = place(table.name, table.lines[cells.str.contains(_PERCENT).arg_max() or 0], cells.name)
        do = f"Give all of them one, or read all as percent (--numbers '{shown(cells.name)}=percent')."
        raise InputError(
            f"Some cells have a percent sign, others none: {quoted(without)}.", where=where, do=do
        )
    truths = kind == "share" and known.len() > 0 and bool(known.str.to_lowercase().is_in(list(_TRUTHS)).all())
    return Conversion(kind, said if said in ("decimal-comma", "thousands") else None, percent, truths=truths)


def figures_in(cells: pl.Series) -> pl.Series:
    """Return the cells that are neither empty nor a word for nothing."""
    return cells.filter(~cells.str.to_lowercase().is_in(NOTHING).fill_null(value=True))


def signed_percent(cells: pl.Series) -> pl.Series:
    """Return whether each cell has a percent sign."""
    return cells.str.contains(_PERCENT)


def _mixed(bare: pl.Series, way: Conversion) -> bool:
    """Return whether some cells have a decimal comma and others a point, so that no format fits all."""
    fits = {"decimal-comma": (_COMMA,), "thousands": (_THOUSANDS,)}.get(
        way.commas or "", (_COMMA, _THOUSANDS)
    )
    return not any(_all(bare, one) for one in fits) and _all(bare, f"{_BY_COMMA}|{_THOUSANDS}")


def _all(cells: pl.Series, pattern: str) -> bool:
    return bool(cells.str.contains(f"^(?:{pattern})$").all())


def _any(cells: pl.Series, pattern: str) -> bool:
    return bool(cells.str.contains(pattern).any())


def _open(cells: pl.Series, way: Conversion, pattern: str) -> Open:
    """Return the first cells of a column that can be read in two ways."""
    is_open = way.bare(cells).str.contains(f"^(?:{pattern})$").fill_null(value=False)
    some = cells.filter(is_open).unique(maintain_order=True)
    some = some.head(_SHOWN)
    ways: dict[Reading, tuple[str, ...]] = {}
    for commas in ("thousands", "decimal-comma"):
        read = replace(way, commas=commas).plain(some).cast(pl.Float64)
        ways[commas] = tuple(f"{value:.10g}" for value in read)
    return Open(cells.name, tuple(some), ways)


def _notes(cells: pl.Series, way: Conversion, name: str) -> list[str]:
    """Describe a column's conversion with an example, as a sentence, ignoring empty words and blanks."""
    bare = way.bare(cells)
    if way.mixed:
        marked = [cells.filter(bare.str.contains(mark)) for mark in (",", r"^[^,]*\.[^,]*$")]
        read = [f"{shown(of[0])} is read as {way.plain(of.head(1))[0]}" for of in marked if len(of)]
        both = "some cells have a decimal comma, others a point"
        return [f"{name}: in `{shown(cells.name)}` {both}: {', '.join(read)}."]
    if way.commas:
        example = cells.filter(bare.str.contains("[,.]"))
    else:
        example = cells.filter(bare != cells) if way.kind == "price" else cells.clear()
    if example.is_empty():
        return []
    value = way.plain(example.head(1))[0]
    return [f"{name}: in `{shown(cells.name)}`, {shown(example[0])} is read as {value}."]
