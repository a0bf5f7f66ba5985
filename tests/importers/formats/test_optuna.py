import io
import json
import sqlite3

import polars as pl
import pytest

from core.importers import preview
from core.importers.settings import LEFT_OUT
from tests.importers.helpers import lost, read, refusal, rows, up, zipped

FLOW = '{"rag_method": "dense",  "rag_top_k": 5}'
SCHEMA = """
CREATE TABLE studies (study_id INTEGER PRIMARY KEY, study_name VARCHAR(512) NOT NULL);
CREATE TABLE study_directions (study_direction_id INTEGER PRIMARY KEY, direction VARCHAR(8), study_id INTEGER,
  objective INTEGER);
CREATE TABLE trials (trial_id INTEGER PRIMARY KEY, number INTEGER, study_id INTEGER, state VARCHAR(8),
  datetime_start DATETIME, datetime_complete DATETIME);
CREATE TABLE trial_values (trial_value_id INTEGER PRIMARY KEY, trial_id INTEGER, objective INTEGER,
  value FLOAT, value_type VARCHAR(7));
CREATE TABLE trial_params (param_id INTEGER PRIMARY KEY, trial_id INTEGER, param_name VARCHAR(512),
  param_value FLOAT, distribution_json TEXT);
CREATE TABLE trial_user_attributes (trial_user_attribute_id INTEGER PRIMARY KEY, trial_id INTEGER,
  key VARCHAR(512), value_json TEXT);
INSERT INTO studies VALUES (1, 'docs-study'), (2, 'plain');
INSERT INTO study_directions VALUES (1, 'MAXIMIZE', 1, 0), (2, 'MINIMIZE', 1, 1), (3, 'MAXIMIZE', 2, 0),
  (4, 'MINIMIZE', 2, 1);
"""
METHODS = json.dumps(
    {"name": "CategoricalDistribution", "attributes": {"choices": ["sparse", "dense", "hybrid"]}}
)
MODELS = json.dumps({"name": "CategoricalDistribution", "attributes": {"choices": ["bge-small"]}})
WHOLE = json.dumps({"name": "IntDistribution", "attributes": {"log": False, "step": 1, "low": 1, "high": 9}})
FLOAT = json.dumps({"name": "FloatDistribution", "attributes": {"low": 0.0, "high": 1.0}})
METRICS = {
    "metric_accuracy": 0.8, "metric_f1_score": 0.7, "metric_llm_cost_mean": 0.002, "metric_p80_time": 2.5,
    "metric_median_time": 1.5, "metric_num_total": 50, "metric_failed": False, "metric_is_pruned": False,
    "flow": FLOW,
}  # fmt: skip


def storage(trials=None, extra: str = "") -> bytes:
    """A storage as Optuna writes it: trials of (study, number, state, attributes, objectives)."""
    trials = trials if trials is not None else [(1, 0, "COMPLETE", METRICS, (0.8, 2.5))]
    made = sqlite3.connect(":memory:")
    made.executescript(SCHEMA)
    for key, (study, number, state, attributes, objectives) in enumerate(trials, 1):
        made.execute("INSERT INTO trials VALUES (?, ?, ?, ?, NULL, NULL)", (key, number, study, state))
        for place, value in enumerate(objectives):
            made.execute("INSERT INTO trial_values VALUES (NULL, ?, ?, ?, 'FINITE')", (key, place, value))
        for name, value, told in (("rag_method", 1.0, METHODS), ("rag_embedding_model", 0.0, MODELS),
                                  ("rag_top_k", 5.0, WHOLE), ("alpha", 0.25, FLOAT)):  # fmt: skip
            made.execute("INSERT INTO trial_params VALUES (NULL, ?, ?, ?, ?)", (key, name, value, told))
        for name, value in attributes.items():
            given = (key, name, json.dumps(value))
            made.execute("INSERT INTO trial_user_attributes VALUES (NULL, ?, ?, ?)", given)
    made.executescript(extra)
    made.commit()
    return made.serialize()


