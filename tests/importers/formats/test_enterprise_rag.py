import json

import pytest

from core.store import Store
from tests.importers.helpers import graded, read, refusal, rows, up


def lines(*entries):
    return "".join(json.dumps(entry) + "\n" for entry in entries)


def question(name, kind="basic", documents=("d1",), right="seven days", **more):
    return {
        "question_id": name, "question_type": kind, "source_types": ["jira"], "question": f"{name}?",
        "expected_doc_ids": list(documents), "gold_answer": right, "answer_facts": ["a fact"], **more,
    }  # fmt: skip


QUESTIONS = lines(
    question("q1", documents=["d1", "d2"]), question("q2"), question("q3", "info_not_found", [], "")
)
ANSWERS = lines(
    {"question_id": "q1", "answer": "seven", "document_ids": ["d9", "d1"]},
    {"question_id": "q3", "answer": "unknown", "document_ids": []},
)
FOUND = {
    "question_id": "q1", "question_type": "basic", "gold_answer_updated": False, "answer_correct": True,
    "completeness_pct": 50.0, "document_recall_pct": 100.0, "invalid_extra_docs": 1,
}  # fmt: skip
RESULTS = json.dumps(
    {"aggregate_stats": {"total_questions": 2}, "questions": [FOUND, {**FOUND, "question_id": "q2"}]}
)


def test_questions_bring_their_documents_as_judgements_and_their_types_as_tags(tmp_path):
    made = read(up("questions.jsonl", QUESTIONS), collection_id="c")
    assert made.detected[0].format == "enterprise-rag-bench"
    assert rows(made, "judgements").select("query_id", "passage_id", "grade").rows() == [
        ("q1", "d1", 5), ("q1", "d2", 5), ("q2", "d1", 5)
    ]  # fmt: skip
    tags = dict(rows(made, "queries").select("query_id", "tags").iter_rows())
    assert tags["q1"] == ["type=basic", "source=jira"]
    assert "unanswerable" in tags["q3"]
    assert rows(made, "gold_answers")["query_id"].to_list() == ["q1", "q2"]
    store = Store.open(tmp_path / "store")
    with store.write("import") as writer:
        writer.add(made.batch)


def test_answers_are_a_run_with_what_was_found_of_them():
    offered = up("questions.jsonl", QUESTIONS), up("answers.jsonl", ANSWERS), up("results.json", RESULTS)
    made = read(*offered, collection_id="c")
    assert rows(made, "rankings").select("query_id", "rank", "passage_id").rows() == [
        ("q1", 1, "d9"),
        ("q1", 2, "d1"),
    ]
    assert rows(made, "queries")["query_id"].to_list() == ["q1", "q2", "q3"]
    assert graded(made).select("query_id", "text", "grade").rows() == [
        ("q1", "seven", 1.0),
        ("q3", "unknown", None),
    ]
    means = dict(rows(made, "aggregates").select("measure", "value").iter_rows())
    assert (means["completeness"], means["invalid_extra_docs"]) == (0.5, 1.0)
    assert {each.reason: each.count for each in made.left_out}["results of questions without an answer"] == 1


def test_results_go_to_the_answers_of_the_like_name():
    offered = (
        up("answers-one.jsonl", ANSWERS),
        up("answers-two.jsonl", ANSWERS),
        up("results-two.json", RESULTS),
    )
    made = read(*offered, collection_id="c")
    by_run = {run.run_id: run.label for run in made.runs}
    assert {by_run[name] for name in rows(made, "aggregates")["run_id"]} == {"answers-two"}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("questions.jsonl", lines(question("q1"), question("q1")), "'q1' stands twice"),
        (
            "questions.jsonl",
            lines(question("q1"), question("q2", expected_doc_ids="d1")),
            "questions.jsonl:2",
        ),
        ("answers.jsonl", ANSWERS + ANSWERS, "answered twice"),
        ("results.json", RESULTS, "come without answers. Offer the answers"),
    ],
)
def test_what_cannot_be_read_is_refused_with_what_to_do(name, content, message):
    assert message in refusal(up(name, content), collection_id="c")


OFFERS = {
    "enterprise-rag-questions": ("enterprise-rag-bench", QUESTIONS.encode()),
    "enterprise-rag-answers": ("enterprise-rag-bench", ANSWERS.encode()),
}
