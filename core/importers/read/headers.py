"""Headers that are not in a table's first line: titles above, merged cells over groups, levels of pandas."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress

MOST_ROWS = 12
"""Rows in which a header is searched."""
_NUMBER = re.compile(r"[-+$€£]?\s*\d[\d.,\s]*(?:[eE][+-]?\d+)?\s*%?")
_NARROW = 3  # Columns from which on a row with a single cell is a title
_UNIT = re.compile(
    r"[\[(]?\s*((?:%|percent|[mµ]?s|sec|seconds|milliseconds|[$€£]|usd|eur|dollars?)"
    r"(?:\s*(?:/|per)\s*[\w,. ]+)?)\s*[\])]?",
    re.IGNORECASE,
)
_NO_UNIT = frozenset({"", "-", "–", "[-]", "(-)", "[]", "unit", "units"})


def headed(records: Sequence[Sequence[str | None]]) -> tuple[list[str], int] | None:
    """Find the header of a table that does not begin with it.

    Args:
        records: Its first rows.

    Returns:
        Names of the columns (two levels as pandas flattens them, ``('nDCG@10', 'bm25')``), and how many rows
        the header spans, including those above it. None if the first row is the header, or none is found.
    """
    width = max(map(len, records), default=0)
    rows = [[(cell or "").strip() for cell in record] + [""] * (width - len(record)) for record in records]
    prose = _prose(records)
    above = next((at for at, row in enumerate(rows) if at >= prose and sum(map(bool, row)) > 1), len(rows))
    below = rows[above:]
    if width < _NARROW or len(below) < 2:
        return None
    if units := _units(below):
        named = [name if not unit or unit in name else f"{name} ({unit})"
                 for name, unit in zip(below[0], units, strict=True)]  # fmt: skip
        return named, above + 2
    if all(below[0][1:]) and len(set(below[0])) == width and not _named_below(below):
        return (below[0], above + 1) if above and not _numeric(below[0]) else None
    names, taken = _levels(below)
    return (names, above + taken) if names and len(set(names)) == width else None


def _prose(records: Sequence[Sequence[str | None]]) -> int:
    """Return how many first rows are prose: a blank follows each of their commas, unlike in rows below."""
    blank = [[(cell or "")[:1] == " " for cell in record[1:] if (cell or "").strip()] for record in records]
    first = next((at for at, cells in enumerate(blank) if cells and not all(cells)), len(blank))
    return 0 if any(any(cells) for cells in blank[first:]) else first


def _units(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the units of the columns, "" for none, if the second row holds nothing else; otherwise []."""
    upper, lower = rows[0], rows[1]
    found = [_UNIT.fullmatch(cell) for cell in lower]
    written = all(unit or cell.lower() in _NO_UNIT for unit, cell in zip(found, lower, strict=True))
    if not (written and any(found) and all(upper[1:]) and len(set(upper)) == len(upper)):
        return []
    if len(rows) < _NARROW or not _numeric(rows[2]):
        return []
    return [unit[1].strip() if unit else "" for unit in found]


def _named_below(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether the second row names the columns that the first one groups, one per group."""
    upper, lower = rows[0], rows[1]
    if (upper[0] and lower[0]) or not all(lower[1:]) or _numeric(lower) or len(rows) < _NARROW:
        return False
    return _numeric(rows[2]) or not any(rows[2][1:])


def headed_lines(lines: Sequence[str], delimiter: str) -> tuple[list[str], int] | None:
    """Find the header in lines of text; see `headed`."""
    first = list(lines[:MOST_ROWS])
    with suppress(csv.Error):
        reader = csv.reader(first, delimiter=delimiter, strict=True)
        records = list(reader)
        if len(records) == len(first):  # no cell spans several lines
            return headed(records)
    return None


def delimiter_below(lines: Sequence[str], delimiters: Sequence[str]) -> str | None:
    """Return the delimiter that splits most rows below a title into equally many cells, header included."""
    below = [line for line in lines[1:MOST_ROWS] if line.strip()]
    best: tuple[int, str | None] = (2, None)
    for mark in delimiters:
        counts = Counter(_cells(line, mark) for line in below)
        width, rows = max(counts.items(), key=lambda pair: (pair[1], pair[0]), default=(0, 0))
        if width >= _NARROW and rows > best[0]:
            best = rows, mark
    return best[1]


def _cells(line: str, mark: str) -> int:
    with suppress(csv.Error):
        return len(next(csv.reader([line], delimiter=mark, strict=True), ()))
    return 0


def _levels(rows: Sequence[Sequence[str]]) -> tuple[list[str], int]:
    """Return the column names that two rows form, and how many rows that takes; none if they form none."""
    upper, lower, third = rows[0], rows[1], rows[2] if len(rows) > 2 else ()
    if _numeric(lower) or _numeric(upper):
        return [], 0
    filled: list[str] = []
    for above, below in zip(upper, lower, strict=True):
        filled.append(above or (filled[-1] if filled and below else ""))
    named = next((at for at, cell in enumerate(third) if not cell), len(third))
    index = bool(third) and 0 < named < len(third) and not any(third[named:])  # pandas names its index below
    index = index and not any((*upper[1:named], *lower[1:named]))
    keys = named if index else next((at for at, cell in enumerate(filled) if cell and lower[at]), len(filled))
    own = [third[at] if index else lower[at] or filled[at] for at in range(keys)]
    pairs = list(zip(filled[keys:], lower[keys:], strict=True))
    if not all(below or above for above, below in pairs) or not pairs:
        return [], 0
    single = [below or above for above, below in pairs]
    if index or len({*own, *single}) < len(own) + len(single):
        single = [f"('{above}', '{below}')" if above and below else above or below for above, below in pairs]
    return own + single, 3 if index else 2


def _numeric(row: Sequence[str]) -> bool:
    return any(_NUMBER.fullmatch(cell) for cell in row)
