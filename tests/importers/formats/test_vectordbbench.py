import json

import polars as pl
import pytest

from core.importers.settings import LEFT_OUT
from tests.importers.helpers import SHARED, lost, needs, read, refusal, rows, up, zipped

REAL = SHARED / "peer_outputs" / "vectordbbench"


def entry(**metrics: object) -> dict[str, object]:
    return {
        "metrics": {
            "qps": 900.5, "serial_latency_p99": 0.0024, "serial_latency_p95": 0.0023, "recall": 0.92,
            "ndcg": 0.93, "conc_qps_list": [1.0], **metrics,
        },
        "task_config": {
            "db": "Milvus",
            "db_config": {"db_label": "16c64g-sq8", "version": "2.6", "uri": "http://u:p@host",
                          "password": "x", "num_shards": 1},
            "db_case_config": {"index": "HNSW", "metric_type": "COSINE", "M": 16, "ef": 100},
            "case_config": {"case_id": 4, "custom_case": {}, "k": 100},
        },
        "label": ":)",
    }  # fmt: skip


def file(*entries: object) -> str:
    return json.dumps({"run_id": "r", "task_label": "t", "results": entries})


def test_an_entry_is_a_run():
    made = read(up("x.json", file(entry())))
    (run,) = made.runs
    assert run.collection_id == "Performance768D10M"
    assert run.label == "Milvus 16c64g-sq8 hnsw-f32 M 16, ef 100"
    assert run.stack.spec == {
        "index": "hnsw-f32", "database": "Milvus 2.6", "deployment": "16c64g-sq8", "metric": "cosine",
        "index_params": {"M": 16, "ef": 100},
    }  # fmt: skip
    assert set(rows(made, "aggregates").select("measure", "k", "stage", "value").rows()) == {
        ("latency_p95", None, "retrieve", 2.3), ("latency_p99", None, "retrieve", 2.4),
        ("ANN-Recall", 100, None, 0.92), ("ANN-nDCG", 100, None, 0.93),
    }  # fmt: skip
    assert run.manifest["metrics"]["qps"] == 900.5
    assert run.manifest["task"]["db_config"] == {
        "db_label": "16c64g-sq8", "version": "2.6", "uri": LEFT_OUT, "password": LEFT_OUT, "num_shards": 1
    }  # fmt: skip
    assert run.environment == {"reported": "16c64g"}


def test_failed_and_idle_entries_are_left_out_and_missing_stays_missing():
    failed = {**entry(qps=0.0, recall=0.0, serial_latency_p99=0.0), "label": "x"}
    idle = entry(serial_latency_p99=0.0, serial_latency_p95=0.0, recall=0.0)
    old = entry()
    del old["metrics"]["serial_latency_p95"]
    del old["task_config"]["case_config"]["k"]
    del old["label"]  # absent stands for done, as in the tool
    made = read(up("x.json", file(entry(), failed, failed, idle, old)))
    assert len(made.runs) == 2
    assert [each.count for each in lost(made)] == [2, 1]
    assert lost(made)[0].first == "x.json, key `results[1]`"
    assert rows(made, "aggregates").filter(pl.col("measure") == "latency_p95").height == 1
    assert any("1 entries do not say their k" in note for note in made.notes)


def test_a_case_that_searches_texts_is_judged():
    made = read(up("x.json", file(entry(mrr=0.4))))
    assert {"R", "nDCG", "RR"} < set(rows(made, "aggregates")["measure"])


def test_prices_beside_results_are_no_results():
    prices = json.dumps({"Milvus": {}, "ZillizCloud": {"1cu": 0.159}})
    made = read(up("x.zip", zipped({"a/result_x.json": file(entry()), "dbPrices.json": prices})))
    assert [(each.count, each.first) for each in made.left_out if each.part == "file"] == [
        (1, "x.zip/dbPrices.json")
    ]


SIZED = "Medium Cohere (768dim, 1M)"
CUSTOM = {
    (300, "label_percentage", 0.02): f"Label-Filter-2.0% - {SIZED}",
    (400, "filter_rate", 0.99): f"Int-Filter-99.0% - {SIZED}",
    (200, "insert_rate", 1000): f"Streaming-Perf - {SIZED}, 1000 rows/s",
}


@pytest.mark.parametrize("case", CUSTOM)
def test_a_case_is_called_as_the_tool_calls_it(case):
    number, key, value = case
    one = entry()
    one["task_config"]["case_config"] = {
        "case_id": number, "custom_case": {"dataset_with_size_type": SIZED, key: value}, "k": 10
    }  # fmt: skip
    made = read(up("x.json", file(one)))
    assert [each.name for each in made.collections] == [CUSTOM[case]]


