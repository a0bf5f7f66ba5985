import csv
import io
import json
import re
from pathlib import Path

import polars as pl
import pytest

from core.errors import InputError
from core.importers.read.rows import text_list
from core.importers.samples import text_id
from core.store import Store
from tests.importers.helpers import SHARED, graded, lost, needs, parquet, read, refusal, rows, up, zipped

RAGAS = SHARED / "peer_outputs" / "ragas"
NAN = float("nan")
SAMPLES = [
    {"user_input": "who?", "retrieved_contexts": ["a b", "c", "a  b"], "reference_contexts": ["c"],
     "response": "she", "reference": "her", "faithfulness": 0.5, "factual_correctness(mode=f1)": 1.0},
    {"user_input": "what?", "retrieved_contexts": ["d", "c"], "reference_contexts": ["other"],
     "response": None, "reference": "it", "faithfulness": NAN, "factual_correctness(mode=f1)": 0.25},
    {"user_input": "when?", "retrieved_contexts": [], "reference_contexts": ["c"], "response": "now",
     "reference": "then", "faithfulness": 1.0, "factual_correctness(mode=f1)": None},
]  # fmt: skip


def as_csv(samples: list[dict[str, object]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, samples[0])
    writer.writeheader()
    writer.writerows(samples)
    return text.getvalue()


def as_lines(samples: list[dict[str, object]]) -> str:
    return "".join(json.dumps(each) + "\n" for each in samples)


FORMS = {
    "r.csv": as_csv(SAMPLES),
    "r.jsonl": as_lines(SAMPLES),
    "r.json": json.dumps(SAMPLES),
    "r.parquet": parquet(pl.DataFrame(SAMPLES, infer_schema_length=None)),
}


@pytest.mark.parametrize("name", FORMS)
def test_results_become_a_run_judgements_and_answers(name):
    made = read(up(name, FORMS[name]), collection_id="c")
    assert made.detected[0].format == "ragas"
    assert made.taken == {
        "collections": 1, "golden sets": 1, "runs": 1, "aggregates": 2, "answers": 2, "judgements": 3,
        "answer_scores": 3, "gold_answers": 3, "passages": 4, "queries": 3, "rankings": 4, "signals": 4,
    }  # fmt: skip
    texts = dict(rows(made, "queries").select("query_id", "text").iter_rows())
    names = dict(rows(made, "passages").select("passage_id", "text").iter_rows())
    ranked = rows(made, "rankings").select("query_id", "rank", "passage_id").rows()
    assert [(texts[query], rank, names[passage]) for query, rank, passage in ranked] == [
        ("who?", 1, "a b"), ("who?", 2, "c"), ("what?", 1, "d"), ("what?", 2, "c")
    ]  # fmt: skip
    judged = rows(made, "judgements").select("query_id", "passage_id", "grade").rows()
    assert [(texts[query], names[passage], grade) for query, passage, grade in judged] == [
        ("who?", "c", 5), ("what?", "other", 5), ("when?", "c", 5)
    ]  # fmt: skip
    figures = rows(made, "aggregates").select("measure", "k", "value", "n").sort("measure").rows()
    assert figures == [("factual_correctness(mode=f1)", 3, 0.625, 2), ("faithfulness", 3, 0.75, 2)]
    answers = graded(made).select("text", "k", "grade", "scale", "judge").rows()
    assert answers == [
        ("she", 3, 1.0, "0-1", "factual_correctness(mode=f1)"), ("now", None, None, None, None)
    ]  # fmt: skip
    left = {each.reason: each.count for each in lost(made)}
    assert left == {
        "passages that a list repeats: the first place counts": 1,
        "questions without retrieved passages": 1,
        "measures without a value: missing, not 0": 2,
        "queries without an answer": 1,
    }
    assert any("2 of 3 are passages that were retrieved" in note for note in made.notes)


def test_two_files_share_questions_and_passages(tmp_path):
    made = read(up("a.csv", FORMS["r.csv"]), up("b.jsonl", FORMS["r.jsonl"]), collection_id="c")
    assert made.taken["queries"] == 3
    assert made.taken["runs"] == 2
    assert [run.label for run in made.runs] == ["a", "b"]
    store = Store.open(tmp_path / "store")
    with store.write("import") as writer:
        writer.add(made.batch)
    assert read(up("z.zip", zipped({"a.csv": FORMS["r.csv"]})), collection_id="c").taken["queries"] == 3


def test_ids_stand_before_texts():
    samples = [
        {"query_id": 7, "user_input": "who?", "retrieved_contexts": ["a", "b"],
         "retrieved_context_ids": ["1", "2"], "reference_context_ids": ["2", "9"], "answer_relevancy": 1},
        {"query_id": 8, "user_input": "who?", "retrieved_contexts": ["b"], "retrieved_context_ids": None,
         "reference_context_ids": None, "answer_relevancy": 0},
    ]  # fmt: skip
    made = read(up("x.jsonl", as_lines(samples)), collection_id="c")
    assert rows(made, "rankings").select("query_id", "passage_id").rows() == [
        ("7", "1"),
        ("7", "2"),
        ("8", "2"),
    ]
    assert rows(made, "judgements").select("query_id", "passage_id").rows() == [("7", "2"), ("7", "9")]
    assert rows(made, "signals").select("query_id", "value").rows() == [("7", 1.0), ("8", 0.0)]


def test_references_that_are_no_passages_are_not_judgements():
    sample = {**SAMPLES[0], "reference_contexts": ["an excerpt"]}
    made = read(up("x.jsonl", as_lines([sample])), collection_id="c")
    assert "judgements" not in made.taken
    assert any("none of them is, word for word" in each.reason for each in lost(made))


def test_a_question_again_is_another_one_and_conversations_are_left_out():
    again = [SAMPLES[0], SAMPLES[0], {**SAMPLES[0], "user_input": [{"content": "hi", "type": "human"}]}]
    made = read(up("x.jsonl", as_lines(again)), collection_id="c")
    first = text_id("who?", "q")
    assert rows(made, "queries")["query_id"].to_list() == [first, f"{first}-2"]
    assert any("1 rows repeat a question" in note for note in made.notes)
    assert any(each.count == 1 and "a conversation" in each.reason for each in lost(made))


def test_another_measure_can_grade():
    made = read(up("x.csv", FORMS["r.csv"]), collection_id="c", columns={"grade": "faithfulness"})
    assert graded(made)["grade"].to_list() == [0.5, 1.0]


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("column", ["factual_correctness(mode=f1)", "response"])
def test_what_is_not_wanted_is_left_out(name, column):
    made = read(up(name, FORMS[name]), without=frozenset({column}))
    (report,) = made.reports
    assert report.left_out[column] == "as you wish"
    assert column not in report.taken
    measures = set(rows(made, "signals")["signal"])
    assert measures == {"faithfulness", "factual_correctness(mode=f1)"} - {column}
    assert ("answers" in made.frames) == (column != "response")
    if column != "response":
        assert graded(made)["grade"].null_count() == 2  # no other measure is closest to correctness


def test_names_of_older_releases():
    old = [{"question": "q", "contexts": ["a"], "answer": "b", "ground_truth": "c", "context_recall": 1.0}]
    made = read(up("old.csv", as_csv(old)), collection_id="c")
    assert made.taken["rankings"] == 1


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        (None, None), ("", None), ("nan", None), ("[]", []), ('["a", "b"]', ["a", "b"]),
        ("['a', 'b']", ["a", "b"]), ("['a' 'b']", ["a", "b"]), ("['a'\n \"it's\"]", ["a", "it's"]),
        (r"['a\n', 'b\\']", ["a\n", "b\\"]), ("['[x]', '\"']", ["[x]", '"']), (r"['\x41']", ["A"]),
    ],
)  # fmt: skip
def test_lists_in_cells(cell, expected):
    assert text_list(cell, "f.csv:2") == expected


