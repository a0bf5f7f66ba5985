"""Tables with one row per stack and query: scores, times and costs of queries, wide and long."""

from __future__ import annotations

import time

import polars as pl
import pytest

from tests.importers.formats.test_rowed import as_file
from tests.importers.helpers import lost, parquet, read, refusal, rows, up

WIDE = """\
,stack,query_id,ndcg@10,recall@5,latency_ms,cost_usd
0,A,q1,0.5,0.2,10,0.001
1,A,q2,0.7,0.4,12,0.003
2,B,q1,0.1,0.3,90,0.01
3,B,q2,NaN,0.5,80,
"""
LONG = "stack,query_id,measure,value\n" + "".join(
    f"{cells[1]},{cells[2]},{name},{cells[place]}\n"
    for cells in (line.split(",") for line in WIDE.splitlines()[1:])
    for place, name in enumerate(("ndcg@10", "recall@5", "latency_ms", "cost_usd"), 3)
)


def of_runs(made, table: str) -> pl.DataFrame:
    labels = {run.run_id: run.label for run in made.runs}
    return rows(made, table).with_columns(pl.col("run_id").replace(labels))


@pytest.mark.parametrize("text", [WIDE, LONG], ids=["wide", "long"])
def test_scores_of_queries_are_signals_with_their_means(text):
    made = read(up("x.csv", text))
    signals = of_runs(made, "signals").select("run_id", "query_id", "signal", "k", "value")
    assert sorted(signals.rows()) == sorted([
        ("A", "q1", "nDCG", 10, 0.5), ("A", "q2", "nDCG", 10, 0.7), ("B", "q1", "nDCG", 10, 0.1),
        ("A", "q1", "Recall", 5, 0.2), ("A", "q2", "Recall", 5, 0.4),
        ("B", "q1", "Recall", 5, 0.3), ("B", "q2", "Recall", 5, 0.5),
    ])  # fmt: skip
    means = of_runs(made, "aggregates").sort("run_id", "measure")
    assert means.select("run_id", "measure", "k", "stage", "n").rows() == [
        ("A", "Recall", 5, None, 2), ("A", "nDCG", 10, None, 2), ("A", "usd_per_1k", None, "total", 2),
        ("B", "Recall", 5, None, 2), ("B", "nDCG", 10, None, 1), ("B", "usd_per_1k", None, "total", 1),
    ]  # fmt: skip
    assert means["value"].to_list() == pytest.approx([0.3, 0.6, 2.0, 0.4, 0.1, 10.0])
    timings = of_runs(made, "timings").select("run_id", "query_id", "stage", "ms", "repeat")
    assert set(timings.rows()) == {
        ("A", "q1", "total", 10.0, 1), ("A", "q2", "total", 12.0, 1), ("B", "q1", "total", 90.0, 1),
        ("B", "q2", "total", 80.0, 1),
    }  # fmt: skip
    assert {each.reason: each.count for each in lost(made)} == {
        "empty cells of `ndcg@10`: missing, not 0": 1, "empty cells of `cost_usd`: missing, not 0": 1
    }  # fmt: skip


HEADS = {
    "a model": ("model,query,nDCG@10\nA,q1,0.5\nB,q1,0.4\n", ["A", "B"]),
    "two columns": (
        "embedder,reranker,qid,nDCG@10\na,n,q1,0.5\na,r,q1,0.4\nb,n,q1,0.4\n",
        ["a · n", "a · r", "b · n"],
    ),
    "words": ("what,qid,nDCG@10\nA,q1,0.5\nB,q1,0.4\n", ["A", "B"]),
    "no stack": ("qid,nDCG@10\nq1,0.5\nq2,0.4\n", ["x"]),
    "a score": ("stack,qid,score\nA,q1,0.5\n", ["A"]),
    "ids beside texts": ("stack,query,query_id,nDCG@10\nA,why?,q1,0.5\n", ["A"]),
    "decimal commas": ("stack;qid;nDCG@10\nA;q1;0,5\nB;q1;0,4\n", ["A", "B"]),
    "percent": ("stack,qid,nDCG@10\nA,q1,50%\n", ["A"]),
    "percent by value": ("stack,qid,nDCG@10\nA,q1,50\nA,q2,50\n", ["A"]),
}


