"""Columns of tables are said once."""

from collections import Counter

import polars as pl
import pytest

from core.number_format import PER_1K, CostUnit, usd
from core.views import columns, units


def test_no_name_is_declared_twice():
    names = Counter(column.name for column in columns._EVERY)
    assert [name for name, times in names.items() if times > 1] == []


MILLION = CostUnit(million=True)


@pytest.mark.parametrize(
    ("label", "dollars", "said", "written"),
    [
        ("$ / 1k", [0.0000066, None], None, ("$ / 1M", [0.0066, None])),
        ("$ / 1,000", [0.0009, 0.0], None, ("$ / million", [0.9, 0.0])),
        ("$ / 1k", [0.0000066, 1.25], None, ("$ / 1k", [0.0000066, 1.25])),
        ("$ / 1k", [0.0000066, 1.25], MILLION, ("$ / 1M", [0.0066, 1250.0])),
        ("$ / 1k", [0.0000066], PER_1K, ("$ / 1k", [0.0000066])),
        ("$ / 1k", [None], None, ("$ / 1k", [None])),
        ("$ / 1k answered", [0.0001], None, ("$ / 1M answered", [0.1])),
        ("$ / month", [0.0001], MILLION, ("$ / month", [0.0001])),
        ("quality per $1 / 1k", [500.0], MILLION, ("quality per $1 / 1M", [0.5])),
    ],
)
def test_a_table_says_costs_as_its_page_does_else_as_suits_them(
    label: str, dollars: list[float | None], said: CostUnit | None, written: tuple[str, list[float | None]]
):
    rows = pl.DataFrame({"cost": dollars, "n": 1}, schema={"cost": pl.Float64, "n": pl.Int64})
    shown = (columns.COLUMNS["cost"].replace(label=label, help="Per 1,000 queries."), columns.COLUMNS["n"])
    scaled, (cost, n) = units.for_people(rows, shown, said)
    assert (cost.label, [each and pytest.approx(each) for each in written[1]]) == (
        written[0], scaled["cost"].to_list(),
    )  # fmt: skip
    assert cost.help == ("Per million queries." if written[0] != label else "Per 1,000 queries.") or (
        said == MILLION
    )
    assert (n, scaled["n"].to_list()) == (shown[1], rows["n"].to_list())


@pytest.mark.parametrize(
    ("digits", "written"),
    [(2, ["$0.15", "$0.15", "$0.055", "$3.79"]), (4, ["$0.1502", "$0.1519", "$0.05488", "$3.793"])],
    ids=["assumed price", "known price"],
)
def test_rows_of_a_workspace_bring_their_unit_and_a_table_rounds_as_the_sentences(
    digits: int, written: list[str]
):
    said = {"cost_shown_per": 1_000_000, "cost_digits": digits}
    rows = pl.DataFrame({"cost": [0.00015024, 0.00015191, 0.00005488, 0.003793], **said})
    scaled, (cost,) = units.for_people(rows, columns.columns(["cost"]), None)
    assert cost.label == "$ / 1M"
    assert [usd(value, cost.digits) for value in scaled["cost"]] == written
    sentence = units.CostUnit.of(rows.row(0, named=True))
    assert [sentence.bare(value) for value in rows["cost"]] == written


@pytest.mark.parametrize(
    ("values", "digits"),
    [([0.0042, 12.0], 4), ([0.42, 0.0], 2), ([0.0000001, 1.0], 5), ([None, None], 2), ([0.01], 2)],
)
def test_milliseconds_are_never_written_as_nothing(values: list[float | None], digits: int):
    of = columns.Rows("times", columns.number("latency_ms", "p50 ms"), columns.number("saved", "queries"))
    rows = of.frame([(value, 0.001) for value in values])
    _, (ms, saved) = units.for_people(rows, of.every, None)
    assert (ms.digits, saved.digits) == (digits, 2)
    assert units.in_ms(of.columns[0], rows).digits == digits


def test_a_table_of_quality_is_headed_by_its_measure():
    table = columns.Rows("t", "name quality", more="quality_low")
    of = table.measured("RA-nWG@10")
    assert [column.label for column in of.every] == ["stack", "RA-nWG@10", table.every[-1].label]
    assert [column.name for column in of.every] == [column.name for column in table.every]