def test_a_trial_of_syftr_is_a_run():
    made = read(up("study.db", storage()))
    (run,) = made.runs
    assert (run.collection_id, run.label) == ("docs-study", "trial 0")
    assert run.stack.spec == {
        "mode": "dense", "embedder": "bge-small", "candidates": 5, "params": {"alpha": 0.25}
    }  # fmt: skip
    assert run.manifest["attributes"]["flow"] == FLOW
    assert set(rows(made, "aggregates").select("measure", "k", "stage", "value", "n").rows()) == {
        ("Answer-Accuracy", 1, None, 0.8, 50), ("Answer-F1", 1, None, 0.7, 50),
        ("latency_p80", None, "total", 2500.0, 50), ("latency_p50", None, "total", 1500.0, 50),
        ("usd_per_1k", None, "total", 2.0, 50),
    }  # fmt: skip
    assert any("seconds to milliseconds" in note for note in made.notes)


def test_what_did_not_complete_is_left_out_and_counted():
    trials = [
        (1, 0, "COMPLETE", METRICS, (0.8, 2.5)),
        (1, 1, "PRUNED", METRICS, ()),
        (1, 2, "FAIL", {}, ()),
        (1, 3, "COMPLETE", {**METRICS, "metric_failed": True}, (0.0, 0.0)),
        (1, 4, "COMPLETE", {**METRICS, "metric_is_pruned": True}, (0.0, 0.0)),
        (1, 5, "PRUNED", METRICS, ()),
        (1, 6, "COMPLETE", {**METRICS, "metric_llm_cost_mean": float("nan"), "metric_f1_score": None}, ()),
        (1, 7, "COMPLETE", {"metric_accuracy": None}, ()),
    ]
    made = read(up("study.db", storage(trials)))
    assert [run.label for run in made.runs] == ["trial 0", "trial 6"]
    assert {each.reason: each.count for each in lost(made)} == {
        "trials in the state PRUNED": 2, "trials in the state FAIL": 1, "trials that failed": 1,
        "trials that were pruned": 1, "completed trials without a figure": 1,
        "rows of `studies` without a trial": 1, "rows of `study_directions` without a trial": 2,
    }  # fmt: skip
    assert rows(made, "aggregates").filter(pl.col("measure") == "usd_per_1k").height == 1


NAMES = """
CREATE TABLE study_system_attributes (study_system_attribute_id INTEGER PRIMARY KEY, study_id INTEGER,
  key VARCHAR(512), value_json TEXT);
INSERT INTO study_system_attributes VALUES (1, 2, 'study:metric_names', '{}'), (2, 2, 'other', '[');
"""


@pytest.mark.parametrize(
    ("names", "first", "second"),
    [
        (None, "Objective 0", "Objective 1"),
        ('["accuracy", "p80_time"]', "accuracy", "p80_time"),
        ('["a", "a"]', "Objective 0", "Objective 1"),
        ('["a", 7]', "Objective 0", "Objective 1"),
        ("{}", "Objective 0", "Objective 1"),
    ],
)
def test_a_study_without_syftr_brings_its_objectives(names, first, second):
    extra = NAMES.replace("'{}'", f"'{names}'") if names else ""
    made = read(up("study.db", storage([(2, 0, "COMPLETE", {}, (0.5, 30.0))], extra=extra)))
    assert set(rows(made, "aggregates").select("measure", "k", "value").rows()) == {
        (first, 1, 0.5), (second, None, 30.0)
    }  # fmt: skip


def test_notes_of_a_storage_with_studies_of_both_kinds():
    both = [(1, 0, "COMPLETE", METRICS, (0.8, 2.5)), (2, 0, "COMPLETE", {}, (0.5, 30.0))]
    made = read(up("study.db", storage(both)))
    assert any("seconds to milliseconds" in note for note in made.notes)
    assert any("values of the objectives" in note for note in made.notes)


