"""Numbers as people write them: what is read at once, what is asked, what is refused."""

from __future__ import annotations

import polars as pl
import pytest

from core.errors import InputError
from core.importers.read.number_format import (
    NumberKind,
    Numbers,
    OpenNumbersError,
    Reading,
    numbers_in,
    readings,
)
from core.importers.read.tabular import Table


def table(**columns: list[str | None]) -> Table:
    rows = pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))
    return Table("x.csv", rows, pl.Series("line", range(2, rows.height + 2), dtype=pl.Int64))


def found(
    kind: NumberKind, cells: list[str | None], said: Reading | None = None, **more: list[str | None]
) -> tuple[Numbers, list[str | None]]:
    of = table(c=cells, **more)
    kinds: dict[str, NumberKind] = {"c": kind, **dict.fromkeys(more, "figure")}
    read = numbers_in(of, kinds, {"c": said} if said else {}, asking=True, name="x.csv")
    return read, read.read(of).rows["c"].to_list()


SURE = {
    "plain": ("figure", ["41.2", "-1e-4", None], ["41.2", "-1e-4", None]),
    "decimal comma": ("share", ["41,2", "0,5", "7"], ["41.2", "0.5", "7"]),
    "nothing before the comma": ("share", [",5"], [".5"]),
    "a zero before it": ("share", ["0,412"], ["0.412"]),
    "thousands and a point": ("figure", ["1,234.5", "12"], ["1234.5", "12"]),
    "two groups": ("figure", ["1,234,567", "3"], ["1234567", "3"]),
    "European millions": ("figure", ["1.234.567", "1.234", "340"], ["1234567", "1234", "340"]),
    "European thousands": ("figure", ["1.234,5", "340"], ["1234.5", "340"]),
    "blanks between thousands": ("figure", ["1 234", "12 345 678,5"], ["1234", "12345678.5"]),
    "Swiss": ("figure", ["1'234.5"], ["1234.5"]),
    "percent": ("share", ["41.2%", "7 %"], ["41.2", "7"]),
    "percent and a comma": ("share", ["41,2 %", "7 %"], ["41.2", "7"]),
    "dollars": ("price", ["$0.0004", "US$ 1,200.50", "3 USD"], ["0.0004", "1200.50", "3"]),
    "no number": ("share", ["NaN", "n/a", "–", "0.5"], [None, None, None, "0.5"]),
    "a minus sign": ("figure", ["\u22125"], ["-5"]),
    "whole": ("whole", ["1,225", "3"], ["1225", "3"]),
    "a word": ("figure", ["fast", "1,5"], ["fast", "1,5"]),
    "both": ("figure", ["41,2", "41.5"], ["41.2", "41.5"]),
    "both in percent": ("share", ["41,2%", "45.5%", "7%"], ["41.2", "45.5", "7"]),
    "both with thousands": ("figure", ["1.234,5", "1,234.5", "0,412"], ["1234.5", "1234.5", "0.412"]),
    "both in dollars": ("price", ["$0.0004", "$0,0009"], ["0.0004", "0.0009"]),
    "both and a word": ("figure", ["41,2", "41.5", "fast"], ["41,2", "41.5", "fast"]),
    "NaN as a score": ("plain", ["nan"], ["nan"]),
    "a dollar of time": ("figure", ["$5"], ["$5"]),
    "percent of time": ("figure", ["5%"], ["5%"]),
}  # fmt: skip


@pytest.mark.parametrize("name", SURE)
def test_what_is_plain(name):
    kind, cells, expected = SURE[name]
    assert found(kind, cells)[1] == expected


@pytest.mark.parametrize(
    ("said", "cells", "expected"),
    [
        ("thousands", ["1,200", "340"], ["1200", "340"]),
        ("decimal-comma", ["1,200", "340"], ["1.200", "340"]),
        ("decimal-comma", ["1.200", "340"], ["1200", "340"]),
        ("percent", ["41.2", "7%"], ["41.2", "7"]),
    ],
)
def test_what_the_user_says(said, cells, expected):
    read, made = found("share", cells, said)
    assert made == expected
    assert read.percent == ({"c"} if said == "percent" else set())


