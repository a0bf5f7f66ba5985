import json

import pytest

from tests.importers.helpers import read, refusal, rows, up

RESULTS = [
    {"query": {"text": "what is ndcg", "qid": 7},
     "candidates": [{"docid": "b", "score": 0.5, "doc": {"title": "T", "contents": "beta"}},
                    {"docid": 3, "score": 0.9, "doc": {"text": "three"}}, {"docid": "c", "score": None}]},
    {"query": {"text": "why", "qid": "q2"}, "candidates": []},
]  # fmt: skip
CALLS = [
    {"query": {"text": "what is ndcg", "qid": 7},
     "invocations_history": [
         {"prompt": "p", "response": "r", "input_token_count": 100, "output_token_count": 5},
         {"prompt": "p", "response": "r", "input_token_count": 50, "output_token_count": 4},
     ]},
]  # fmt: skip


def lines(entries: list[object]) -> str:
    return "".join(json.dumps(each) + "\n" for each in entries)


@pytest.mark.parametrize(
    "content", [json.dumps(RESULTS, indent=2), lines(RESULTS), "\ufeff" + lines(RESULTS)]
)
def test_the_order_of_the_candidates_counts(content):
    made = read(up("rerank.json", content), collection_id="c")
    assert made.detected[0].format == "rank-llm"
    assert rows(made, "rankings").select("query_id", "stage", "rank", "passage_id", "score").rows() == [
        ("7", "final", 1, "b", 0.5), ("7", "final", 2, "3", 0.9), ("7", "final", 3, "c", None)
    ]  # fmt: skip
    assert dict(rows(made, "passages").select("passage_id", "text").rows()) == {"b": "T\nbeta", "3": "three"}
    assert rows(made, "queries").select("query_id", "text").sort("query_id").rows() == [
        ("7", "what is ndcg"), ("q2", "why")
    ]  # fmt: skip
    assert made.runs[0].label == "rerank"
    assert "answers" not in made.taken


def test_a_history_of_calls_brings_tokens():
    made = read(
        up("rerank.json", json.dumps(RESULTS)), up("calls.json", json.dumps(CALLS)), collection_id="c"
    )
    table = rows(made, "usage").select("query_id", "stage", "unit", "amount")
    assert set(table.rows()) == {
        ("7", "rerank", "input_tokens", 150.0),
        ("7", "rerank", "output_tokens", 9.0),
    }
    two = [up("a.jsonl", lines(RESULTS)), up("b.jsonl", lines(RESULTS[:1]))]
    several = read(*two, up("calls.json", json.dumps(CALLS)), collection_id="c")
    assert "usage" not in several.taken
    assert several.left_out[-1].reason.startswith("histories of calls")
    assert "no results" in refusal(up("calls.json", json.dumps(CALLS)))


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (
            {"query": {"qid": None, "text": "x"}, "candidates": []},
            "x.json, key `[1]`, query: There is no 'qid' here",
        ),
        ({"query": {"qid": "q", "text": "x"}, "candidates": [{"docid": True}]}, "'docid' is true or false"),
        (
            {"query": {"qid": "q", "text": "x"}, "candidates": ["a"]},
            "x.json, key `[1]`, candidates 0: It is text, not an object",
        ),
        ({"query": {"qid": "q", "text": "x"}, "candidates": {}}, "not a list"),
        ({"query": {"qid": 7, "text": "x"}, "candidates": []}, "The query '7' stands twice"),
        ({"query": {"qid": "q"}, "candidates": [{"docid": "a", "score": "high"}]}, "'score' is text"),
        (17, "It is an integer, not an object"),
    ],
)
def test_refused(entry, message):
    assert message in refusal(up("x.json", json.dumps([RESULTS[0], entry])))


OFFERS = {
    "rank-llm": ("rank-llm", json.dumps(RESULTS).encode()),
}
