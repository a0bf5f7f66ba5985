"""Tables of the regression pages of Anserini and Pyserini (Markdown): measures by test collection and system.

A row whose first cell is a measure (``**nDCG@10**``, ``P30``) names the systems; the rows below it hold one
test collection each, until the next such row. A row of words ends them: it is counted, and so are the rows
below it. Everything else on the page is ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from core.errors import InputError
from core.importers.base import SURE, Format, Import, LeftOut, Options, merged
from core.importers.formats.traces.spans import number_of
from core.importers.naming import NamedValue, is_quality, named
from core.importers.read.markdown import PageRow, grids
from core.importers.read.member import Archive, Member, head_lines
from core.importers.read.text import place, quoted, shown, whole
from core.importers.report import TAKEN, FileReport, settled
from core.importers.runs import MEASURES, Figure, Reported, reported_runs

_MISSING, _MISFIT = "empty cells: missing, not 0", "rows that do not fit the head of their table"
_OTHER = "rows of a table that stand below no measure"
_EMPTY = ("", "-", "–", "—", "n/a", "N/A")


class Regressions(Format):
    """Markdown pages with tables of measures."""

    name, title = "regressions", "Anserini / Pyserini regression page (Markdown)"
    takes = {"aggregates": "the measures of every system, per test collection"}
    recognised = "a Markdown table whose first cell is a measure, such as **nDCG@10**, MAP or P30"
    traps = (
        "Other tables of the page are not taken.",
        "A column that stands twice, such as +RM3, is named with the one that it is added to: QL +RM3.",
    )

    def sniff(self, probe: Archive) -> float:
        if len(probe.members) != 1:
            return 0.0
        lines = head_lines(probe.members[0], 5_000)
        try:
            return SURE if next(_results(lines, probe.name, {}), None) else 0.0
        except InputError:
            return SURE

    def reports(self, archives: Sequence[Archive], options: Options) -> Iterator[FileReport]:  # noqa: ARG002
        """Yield every table heading on the page: a measure, or another."""
        for archive in archives:
            pages = grids(whole(archive.members[0]).decode().split("\n"))
            heads = [row.cells for grid in pages for row in grid.rows if _is_head(row.cells)]
            parts = {cells[0]: TAKEN if _measure(cells) else "names no measure" for cells in heads}
            yield settled(archive.members[0].name, "table", parts, parts)

    def read(self, archives: Sequence[Archive], options: Options) -> Import:
        """Read equal systems of one collection as one run."""
        left: list[LeftOut] = []
        reports = [report for archive in archives for report in _reported(archive.members[0], left)]
        imported = reported_runs(reports, options, importer=self.name, source="Anserini regression pages")
        return merged((imported, Import(left_out=tuple(left))))


def _is_head(cells: Sequence[str]) -> bool:
    return not any(number_of(cell) is not None or cell in _EMPTY for cell in cells[1:])


def _systems(cells: Sequence[str]) -> list[str]:
    """Return the systems of a heading; a repeated one (+RM3) is combined with the one it is added to."""
    names, base = [], ""
    for cell in cells:
        base = base if cell.startswith("+") else cell
        twice = cell.startswith("+") and list(cells).count(cell) > 1
        names.append(f"{base} {cell}" if twice and base else cell)
    return names


def _results(
    lines: Sequence[str], name: str, lost: dict[str, list[int]]
) -> Iterator[tuple[str, str, Figure, int]]:
    """Yield collection, system, figure and line of every cell.

    Lines left out are added to `lost`.
    """
    for grid in grids(lines):
        measure: NamedValue | None = None
        systems: list[str] = []
        for row in grid.rows:
            if (matched := _measure(row.cells)) is not None:
                measure, systems = matched, _systems(row.cells[1:])
            elif systems and (measure is None or _is_head(row.cells)):
                measure = None
                lost.setdefault(_OTHER, []).append(row.line)
            elif measure is not None and (len(row.cells) != len(systems) + 1 or not row.cells[0]):
                lost.setdefault(_MISFIT, []).append(row.line)
            elif measure is not None:
                yield from _of_row(row, measure, systems, name, lost)


def _of_row(
    row: PageRow, measure: NamedValue, systems: Sequence[str], name: str, lost: dict[str, list[int]]
) -> Iterator[tuple[str, str, Figure, int]]:
    for system, cell in zip(systems, row.cells[1:], strict=True):
        if not system or cell in _EMPTY:
            lost.setdefault(_MISSING, []).append(row.line)
            continue
        value = number_of(cell)
        if value is None:
            raise InputError(f"{quoted(cell)} is not a number.", where=place(name, row.line, system))
        kind = MEASURES.get(measure.measure.lower(), measure.measure)
        figure = Figure(measure=kind, value=value * measure.factor, k=measure.k)
        yield row.cells[0], system, figure, row.line


def _measure(cells: Sequence[str]) -> NamedValue | None:
    """Return the measure in the first cell of a row that is a heading of systems."""
    plain = _is_head(cells) and len(cells) > 1 and " " not in cells[0]
    value = named(cells[0], cells[0]) if plain else None
    others = sum(named(cell, cell) is not None for cell in cells[1:])
    return value if value and is_quality(value) and not others else None


def _reported(member: Member, left: list[LeftOut]) -> Iterator[Reported]:
    lost: dict[str, list[int]] = {}
    groups: dict[tuple[str, str], dict[tuple[str, int | None], Figure]] = {}
    for collection, system, figure, line in _results(whole(member).decode().split("\n"), member.name, lost):
        known = groups.setdefault((collection, system), {})
        key = (figure.measure, figure.k)
        if known.get(key, figure) != figure:
            at = f"@{figure.k}" if figure.k else ""
            problem = f"{figure.measure}{at} of {quoted(system)} stands twice."
            raise InputError(problem, where=place(member.name, line))
        if key in known:
            lost.setdefault("figures that stand twice: they count once", []).append(line)
        known[key] = figure
    if not groups:
        raise InputError("The page holds no table of measures.", where=member.name)
    left += [LeftOut(len(at), why, place(member.name, at[0])) for why, at in lost.items()]
    for (collection, system), figures in groups.items():
        name, is_bm25 = shown(system, 200), re.fullmatch(r"BM25(\s*\(.*\))?", system)
        yield Reported(
            label=system,
            stem=member.stem,
            digest=member.digest,
            decided={"collection": shown(collection, 200), "system": name},
            # The part of a name that is certain: BM25 alone is BM25.
            spec={"mode": "sparse", "sparse": "bm25", "name": name} if is_bm25 else {"name": name},
            figures=tuple(figures.values()),
            collection=collection,
        )
