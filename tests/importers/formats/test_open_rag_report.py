import json

import pytest

from core.store import Store
from tests.importers.helpers import graded, read, refusal, rows, up


def run(passages, grades=None, answer="it", vital=0.5):
    parts = [{"text": answer, "citations": list(passages)[:1]}, {"text": "And so on.", "citations": []}]
    return {
        "retrieved_passages": passages,
        "generated_answer": parts,
        "retrieval_score_umbrela_scores": grades or dict.fromkeys(passages, 2),
        "retrieval_score_precision_metrics": {"precision@": {"1": 1.0}, "MRR": 1.0},
        "retrieval_score_mean_umbrela_score": 1.5,
        "generation_score_vital_nuggetizer_score": vital,
        "generation_score_no_answer_score": {"query_answered": "yes"},
    }


def report(*entries):
    listed = [
        {"query_id": name, "query": f"{name}?", "runs": runs, "consistency": {"bert_score": {"mean": 1}}}
        for name, runs in entries
    ]
    return json.dumps({"version": "0.2", "generated_at": "2026-01-01T00:00:00Z", "evaluation": listed})


PLACES = report(
    ("q1", [run({"[1]": "first text", "[2]": "second text"}, {"[1]": 3, "[2]": 0})]),
    ("q2", [run({"[1]": "third text"}, {"[1]": 1, "[9]": 2}, answer="no")]),
)
NAMED = report(
    ("q1", [run({"a": "text a", "b": "text b"}, {"a": 3, "b": 1}), run({"b": "text b"}, {"b": 2}, vital=0.9)])
)


def test_passages_are_a_ranking_with_umbrelas_grades(tmp_path):
    made = read(up("report.json", PLACES), collection_id="c")
    assert made.detected[0].format == "open-rag-report"
    names = dict(rows(made, "passages").select("text", "passage_id").iter_rows())
    ranked = rows(made, "rankings").select("query_id", "rank", "passage_id").rows()
    assert ranked == [
        ("q1", 1, names["first text"]),
        ("q1", 2, names["second text"]),
        ("q2", 1, names["third text"]),
    ]
    judged = rows(made, "judgements").select("query_id", "passage_id", "raw", "grade").rows()
    assert judged == [
        ("q1", names["first text"], 3, 5), ("q1", names["second text"], 0, 1),
        ("q2", names["third text"], 1, 3),
    ]  # fmt: skip
    assert graded(made)["text"].to_list() == ["it And so on.", "no And so on."]
    means = dict(rows(made, "aggregates").select("measure", "value").iter_rows())
    assert means["vital_nuggetizer_score"] == 0.5
    assert {each.reason: each.count for each in made.left_out}[
        "UMBRELA scores of passages that are not listed"
    ] == 1
    store = Store.open(tmp_path / "store")
    with store.write("import") as writer:
        writer.add(made.batch)


def test_every_repeat_is_a_run_and_the_first_grade_counts():
    made = read(up("report.json", NAMED), collection_id="c")
    assert [one.label for one in made.runs] == ["report · run 1", "report · run 2"]
    assert rows(made, "judgements").select("passage_id", "raw").rows() == [("a", 3), ("b", 1)]
    left = {each.reason: each.count for each in made.left_out}
    assert left["grades that differ from those of an earlier repeat"] == 1


def test_what_a_repeat_lacks_is_unknown():
    entries = json.loads(NAMED)
    entries["evaluation"][0]["runs"][1] = dict.fromkeys(entries["evaluation"][0]["runs"][0], float("nan"))
    made = read(up("report.json", json.dumps(entries)), collection_id="c")
    assert rows(made, "rankings")["passage_id"].to_list() == ["a", "b"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda entry: entry.pop("query_id"), "There is no 'query_id' here"),
        (lambda entry: entry["runs"][0].update(retrieved_passages=["a"]), "retrieved_passages"),
        (lambda entry: entry["runs"][0].update(generated_answer=3), "neither a text nor a list"),
        (lambda entry: entry["runs"][0].update(generation_score_vital_nuggetizer_score="x"), "vital"),
    ],
)
def test_what_is_of_another_kind_is_refused_with_its_place(change, message):
    whole = json.loads(NAMED)
    change(whole["evaluation"][0])
    said = refusal(up("report.json", json.dumps(whole)), collection_id="c", format="open-rag-report")
    assert message in said


OFFERS = {"open-rag-report": ("open-rag-report", PLACES.replace(', "[9]": 2', "").encode())}