@pytest.mark.parametrize("name", HEADS)
def test_heads(name):
    text, labels = HEADS[name]
    made = read(up("x.csv", text))
    assert [run.label for run in made.runs] == labels
    first = rows(made, "signals").row(0, named=True)
    assert (first["query_id"], first["k"], first["value"]) == ("q1", 10, 0.5)


def test_a_quantile_of_latency_and_a_cost_in_euros_are_of_no_query():
    made = read(up("x.csv", "stack,qid,nDCG@10,latency_p95_ms,Cost per query (€)\nA,q1,0.5,9,1\n"))
    assert {column: why.split(":")[0].split(";")[0] for column, why in made.reports[0].left_out.items()} == {
        "latency_p95_ms": "over several queries", "Cost per query (€)": "a price in another currency"
    }  # fmt: skip
    assert "timings" not in made.frames


TWICE = {
    "wide": (
        "stack,qid,nDCG@10\nA,q1,0.5\nA,q1,0.5\n",
        "x.csv:3: The query 'q1' of the stack 'A' stands twice.",
    ),
    "no stack": ("qid,nDCG@10\nq1,0.5\nq1,0.5\n", "x.csv:3: The query 'q1' of the stack '' stands twice."),
    "long": ("stack,qid,metric,value\nA,q1,mrr,1\nA,q1,mrr,1\n", "The measure 'mrr' stands twice"),
    "a pass": (
        "stack,qid,pass,mrr\nA,q1,1,1\nA,q1,1,1\n",
        "Pass 1 of the query 'q1' of the stack 'A'",
    ),
}


@pytest.mark.parametrize("name", TWICE)
def test_a_query_that_stands_twice_is_refused(name):
    text, message = TWICE[name]
    assert message in refusal(up("x.csv", text))


@pytest.mark.parametrize("column", ["pass", "repeat", "Iteration"])
def test_passes_are_averaged_and_their_times_kept(column):
    made = read(up("x.csv", f"stack,qid,{column},mrr@5,latency_ms\nA,q1,1,1,5\nA,q1,2,0,7\nA,q2,1,1,9\n"))
    assert rows(made, "signals").sort("query_id").select("query_id", "value").rows() == [
        ("q1", 0.5),
        ("q2", 1),
    ]
    assert rows(made, "aggregates")["value"].to_list() == [0.75]
    assert rows(made, "timings").select("query_id", "repeat", "ms").rows() == [
        ("q1", 1, 5.0), ("q1", 2, 7.0), ("q2", 1, 9.0)
    ]  # fmt: skip
    assert any("mean of its passes" in note for note in made.notes)


def test_scores_join_the_run_of_rankings_offered_with_them():
    made = read(
        up("r.csv", "stack,qid,did,rank\nA,q1,d,1\n"), up("s.csv", "stack,qid,mrr@5\nA,q1,1\nB,q1,0\n")
    )
    assert sorted(run.label for run in made.runs) == ["A", "B"]
    assert of_runs(made, "signals")["run_id"].to_list() == ["A", "B"]


def test_measures_beside_passages_are_not_stored():
    made = read(up("x.csv", "stack,qid,did,rank,ndcg@10\nA,q1,d,1,0.5\n"))
    assert made.reports[0].left_out == {"ndcg@10": "not stored: a row is a passage"}


def test_scores_beside_answers():
    head = "stack,qid,answer,k,ndcg@10\n"
    made = read(up("x.csv", f"{head}A,q1,yes,5,0.5\nA,q2,no,5,0.7\n"))
    assert rows(made, "signals")["value"].to_list() == [0.5, 0.7]
    several = read(up("x.csv", f"{head}A,q1,yes,5,0.5\nA,q1,no,9,0.7\n"))
    assert "signals" not in several.frames
    why = "a query has several answers, and it is of none of them alone"
    assert several.reports[0].left_out == {"ndcg@10": why}


STRATEGIES = (
    "{name},question_id,question,answer,hit,rank,precision_at_5,mrr\n"
    "fixed,4,when?,1950,1,5,0.2,0.2\nfixed,6,which?,north,0,0,0.0,0\n"
    "semantic,4,when?,1950,1,1,0.4,1.0\nsemantic,6,which?,north,1,2,0.2,0.5\n"
)


