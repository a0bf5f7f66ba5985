"""Tables of the regression pages of Anserini and Pyserini (Markdown): measures by test collection and system.

A row whose first cell is a measure with its cutoff (``**nDCG@10**``) names the systems; the rows below it
hold one test collection each, until the next such row. Everything else on the page is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from core.errors import InputError
from core.importers.base import SURE, Format, Import, LeftOut, Options, merged
from core.importers.formats.traces.spans import number_of
from core.importers.read.member import Archive, Member, head_lines
from core.importers.read.text import place, quoted, shown, whole
from core.importers.report import TAKEN, FileReport, settled
from core.importers.runs import Figure, Reported, reported_runs

_MEASURE = re.compile(r"(?P<name>nDCG|NDCG|AP|MAP|RR|MRR|R|Recall|P)@(?P<k>[1-9]\d{0,5})")
_NAMES = {"NDCG": "nDCG", "MAP": "AP", "MRR": "RR", "Recall": "R"}
_LINK = re.compile(r"\[([^\]\[]{0,300})\]\([^()]{0,1000}\)")
_MISSING, _MISFIT = "empty cells: missing, not 0", "rows that do not fit the head of their table"
_EMPTY = ("", "-", "–", "—", "n/a", "N/A")


class Regressions(Format):
    """Markdown pages with tables of measures."""

    name, title = "regressions", "Anserini / Pyserini regression page (Markdown)"
    takes = {"aggregates": "the measures of every system, per test collection"}
    recognised = "a Markdown table whose first cell is a measure with its cutoff, such as **nDCG@10**"
    traps = ("Measures without a cutoff and other tables of the page are not taken.",)

    def sniff(self, probe: Archive) -> float:
        if len(probe.members) != 1:
            return 0.0
        lines = head_lines(probe.members[0], 5_000)
        if not any(line.lstrip().startswith("|") and _MEASURE.search(line) for line in lines):
            return 0.0
        try:
            return SURE if next(_results(lines, probe.name, {}), None) else 0.0
        except InputError:
            return SURE

    def reports(self, archives: Sequence[Archive], options: Options) -> Iterator[FileReport]:  # noqa: ARG002
        """Yield every head of a table on the page: a measure with its cutoff, or another."""
        for archive in archives:
            rows = filter(None, map(_cells, whole(archive.members[0]).decode().split("\n")))
            heads = dict.fromkeys(cells[0] for cells in rows if _is_head(cells))
            parts = {
                head: TAKEN if _MEASURE.fullmatch(head) else "no measure with a cutoff" for head in heads
            }
            yield settled(archive.members[0].name, "table", heads, parts)

    def read(self, archives: Sequence[Archive], options: Options) -> Import:
        """Read equal systems of one collection as one run."""
        left: list[LeftOut] = []
        reports = [report for archive in archives for report in _reported(archive.members[0], left)]
        imported = reported_runs(reports, options, importer=self.name, source="Anserini regression pages")
        return merged((imported, Import(left_out=tuple(left))))


def _cells(line: str) -> list[str] | None:
    """Return the cells of a row without marks and links; None if the line is no row, or only a rule."""
    text = line.strip()
    if not text.startswith("|"):
        return None
    inner = text.removeprefix("|").removesuffix("|")
    cells = [_LINK.sub(r"\1", cell).replace("*", "").replace("`", "").strip() for cell in inner.split("|")]
    return None if all(re.fullmatch(r":?-*:?", cell) for cell in cells) else cells


def _is_head(cells: Sequence[str]) -> bool:
    return not any(number_of(cell) is not None or cell in _EMPTY for cell in cells[1:])


def _results(
    lines: Sequence[str], name: str, lost: dict[str, list[int]]
) -> Iterator[tuple[str, str, Figure, int]]:
    """Yield collection, system, figure and line of every cell.

    Lines of what is left out are added to `lost`.
    """
    measure: re.Match[str] | None = None
    systems: list[str] = []
    for number, line in enumerate(lines, 1):
        cells = _cells(line)
        if cells is None:
            measure = measure if line.strip().startswith("|") else None
            continue
        if (matched := _MEASURE.fullmatch(cells[0])) is not None:
            measure, systems = matched, cells[1:]
            continue
        if measure is None:
            continue
        if len(cells) != len(systems) + 1 or not cells[0]:
            if _is_head(cells):
                measure = None
            else:
                lost.setdefault(_MISFIT, []).append(number)
            continue
        for system, cell in zip(systems, cells[1:], strict=True):
            if not system or cell in _EMPTY:
                lost.setdefault(_MISSING, []).append(number)
                continue
            value = number_of(cell)
            if value is None:
                raise InputError(f"{quoted(cell)} is not a number.", where=place(name, number, system))
            kind = _NAMES.get(measure["name"], measure["name"])
            yield cells[0], system, Figure(measure=kind, value=value, k=int(measure["k"])), number


def _reported(member: Member, left: list[LeftOut]) -> Iterator[Reported]:
    lost: dict[str, list[int]] = {}
    groups: dict[tuple[str, str], dict[tuple[str, int | None], Figure]] = {}
    for collection, system, figure, line in _results(whole(member).decode().split("\n"), member.name, lost):
        known = groups.setdefault((collection, system), {})
        key = (figure.measure, figure.k)
        if known.get(key, figure) != figure:
            problem = f"{figure.measure}@{figure.k} of {quoted(system)} stands twice."
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
            # What is sure of a name: BM25 alone is BM25.
            spec={"mode": "sparse", "sparse": "bm25", "name": name} if is_bm25 else {"name": name},
            figures=tuple(figures.values()),
            collection=collection,
        )
