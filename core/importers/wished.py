"""Measures that the user leaves out, by name, of files that are not tables of columns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import polars as pl

from core.errors import InputError
from core.importers.base import Import
from core.importers.naming import named
from core.importers.read.text import quoted, shown
from core.importers.report import AS_YOU_WISH, FileReport

_MEASURES = {"signals": "signal", "answer_scores": "scorer", "aggregates": "measure"}
"""Tables of measures, each with the column that names them."""
_SHOWN = 12


def without_measures(imported: Import, names: Iterable[str]) -> Import:
    """Remove measures from an import, and report them as left out if they were counted as taken."""
    frames, reports = dict(imported.frames), imported.reports
    for name in names:
        meant = named(name, name)
        found = False
        for table in _MEASURES.keys() & frames.keys():
            is_it = pl.col(_MEASURES[table]) == shown(name, 80)
            if meant is not None and table == "aggregates":
                is_it |= (pl.col("measure") == meant.measure) & pl.col("k").eq_missing(meant.k)
            rows = frames[table].lazy()
            if rows.filter(is_it).head(1).collect().height:
                found, frames[table] = True, rows.filter(~is_it)
        if found:
            reports = tuple(_moved(report, name) for report in reports)
    return replace(imported, frames=frames, reports=reports)


def _moved(report: FileReport, name: str) -> FileReport:
    wanted = {part for part in report.taken if part.rsplit(".", 1)[-1] == name}
    taken = tuple(part for part in report.taken if part not in wanted)
    return replace(
        report, taken=taken, left_out={**report.left_out, **dict.fromkeys(wanted or {name}, AS_YOU_WISH)}
    )


def refuse_unknown(names: Iterable[str], reports: Iterable[FileReport]) -> None:
    """Refuse names of columns that no file leaves out."""
    reports = tuple(reports)
    done = {part for report in reports for part, why in report.left_out.items() if why == AS_YOU_WISH}
    last = {part.rsplit(".", 1)[-1] for part in done}
    if unknown := sorted(set(names) - done - last):
        there = dict.fromkeys(part for report in reports for part in (*report.taken, *report.left_out))
        problem = f"There is no column or measure {quoted(unknown[0])} that can be left out."
        do = f"There are: {', '.join(shown(part) for part in list(there)[:_SHOWN])}." if there else ""
        raise InputError(problem, where="--without", do=do)
