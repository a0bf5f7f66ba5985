"""The published tables: whole, numeric, and consistent with one another where the papers let them be."""

import csv
import itertools

import polars as pl
import pytest

from core.paths import PUBLISHED
from core.views.library.data import printed, printed_tables

TABLES = printed_tables()


def test_every_figure_is_in_exactly_one_listed_table():
    listed = TABLES.select("file", "table").rows()
    assert len(set(listed)) == len(listed)
    assert TABLES["name"].is_unique().all()
    for file in sorted(PUBLISHED.glob("*.csv")):
        if file.name == "index.csv":
            continue
        with file.open(encoding="utf-8") as lines:
            rows = list(csv.DictReader(lines))
        of_file = [table for name, table in listed if name == file.name]
        assert sum(printed(file.name, table).height for table in of_file) == len(rows)


@pytest.mark.parametrize(
    ("file", "table", "figures"),
    [
        ("clq_diagnostics.csv", "4.1", 20),
        ("clq_diagnostics.csv", "4.2", 20),
        ("clq_diagnostics.csv", "10", 12),
        ("clq_diagnostics.csv", "11", 4),
        ("clq_diagnostics.csv", "12", 12),
        ("clq_diagnostics.csv", "13", 4),
        ("ragged_tables.csv", "1", 48),
        ("ragged_tables.csv", "2", 6),
        ("ragged_tables.csv", "3", 3),
        ("ragged_tables.csv", "6", 10),
        ("ragged_tables.csv", "8", 48),
        ("ragged_tables.csv", "9", 108),
        *(("thesis_embedders.csv", f"7.{number}", 240) for number in range(1, 5)),
        ("thesis_embedders.csv", "7.5", 160),
        ("thesis_thresholds.csv", "7.6", 168),
        ("thesis_thresholds.csv", "7.7", 112),
    ],
)
def test_figures_of_a_table(file, table, figures):
    found = printed(file, table)
    assert found.height == figures
    assert not any(column.null_count() == found.height for column in found)
    if table != "1":  # holds conditions
        value = next(name for name in ("value", "value_pct") if name in found.columns)
        assert found[value].cast(pl.Float64).is_finite().all()


def test_drops_of_table_13_follow_from_table_12():
    by_level = {
        (row["language"], row["model"], row["condition"]): row["value"]
        for row in printed("clq_diagnostics.csv", "12").iter_rows(named=True)
    }
    for row in printed("clq_diagnostics.csv", "13").iter_rows(named=True):
        at = row["language"], row["model"]
        assert row["value"] == pytest.approx(by_level[*at, "noise_4"] - by_level[*at, "noise_0"], abs=0.0011)


def embedders(table):
    keys = ("embedder", "dataset", "k", "distance")
    rows = printed("thesis_embedders.csv", table).iter_rows(named=True)
    return {tuple(row[key] for key in keys): row["value_pct"] for row in rows}


def test_the_thesis_tables_meet_their_identities():
    recall, precision, mrr, ndcg = (embedders(f"7.{number}") for number in range(1, 5))
    for at, value in recall.items():
        _, _, k, _ = at
        assert value == pytest.approx(k * precision[at], abs=0.0051 * k + 0.005)
        if k == 1:
            assert value == precision[at] == mrr[at] == ndcg[at]
    for measure, (name, *rest) in itertools.product(
        (recall, mrr, ndcg), {(e, d, x) for e, d, _, x in recall}
    ):
        data, distance = rest
        by_k = [measure[name, data, k, distance] for k in (1, 5, 10, 25)]
        assert by_k == sorted(by_k)
