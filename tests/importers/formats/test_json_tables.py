"""Tables as JSON: a list of rows, rows below a key, an object for each stack, and objects within rows."""

from __future__ import annotations

import json

import polars as pl
import pytest

from core.importers import preview
from tests.importers.helpers import parquet, read, refusal, rows, up

BM25 = {"ndcg@10": 0.41, "recall@10": 0.6, "latency_ms": 12}
HYBRID = {"ndcg@10": 0.47, "recall@10": 0.7, "latency_ms": 340}
FLAT = [{"stack": "bm25", **BM25}, {"stack": "hybrid", **HYBRID}]
SHAPES = {
    "a list": FLAT,
    "a list of models": [{"model": "bm25", **BM25}, {"model": "hybrid", **HYBRID}],
    "below a key": {"results": FLAT},
    "below a key, with facts": {"date": "2026-01-01", "seed": 7, "rows": FLAT},
    "among lists": {"warnings": [{"text": "x"}], "results": FLAT},
    "an object for each": {"bm25": BM25, "hybrid": HYBRID},
    "the same below a key": {"config": {"k": 10}, "results": {"bm25": BM25, "hybrid": HYBRID}},
    "objects within": [
        {"stack": "bm25", "metrics": {"ndcg@10": 0.41, "recall@10": 0.6}, "latency": {"p50_ms": 12}},
        {"stack": "hybrid", "metrics": {"ndcg@10": 0.47, "recall@10": 0.7}, "latency": {"p50_ms": 340}},
    ],
    "cutoffs within": [
        {"stack": "bm25", "ndcg": {"10": 0.41}, "recall": {"@10": 0.6}, "latency_ms": 12},
        {"stack": "hybrid", "ndcg": {"10": 0.47}, "recall": {"@10": 0.7}, "latency_ms": 340},
    ],
    "measures first": {
        name: {"bm25": BM25[name], "hybrid": HYBRID[name]} for name in ("ndcg@10", "recall@10", "latency_ms")
    },
}
FIGURES = {
    ("bm25", "nDCG", 10, 0.41), ("bm25", "Recall", 10, 0.6), ("bm25", "latency_p50", None, 12.0),
    ("hybrid", "nDCG", 10, 0.47), ("hybrid", "Recall", 10, 0.7), ("hybrid", "latency_p50", None, 340.0),
}  # fmt: skip


def figures(made) -> set[tuple[object, ...]]:
    labels = {run.run_id: run.label for run in made.runs}
    found = rows(made, "aggregates").with_columns(pl.col("run_id").replace(labels))
    return set(found.select("run_id", "measure", "k", "value").rows())


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("shape", SHAPES)
def test_figures_of_stacks_in_json(shape, indent):
    file = up("x.json", json.dumps(SHAPES[shape], indent=indent))
    assert figures(read(file)) == FIGURES
    looked = preview([file])[0]
    assert (looked.format, looked.row, looked.problem) == ("table", "stack", "")


@pytest.mark.parametrize("shape", ["objects within", "cutoffs within"])
def test_objects_within_rows_of_other_tables(shape):
    lines = pl.DataFrame(SHAPES[shape])
    assert figures(read(up("x.jsonl", lines.write_ndjson()))) == FIGURES
    assert figures(read(up("x.parquet", parquet(lines)))) == FIGURES


def test_every_field_is_taken_or_left_out():
    row = {
        "stack": "a",
        "metrics": {"ndcg@5": 0.5, "odd": 1},
        "config": {"embedder": "e", "deep": {"er": 2}},
        "l": [1],
    }
    report = read(up("x.json", json.dumps([row, {**row, "stack": "b"}]))).reports[0]
    assert report.taken == ("stack", "ndcg@5")
    assert set(report.left_out) == {"metrics_odd", "config_embedder", "config_deep_er", "l"}


BESIDE = {
    "facts": ({"dataset": "x", "date": "2026-01-01", "rows": FLAT}, {"dataset", "date"}),
    "objects and lists": ({"config": {"k": 10}, "seeds": [1], "rows": FLAT}, {"config", "seeds"}),
    "two lists": ({"warnings": [{"text": "x"}], "results": FLAT}, {"warnings"}),
    "below a key": ({"config": {"k": 1}, "results": {"a": BM25, "b": HYBRID}}, {"config"}),
    "two deep": ({"date": "x", "results": {"runs": {"a": BM25, "b": HYBRID}}}, {"date"}),
    "a column's name": ({"stack": "x", "rows": FLAT}, {"stack (of the file)"}),
    "none": ({"rows": FLAT}, set()),
}


@pytest.mark.parametrize("case", BESIDE)
def test_what_stands_beside_the_rows_is_left_out_by_name(case: str):
    value, named = BESIDE[case]
    made = read(up("x.json", json.dumps(value)))
    assert made.reports[0].taken == ("stack", "ndcg@10", "recall@10", "latency_ms")
    assert made.reports[0].left_out == dict.fromkeys(named, "stands beside the rows")
    assert {each.reason.split("`")[1] for each in made.left_out} == named


WRAPPED = {"dataset": "x", "config": {"k": 10, "seed": 1}, "rows": FLAT}
OFFERS = {"json-wrapped": ("table", json.dumps(WRAPPED, indent=1).encode())}


def test_rows_of_queries_in_json():
    given = [
        {"question": "Who?", "hit@5": True},
        {"question": "Where?", "hit@5": False},
        {"question": "?", "hit@5": None},
    ]
    made = read(up("x.json", json.dumps(given)))
    assert [run.label for run in made.runs] == ["x"]
    assert rows(made, "signals").select("query_id", "value").rows() == [("Who?", 1.0), ("Where?", 0.0)]


ROWS = '[{"stack": "a", "ndcg@5": 0.1}, {"stack": "b", "ndcg@5": %s}]'
REFUSED = {
    "two lists": (
        '{"a": [{"stack": "x", "ndcg@5": 1}], "b": [{"stack": "x", "ndcg@5": 1}]}',
        "Several keys hold lists of rows: a, b. Save the list of results as a file of its own.",
    ),
    "a key twice": (ROWS % '1, "ndcg@5": 0', "the key 'ndcg@5' stands twice in one object"),
    "a cell": (ROWS % '"x"', "x.json:2, column `ndcg@5`: 'x'"),
    "endless digits": (ROWS % ("9" * 5000), "a whole number has more than 4,300 digits."),
    "no table": ('[{"a": 1, "b": 2}]', "This is of no format known here"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_wrong_in_json_is_named(case):
    text, message = REFUSED[case]
    said = refusal(up("x.json", text))
    assert message in said
    assert "sys." not in said


@pytest.mark.parametrize(
    "text", ['"ndcg@5": 1, "ndcg@5": 0', '"ndcg@5":1, "ndcg@5" :0', '"m": {"ndcg@5": 1, "ndcg@5": 0}']
)
def test_a_key_that_stands_twice_in_a_line_is_refused(text):
    said = refusal(up("x.jsonl", f'{{"stack": "b"}}\n{{"stack": "a", {text}}}\n'))
    assert said.startswith("x.jsonl:2: ")
    assert "the key 'ndcg@5' stands twice in one object" in said
