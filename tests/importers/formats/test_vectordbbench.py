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
    assert run.environment == {}  # a label names the deployment, not the machine that timed


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


def full_text(database: str, data: str, mrr: float, **custom: object) -> dict[str, object]:
    one = entry(recall=mrr, ndcg=mrr, mrr=mrr)
    one["task_config"] |= {
        "db": database,
        "db_config": {"db_label": f"label-{database}", "version": ""},
        "db_case_config": {"index": "default"},
        "case_config": {"case_id": 503, "custom_case": {"dataset_with_size_type": data, **custom}, "k": 100},
    }
    return one


HOTPOT, MARCO = "HotpotQA Small (100K documents)", "MS MARCO Large (8.8M documents)"
IDS = {"payload_profile": "ids_only"}


def test_full_text_cases_are_apart_by_their_data():
    made = read(up("x.json", file(
        full_text("EngineA", HOTPOT, 0.84, **IDS), full_text("EngineA", MARCO, 0.27, **IDS),
        full_text("EngineB", MARCO, 0.28, **IDS), full_text("EngineB", MARCO, 0.29, payload_profile="text"),
        full_text("EngineB", MARCO, 0.3, **IDS, filter_rate=0.9),
    )))  # fmt: skip
    names = {each.collection_id: each.name for each in made.collections}
    runs = {run.run_id: run for run in made.runs}
    table = rows(made, "aggregates").filter(pl.col("measure") == "RR")
    assert {
        (names[runs[row["run_id"]].collection_id], runs[row["run_id"]].label, row["value"])
        for row in table.to_dicts()
    } == {
        (f"case 503 - {HOTPOT}", "EngineA label-EngineA default ids_only", 0.84),
        (f"case 503 - {MARCO}", "EngineA label-EngineA default ids_only", 0.27),
        (f"case 503 - {MARCO}", "EngineB label-EngineB default ids_only", 0.28),
        (f"case 503 - {MARCO}", "EngineB label-EngineB default text", 0.29),
        (f"Int-Filter-90.0% - {MARCO}", "EngineB label-EngineB default ids_only", 0.3),
    }
    assert {run.stack.spec["payload"] for run in made.runs} == {"ids_only", "text"}
    assert all(run.environment == {} for run in made.runs)


def test_streaming_cases_are_one_whatever_concurrency_they_were_tested_with():
    ones = [entry(), entry(), entry()]
    for one, tested in zip(
        ones,
        ({"concurrencies": [5, 10]}, {"concurrencies": [1]}, {"search_stages": [0.5], "insert_rate": 100}),
        strict=True,
    ):
        one["task_config"]["case_config"] = {
            "case_id": 200, "custom_case": {"dataset_with_size_type": SIZED, **tested}, "k": 10
        }  # fmt: skip
    made = read(up("x.json", file(*ones)))
    assert [each.name for each in made.collections] == [
        f"Streaming-Perf - {SIZED}, 500 rows/s", f"Streaming-Perf - {SIZED}, 100 rows/s"
    ]  # fmt: skip


def test_a_filter_of_data_that_are_not_said_claims_none():
    one = entry()
    one["task_config"]["case_config"] = {"case_id": 500, "custom_case": {**IDS, "filter_rate": 0.9}, "k": 10}
    (collection,) = read(up("x.json", file(one))).collections
    assert collection.name.startswith("case 500 ")
    assert "Cohere" not in collection.name


OLD_ROW = {"db": "Milvus", "db_label": "2c8g-disk", "db_name": "Milvus-2c8g-disk", "case": "Search (1M)",
           "qps": 100.6, "latency": 21.1, "label": 1, "qp$": 0.0}  # fmt: skip
NEW_ROW = {"dataset": "Cohere (Large)", "db": "Milvus", "label": "16c64g", "db_name": "Milvus-16c64g",
           "qps": 100.6, "latency": 2.7, "recall": 0.93, "filter_ratio": 0.98}  # fmt: skip
BOARDS = {
    "old": (
        [OLD_ROW, {**OLD_ROW, "label": -2, "latency": 0.0}],
        {("Search (1M)", "Milvus 2c8g-disk", "latency_p99", None, 21.1)},
    ),
    "new": (
        [NEW_ROW, {**NEW_ROW, "recall": 0.99, "latency": 3.0}, {**NEW_ROW, "latency": 0.0}],
        {
            ("Cohere (Large), filter 98 %", "Milvus 16c64g", "latency_p99", None, 2.7),
            ("Cohere (Large), filter 98 %", "Milvus 16c64g", "ANN-Recall", 100, 0.93),
            ("Cohere (Large), filter 98 %", "Milvus 16c64g, setting 2", "latency_p99", None, 3.0),
            ("Cohere (Large), filter 98 %", "Milvus 16c64g, setting 2", "ANN-Recall", 100, 0.99),
        },
    ),
}


@pytest.mark.parametrize("case", BOARDS)
def test_a_leaderboard(case):
    board, expected = BOARDS[case]
    made = read(up("leaderboard.json", json.dumps(board)))
    assert {each.format for each in made.detected} == {"vectordbbench"}
    names = {each.collection_id: each.name for each in made.collections}
    runs = {run.run_id: run for run in made.runs}
    assert {
        (
            names[runs[row["run_id"]].collection_id],
            runs[row["run_id"]].label,
            *map(row.get, ("measure", "k", "value")),
        )
        for row in rows(made, "aggregates").to_dicts()
    } == expected
    assert [each.count for each in lost(made)] == [1]
    assert len({run.stack.stack_id for run in made.runs}) == len(made.runs)


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