@pytest.mark.parametrize(
    "cell",
    [
        "a",
        "[1]",
        "['a', 1]",
        "['a'",
        "[a]",
        "['a' + 'b']",
        "[" * 5000 + "]" * 5000,
        r"['\x4']",
        r'["\ud800"]',
        r"['\ud800']",
    ],
)
def test_cells_that_are_no_list(cell):
    with pytest.raises(InputError, match=re.escape("f.csv:2: ")):
        text_list(cell, "f.csv:2")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"retrieved_contexts": "a"}, "'retrieved_contexts' is text, not a list"),
        ({"retrieved_contexts": [1]}, "holds an integer where texts stand"),
        ({"response": 1}, "'response' is an integer, not text"),
        ({"faithfulness": float("inf")}, "'faithfulness' is infinite"),
        ({"user_input": " "}, "No row holds a question"),
        ({"query_id": [1]}, "not an id"),
    ],
)
def test_what_does_not_fit_is_refused(change, message):
    assert message in refusal(up("x.jsonl", as_lines([{**SAMPLES[0], **change}])), collection_id="c")


def test_a_file_of_two_formats_shape_asks():
    both = [{"query_id": "1", "query": "q", "passage_id": "a", "passage": "b", "generated_answer": "c",
             "question": "q", "contexts": '["b"]', "answer": "c"}]  # fmt: skip
    found = refusal(up("both.csv", as_csv(both)))
    assert "This may be" in found
    assert "ragas" in found
    assert "open-rag-eval" in found
    assert read(up("both.csv", as_csv(both)), format="ragas").detected[0].format == "ragas"