def test_it_is_read_from_disk_and_from_archives_and_never_written(tmp_path):
    data = storage()
    path = tmp_path / "study.db"
    path.write_bytes(data)
    before = sorted(tmp_path.iterdir()), path.stat().st_mtime_ns
    direct = read(path)
    assert (sorted(tmp_path.iterdir()), path.stat().st_mtime_ns) == before
    assert path.read_bytes() == data
    packed = read(up("x.zip", zipped({"study.db": data})))
    assert direct.runs[0].run_id == packed.runs[0].run_id
    (tmp_path / "study.db-wal").write_bytes(b"later")
    assert any("-wal" in note for note in read(path).notes)


def test_a_preview_shows_trials():
    (seen,) = preview([up("study.db", storage())])
    assert seen.rows.rows() == [("docs-study", "0", "COMPLETE", "0.8", "2.5")]


def test_secrets_of_a_flow_are_not_kept():
    flow = '{"llm": {"api_key": "sk-1234567890abcdef", "model": "m"}}'
    made = read(up("study.db", storage([(1, 0, "COMPLETE", {**METRICS, "flow": flow}, ())])))
    kept = made.runs[0].manifest["attributes"]["flow"]
    assert "sk-1234" not in kept
    assert json.loads(kept) == {"llm": {"api_key": LEFT_OUT, "model": "m"}}


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ("DROP TABLE trial_params", "no table trial_params"),
        ("DROP TABLE trials; CREATE VIEW trials AS SELECT 1 trial_id, 1 AS number, 1 AS study_id, 1 state",
         "no table trials"),
        ("ALTER TABLE trials DROP COLUMN number", "trials has no column number"),
        ("UPDATE trials SET study_id = 9", "belongs to no study"),
        ("UPDATE trials SET number = 'one'", "has no number"),
        ("DELETE FROM trials", "holds no trial"),
        ("UPDATE trial_params SET distribution_json = '{'", "not valid JSON"),
        ("UPDATE trial_user_attributes SET value_json = '\"high\"' WHERE key = 'metric_accuracy'",
         "'metric_accuracy' is text, not a number"),
        ("UPDATE trial_user_attributes SET value_json = '-1.5' WHERE key = 'metric_p80_time'", "is negative"),
        ("UPDATE trial_user_attributes SET value_json = '" + "[" * 5000 + "'", "nested too deeply"),
    ],
)  # fmt: skip
def test_refused_storages(extra, message):
    assert message in refusal(up("study.db", storage(extra=extra)))


def test_a_query_without_end_is_stopped(monkeypatch):
    monkeypatch.setattr("core.importers.read.database._MOST_STEPS", 0)
    monkeypatch.setattr("core.importers.read.database._STEP", 10)
    assert "interrupted" in refusal(up("endless.db", storage()))


def test_a_broken_database():
    data = storage()
    assert "x.db" in refusal(up("x.db", data[:4000]))
    assert "x.db" in refusal(up("x.db", data[:100] + b"\xff" * 8000 + data[8100:]))


def table(**changes: object) -> str:
    row = {
        "Number": 0, "State": "COMPLETE", "Objective 0": 0.8, "Param rag_method": "hybrid",
        "Param rag_embedding_model": "bge-small", "Param reranker_enabled": True,
        "Param reranker_llm_name": "gpt-4o-mini", "Param hyde_enabled": True,
        "UserAttribute metric_accuracy": 0.8, "UserAttribute metric_p80_time": 2.5,
        "UserAttribute flow": FLOW, **changes,
    }  # fmt: skip
    buffer = io.BytesIO()
    pl.DataFrame([row, {**row, "Number": 1, "State": "PRUNED"}]).write_csv(buffer)
    return buffer.getvalue().decode()


