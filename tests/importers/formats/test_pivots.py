"""Tables with a row for each query and a column for each stack."""

from __future__ import annotations

import pytest

from core.importers import preview
from core.work.imports.words import columns_of, said, stack_columns, words
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


GRIDS = {
    "stack first": "query_id,hybrid_ndcg@10,bm25_ndcg@10,hybrid_latency_ms,bm25_latency_ms",
    "measure first": "query_id,ndcg@10_hybrid,ndcg@10_bm25,latency_ms_hybrid,latency_ms_bm25",
    "a dash": "query_id,hybrid-nDCG@10,bm25-nDCG@10,hybrid-latency_ms,bm25-latency_ms",
    "a blank": "query_id,hybrid nDCG@10,bm25 nDCG@10,hybrid latency_ms,bm25 latency_ms",
    "underscores": "query_id,hybrid_ndcg_10,bm25_ndcg_10,hybrid_latency_ms,bm25_latency_ms",
    "levels": "query_id,\"('ndcg@10', 'hybrid')\",\"('ndcg@10', 'bm25')\","
    "\"('latency_ms', 'hybrid')\",\"('latency_ms', 'bm25')\"",
}


@pytest.mark.parametrize("header", GRIDS.values(), ids=GRIDS)
def test_columns_that_name_stack_and_measure_are_a_row_for_each_stack_and_query(header):
    table = lines(header, "0.5", "0.25", "300", "10")
    found = read(table)
    names = {run.run_id: run.label for run in found.runs}
    scores = {(names[row["run_id"]], row["value"], row["k"]) for row in found.frames["signals"].to_dicts()}
    times = {(names[row["run_id"]], row["ms"]) for row in found.frames["timings"].to_dicts()}
    assert scores == {("hybrid", 0.5, 10), ("bm25", 0.25, 10)}
    assert times == {("hybrid", 300.0), ("bm25", 10.0)}
    (file,) = preview([table])
    known = columns_of(file, file.row)
    assert (file.row, len(known), stack_columns(file, file.row)) == ("query", 5, [])
    assert {words(known[column]) for column in file.columns[3:]} == {
        "latency, ms of hybrid",
        "latency, ms of bm25",
    }
    assert said(file, file.row, known) is None


def test_a_column_of_a_grid_that_is_left_out_is_not_taken():
    table = lines(GRIDS["stack first"], "0.5", "0.25", "300", "10")
    (file,) = preview([table])
    decided = said(file, file.row, columns_of(file, file.row) | {"bm25_latency_ms": ""})
    found = read(table, tables={file.name: decided})
    assert [row["ms"] for row in found.frames["timings"].to_dicts()] == [300.0] * 3


@pytest.mark.parametrize(
    ("header", "does"),
    [
        ("query_id,hybrid_ndcg@10,bm25_ndcg@10,bm25_latency_ms", "--column 'ndcg@10=*_ndcg@10'"),
        ("query_id,ndcg@10_hybrid,ndcg@10_bm25,latency_ms_bm25", "--column 'ndcg@10=ndcg@10_*'"),
        ("query_id,hybrid_ndcg@10,bm25_ndcg@10,latency_ms", "--column 'ndcg@10=*_ndcg@10'"),
    ],
)
def test_columns_of_stacks_with_different_measures_are_asked(header, does):
    assert does in refusal(lines(header, "0.5", "0.25", "10"))


@pytest.mark.parametrize(
    "header",
    [
        "query_id,P_5,P_10,recall_5",
        "query_id,retrieve_ms,rerank_ms,retrieve_usd_per_query",
        "query_id,nDCG@10,nDCG@10_std,recall@10",
        "query_id,nDCG@5,nDCG@10,latency_ms",
    ],
)
def test_measures_cutoffs_stages_and_spreads_of_one_stack_are_no_grid(header):
    assert len(read(lines(header, "0.5", "0.25", "10")).runs) == 1


def test_the_page_asks_once_what_the_cells_hold():
    (file,) = preview([PLAIN])
    assert (file.format, stack_columns(file, file.row)) == ("table", ["hybrid", "bm25"])
    chosen = {"query_id": "query_id", "hybrid": "", "bm25": ""}
    decided = said(file, file.row, chosen, "nDCG@10")
    assert decided.columns == {"nDCG@10": "*"}
    assert len(read(PLAIN, tables={file.name: decided}).runs) == 2
    (ranked,) = preview([lines("query_id,passage_id,score,other", "p1", "0.5", "3")])
    assert stack_columns(ranked, ranked.row) == []
