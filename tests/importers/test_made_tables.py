"""Random tables import to the values that made them, ask, or are refused by name; none is wrong in silence.

`CLQ_TABLES` makes more of them.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from pathlib import Path

import polars as pl
import pytest

from core.errors import ClqError
from core.importers import Import, Options, load
from core.importers.read.number_format import OpenNumbersError, Reading
from core.store import Store
from tests.importers.helpers import up
from tests.importers.made_tables import Made, table

FEW, MANY = 40, int(os.environ.get("CLQ_TABLES", "2000"))
STORED = 20  # Of so many tables one goes through a store
SAME = {"R": "Recall", "MRR": "RR", "Precision": "P", "MAP": "AP"}
SOUND = ("exact", "part", "asked", "refused")
LEAST_EXACT = 0.5
Values = dict[tuple[str, str | None, str], float]
Brought = tuple[dict[str, str], dict[str, pl.DataFrame]]
"""Run → its name, and the rows of each table."""


def outcome(made: Made, folder: Path | None = None) -> str:
    """Say what becomes of a table: exact, part (some named as left out), asked, refused; or what is wrong.

    Args:
        made: The table.
        folder: Where a store is made, if what it reads back is compared.
    """
    said: dict[str, Reading] = {}
    for _ in range(4):
        try:
            imported = load([up(made.name, made.data)], Options(numbers=said))
        except OpenNumbersError as error:
            said |= answers(made, error)
        except ClqError as error:
            if made.name.removesuffix(".gz") not in str(error):
                return f"does not name the file: {error}"
            return "asked" if said or "--" in error.do else "refused"
        else:
            found = compared(made, imported, folder)
            return "asked" if said and found in SOUND else found
    return "asked for ever"


def answers(made: Made, error: OpenNumbersError) -> dict[str, Reading]:
    """Answer questions of numbers as the table was made; the values must then be those that made it."""
    share: Reading = "percent" if made.style == "percent" else "share"
    commas: Reading = "decimal-comma" if made.comma else "thousands"
    return {column.column: share if share in column.ways else commas for column in error.columns}


def compared(made: Made, imported: Import, folder: Path | None) -> str:
    brought = read_back(imported, folder) if folder else as_read(imported)
    stored, wanted, lost = values_of(brought), wanted_of(made), False
    left = " ".join(each.reason for each in imported.left_out)
    for key, value in stored.items():
        if key not in wanted:
            return f"brings {key} = {value}"
        if value != pytest.approx(wanted[key], rel=1e-6):
            return f"{key} is {value}, not {wanted[key]}"
    for figure in made.figures:
        absent = [key for key in wanted if key[2] == figure.means and key not in stored]
        if absent and figure.name not in left:
            return f"lacks {absent[0]} and does not say so"
        lost |= bool(absent)
    column = next((figure.name for figure in made.figures if figure.means == "n"), None)
    if column is not None and column not in left:
        labels, held = brought
        for run, n in held["aggregates"].select("run_id", "n").iter_rows():
            if n != made.truth[labels[run], None, column]:
                return f"n of {labels[run]} is {n}"
    return "part" if lost or (column is not None and column in left) else "exact"


def as_read(imported: Import) -> Brought:
    labels = {run.run_id: run.label for run in imported.runs}
    return labels, {name: rows.lazy().collect() for name, rows in imported.frames.items()}


def read_back(imported: Import, folder: Path) -> Brought:
    """Return what a store has of an import after it was written."""
    store = Store.open(folder)
    with store.write("import") as writer:
        writer.add(imported.batch)
    held = store.read()
    labels = dict(held.runs().select("run_id", "label").iter_rows())
    return labels, {name: getattr(held, name)([*labels]) for name in ("signals", "timings", "aggregates")}


def wanted_of(made: Made) -> Values:
    """Stack, query and figure → the value that made it; prices of queries as their mean."""
    wanted: dict[tuple[str, str | None, str], list[float]] = defaultdict(list)
    means = {figure.name: figure.means for figure in made.figures if figure.means not in ("", "n")}
    for (stack, query, name), value in made.truth.items():
        if name in means and value is not None:
            wanted[stack, None if means[name] == "usd_per_1k" else query, means[name]].append(value)
    return {key: sum(values) / len(values) for key, values in wanted.items()}


def values_of(brought: Brought) -> Values:
    """Stack, query and figure → its value."""
    labels, held = brought
    signals, timings = held.get("signals", pl.DataFrame()), held.get("timings", pl.DataFrame())
    found = {
        (labels[row["run_id"]], row["query_id"], figure_of(row["signal"], row["k"])): row["value"]
        for row in signals.iter_rows(named=True)
    }
    found |= {
        (labels[row["run_id"]], row["query_id"], "ms"): row["ms"] for row in timings.iter_rows(named=True)
    }
    for row in held.get("aggregates", pl.DataFrame()).iter_rows(named=True):
        if (
            signals.is_empty() or row["measure"] == "usd_per_1k"
        ):  # means of what queries have are made of them
            found[labels[row["run_id"]], None, figure_of(row["measure"], row["k"])] = row["value"]
    return found


def figure_of(measure: str, k: int | None) -> str:
    return f"{SAME.get(measure, measure)}@{k}" if k else measure


@pytest.mark.parametrize("number", range(FEW))
def test_a_table_is_read_as_it_was_made_or_not_at_all(number: int, tmp_path: Path):
    made = table(number)
    assert outcome(made, tmp_path if number % 4 == 0 else None) in SOUND, made.text


@pytest.mark.slow
def test_none_of_many_is_wrong_in_silence(tmp_path: Path):
    counts: Counter[str] = Counter()
    wrong = []
    for number in range(MANY):
        made = table(number)
        found = outcome(made, tmp_path / str(number) if number % STORED == 0 else None)
        counts[found if found in SOUND else "wrong"] += 1
        wrong += [] if found in SOUND else [f"{number}: {found}\n{made.text}"]
    assert not wrong, wrong[:3]
    assert counts["exact"] >= LEAST_EXACT * MANY, counts
