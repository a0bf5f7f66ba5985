import csv
import json

import pytest

from core.store import Store
from tests.importers.helpers import SHARED, graded, lost, needs, read, refusal, rows, up

DEEPEVAL = SHARED / "peer_outputs" / "deepeval"


def metric(name: str, score: float | None, **more: object) -> dict[str, object]:
    return {"name": name, "score": score, "success": True, "threshold": 0.5, "evaluationCost": 0.001,
            "evaluationModel": "gpt-4.1", **more}  # fmt: skip


CASES = [
    {"input": "who?", "actualOutput": "she", "expectedOutput": "her", "retrievalContext": ["a", "b", "a"],
     "context": ["b"], "completionTime": 1.25, "tokenCost": 0.002,
     "metricsData": [metric("Correctness [GEval]", 0.75), metric("Faithfulness", 1)]},
    {"input": "what?", "actualOutput": "it", "expectedOutput": "that", "retrievalContext": ["c"],
     "context": ["z"], "completionTime": None, "tokenCost": 0.004,
     "metricsData": [metric("Correctness [GEval]", None, error="timeout"), metric("Faithfulness", 0),
                     metric("Faithfulness", 1)]},
    {"input": "", "actualOutput": "x"},
]  # fmt: skip
RUN = {
    "testCases": CASES, "conversationalTestCases": [{"turns": []}], "evaluationCost": 0.01,
    "hyperparameters": {"Embedding Model": "e5", "top_k": "3", "model": "gpt-4o", "temperature": 0.5,
                        "api_key": "sk-abcdefghijklmnop"},
}  # fmt: skip


def offer(value: object):
    return up("run.json", json.dumps(value))


@pytest.mark.slow
@pytest.mark.parametrize("wrapped", [False, True])
def test_a_run_brings_rankings_answers_times_and_measures(wrapped, tmp_path):
    made = read(offer({"testRunData": RUN} if wrapped else RUN), collection_id="c")
    assert made.detected[0].format == "deepeval"
    assert made.taken == {
        "collections": 1, "golden sets": 1, "runs": 1, "aggregates": 3, "answers": 2, "judgements": 2,
        "answer_scores": 3, "gold_answers": 2,
        "passages": 4, "queries": 2, "rankings": 3, "signals": 3, "timings": 1,
    }  # fmt: skip
    (run,) = made.runs
    assert {key: run.stack.spec[key] for key in ("embedder", "chunks_sent", "generator")} == {
        "embedder": "e5", "chunks_sent": 3, "generator": "gpt-4o"
    }  # fmt: skip
    assert "sk-abcdefghijklmnop" not in json.dumps(dict(run.manifest))
    assert rows(made, "timings").select("stage", "repeat", "ms").rows() == [("total", 1, 1250.0)]
    figures = rows(made, "aggregates").select("measure", "k", "stage", "value", "n").sort("measure").rows()
    assert figures == [
        ("Correctness [GEval]", 3, None, 0.75, 1), ("Faithfulness", 3, None, 0.5, 2),
        ("usd_per_1k", None, "total", pytest.approx(3.0), 2),
    ]  # fmt: skip
    who, what = rows(made, "answers")["query_id"].to_list()
    answers = graded(made).select("text", "k", "grade", "scale", "judge").rows()
    assert answers == [("she", 3, 0.75, "0-1", "gpt-4.1"), ("it", 1, None, None, None)]
    assert rows(made, "answers").select("reader", "temperature").unique().rows() == [("gpt-4o", 0.5)]
    scores = rows(made, "answer_scores").select("query_id", "scorer", "judge", "value")
    assert sorted(scores.rows()) == sorted(
        [(who, "Correctness [GEval]", "gpt-4.1", 0.75), (who, "Faithfulness", "gpt-4.1", 1.0),
         (what, "Faithfulness", "gpt-4.1", 0.0)]
    )  # fmt: skip
    assert dict(rows(made, "gold_answers").select("query_id", "answer").iter_rows()) == {
        who: "her",
        what: "that",
    }
    left = {each.reason: each.count for each in lost(made)}
    assert left["conversational test cases: they have no single question"] == 1
    assert left["cases without an input"] == 1
    assert left["measures that a case holds twice: the first counts"] == 1
    assert left["measures without a value: missing, not 0"] == 1
    (file_report,) = made.reports
    assert any(name.endswith("evaluationCost") for name in file_report.left_out)
    assert any("seconds to milliseconds" in note for note in made.notes)
    store = Store.open(tmp_path / "store")
    with store.write("import") as writer:
        writer.add(made.batch)