def test_cases_that_differ_in_what_no_name_says_are_apart():
    ones = [entry(), entry(), entry()]
    for one, seconds in zip(ones, (1, 2, 2), strict=True):
        one["task_config"]["case_config"] = {
            "case_id": 101, "custom_case": {"name": "my own data", "load_timeout": seconds}
        }  # fmt: skip
    names = [each.name for each in read(up("x.json", file(*ones))).collections]
    assert len(names) == 2
    assert all(name.startswith("my own data ") for name in names)


def test_every_stage_of_a_streaming_case_is_a_run():
    one = entry(
        serial_latency_p99=0.0, serial_latency_p95=0.0, recall=0.0, ndcg=0.0,
        st_search_stage_list=[50, 100, 110], st_recall_list=[0.4, 0.9, 0.95], st_ndcg_list=[0.5, 0.91, 0.96],
        st_serial_latency_p99_list=[0.002, 0.003, 0.001], st_serial_latency_p95_list=[0.001, 0.002, 0.0005],
    )  # fmt: skip
    one["task_config"]["case_config"] = {"case_id": 200, "custom_case": {}, "k": 10}
    made = read(up("x.json", file(one)))
    assert not lost(made)
    assert [run.stack.spec["loaded"] for run in made.runs] == ["50 %", "100 %", "optimised"]
    table = rows(made, "aggregates").with_columns(pl.col("value").round(6))
    of = {run.run_id: run.stack.spec["loaded"] for run in made.runs}
    assert {(of[row["run_id"]], row["measure"], row["k"], row["value"]) for row in table.to_dicts()} == {
        ("50 %", "latency_p95", None, 1.0), ("50 %", "latency_p99", None, 2.0),
        ("100 %", "latency_p95", None, 2.0), ("100 %", "latency_p99", None, 3.0),
        ("100 %", "ANN-Recall", 10, 0.9), ("100 %", "ANN-nDCG", 10, 0.91),
        ("optimised", "latency_p95", None, 0.5), ("optimised", "latency_p99", None, 1.0),
        ("optimised", "ANN-Recall", 10, 0.95), ("optimised", "ANN-nDCG", 10, 0.96),
    }  # fmt: skip
    assert any("before all vectors are loaded" in note for note in made.notes)


def test_prices_alone_are_no_run_of_another_tool():
    said = refusal(up("dbPrices.json", json.dumps({"Milvus": {}, "ZillizCloud": {"1cu": 0.159, "8cu": 1.2}})))
    assert said.endswith("nearest to VectorDBBench results: it holds prices of databases, no results")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (file({**entry(), "metrics": [1]}), "results[0]`: 'metrics' is a list, not an object"),
        (file(entry(), 7), "results[1]`: It is an integer, not an object"),
        (file(entry(recall="good")), "'recall' is text, not a number"),
        (file(entry(serial_latency_p99=-1.0)), "is negative"),
        (file({**entry(), "label": "x"}), "No entry is done"),
        (file(entry(recall=1e400)), "infinite"),
    ],
)
def test_refused(content, message):
    assert message in refusal(up("x.json", content))


@needs(REAL)
def test_real_files_without_labels(tmp_path):
    """As most published files are: an entry without a label is done; one that failed has no latency."""
    (path,) = REAL.glob("*/result_20230808*.json")
    whole = json.loads(path.read_text())
    for each in whole["results"]:
        del each["label"]
    (tmp_path / path.name).write_text(json.dumps(whole))
    searched = [each for each in whole["results"] if each["metrics"]["serial_latency_p99"]]
    made = read(tmp_path / path.name)
    assert len(made.runs) == len(searched) == 18
    assert [each.count for each in lost(made)] == [6]


@needs(REAL)
def test_real_files():
    made = read(REAL)
    names = {"serial_latency_p95": "latency_p95", "serial_latency_p99": "latency_p99",
             "recall": "ANN-Recall", "ndcg": "ANN-nDCG"}  # fmt: skip
    expected, done, failed = [], 0, 0
    for path in REAL.glob("*/result_*.json"):
        for each in json.loads(path.read_text())["results"]:
            label = each.get("label", ":)")
            done, failed = done + (label == ":)"), failed + (label == "x")
            if label == ":)":
                scale = {"serial_latency_p95": 1000, "serial_latency_p99": 1000}
                expected += [
                    (names[key], round(value * scale.get(key, 1), 9))
                    for key, value in each["metrics"].items()
                    if key in names
                ]
    table = rows(made, "aggregates").select("measure", pl.col("value").round(9))
    assert sorted(table.rows()) == sorted(expected)
    assert (len(made.runs), failed) == (done, 6)
    assert any(each.count == failed and "failed" in each.reason for each in lost(made))


OFFERS = {
    "vectordbbench": ("vectordbbench", file(entry()).encode()),
}