@needs(RAGAS)
@pytest.mark.parametrize(
    "name", ["annotated_data.json", "edited_chain_runs.json", "sample_annotated_summary.json"]
)
def test_real_annotations(name):
    made = read(RAGAS / name)
    held = json.loads((RAGAS / name).read_text())
    items = [item for each in held.values() for item in each]
    given = [item["metric_input"] for item in items]
    assert made.taken["queries"] == len(items)
    assert made.taken["answers"] == sum(each["response"] is not None for each in given)
    assert made.taken["signals"] == sum(
        (item["metric_output"] is not None) + ("is_accepted" in item) for item in items
    )
    contexts = sum(len(set(each.get("retrieved_contexts") or [])) for each in given)
    assert made.taken.get("rankings", 0) == contexts
    texts = rows(made, "queries")["text"].to_list()
    assert texts == [each["user_input"] for each in given]
    measured = dict(rows(made, "aggregates").select("measure", "n").iter_rows())
    assert {name: measured[name] for name in held} == {name: len(each) for name, each in held.items()}


@needs(RAGAS)
@pytest.mark.parametrize("name", ["discount_benchmark.csv", "hf_doc_qa_eval.csv"])
def test_real_examples_without_results_are_refused(name):
    assert name in refusal(Path(RAGAS / name))


def test_results_as_pandas_writes_them():
    """With the numbers of rows in a column without a name, and ids that may be integers."""
    table = (
        ",user_input,retrieved_contexts,retrieved_context_ids,reference_context_ids,response,context_recall\n"
        "0,who?,\"['alpha', 'beta']\",\"['a', 'b']\",['a'],she,1.0\n"
        "1,what?,\"['gamma' 'delta']\",[1 2],[2],it,\n"
    )
    lines = [
        {"user_input": "who?", "retrieved_contexts": ["alpha", "beta"], "retrieved_context_ids": ["a", "b"],
         "reference_context_ids": ["a"], "response": "she", "context_recall": 1.0},
        {"user_input": "what?", "retrieved_contexts": ["gamma", "delta"], "retrieved_context_ids": [1, 2],
         "reference_context_ids": [2], "response": "it", "context_recall": None},
    ]  # fmt: skip
    for content in (table, json.dumps(lines), "Unnamed: 0" + table):
        made = read(up("r.csv", content), collection_id="c")
        assert rows(made, "rankings")["passage_id"].to_list() == ["a", "b", "1", "2"]
        assert sorted(rows(made, "judgements")["passage_id"]) == ["2", "a"]
        assert rows(made, "aggregates").select("measure", "value", "n").rows() == [("context_recall", 1.0, 1)]
    assert "not a list" in refusal(up("r.csv", table.replace("[1 2]", "[1.5]")), collection_id="c")


OFFERS = {
    "ragas-csv": ("ragas", str(FORMS["r.csv"]).encode()),
    "ragas-json": ("ragas", str(FORMS["r.json"]).encode()),
}
