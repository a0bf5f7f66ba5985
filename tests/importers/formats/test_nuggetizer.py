"""Nuggets and the passages that support them, as nuggetizer writes them; the measures of what was stored."""

import json

import polars as pl
import pytest

from core.errors import InputError
from tests.importers.helpers import read, up


def line(passage, *nuggets, query="q1", **more):
    told = [dict(zip(("text", "importance", "assignment"), each, strict=False)) for each in nuggets]
    return {
        "text": "a question",
        "qid": query,
        **({"docid": passage} if passage else {}),
        "nuggets": told,
        **more,
    }


def lines(*rows):
    return "\n".join(json.dumps(row) for row in rows).encode()


FIRST, SECOND, THIRD = ("one fact", "vital"), ("another", "okay"), ("a third", "vital")
ASSIGNED = lines(
    line("p1", (*FIRST, "support"), (*SECOND, "not_support"), candidate_text="what it says"),
    line("p2", (*FIRST, "partial_support"), (*SECOND, "not_support")),
    line("p3", (*FIRST, "support"), (*SECOND, "support")),
    line("p4", (*FIRST, "not_support"), (*SECOND, "not_support")),
    line("p5", (*FIRST, "not_support"), (*SECOND, "support")),
)
LIST = lines({"query": "a question", "qid": "q1", "nuggets": [{"text": "a third", "importance": "vital"}]})
OFFERS = {"nuggetizer": ("nuggetizer", ASSIGNED)}


def test_grades_follow_from_what_passages_support():
    made = read(up("assigned.jsonl", ASSIGNED))
    (golden,) = made.golden_sets
    assert golden.mapping.startswith("0-3")
    judged = made.frames["judgements"].lazy().collect().sort("passage_id")
    assert judged.select("passage_id", "grade").rows() == [
        ("p1", 5), ("p2", 3), ("p3", 5), ("p4", 1), ("p5", 4)
    ]  # fmt: skip
    rows = made.frames["nuggets"].lazy().collect()
    assert rows.filter(pl.col("support") == 1).select("nugget", "passage_id", "vital").rows() == [
        (0, "p1", True), (0, "p3", True), (1, "p3", False), (1, "p5", False)
    ]  # fmt: skip
    assert rows.filter(pl.col("support") < 1).select("nugget", "passage_id").rows() == [(0, "p2")]


def test_a_nugget_that_no_passage_supports_is_listed():
    never = lines(line("p1", (*FIRST, "support"), (*THIRD, "not_support")))
    rows = read(up("assigned.jsonl", never)).frames["nuggets"].lazy().collect()
    assert rows.select("nugget", "text", "passage_id").rows() == [(0, "one fact", "p1"), (1, "a third", None)]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (LIST, "No passage is said to support a nugget."),
        (lines(line("p1", ("one", "vital", "yes"))), "The assignment is"),
        (lines(line("p1", ("one", "rare", "support"))), "The importance is"),
        (
            lines(line("p1", (*FIRST, "support")), line("p2", ("one fact", "okay", "support"))),
            "vital on one line",
        ),
        (lines(line("p1", (*FIRST, "support")), line("p1", (*FIRST, "not_support"))), "in two ways"),
        (lines(line("p1", *((f"fact {n}", "vital", "support") for n in range(65)))), "more than 64 nuggets"),
    ],
)
def test_what_cannot_be_used_is_refused(data, words):
    with pytest.raises(InputError, match=words):
        read(up("assigned.jsonl", data))
