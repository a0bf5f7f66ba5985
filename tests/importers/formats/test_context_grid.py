import json

import pytest

from core.store import Store
from tests.importers.helpers import lost, read, refusal, rows, up

RUN = {
    "config": {"embedding_model": "e5", "chunk_size": 256, "retriever": {"type": "hybrid", "top_k": 5},
               "reranker": False, "openai_api_key": "sk-abcdefghijklmnopqrst"},
    "label": "small",
    "metrics": {"recall@5": 0.75, "ndcg@5": 0.5, "mrr": 0.25, "faithfulness": float("nan")},
    "timings": {"query_p50_ms": 12.5, "query_p95_ms": 40, "index_s": 3.5, "embed_p50_s": 0.25},
    "cost": {"index_usd": 0.01, "query_usd_per_1k": 0.75},
    "confidence_interval": {"recall@5": {"low": 0.5, "high": 0.9}, "mrr": [0.1, 0.3]},
    "per_query": [
        {"query_id": "q1", "query": "who?", "recall@5": 1, "retrieved_ids": ["a", "b", "a"], "hit": True},
        {"query": "what?", "metrics": {"recall@5": 0.5}},
        {"recall@5": 0},
    ],
}  # fmt: skip
OTHER = {
    "config": {"model": "gpt"}, "metrics": {"recall@5": 0.5}, "timings": {},
    "per_query": {"q1": {"recall@5": 0.5}},
}  # fmt: skip
FAILED = {"config": {}, "metrics": {"recall@5": 0.0}, "status": "failed"}


def offer(*runs: object):
    return up("results.json", json.dumps({"version": 1, "runs": runs}))


def test_every_configuration_is_a_run(tmp_path):
    made = read(offer(RUN, FAILED, OTHER), collection_id="c")
    assert made.detected[0].format == "context-grid"
    assert made.taken == {
        "collections": 1, "runs": 2, "aggregates": 8, "queries": 2, "rankings": 2, "signals": 3
    }  # fmt: skip
    first, second = made.runs
    assert [first.label, second.label] == ["small", "results 2"]
    assert first.stack.spec == {
        "mode": "hybrid", "sparse": "bm25", "embedder": "e5", "reranker": "none", "chunks_sent": 5,
        "chunker": {"method": "unknown", "size": 256}, "name": "small",
    }  # fmt: skip
    assert "sk-abcdefghij" not in json.dumps(dict(first.manifest))
    figures = rows(made, "aggregates").filter(run_id=first.run_id)
    assert figures.select("measure", "k", "stage", "value", "n", "low", "high").rows() == [
        ("R", 5, None, 0.75, 3, 0.5, 0.9), ("nDCG", 5, None, 0.5, 3, None, None),
        ("RR", 5, None, 0.25, 3, 0.1, 0.3), ("latency_p50", None, "total", 12.5, 3, None, None),
        ("latency_p95", None, "total", 40.0, 3, None, None),
        ("latency_p50", None, "embed", 250.0, 3, None, None),
        ("usd_per_1k", None, "total", 0.75, 3, None, None),
    ]  # fmt: skip
    assert rows(made, "rankings").select("query_id", "rank", "passage_id").rows() == [
        ("q1", 1, "a"), ("q1", 2, "b")
    ]  # fmt: skip
    left = {each.reason: each.count for each in lost(made)}
    assert left["runs that failed"] == 1
    assert left["metrics without a number: missing, not 0"] == 1
    assert sum("in the manifest only" in each.reason for each in lost(made)) == 2
    assert left["values of queries without an id or a text"] == 1
    assert first.manifest["cost"]["index_usd"] == 0.01
    store = Store.open(tmp_path / "store")
    with store.write("import") as writer:
        writer.add(made.batch)


MEASURED = {
    "config": {"ingestion": None, "parser": "markdown", "chunker": "recursive:128", "embedder": "tfidf",
               "index": "dense", "reranker": None, "k": 10, "candidates": 50, "generator": None},
    "label": "recursive:128 · dense", "metrics": {"recall@5": 0.75, "recall@10": 1.0},
    "timings": {"parse_ms": 0.5, "query_p50_ms": 0.25, "query_p99_ms": 16.5},
    "cost": {"query_usd_per_1k": 0.0, "compute_seconds": 0.05, "metered": False},
    "scored_queries": 2, "confidence_interval": {"low": 0.5, "high": 1.0},
    "by_type": {"recall@5": {"unlabelled": 0.75}}, "no_ground_truth": ["q3"],
    "per_query": {"q1": 1.0, "q2": 0.5}, "answers": {}, "warnings": [{"code": "x"}],
}  # fmt: skip


def test_a_bundle_as_the_tool_writes_it():
    """One value per query and one interval, both of the headline measure."""
    lexical = {**MEASURED["config"], "index": "bm25", "embedder": None}
    made = read(offer(MEASURED, {**MEASURED, "label": "bm25", "config": lexical}), collection_id="c")
    first, second = made.runs
    assert first.stack.spec == {
        "mode": "dense", "embedder": "tfidf", "chunker": {"method": "recursive", "size": 128},
        "candidates": 50, "chunks_sent": 10, "name": "recursive:128 · dense",
    }  # fmt: skip
    assert (second.stack.spec["mode"], second.stack.spec["sparse"]) == ("sparse", "bm25")
    figures = rows(made, "aggregates").filter(run_id=first.run_id)
    assert figures.select("measure", "k", "stage", "value", "n", "low", "high").rows() == [
        ("R", 5, None, 0.75, 2, 0.5, 1.0), ("R", 10, None, 1.0, 2, None, None),
        ("latency_p50", None, "total", 0.25, None, None, None),
        ("latency_p99", None, "total", 16.5, None, None, None),
        ("usd_per_1k", None, "total", 0.0, None, None, None),
    ]  # fmt: skip
    values = rows(made, "signals").filter(run_id=first.run_id).select("query_id", "signal", "value")
    assert values.rows() == [("q1", "recall@5", 1.0), ("q2", "recall@5", 0.5)]
    assert [each.count for each in lost(made)] == [2, 2]


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        ([FAILED | {"timings": {}}], "no run that succeeded"),
        ([RUN, {"metrics": {}}], "There is no 'config'"),
        ([RUN, 3], "It is an integer, not an object"),
        ([{**RUN, "metrics": {"recall@5": float("inf")}}], "is infinite"),
        ([{**RUN, "metrics": {"recall@5": True}}], "is true or false, not a number"),
        ([{**RUN, "timings": [1]}], "'timings' is a list, not an object"),
        ([{**RUN, "per_query": [{"id": "a"}, {"id": "a"}]}], "'a' stands twice"),
        ([{**RUN, "label": 7}], "'label' is an integer, not text"),
    ],
)
def test_what_does_not_fit_is_refused(runs, message):
    found = refusal(offer(*runs), collection_id="c", format="context-grid")
    assert message in found
    assert "results.json" in found


OFFERS = {
    "context-grid": ("context-grid", json.dumps({"runs": [RUN, OTHER]}).encode()),
}
