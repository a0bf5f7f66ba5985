"""Checks measures that formats bring against their declared ranges; tables check theirs cell by cell."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from core.importers.base import Import, Options
from core.importers.naming import NamedValue, is_share, named, range_of
from core.importers.read.member import Archive, members_of
from core.importers.read.number_format import OpenNumbersError, Reading
from core.importers.read.ranges import Figures, as_shares, question, refuse_outside, verdict
from core.importers.read.text import shown

Where = Callable[[dict[str, Any]], str]
_NAMES = {"signals": "signal", "aggregates": "measure"}
"""Table with measures → the column that names them; queries first, as they reveal more than their means."""


def in_ranges(
    rows: pl.DataFrame, names: str, file: str, said: Mapping[str, Reading], where: Where
) -> tuple[pl.DataFrame, dict[str, Reading]]:
    """Return the measures of a file as shares, and which of them are in percent, or partly so.

    Args:
        rows: One number per row (`value`), beside the name of its measure.
        names: The column of these names.
        said: The user's statements on measures.
        where: Returns the location of a row.

    Raises:
        OpenNumbersError: Some numbers of a share are above 1, and others are not.
        InputError: A measure cannot have one of the numbers.
    """
    ways: dict[str, Reading] = {}
    found: list[Figures] = []
    for (name,), of in rows.group_by(names, maintain_order=True):
        figures = _figures(str(name), of, where)
        way = said.get(figures.column) or ("percent" if verdict(figures) == "percent" else None)
        if way in ("percent", "share") and figures.share:
            ways[figures.column] = way
            values = figures.values / 100 if way == "percent" else as_shares(figures.values)
            figures = replace(figures, values=values, share=False)
        found.append(figures)
    if asked := [figures for figures in found if verdict(figures) == "open"]:
        at = ((asked[0].values > 0) & (asked[0].values <= 1)).arg_max() or 0
        raise OpenNumbersError(file, asked[0].where(at), [*map(question, asked)])
    refuse_outside(found)
    if not ways:
        return rows, ways
    of_measure = pl.concat([figures.values.alias("value") for figures in found])
    order = pl.concat(
        [of["row"] for _, of in rows.with_row_index("row").group_by(names, maintain_order=True)]
    )
    scaled = pl.DataFrame([order, of_measure]).sort("row")["value"]
    return rows.with_columns(scaled), ways


def _figures(name: str, rows: pl.DataFrame, where: Where) -> Figures:
    value = named(name, name) or NamedValue(name, name)
    known = pl.select(pl.when(rows["value"].is_finite()).then(rows["value"])).to_series()
    return Figures(
        name, known, range_of(value), is_share(value), lambda row: where(rows.row(row, named=True))
    )


def as_declared(imported: Import, archives: Sequence[Archive], options: Options) -> Import:
    """Return an import with its measures as shares, file by file; errors as in `in_ranges`."""
    files = {member.digest: member.name for member in members_of(archives)}
    labels = {run.run_id: run.label for run in imported.runs}
    owner = {
        run.run_id: files.get(str(run.manifest.get("content")), archives[0].name) for run in imported.runs
    }
    done = {*imported.notes}  # a format may have scaled by itself, as `core.importers.samples` does
    frames = dict(imported.frames)
    notes: dict[str, None] = {}
    decided: dict[str, dict[str, Reading]] = {}
    for table, names in _NAMES.items():
        if table not in frames:
            continue
        rows = frames[table].lazy().collect()
        file = pl.col("run_id").replace_strict(owner, default=archives[0].name, return_dtype=pl.String)
        parts = []
        for (name,), of in rows.group_by(file.alias("file"), maintain_order=True):
            said = {**options.table_as(str(name)).numbers, **decided.get(str(name), {})}
            said = {key: way for key, way in said.items() if done.isdisjoint(notes_of(str(name), {key: way}))}
            made, ways = in_ranges(of, names, str(name), said, _place(str(name), labels))
            decided.setdefault(str(name), {}).update(ways)
            parts.append(made)
        frames[table] = pl.concat(parts)
    for name, ways in decided.items():
        notes |= dict.fromkeys(notes_of(name, ways))
    return replace(imported, frames=frames, notes=(*imported.notes, *notes)) if notes else imported


def notes_of(file: str, ways: Mapping[str, Reading]) -> list[str]:
    """Describe the measures of a file that are taken as percent."""
    which = {"percent": "", "share": " where it is above 1"}
    return [
        f"{file}: `{shown(name)}` is taken as percent{which[way]}: divided by 100."
        for name, way in ways.items()
    ]


def _place(file: str, labels: Mapping[str, str]) -> Where:
    def where(row: dict[str, Any]) -> str:
        of_query = f", query {shown(row['query_id'])}" if row.get("query_id") else ""
        cutoff = f" at K = {row['k']}" if row.get("k") else ""
        measure = shown(row.get("signal") or row.get("measure") or "")
        return f"{file}, {shown(labels.get(row['run_id'], ''))}{of_query}, `{measure}`{cutoff}"

    return where
