"""Answers in tables: of which run, reader, mode and k."""

from __future__ import annotations

import pytest

from core.answers import GRADE
from tests.importers.helpers import graded, read, refusal, rows, up

ANSWERS = (
    "run,query_id,k,answer,grade,latency_ms\n"
    'a,q1,5,"one, two",0.5,10\na,q2,5,three,,20\na,q3,5,,,30\nb,q1,5,four,1,40\n'
)


def test_a_table_of_answers():
    made = read(up("answers.csv", ANSWERS), collection_id="c")
    assert made.taken == {"collections": 1, "runs": 2, "answer_scores": 2, "answers": 3, "timings": 4}
    assert graded(made).select("query_id", "k", "text", "grade", "scale", "judge").rows() == [
        ("q1", 5, "one, two", 0.5, "0-1", None), ("q2", 5, "three", None, None, None),
        ("q1", 5, "four", 1.0, "0-1", None),
    ]  # fmt: skip
    assert any("scale of the answers' grades is taken as 0-1" in note for note in made.notes)
    left = {each.reason: each.count for each in made.left_out}
    assert left == {"rows without an answer": 1, "answers without a grade (kept, but not correlated)": 1}


def test_answers_of_several_readers_modes_and_passes():
    """What names an answer, its tokens and times; other times are of none of several answers alone."""
    text = (
        "qid,k,answer,grade,judge,generator,prompt_name,temp,answer_mode,pass,"
        "generate_input_tokens,generate_output_tokens,generate_ms,first_token_ms\n"
        "q1,5,a,1,m,gpt,short,0,Top_K,1,100,5,20,9\nq1,5,b,0.5,m,gpt,short,0,top_k,2,100,6,21,\n"
        "q1,5,c,0,m,gpt,short,0.7,top_k,1,,,,\nq1,5,d,,,llama,short,0,top_k,1,,,,\nq1,0,e,1,m,gpt,short,0,none,1,,,,\n"
    )
    made = read(up("a.csv", text), collection_id="c")
    assert made.taken == {"collections": 1, "runs": 1, "answer_scores": 4, "answers": 5}
    names = ("text", "reader", "prompt", "temperature", "mode", "k", "pass")
    assert rows(made, "answers").select(names).rows() == [
        ("a", "gpt", "short", 0.0, "top_k", 5, 1), ("b", "gpt", "short", 0.0, "top_k", 5, 2),
        ("c", "gpt", "short", 0.7, "top_k", 5, 1), ("d", "llama", "short", 0.0, "top_k", 5, 1),
        ("e", "gpt", "short", 0.0, "none", 0, 1),
    ]  # fmt: skip
    costs = rows(made, "answers").select("input_tokens", "output_tokens", "ms", "first_token_ms").head(3)
    assert costs.rows() == [(100, 5, 20.0, 9.0), (100, 6, 21.0, None), (None, None, None, None)]
    assert rows(made, "answer_scores").select("scorer", "judge", "source").unique().rows() == [
        ("grade", "m", GRADE)
    ]  # fmt: skip
    assert not made.reports[0].left_out
    alone = read(up("a.csv", "qid,answer,generate_ms,first_token_ms\nq1,x,20,9\n"), collection_id="c")
    assert rows(alone, "timings").select("stage", "ms").rows() == [
        ("generate", 20.0), ("first_token", 9.0)
    ]  # fmt: skip
    assert rows(alone, "answers").select("ms", "first_token_ms").rows() == [(20.0, 9.0)]


def test_answers_belong_to_the_runs_of_rankings_offered_with_them():
    rankings = "run,query_id,passage_id,rank\na,q1,d1,1\nb,q1,d1,1\n"
    made = read(up("r.csv", rankings), up("answers.csv", ANSWERS), collection_id="c")
    assert made.taken["runs"] == 2
    assert set(rows(made, "answers")["run_id"]) == {run.run_id for run in made.runs}


def test_answers_at_several_k_have_no_costs_and_scores_are_grades():
    text = "qid,top_k,response,score,judge,scale,total_ms\nq1,1,x,3,human,0-10,1\nq1,5,y,9,human,0-10,2\n"
    made = read(up("a.csv", text), collection_id="c")
    assert made.taken == {"collections": 1, "runs": 1, "answer_scores": 2, "answers": 2}
    assert graded(made).select("k", "grade", "scale", "judge").rows() == [
        (1, 3.0, "0-10", "human"), (5, 9.0, "0-10", "human")
    ]  # fmt: skip
    why = "a query has several answers, and it is of none of them alone"
    assert made.reports[0].left_out == {"total_ms": why}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("qid,answer,k\nq1,x,1\nq1,y,1\n", "a.csv:3: The query 'q1' has two answers at k = 1"),
        ("qid,answer,k\nq1,x,-1\n", "k counts passages"),
        ("qid,answer,pass\nq1,x,0\n", "A pass counts from 1"),
        ("qid,answer,temperature\nq1,x,-1\n", "A temperature is not negative"),
        ("qid,answer,answer_mode\nq1,x,dense\n", "The mode 'dense' is none of top_k"),
        ("qid,answer,generate_ms\nq1,x,-1\n", "The number is negative"),
        ("qid,answer,k\nq1,x,1.5\n", "'1.5' is not an integer"),
        ("qid,answer,grade\nq1,x,good\n", "'good' is not a finite number"),
    ],
)
def test_answers_that_cannot_be_used(text, message):
    assert message in refusal(up("a.csv", text), collection_id="c")


def test_an_answer_beside_passages_is_said_to_be_left_out():
    made = read(up("r.csv", "qid,did,rank,answer,k\nq1,d1,1,x,5\n"), collection_id="c")
    assert made.taken == {"collections": 1, "runs": 1, "rankings": 1}
    assert sum("only a table of answers has" in each.reason for each in made.left_out) == 2
