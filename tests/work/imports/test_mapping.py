"""What the Import page asks about columns, and what becomes of the answers."""

import pytest

from core.importers import ROLES, Options, TableAs, Upload, load, named, preview
from core.importers.meaning import PLACE_OF
from core.work.imports import words

NATURAL = b"stack,quality,latency,price,note\nA,47,0.34,1.9,x\nB,41,0.2,1,y\n"


def seen(text: bytes = NATURAL):
    (found,) = preview([Upload("t.csv", text)], Options())
    return found


@pytest.mark.parametrize("row", [*words.ROWS, None])
def test_every_choice_means_something_and_is_said_in_words_of_its_own(row):
    options = words.choices(row, {}, "c")
    known = {"item", "embedder", "dim", "mode", "index", "reranker", "candidates", "input_tokens",
             "output_tokens", *PLACE_OF}  # fmt: skip
    assert options[0] == words.LEFT_OUT
    assert all(each in ROLES or each in known or named(each, "c") for each in options[1:])
    assert len({words.words(each) for each in options}) == len(options)


def test_the_recognised_meaning_is_among_the_choices():
    found = seen()
    known = words.columns_of(found, "stack")
    assert known["quality"] == "quality@10 %"
    options = words.choices("stack", known, "quality")
    assert {"quality@10 %", "quality@10"} <= set(options)
    assert words.choices("stack", known, "note")[0] == words.LEFT_OUT


SAID = {
    "as recognised": ("stack", {}, None),
    "another unit": ("stack", {"latency": "latency_p50_s"}, TableAs({"latency_p50_s": "latency"}, "stack")),
    "left out": ("stack", {"price": ""}, TableAs({}, "stack", frozenset({"price"}))),
    "another row": ("query", {}, TableAs({}, "query")),
}


@pytest.mark.parametrize("name", SAID)
def test_only_what_differs_is_said(name):
    row, changes, expected = SAID[name]
    found = seen()
    chosen = {column: words.columns_of(found, row).get(column, "") for column in found.columns}
    assert words.said(found, row, {**chosen, **changes}) == expected


def test_a_meaning_that_two_columns_have():
    assert words.twice({"a": "query_id", "b": "query_id", "c": "", "d": ""}) == ["query id"]
    assert words.twice({"a": "query_id", "b": ""}) == []


def test_the_name_of_a_stack_may_be_in_two_columns():
    assert words.twice({"a": "run", "b": "run"}) == []
    found = seen(b"stack,size,nDCG@5\nA,big,0.5\nB,big,0.4\n")
    said = words.said(found, "stack", {"stack": "run", "size": "run", "nDCG@5": "nDCG@5"})
    assert said is not None
    assert said.columns == {"run": "stack", "run 2": "size"}


def test_what_was_assumed_is_said_once():
    assumed = load([Upload("t.csv", b"stack,quality,latency_p50_ms\nA,0.5,3\nB,0.4,2\n")])
    assert words.assumptions(assumed) == "t.csv: “quality” names no cutoff: taken as @10."
    sure = load([Upload("t.csv", b"stack,nDCG@5,latency_p50_ms\nA,0.5,3\nB,0.4,2\n")])
    assert words.assumptions(sure) == ""


@pytest.mark.parametrize(
    ("files", "changed", "said"),
    [
        ([], False, ""),
        (["a.csv"], True, " a.csv waits for you."),
        (["a.csv", "b.csv"], False, " a.csv, b.csv wait for you."),
        ([], True, " First say what becomes of what the store has already."),
    ],
)
def test_a_grey_button_says_which_question_waits(files, changed, said):
    assert words.waits(files, changed=changed) == said


@pytest.mark.parametrize(
    ("typed", "meaning"),
    [
        ("ndcg@10", "nDCG@10"),
        ("latency p95, ms", "latency_p95_ms"),
        ("p95", "p95"),  # means something by itself
        ("judg", "judge"),
        ("stack", "run"),
        ("Left out", words.LEFT_OUT),
        ("MRR@5", "MRR@5"),
        ("RR@1", "RR@1"),
        ("no such thing", "no such thing"),
    ],
)
def test_a_typed_text_means_the_option_of_its_words(typed: str, meaning: str):
    assert words.meant(typed, words.choices(None, {}, "c")) == meaning
