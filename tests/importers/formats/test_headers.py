"""Tables as people and notebooks write them: titles, merged cells, two levels, measures as rows."""

from __future__ import annotations

import pytest

from tests.importers.helpers import read, refusal, rows, up

FIGURES = {("BM25", "nDCG", 10, 0.4), ("BM25", "latency_p50", None, 12), ("Dense", "nDCG", 10, 0.5),
           ("Dense", "latency_p50", None, 48)}  # fmt: skip
STACKS = {
    "title": "Our comparison,,\n,,\nsystem,nDCG@10,p50 (ms)\nBM25,0.4,12\nDense,0.5,48\n",
    "title without commas": "Our comparison\n\nsystem,nDCG@10,p50 (ms)\nBM25,0.4,12\nDense,0.5,48\n",
    "title with a comma": "Our comparison, in spring\nsystem,nDCG@10,p50 (ms)\nBM25,0.4,12\nDense,0.5,48\n",
    "title as wide as the table": "Ours, spring, draft\nsystem,nDCG@10,p50 (ms)\nBM25,0.4,12\nDense,0.5,48\n",
    "title above mixed signs": "Ours, in spring\nsystem;nDCG@10;p50 (ms)\nBM25;0,4;12,0\nDense;0.5;48\n",
    "title above quoted cells": 'Ours\nsystem,nDCG@10,p50 (ms)\nBM25,"0,4","12,0"\nDense,0.5,48\n',
    "merged": ",Quality,Speed\nsystem,nDCG@10,p50 (ms)\nBM25,0.4,12\nDense,0.5,48\n",
    "merged names": "system,Quality,Speed\n,nDCG@10,p50 (ms)\nBM25,0.4,12\nDense,0.5,48\n",
    "levels": ",nDCG@10,latency_ms\n,mean,p50\nsystem,,\nBM25,0.4,12\nDense,0.5,48\n",
    "units below": "system,nDCG@10,p50\n,%,ms\nBM25,40%,12\nDense,50%,48\n",
    "units in brackets": "system,nDCG@10,p50\n[-],[-],[s]\nBM25,0.4,0.012\nDense,0.5,0.048\n",
    "units named": "Ours\nsystem,nDCG@10,p50 (ms)\nunit,–,ms\nBM25,0.4,12\nDense,0.5,48\n",
    "measures as rows": "metric,BM25,Dense\nnDCG@10,0.4,0.5\np50 (ms),12,48\n",
}
PAIRS = {
    "measure above": ",nDCG@10,nDCG@10,latency_ms,latency_ms\nsystem,A,B,A,B\n"
    "qid,,,,\nq1,0.1,0.2,3,4\nq2,0.3,0.4,5,6\n",
    "stack above": ",A,A,B,B\n,nDCG@10,latency_ms,nDCG@10,latency_ms\n"
    "qid,,,,\nq1,0.1,3,0.2,4\nq2,0.3,5,0.4,6\n",
}


@pytest.mark.parametrize("text", STACKS.values(), ids=STACKS)
def test_a_header_is_found_where_it_is(text):
    made = read(up("x.csv", text))
    label = {run.run_id: run.label for run in made.runs}
    found = rows(made, "aggregates").select("run_id", "measure", "k", "value").rows()
    assert {(label[run], *rest) for run, *rest in found} == FIGURES


@pytest.mark.parametrize("text", PAIRS.values(), ids=PAIRS)
def test_a_pivot_of_two_levels_is_a_row_for_each_stack_and_query(text):
    made = read(up("x.csv", text))
    label = {run.run_id: run.label for run in made.runs}
    found = {
        (label[run], *rest)
        for run, *rest in rows(made, "signals").select("run_id", "query_id", "value").iter_rows()
    }
    assert found == {("A", "q1", 0.1), ("A", "q2", 0.3), ("B", "q1", 0.2), ("B", "q2", 0.4)}
    assert sorted(rows(made, "timings")["ms"]) == [3, 4, 5, 6]


def test_a_mistake_below_units_is_told_with_its_line_and_unit():
    text = "system,nDCG@10,p50,cost\n,,ms,$/1k queries\nBM25,0.4,12,0.01\nDense,0.5,48,much\n"
    problem = str(refusal(up("x.csv", text)))
    assert "x.csv:4" in problem
    assert "cost ($/1k queries)" in problem


def test_a_mistake_below_a_title_is_told_with_its_line():
    text = "Our comparison,,\nsystem,nDCG@10,p50 (ms)\nBM25,0.4,12\nDense,half,48\n"
    assert "x.csv:4" in str(refusal(up("x.csv", text)))


@pytest.mark.parametrize("header", ["stack,foo,bar", "pipeline,embedder,bar"])
def test_a_table_of_stacks_without_figures_is_told_what_stacks_need(header):
    problem = str(refusal(up("x.csv", f"{header}\nBM25,x,12\nDense,y,48\n")))
    assert "A table of stacks needs one, such as nDCG@10" in problem
    assert "rank" not in problem


@pytest.mark.parametrize(
    "text", ["a,b,c\n1,2,3\n", "metric,BM25,Dense\nnDCG@10,0.4,0.5\nour own,12,48\n", "a\nb\n"]
)
def test_what_says_no_measure_stays_unknown(text):
    assert "no format known" in str(refusal(up("x.csv", text)))