def test_what_says_two_things_is_asked_with_its_first_cells():
    with pytest.raises(OpenNumbersError) as caught:
        found("figure", ["340", "1,200", "3,400"])
    assert caught.value.name == "x.csv"
    (one,) = caught.value.columns
    assert (one.column, one.cells) == ("c", ("1,200", "3,400"))
    assert one.ways == {"thousands": ("1200", "3400"), "decimal-comma": ("1.2", "3.4")}
    assert "x.csv:3, column `c`" in str(caught.value)
    assert "--numbers 'c=thousands'" in str(caught.value)


def test_dots_in_a_table_with_decimal_commas_are_asked_too():
    with pytest.raises(OpenNumbersError) as caught:
        found("figure", ["1.200", "340"], other=["0,5", "1,5"])
    assert caught.value.columns[0].ways == {"thousands": ("1.2",), "decimal-comma": ("1200",)}
    assert found("figure", ["1.200", "340"], other=["0.5", "1.5"])[1] == ["1.200", "340"]
    assert found("whole", ["1.200", "340"], other=["0,5", "1,5"])[1] == ["1200", "340"]


def test_points_that_nothing_in_the_table_explains_are_asked():
    with pytest.raises(OpenNumbersError) as caught:
        found("figure", ["1.234", "980"], other=["47", "52"])
    assert caught.value.columns[0].ways == {"thousands": ("1.234",), "decimal-comma": ("1234",)}
    assert found("figure", ["1.234", "2.5"])[1] == ["1.234", "2.5"]
    assert found("share", ["41.234", "52.345"])[1] == ["41.234", "52.345"]
    sure = Table("x", pl.DataFrame({"c": [1.234, 2.345]}), pl.Series("line", [1, 2]))
    assert not numbers_in(sure, {"c": "figure"}, {}, asking=True, name="x").open


@pytest.mark.parametrize(
    ("cells", "said", "expected"),
    [
        (["41,2", "45.5", "1,200"], "thousands", ["41.2", "45.5", "1200"]),
        (["41,2", "45.5", "1,200"], "decimal-comma", ["41.2", "45.5", "1.200"]),
        (["41,2", "45.5", "1.200"], "decimal-comma", ["41.2", "45.5", "1200"]),
        (["41,2", "45.5", "1.200"], "thousands", ["41.2", "45.5", "1.200"]),
    ],
)
def test_between_both_signs_a_cell_that_says_two_things_is_asked(cells, said, expected):
    with pytest.raises(OpenNumbersError) as caught:
        found("figure", cells)
    assert caught.value.columns[0].cells == tuple(cells[2:])
    read, made = found("figure", cells, said)
    assert made == expected
    assert "in `c` some cells have a decimal comma, others a point: 41,2 is read as 41.2" in read.notes[0]


@pytest.mark.parametrize(
    ("cell", "thousands", "comma"),
    [
        ("1,200", "comma between thousands", "decimal comma"),
        ("1.200", "decimal point", "point between thousands"),
    ],
)
def test_a_question_names_the_sign_that_stands_there(cell, thousands, comma):
    with pytest.raises(OpenNumbersError) as caught:
        found("figure", [cell], other=["0,5"])
    (one, *_) = caught.value.columns
    assert (one.says("thousands"), one.says("decimal-comma")) == (thousands, comma)


REFUSED = {
    "another currency": ("price", ["€0.4"], None, "'€0.4' is not in dollars."),
    "some percent": ("share", ["41%", "0.5"], None, "Some cells have a percent sign, others none: '0.5'."),
    "percent of a time": ("figure", ["5"], "percent", "`c` cannot be percent"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name):
    kind, cells, said, message = REFUSED[name]
    with pytest.raises(InputError) as caught:
        found(kind, cells, said)
    assert message in str(caught.value)


def test_options_of_the_command():
    assert readings(["a=b=thousands", "c=percent"]) == {"a=b": "thousands", "c": "percent"}
    for wrong in ("a", "a=commas", "=percent"):
        with pytest.raises(InputError):
            readings([wrong])
