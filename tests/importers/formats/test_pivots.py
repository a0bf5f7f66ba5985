"""Tables with a row for each query and a column for each stack."""

from __future__ import annotations

import pytest

from core.importers import preview
from core.views.add.words import said, stack_columns
from tests.importers.helpers import read, refusal, up

QUERIES = [f"q{place}" for place in range(3)]


def lines(header: str, *cells: str, by: str = ","):
    return up("t.csv", "\n".join([header, *(by.join([query, *cells]) for query in QUERIES)]) + "\n")


PLAIN = lines("query_id,hybrid,bm25", "0.5", "0.25")
TEXTS = lines("query_id,question,hybrid,bm25", "what is it?", "0.5", "0.25")
COMMAS = lines("query_id;hybrid;bm25", "0,5", "0,25", by=";")
TAILS = lines("query_id,hybrid nDCG@10,bm25 nDCG@10", "0.5", "0.25")
TIMED = lines("query_id,hybrid nDCG@10,bm25 nDCG@10,hybrid ms,bm25 ms", "0.5", "0.25", "300", "10")
NAMED = lines("query_id,stack,hybrid,bm25", "one", "0.5", "0.25")


@pytest.mark.parametrize(
    ("table", "columns", "timings"),
    [
        (PLAIN, {"nDCG@10": "*"}, {}),
        (TEXTS, {"nDCG@10": "*"}, {}),
        (COMMAS, {"nDCG@10": "*"}, {}),
        (TAILS, {"nDCG@10": "* nDCG@10"}, {}),
        (TIMED, {"nDCG@10": "* nDCG@10", "latency_ms": "* ms"}, {"hybrid": 300.0, "bm25": 10.0}),
    ],
)
def test_each_column_is_a_stack_with_results_per_query(table, columns, timings):
    found = read(table, columns=columns)
    names = {run.run_id: run.label for run in found.runs}
    values = {
        (names[row["run_id"]], row["query_id"]): row["value"] for row in found.frames["signals"].to_dicts()
    }
    assert values == {(stack, query): value for stack, value in (("hybrid", 0.5), ("bm25", 0.25))
                      for query in QUERIES}  # fmt: skip
    times = found.frames["timings"].to_dicts() if "timings" in found.frames else []
    assert {(names[row["run_id"]], row["ms"]) for row in times} == set(timings.items())


def test_an_empty_cell_is_missing_and_not_0():
    table = up("t.csv", "query_id,hybrid,bm25\nq1,0.5,\nq2,0.4,0.2\n")
    found = read(table, columns={"nDCG@10": "*"})
    assert found.frames["signals"].height == 3
    assert any("missing, not 0" in str(lost) for lost in found.left_out)


@pytest.mark.parametrize(
    ("table", "columns", "does"),
    [
        (PLAIN, {}, "--column 'nDCG@10=*'"),
        (TAILS, {}, "--column 'nDCG@10=* nDCG@10'"),
        (PLAIN, {"nDCG@10": "* ms"}, "A star stands for the name of a stack"),
        (NAMED, {"nDCG@10": "*"}, "Leave that column out"),
        (lines("hybrid,bm25", "0.5"), {"nDCG@10": "*"}, "Map the column of the queries"),
    ],
)
def test_what_is_ambiguous_is_refused_and_says_what_to_do(table, columns, does):
    assert does in refusal(table, columns=columns)


def test_the_page_asks_once_what_the_cells_hold():
    (file,) = preview([PLAIN])
    assert (file.format, stack_columns(file, file.row)) == ("table", ["hybrid", "bm25"])
    chosen = {"query_id": "query_id", "hybrid": "", "bm25": ""}
    decided = said(file, file.row, chosen, "nDCG@10")
    assert decided.columns == {"nDCG@10": "*"}
    assert len(read(PLAIN, tables={file.name: decided}).runs) == 2
    (ranked,) = preview([lines("query_id,passage_id,score,other", "p1", "0.5", "3")])
    assert stack_columns(ranked, ranked.row) == []
