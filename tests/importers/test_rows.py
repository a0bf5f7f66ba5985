"""No row of any format vanishes: each is taken, counted as left out by name, or refused with its file."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl
import pytest

from core.errors import ClqError
from core.importers import load
from tests.importers.fuzzing import OPTIONS, chance
from tests.importers.grouped import Group, groups
from tests.importers.helpers import members, up, zipped
from tests.importers.samples import SAMPLES, by_name
from tests.importers.test_report import covers, essence, reports_of, unpacked

TRIED = 10
"""Rows of a group that are taken away and repeated, by chance where there are more."""
CELLS = 3
"""Cells of a row that are emptied, by chance where there are more."""
CONFIRMED = {
    ("optuna", "study_directions"): "an objective without a direction counts as one that is minimised",
    ("ragged-gold", "data/nq.jsonl"): "a compiled gold file says the same of its first question",
    ("ir_measures", "['all', 'RR', '0.7500']"): "the mean of the lines of its queries, to the last digit",
    ("rag-gs", "runs/r1/questions_manifest.json"): "the rewrites hold the texts of the questions too",
}
"""Files, tables or rows that say only what others say too: without one of them nothing is lost."""
SEALED = {"own"}
"""Formats whose tables carry a hash: one with other rows is refused."""
WITHOUT = {"mteb-old", "mteb-bare"}
"""Samples that have no rows but maps of measures, whose keys a report names."""
Found = tuple[str, Group]


def groups_of(name: str) -> list[Found]:
    """Groups of rows of all files of a sample; what a report leaves out as a whole is named there."""
    file_reports = reports_of(name)
    return [
        (file, group)
        for file, content in members(SAMPLES[name][1]).items()
        if file_reports[file].kind != "file"
        for group in groups(unpacked(content))
        if not any(covers(each, group.where) for each in file_reports[file].left_out)
    ]


def outcome(name: str, file: str, content: bytes) -> tuple[object, ...] | None:
    """What is taken of a sample with another file in it, and what is left out; None if it is refused."""
    files = members(SAMPLES[name][1])
    data = content if len(files) == 1 else zipped({**files, file: content}, 0)
    try:
        made = load([up("x", data)], OPTIONS)
    except ClqError:
        return None
    left = sorted((each.reason, each.count) for each in made.left_out if each.part in ("", "file"))
    return essence(made), left


def some(name: str, count: int, most: int) -> list[int]:
    return sorted(chance(name).sample(range(count), min(count, most)))


def emptied(row: Any, at: int) -> Any:
    """A row without the value of one of its cells."""
    if isinstance(row, dict):
        return {**row, list(row)[at]: None}
    empty = "" if isinstance(row[at], str) else None
    return [*row[:at], empty, *row[at + 1 :]]


def foreign(name: str, rows: Sequence[Any]) -> Iterator[Any]:
    """Rows that are none: of other values and types, of other keys, and with a cell emptied."""
    row = rows[0]
    if isinstance(row, dict):
        yield dict.fromkeys(row, "odd")
        yield {"foreign": 1}
    else:
        yield ["odd"] * len(row)
    yield from (emptied(row, at) for at in some(name, len(row), CELLS))


@pytest.mark.slow
@pytest.mark.parametrize("name", by_name())
def test_no_row_vanishes(name):
    found = groups_of(name)
    assert bool(found) == (name not in WITHOUT)
    for file, group in found:
        rows = list(group.rows)
        whole = outcome(name, file, group.write(rows))
        if whole is None and name in SEALED:
            continue
        assert whole == outcome(name, file, members(SAMPLES[name][1])[file])
        for at in some(name, len(rows), TRIED):
            without = outcome(name, file, group.write([*rows[:at], *rows[at + 1 :]]))
            known = {(name, file), (name, group.where), (name, str(rows[at]))}
            assert without != whole or CONFIRMED.keys() & known, (
                file,
                group.where,
                rows[at],
            )
            if group.keyed:
                continue
            twice = outcome(name, file, group.write([*rows, rows[at]]))
            assert twice != whole, (file, group.where, rows[at], "twice")


@pytest.mark.slow
@pytest.mark.parametrize("name", by_name())
def test_no_foreign_row_vanishes(name):
    for file, group in groups_of(name):
        whole = outcome(name, file, group.write(group.rows))
        for row in foreign(name, group.rows) if whole is not None else ():
            try:
                content = group.write([*group.rows, row])
            except (TypeError, ValueError, pl.exceptions.PolarsError):
                continue  # the file cannot hold such a row
            assert outcome(name, file, content) != whole, (file, group.where, row)


WITHIN = [
    ("ragged", "bm25.jsonl", (0, "output"), {"provenance": [{"page_id": "z", "start_par_id": 1}]}),
    ("rank-llm-metrics", "x", (0, "result"), {"metric": "ndcg_cut_10", "value": 0.7493}),
    ("openinference", "x", (1, "attributes.retrieval.documents"), {}),
    ("openinference", "x", (1, "attributes.retrieval.documents"), 7),
    ("openinference", "x", (1, "attributes.retrieval.documents"), None),
    ("deepeval", "x", (0, "metricsData"), {}),
    ("ragged-gold", "data/nq.jsonl", (0, "output", 0, "provenance"), {}),
    ("context-grid", "x", (0, "per_query"), {}),
    ("rank-llm", "x", (0, "candidates"), {}),
]
"""A sample, the list within one of its rows, and a row for that list: repeated, later, or nothing."""


@pytest.mark.parametrize(("name", "file", "path", "row"), WITHIN)
def test_no_row_within_a_row_vanishes(name, file, path, row):
    group = next(group for where, group in groups_of(name) if where == file)
    rows = copy.deepcopy(group.rows)
    held = rows
    for key in path:
        held = held[key]
    held.append(row)
    assert outcome(name, file, group.write(rows)) != outcome(name, file, group.write(group.rows))
