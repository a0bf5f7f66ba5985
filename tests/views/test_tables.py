import csv
import io

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.views.text import defused, to_csv, to_parquet


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "\n", "＝", "＠"])
def test_what_a_spreadsheet_would_run_gets_an_apostrophe(start: str):
    made = defused(pl.DataFrame({"name": [f"{start}cmd|' /C calc'!A0", f"safe{start}"]}))
    assert made["name"].to_list() == [f"'{start}cmd|' /C calc'!A0", f"safe{start}"]


def test_numbers_and_missing_values_stay_as_they_are():
    rows = pl.DataFrame({"x": [-1.5, None], "n": [1, 2], "t": ["-", None], "b": [True, False]})
    assert to_csv(rows).decode() == "x,n,t,b\n-1.5,1,'-,true\n,2,,false\n"


def test_names_of_columns_and_categories_are_defused_too():
    rows = pl.DataFrame(
        {"=1+1": [1], "a": ["=x"], "b": ["@y"], "n@10": [-1]},
        schema={"=1+1": pl.Int64, "a": pl.Categorical, "b": pl.Enum(["@y"]), "n@10": pl.Int64},
    )
    assert to_csv(rows).decode() == "'=1+1,a,b,n@10\n1,'=x,'@y,-1\n"


def test_names_of_columns_stay_distinct():
    assert defused(pl.DataFrame({"'=a": [1], "=a": [2]})).columns == ["'=a", "''=a"]


def test_parquet_keeps_types_and_texts():
    rows = pl.DataFrame({"=x": ["=1", None], "tags": [["a"], []], "n": [None, -1.5]})
    assert pl.read_parquet(io.BytesIO(to_parquet(rows))).equals(rows)
    assert pl.read_parquet(io.BytesIO(to_parquet(rows.clear()))).schema == rows.schema


def test_an_empty_table_has_its_header():
    assert to_csv(pl.DataFrame({"a": [], "b": []})).decode() == "a,b\n"


def test_nested_values_become_json():
    rows = pl.DataFrame({"tags": [["type=broad", "=x"], None, []], "s": [{"k": 1}, {"k": None}, None]})
    made = list(csv.DictReader(io.StringIO(to_csv(rows).decode())))
    assert [row["tags"] for row in made] == ['["type=broad", "=x"]', "", "[]"]
    assert [row["s"] for row in made] == ['{"k": 1}', '{"k": null}', ""]


@pytest.mark.slow
@given(st.lists(st.text(), min_size=1))
def test_text_survives_the_file_but_for_the_apostrophe(values: list[str]):
    file = io.StringIO(to_csv(pl.DataFrame({"text": values})).decode(), newline="")
    read = [row[0] if row else "" for row in csv.reader(file)][1:]
    assert read == [f"'{each}" if each and each[0] in "=+-@\t\r\n＝＋－＠" else each for each in values]