def test_a_trace_with_one_retriever_stands_in():
    span = {
        "name": "search", "status": "SUCCESS", "startTime": "2026-05-12T03:01:00.000Z",
        "endTime": "2026-05-12T03:01:00.250Z", "retrievalContext": ["a", "b"], "embedder": "e5", "topK": 2,
        "output": [{"text": "a", "score": 0.5}, {"text": "b", "score": 0.25}],
    }  # fmt: skip
    call = {"name": "write", "status": "SUCCESS", "model": "m", "inputTokenCount": 10, "outputTokenCount": 2}
    trace = {
        "status": "SUCCESS", "startTime": "2026-05-12T03:01:00.000Z", "endTime": "2026-05-12T03:01:02.000Z",
        "retrieverSpans": [span], "llmSpans": [call, call, {**call, "status": "ERRORED"}],
    }  # fmt: skip
    case = {"input": "who?", "actualOutput": "she", "trace": trace}
    made = read(offer({"testCases": [case]}), collection_id="c")
    assert rows(made, "rankings").select("rank", "score").rows() == [(1, 0.5), (2, 0.25)]
    times = rows(made, "timings").select("stage", "ms").sort("stage").rows()
    assert times == [("retrieve", 250.0), ("total", 2000.0)]
    used = rows(made, "usage").select("stage", "item", "unit", "amount").sort("unit").rows()
    assert used == [("write", "m", "input_tokens", 20.0), ("write", "m", "output_tokens", 4.0)]
    assert made.runs[0].stack.spec["embedder"] == "e5"
    twice = {**case, "trace": {**trace, "retrieverSpans": [span, span], "status": "ERRORED"}}
    other = read(offer({"testCases": [twice]}), collection_id="c")
    assert "rankings" not in other.taken
    assert "timings" not in other.taken
    assert {each.reason for each in other.left_out} >= {
        "retrievals of cases that retrieve more than once",
        "traces that ended with an error: their total time",
        "calls of models that ended with an error: their tokens",
    }


def test_cases_of_either_spelling_are_the_same():
    case = {"input": "who?", "actual_output": "she", "completion_time": 2, "token_cost": 0.5,
            "retrieval_context": ["a"], "metrics_data": [{"name": "Faithfulness", "score": 1}]}  # fmt: skip
    made = read(offer({"testCases": [case]}), collection_id="c")
    assert rows(made, "timings")["ms"].to_list() == [2000.0]
    assert rows(made, "aggregates").select("measure", "value").rows() == [
        ("Faithfulness", 1.0), ("usd_per_1k", 500.0)
    ]  # fmt: skip
    assert {"answers", "rankings"} <= made.taken.keys()
    assert not any(each.left_out for each in made.reports)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"completionTime": -1}, "'completionTime' is negative"),
        ({"completionTime": "1 s"}, "'completionTime' is text, not a number"),
        ({"retrievalContext": [{}]}, "holds an object where texts stand"),
        ({"metricsData": [{"score": 1}]}, "no 'name'"),
        ({"metricsData": [{"name": "x", "score": True}]}, "'score' is true or false"),
        ({"trace": {"startTime": "now", "endTime": "then"}}, "are not times"),
        ({"trace": {"startTime": "2026-05-12", "endTime": "2026-05-11"}}, "ends before it begins"),
        ({"trace": {"startTime": "2026-05-12", "endTime": "2026-05-13T00:00Z"}}, "are not times"),
        ({"trace": []}, "'trace' is a list, not an object"),
        ({"trace": {"llmSpans": [{"name": "a", "inputTokenCount": -1}]}}, "is negative"),
        ({"input": None}, "no test case with an input"),
    ],
)
def test_what_does_not_fit_is_refused(change, message):
    found = refusal(offer({"testCases": [{**CASES[0], **change}]}), collection_id="c")
    assert message in found
    assert "run.json" in found


