"""Tables of Markdown pages: rows as cells without markup, and each table as a separate CSV file."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import PurePosixPath

from core.importers.read.member import Archive, Member, head_lines
from core.importers.read.text import shown, whole

_ENDINGS = (".md", ".markdown", ".mdown", ".mdx", ".qmd", ".rmd")
_LINK = re.compile(r"!?\[([^\]\[]{0,300})\]\([^()]{0,1000}\)")
_MARKS = re.compile(r"[*`]|</?[a-zA-Z][^<>]{0,200}>|&nbsp;")
_RULE = re.compile(r"\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?")
_FENCE = ("```", "~~~")


@dataclass(frozen=True, slots=True)
class PageRow:
    """A row of a table on a page."""

    line: int
    cells: list[str]


@dataclass(frozen=True, slots=True)
class PageTable:
    """A table on a page: its header, rows, and heading."""

    rows: list[PageRow]
    heading: str = ""

    @property
    def names(self) -> list[str]:
        """The names of its rows."""
        return [row.cells[0] for row in self.rows]


def grids(lines: Sequence[str]) -> Iterator[PageTable]:
    """Yield the tables of a page: a row with a rule below it, and the rows until the first other line."""
    heading, fenced, at = "", False, 0
    while at < len(lines):
        text = lines[at].strip()
        if text.startswith(_FENCE):
            fenced = not fenced
        elif not fenced and text.startswith("#"):
            heading = _plain(text.lstrip("#"))
        elif not fenced and "|" in text and at + 1 < len(lines) and _is_rule(lines[at + 1]):
            end = next((end for end in range(at, len(lines)) if "|" not in lines[end]), len(lines))
            rows = [
                PageRow(line + 1, _cells(lines[line])) for line in range(at, end) if not _is_rule(lines[line])
            ]
            yield PageTable(rows, heading)
            at = end
            continue
        at += 1


def _is_rule(line: str) -> bool:
    return "|" in line and _RULE.fullmatch(line.strip()) is not None


def _cells(line: str) -> list[str]:
    inner = line.strip().removeprefix("|").removesuffix("|")
    return [_plain(cell.replace("\\|", "|")) for cell in re.split(r"(?<!\\)\|", inner)]


def _plain(text: str) -> str:
    return _MARKS.sub("", _LINK.sub(r"\1", text)).strip()


def is_page(member: Member) -> bool:
    """Return whether a file is a Markdown page with a table: by its name, or by being only a table."""
    lines = head_lines(member, 5_000)
    filled = [line for line in lines if line.strip()]
    alone = len(filled) > 2 and _is_rule(filled[1]) and all(line.lstrip().startswith("|") for line in filled)
    return (member.relative.lower().endswith(_ENDINGS) or alone) and any(map(_is_rule, lines))


def as_tables(archive: Archive) -> Archive:
    """Return a page as an archive of its tables, joining tables of the same stacks."""
    (page,) = archive.members
    found: list[PageTable] = []
    for grid in grids(whole(page).decode().split("\n")):
        beside = next((each for each in found if _beside(each, grid)), None)
        if beside is None:
            found.append(grid)
            continue
        pairs = zip(beside.rows, grid.rows, strict=True)
        rows = [replace(left, cells=[*left.cells, *right.cells[1:]]) for left, right in pairs]
        found[found.index(beside)] = replace(beside, rows=rows)
    members = tuple(_member(page, grid, number) for number, grid in enumerate(found, 1))
    return replace(archive, members=members, parent=page.stem)


def _beside(left: PageTable, right: PageTable) -> bool:
    """Return whether two tables have the same rows and different columns."""
    widths = {len(row.cells) for row in left.rows} | {0}
    regular = len(widths) == 2 and len({len(row.cells) for row in right.rows}) == 1
    other = not set(left.rows[0].cells[1:]) & set(right.rows[0].cells[1:])
    return regular and other and left.names == right.names


def _member(page: Member, grid: PageTable, number: int) -> Member:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(row.cells for row in grid.rows)
    data = text.getvalue().encode()
    title = re.sub(r"[/\\]", " ", shown(grid.heading, 60)).strip()
    place = f"table {number} (line {grid.rows[0].line}){' ' if title else ''}{title}"
    opener = partial(io.BytesIO, data)
    return Member(f"{page.name}/{place}", str(PurePosixPath(place)), len(data), page.limits, opener)
