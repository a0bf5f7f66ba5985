"""Columns of tables are said once."""

from collections import Counter

import polars as pl
import pytest

from core.views import columns


def test_no_name_is_declared_twice():
    names = Counter(column.name for column in columns._EVERY)
    assert [name for name, times in names.items() if times > 1] == []


@pytest.mark.parametrize(
    ("label", "dollars", "written"),
    [
        ("$ / 1k", [0.0000066, None], ("$ / 1M", [0.0066, None])),
        ("$ / 1,000", [0.0009, 0.0], ("$ / 1M", [0.9, 0.0])),
        ("$ / 1k", [0.0000066, 1.25], ("$ / 1k", [0.0000066, 1.25])),
        ("$ / 1k", [None], ("$ / 1k", [None])),
        ("$ / 1k answered", [0.0001], ("$ / 1k answered", [0.0001])),
        ("$ / month", [0.0001], ("$ / month", [0.0001])),
    ],
)
def test_dollars_too_small_to_read_are_per_million(label: str, dollars: list[float | None], written: object):
    rows = pl.DataFrame({"cost": dollars, "n": 1}, schema={"cost": pl.Float64, "n": pl.Int64})
    shown = (columns.COLUMNS["cost"].but(label), columns.COLUMNS["n"])
    scaled, (cost, n) = columns.in_millions(rows, shown)
    assert (cost.label, [each and pytest.approx(each) for each in written[1]]) == (
        written[0], scaled["cost"].to_list(),
    )  # fmt: skip
    assert (n, scaled["n"].to_list()) == (shown[1], rows["n"].to_list())