@pytest.mark.parametrize("name", ["strategy", "Strategy", "method", "chunking"])
def test_answers_of_several_stacks_are_theirs(name):
    made = read(up("x.csv", STRATEGIES.format(name=name)))
    assert sorted(run.label for run in made.runs) == ["fixed", "semantic"]
    figures = (
        of_runs(made, "aggregates").sort("run_id", "measure").select("run_id", "measure", "k", "value", "n")
    )
    assert figures.rows() == [
        ("fixed", "Hit", 5, 0.5, 2), ("fixed", "MRR", 5, 0.1, 2), ("fixed", "Precision", 5, 0.1, 2),
        ("semantic", "Hit", 5, 1.0, 2), ("semantic", "MRR", 5, 0.75, 2),
        ("semantic", "Precision", 5, pytest.approx(0.3), 2),
    ]  # fmt: skip
    assert len(rows(made, "answers")) == 4


TRUTHS = "query,kind,hit@1,hit@3,remark\n" + (
    "red cups,cups,{0},{0},a\nlow table,tables,{1},{0},b\n,lamps,{1},{1},failed\n"
)


@pytest.mark.parametrize(
    "words", [("True", "False"), ("true", "false"), ("Yes", "No"), ("YES", "no"), ("1", "0")]
)
@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet", "xlsx"])
def test_hits_in_words_and_a_row_that_names_no_query(kind, words):
    frame = pl.read_csv(TRUTHS.format(*words).encode(), infer_schema=words[0] == "true")
    made = read(as_file(frame, kind))
    assert [run.label for run in made.runs] == ["f"]
    figures = rows(made, "aggregates").sort("k").select("measure", "k", "value", "n").rows()
    assert figures == [("Hit", 1, 0.5, 2), ("Hit", 3, 1.0, 2)]
    assert [(each.count, each.reason) for each in lost(made)] == [(1, "rows without a query in `query`")]


def test_truths_beside_missing_cells_and_other_words():
    made = read(up("x.csv", "query,hit@1\na,True\nb,n/a\nc,False\n"))
    assert rows(made, "signals").select("query_id", "value").rows() == [("a", 1.0), ("c", 0.0)]
    assert "'True' is not a finite number" in refusal(up("x.csv", "query,hit@1\na,True\nb,maybe\n"))


def test_a_table_that_names_hardly_any_query_is_refused():
    assert (
        refusal(up("x.csv", "query,hit@1\na,1\n,1\n,0\n")) == "x.csv:3, column `query_id`: The id is empty."
    )


IDS = {
    "whole": ([1.0, 2.0, 3.0], ["1", "2", "3"]),
    "with NaN": ([1.0, float("nan"), 3.0], ["1", "3"]),
    "with null": ([1.0, None, 3.0], ["1", "3"]),
    "with parts": ([1.0, 2.5, 3.0], ["1.0", "2.5", "3.0"]),
}


@pytest.mark.parametrize("case", IDS)
def test_ids_among_floats_are_those_of_other_files(case):
    ids, queries = IDS[case]
    made = read(up("x.parquet", parquet(pl.DataFrame({"query_id": ids, "ndcg@5": [0.1, 0.2, 0.3]}))))
    assert rows(made, "signals")["query_id"].to_list() == queries
    assert sum(each.count for each in lost(made)) == 3 - len(queries)


def test_a_ranked_passage_without_an_id_among_floats_is_refused():
    ranked = pl.DataFrame({"qid": [1.0, float("nan")], "did": [7.0, 8.0], "rank": [1, 1]})
    assert refusal(up("x.parquet", parquet(ranked))) == "x.parquet:2, column `query_id`: The id is empty."
    made = read(up("x.parquet", parquet(ranked.head(1))))
    assert rows(made, "rankings").select("query_id", "passage_id").rows() == [("1", "7")]


SPANS = {
    "latency": ("timings", "ms", [12.5, 3000.0]),
    "latency_s": ("timings", "ms", [12.5, 3000.0]),
    "rerank_time": ("timings", "ms", [12.5, 3000.0]),
}


@pytest.mark.parametrize("name", SPANS)
def test_durations_are_times(name):
    spans = pl.Series([12_500, 3_000_000]).cast(pl.Duration("us"))
    made = read(
        up("x.parquet", parquet(pl.DataFrame({"query_id": ["a", "b"], "mrr@5": [1, 0], name: spans})))
    )
    table, column, values = SPANS[name]
    assert rows(made, table)[column].to_list() == values
    stacks = pl.DataFrame({"stack": ["a", "b"], "mrr@5": [1, 0], f"{name}_p95": spans})
    aggregates = rows(read(up("x.parquet", parquet(stacks))), "aggregates")
    assert aggregates.filter(measure="latency_p95")["value"].to_list() == values