def test_the_table_of_the_dashboard():
    made = read(up("docs.csv", table()))
    (run,) = made.runs
    assert (made.detected[0].format, run.collection_id) == ("optuna-csv", "docs")
    assert run.stack.spec == {
        "mode": "hybrid", "sparse": "bm25", "embedder": "bge-small", "reranker": "gpt-4o-mini",
        "rewrite": "hyde", "params": {"reranker_enabled": True, "hyde_enabled": True},
    }  # fmt: skip
    assert run.manifest["attributes"]["flow"] == FLOW
    assert set(rows(made, "aggregates").select("measure", "value").rows()) == {
        ("Answer-Accuracy", 0.8), ("latency_p80", 2500.0)
    }  # fmt: skip
    assert made.left_out[0].count == 1
    assert "is not an integer" in refusal(up("x.csv", table(Number="one")))
    assert "no number" in refusal(up("x.csv", table(Number=None)))
    assert "None of the 2 trials" in refusal(up("x.csv", table(State="FAIL")))


FRAME = (
    ",number,values_accuracy,values_cost,datetime_start,duration,params_rag_top_k,params_rag_method,"
    "user_attrs_metric_f1_score,user_attrs_metric_num_total,system_attrs_fixed_params,state\n"
    "0,0,0.5,inf,2026-11-22 08:57:17.5,0 days 00:00:01.9,43.0,dense,0.25,50.0,,COMPLETE\n"
    "1,1,,,2026-11-22 08:57:19.4,,,,,,\"{'rag_top_k': 5}\",WAITING\n"
)


def test_the_frame_of_trials_that_optuna_makes():
    made = read(up("docs.csv", FRAME))
    (run,) = made.runs
    assert (made.detected[0].format, run.collection_id, run.label) == ("optuna-csv", "docs", "trial 0")
    assert run.stack.spec == {"mode": "dense", "candidates": 43}
    assert run.manifest["objectives"] == {"accuracy": 0.5}
    assert rows(made, "aggregates").select("measure", "value", "n").rows() == [("Answer-F1", 0.25, 50)]
    assert [(each.count, each.reason) for each in lost(made)] == [(1, "trials in the state WAITING")]
    plain = FRAME.replace("user_attrs_metric_f1_score", "user_attrs_note")
    figures = rows(read(up("x.csv", plain)), "aggregates")
    assert figures.select("measure", "k", "value").rows() == [("accuracy", None, 0.5)]
    single = "number,value,params_x,state\n0,-0.25,0.5,COMPLETE\n"
    assert rows(read(up("x.csv", single)), "aggregates")["measure"].to_list() == ["Objective"]
    assert "not a number" in refusal(up("x.csv", FRAME.replace(",0.25,", ",high,")))


def test_failed_answers_are_said_and_leave_n_as_asked():
    """Some versions count in the total what was answered only."""
    names = ("metric_num_total", "metric_num_success", "metric_num_errors")
    counts = [dict(zip(names, some, strict=False)) for some in ((50,), (40, 40, 10), (50, 45, 5))]
    trials = [(1, place, "COMPLETE", {**METRICS, **some}, (0.8, 2.5)) for place, some in enumerate(counts)]
    made = read(up("study.db", storage(trials)))
    assert set(rows(made, "aggregates")["n"]) == {50}
    told = [note.partition(";")[0] for note in made.notes if "failed" in note]
    assert told == [f"trial {n} of docs-study: {lost} of 50 answers failed" for n, lost in ((1, 10), (2, 5))]


OFFERS = {
    "optuna": ("optuna", storage()),
    "optuna-csv": ("optuna-csv", table().encode()),
}


@pytest.mark.extras
@pytest.mark.filterwarnings("ignore")
def test_a_study_that_optuna_itself_wrote_is_read(tmp_path):
    optuna = pytest.importorskip("optuna")
    study = optuna.create_study(
        storage=f"sqlite:///{tmp_path / 'study.db'}", study_name="real", directions=["maximize", "minimize"]
    )
    study.optimize(lambda trial: (trial.suggest_int("k", 1, 3) / 10, 2.0), n_trials=2)
    assert len(read(up("study.db", (tmp_path / "study.db").read_bytes())).runs) == 2
