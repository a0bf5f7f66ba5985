"""Tables of measures without a column of stacks: rows are queries, or stacks, or it is asked."""

from __future__ import annotations

import polars as pl
import pytest

from core.importers import preview
from core.importers.formats.table.rowed import OpenRowError
from tests.importers.formats.test_excel import book
from tests.importers.helpers import parquet, read, refusal, rows, up

QUESTIONS = ("How do I return shoes?", "Where is my parcel?", "Which sizes exist?")
SCORES = ("0.63", "0.0", "1.0")
NAMES = (
    "question", "Question", "user_input", "User Input", "userInput", "input", "query_text", "queryText",
    "QUERY-TEXT", "sample_id", "sampleId", "test_case", "Test Case", "query", "search_query", "utterance",
    "anything", "name", "id", "questions",
)  # fmt: skip


def table(name: str, cells=QUESTIONS, scores=SCORES, measure: str = "ndcg_at_5") -> pl.DataFrame:
    return pl.DataFrame({name: cells, measure: scores})


def as_file(frame: pl.DataFrame, kind: str):
    if kind == "xlsx":
        return up("f.xlsx", book({"f": [frame.columns, *map(list, frame.rows())]}))
    if kind == "parquet":
        return up("f.parquet", parquet(frame))
    return up(f"f.{kind}", frame.write_ndjson() if kind == "jsonl" else frame.write_csv())


@pytest.mark.parametrize("name", NAMES)
def test_a_row_for_each_question_is_one_stack(name):
    made = read(as_file(table(name), "csv"))
    assert [run.label for run in made.runs] == ["f"]
    assert rows(made, "signals").select("query_id", "value").rows() == list(
        zip(QUESTIONS, map(float, SCORES), strict=True)
    )
    assert rows(made, "aggregates").select("k", "n").rows() == [(5, 3)]


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet", "xlsx"])
def test_it_is_one_stack_in_every_kind_of_table(kind):
    made = read(as_file(table("question"), kind))
    assert [run.label for run in made.runs] == ["f"]
    assert rows(made, "aggregates")["n"].to_list() == [3]


KNOWN = {  # column, cells, measure, scores → what the rows are, as (stacks, queries)
    "texts without a mark": ("text x", [f"tell me about article number {n} please" for n in range(3)],
                             "ndcg@5", SCORES, (1, 3)),
    "hits and misses": ("case", list("abcdef"), "hit@5", list("101101"), (1, 6)),
    "first ranks": ("id", list("abcdef"), "mrr@5", ["1", "0.5", "0.33", "0", "0.2", "0"], (1, 6)),
    "names of the field": ("name", ["bm25", "bm25 + rerank", "ours"], "ndcg@5", SCORES, (3, 0)),
    "means of ranks": ("id", ["a", "b", "c"], "mrr@5", ["0.61", "0.5", "0.58"], (3, 0)),
    "means of hits": ("name", ["a", "b", "c"], "hit@5", ["0.61", "0.5", "0.58"], (3, 0)),
    "words": ("what", ["a", "b", "c"], "ndcg@5", SCORES, (3, 0)),
}  # fmt: skip


@pytest.mark.parametrize("case", KNOWN)
def test_cells_and_figures_tell_what_a_row_is(case):
    name, cells, measure, scores, (stacks, queries) = KNOWN[case]
    made = read(as_file(table(name, cells, scores, measure), "csv"))
    assert len(made.runs) == stacks
    assert len(rows(made, "signals")) == queries if queries else "signals" not in made.frames


OPEN = {
    "ids": ("id", ["q1", "q2", "q3"], "'q1', 'q2', 'q3'"),
    "numbers": ("id", ["1", "2", "3"], "'1', '2', '3'"),
    "names": ("name", ["returns", "shipping", "sizes"], "'returns', 'shipping', 'sizes'"),
    "labels": ("label", ["A", "B", "C"], "'A', 'B', 'C'"),
    "numbered": ("case", ["t-01", "t-02", "t-03"], "'t-01', 't-02', 't-03'"),
}


@pytest.mark.parametrize("case", OPEN)
def test_what_may_be_either_is_asked(case):
    name, cells, shown = OPEN[case]
    file = as_file(table(name, cells), "csv")
    assert refusal(file) == (
        f"f.csv: A row may be a stack or a query: `{name}` holds {shown}. "
        "Say which (--row stack or --row query)."
    )
    assert preview([file])[0].row is None
    assert len(read(file, row="stack").runs) == 3
    assert len(read(file, columns={"run": name}).runs) == 3
    for said in ({"row": "query"}, {"columns": {"query_id": name}}):
        made = read(file, **said)
        assert [run.label for run in made.runs] == ["f"]
        assert rows(made, "signals")["query_id"].to_list() == cells


def test_many_rows_below_a_name_that_says_nothing_are_asked():
    cells = [f"word{chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(40)]
    with pytest.raises(OpenRowError):
        read(as_file(table("what", cells, ["0.5"] * 40), "csv"))


def test_queries_of_several_stacks_are_no_stacks():
    for name in ("id", "question", "case"):
        text = f"system,{name},ndcg@5\na,q1,0.3\na,q2,0.5\nb,q1,0.2\nb,q2,0.1\n"
        made = read(up("x.csv", text))
        assert [run.label for run in made.runs] == ["a", "b"]
        assert rows(made, "aggregates")["n"].to_list() == [2, 2]


def test_a_long_table_of_questions_is_one_stack():
    made = read(up("x.csv", "name,metric,value\nWho?,ndcg@5,0.3\nWhere?,ndcg@5,0.5\n"))
    assert [run.label for run in made.runs] == ["x"]
    assert rows(made, "signals")["query_id"].to_list() == ["Who?", "Where?"]