@needs(DEEPEVAL)
def test_the_real_test_run():
    path = DEEPEVAL / "test_run_sample.json"
    held = json.loads(path.read_text())
    (case,) = held["testCases"]
    (span,) = case["trace"]["retrieverSpans"]
    calls = [each for each in case["trace"]["llmSpans"] if each["status"] == "SUCCESS"]
    made = read(path)
    assert made.taken == {
        "collections": 1, "runs": 1, "aggregates": len(case["metricsData"]), "answers": 1,
        "answer_scores": len(case["metricsData"]),
        "passages": len(span["retrievalContext"]), "queries": 1, "rankings": len(span["retrievalContext"]),
        "signals": len(case["metricsData"]), "timings": 1, "usage": 2 * len(calls),
    }  # fmt: skip
    assert rows(made, "rankings")["score"].to_list() == [each["score"] for each in span["output"]]
    assert rows(made, "usage")["amount"].sum() == sum(
        each["inputTokenCount"] + each["outputTokenCount"] for each in calls
    )
    assert rows(made, "timings").select("stage", "ms").rows() == [("retrieve", 2050.0)]
    measured = sum(
        len(each.get("metricsData", []))
        for kind, spans in case["trace"].items() if kind.endswith("Spans") for each in spans
    ) + len(case["trace"]["metricsData"])  # fmt: skip
    left = {each.reason: each.count for each in lost(made)}
    assert left["measures of traces and their steps: those of the case count"] == measured


@needs(DEEPEVAL)
def test_real_goldens():
    held = json.loads((DEEPEVAL / "goldens.json").read_text())
    with (DEEPEVAL / "goldens.csv").open() as file:
        table = [
            {"input": row["input"]}
            | {key: row[key].split("|") if row[key] else [] for key in ("retrieval_context", "context")}
            for row in csv.DictReader(file)
        ]
    for name, golden in (("goldens.json", held), ("goldens.csv", table)):
        made = read(DEEPEVAL / name)
        assert made.taken["queries"] == len(golden)
        assert made.taken["rankings"] == sum(len(set(each["retrieval_context"] or [])) for each in golden)
        texts = {
            text for each in golden for key in ("retrieval_context", "context") for text in each[key] or []
        }
        assert made.taken["passages"] == len(texts)
        assert [row["text"] for row in rows(made, "queries").to_dicts()] == [each["input"] for each in golden]


def cached(case: dict[str, object], *metrics: object) -> dict[str, object]:
    held = [{"metric_data": metric, "metric_configuration": {"threshold": 0.5}} for metric in metrics]
    return {json.dumps(case): {"cached_metrics_data": held, "hyperparameters": None}}


CACHE = {
    "test_cases_lookup_map": {
        **cached(
            {"input": "who?", "actual_output": "she", "expected_output": "her", "context": None,
             "retrieval_context": ["a", "b"], "hyperparameters": None},
            metric("Faithfulness", 0.5), metric("Contextual Recall", 1.0),
        ),
        **cached({"input": "what?", "actual_output": "it", "retrieval_context": ["c"]},
                 metric("Faithfulness", 1.0)),
    }
}  # fmt: skip


def test_a_cache_holds_cases_and_their_measures():
    made = read(up(".deepeval-cache.json", json.dumps(CACHE)))
    assert {each.format for each in made.detected} == {"deepeval"}
    found = rows(made, "aggregates").select("measure", "value", "n").rows()
    assert sorted(found) == [("Contextual Recall", 1.0, 1), ("Faithfulness", 0.75, 2)]
    assert rows(made, "rankings").height == 3
    assert sorted(rows(made, "answers")["text"]) == ["it", "she"]
    assert rows(made, "gold_answers")["answer"].to_list() == ["her"]


@pytest.mark.parametrize("key", ["[1]", "no json"])
def test_a_cache_whose_keys_are_no_cases_is_refused(key):
    assert "test_cases_lookup_map[0]" in refusal(
        up("x.json", json.dumps({"test_cases_lookup_map": {key: {"cached_metrics_data": []}}}))
    )


OFFERS = {
    "deepeval": ("deepeval", json.dumps(RUN).encode()),
    "deepeval-cache": ("deepeval", json.dumps(CACHE).encode()),
}