@pytest.mark.slow
def test_the_cost_of_columns_grows_with_their_number():
    def seconds(columns: int) -> float:
        head = ",".join(f"ndcg@{k}" for k in range(1, columns + 1))
        text = f"stack,{head}\na{',0.5' * columns}\nb{',0.6' * columns}\n"
        began = time.process_time()
        assert read(up("x.csv", text)).taken["aggregates"] == 2 * columns
        return time.process_time() - began

    seconds(50)
    assert seconds(3_000) < 12 * seconds(500)


GROUPED = "query_id,{0},nDCG@10\nq1,{1},.1\nq2,{2},.2\nq3,{3},.3\n"
BY_ROLE = {"columns": {"cluster": "style"}}
GROUPS = [
    (("session_id", "s1", "s1", "s2"), {}, "session", ""),
    (("Conversation ID", "s1", "s1", "s2"), {}, "session", ""),
    (("document", "a.md", "a.md", "b.md"), {}, "document", ""),
    (("doc_id", "a.md", "a.md", "b.md"), {"columns": {"cluster": "doc_id"}}, "document", ""),
    (("template", "t", "t", "u"), {}, "template", ""),
    (("user", "ann", "ann", "bob"), {}, "user", ""),
    (("cluster", "1", "1", "2"), {}, "cluster", ""),
    (("style", "x", "x", "y"), BY_ROLE, "cluster", ""),
    (("style", "x", "x", "y"), {}, None, "unknown meaning"),
    (("session_id", "s1", "s1", "s2"), {"without": frozenset({"session_id"})}, None, "as you wish"),
    (("user", "ann", "ann", "ann"), {}, None, "names no group of questions: it is the same for all"),
    (("user", "ann", "bob", "cid"), {}, None, "names no group of questions: it differs for each"),
]


@pytest.mark.parametrize(("cells", "options", "kind", "why"), GROUPS)
def test_a_column_says_the_group_of_each_question(cells, options, kind, why):
    made = read(up("x.csv", GROUPED.format(*cells)), **options)
    column = cells[0]
    (report,) = made.reports
    if kind is None:
        assert "clusters" not in made.frames
        assert report.left_out == {column: why}
        return
    assert column in report.taken
    assert rows(made, "clusters").select("query_id", "kind", "cluster").rows() == [
        (f"q{at}", kind, cell) for at, cell in enumerate(cells[1:], 1)
    ]


def test_a_question_without_a_group_is_one_by_itself():
    made = read(up("x.csv", GROUPED.format("session", "s1", "s1", "") + "q4,s2,.4\n"))
    assert rows(made, "clusters")["query_id"].to_list() == ["q1", "q2", "q4"]


def test_of_several_columns_that_may_group_questions_none_is_taken_unasked():
    table = "query_id,session,user,nDCG@10\nq1,s1,ann,.1\nq2,s1,bob,.2\nq3,s2,bob,.3\n"
    made = read(up("x.csv", table))
    why = "one of several that may group the questions: say which (--column 'cluster=…')"
    assert made.reports[0].left_out == {"session": why, "user": why}
    chosen = read(up("x.csv", table), columns={"cluster": "user"})
    assert rows(chosen, "clusters").select("kind", "cluster").rows() == [
        ("user", "ann"), ("user", "bob"), ("user", "bob")
    ]  # fmt: skip


def test_a_column_that_differs_within_a_question_is_no_group():
    table = "stack,query_id,template,nDCG@10\na,q1,t,.1\na,q2,t,.2\nb,q1,u,.3\nb,q2,u,.4\n"
    made = read(up("x.csv", table))
    assert made.reports[0].left_out == {
        "template": "names no group of questions: it differs within a question"
    }
    said = refusal(up("x.csv", table), columns={"cluster": "template"})
    assert "The question 'q1' is in a second group, 'u'." in said
    assert "x.csv" in said


def test_answers_come_with_the_group_of_their_question():
    table = "query_id,answer,grade,scale,session\nq1,Yes.,1,0-1,s1\nq2,No.,0,0-1,s1\nq3,So.,1,0-1,s2\n"
    assert rows(read(up("x.csv", table)), "clusters")["cluster"].to_list() == ["s1", "s1", "s2"]
