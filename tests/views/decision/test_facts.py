from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from core.analysis.status import status_rows
from core.analysis.workspace.figures.samples import joint_sample
from core.analysis.workspace.scope import Latency, Quality, Scope
from core.analysis.workspace.view import View
from core.decide.rules import Constraints, decide
from core.errors import UnknownNameError
from core.report.data import verdict
from core.stats.intervals import SEED
from core.views.confidence.hold import CHANCES, shares
from core.views.words import facts
from core.views.words.facts import frontier_rows, record, unanswerable, warnings
from tests.stores import Lab
from tests.views.made import AT_10, BOOK, LAB, asking, stacks

TABLE = stacks(
    name=["good", "cheap", "poor", "unknown"],
    quality=[0.8, 0.7, 0.6, None],
    latency_ms=[500.0, 100.0, 300.0, None],
    cost=[1.25, 0.5, 9.0, None],
    n=[50, 50, 7, None],
)

UNJUDGED = Scope("lab")


@pytest.fixture(autouse=True)
def untimed(monkeypatch: pytest.MonkeyPatch):
    """No store stands behind these tables: nothing is known of slow searches."""
    monkeypatch.setattr(facts, "slow", lambda *_: None)


def asked(rule="quality", quality=AT_10, latency=None, snapshot=None, scope=UNJUDGED, **limits):
    limits = Constraints(**limits)
    latency = latency or Latency()
    return View(snapshot, scope, quality=quality, latency=latency, book=BOOK, constraints=limits, rule=rule)


def made(question, table=TABLE):
    view = asking(table, question.constraints, question.rule, scope=UNJUDGED, weak=question.weak)
    return record(table, view)


def test_a_record_says_everything():
    found = made(asked(sla_ms=400, budget=5))
    assert found["asked"]["sla_ms"] == 400
    assert found["chosen"]["stack"] == "cheap"
    assert found["runner_up"] is None
    assert [row["stack"] for row in found["frontier"]] == ["cheap"]
    excluded = {row["stack"]: (row["constraint"], row["by"]) for row in found["excluded"]}
    assert excluded["good"] == ("sla_ms", pytest.approx(100))
    assert excluded["poor"] == ("budget", pytest.approx(4))
    assert excluded["unknown"] == ("unknown quality", None)
    assert found["warnings"] == ["1 stack left out: unknown quality."]


@pytest.mark.parametrize(
    ("measure", "said"),
    [
        ("RA-nWG", "RA-nWG@2 has no value on these, so they are not in n"),
        ("Harm", "counts these where it has a value"),
        ("Answer", "counts these where their answers are scored"),
    ],
)
def test_questions_without_an_answer_are_counted(tmp_path, measure: str, said: str):
    lab = Lab().judge({"q1": {"a": 5}, "q2": {"a": 2, "b": 1}, "q3": {"a": 5}})
    lab = lab.ask({"q1": "one", "q2": "two"}).ask({"q3": "three"}, tags=["type=unanswerable"])
    snapshot = (
        lab.run("r", final={name: ["a", "b"] for name in ("q1", "q2", "q3")}).write(tmp_path / "s").read()
    )
    question = asked(quality=Quality(measure, 2), snapshot=snapshot, scope=LAB)
    words = unanswerable(question)["2 without an answer"]
    assert words.startswith("2 queries have no answer in the texts (tagged, or nothing of use judged)")
    assert said in words


@pytest.mark.slow
def test_the_frontier_of_a_record_is_in_the_form_that_was_asked_for():
    table = stacks(quality=[0.8, 0.8, 0.5], latency_ms=[100.0, 200.0, 300.0], cost=[1.0, 1.0, 2.0])
    usual, weak = asked(), replace(asked(), weak=True)
    assert [len(made(each, table)["frontier"]) for each in (usual, weak)] == [1, 2]
    assert [made(each, table)["asked"]["frontier"] for each in (usual, weak)] == ["usual", "weak"]


def test_what_would_turn_it():
    found = made(asked())
    assert (found["chosen"]["stack"], found["runner_up"]["stack"]) == ("good", "cheap")
    (gain,) = [turn for turn in found["would_turn"] if turn["stack"] == "cheap" and turn["of"] == "quality"]
    assert (gain["then"], gain["by"], gain["winner"]) == (0.7995, 0.0995, "cheap"), (
        "which reads as equal, and is cheaper"
    )


def test_nothing_chosen_is_null():
    found = made(asked(sla_ms=1))
    assert (found["chosen"], found["runner_up"], found["frontier"], found["would_turn"]) == (
        None,
        None,
        [],
        [],
    )


def test_status_of_every_stack():
    question = asked()
    rows = status_rows(TABLE, decide(TABLE, question.constraints))
    assert rows["status"].to_list() == ["chosen", "runner-up", "within the limits", "excluded"]
    assert rows["reason"].to_list()[-1] == "unknown quality"


def test_the_frontier_without_costs_or_latencies():
    blind = TABLE.with_columns(pl.lit(None, pl.Float64).alias("cost"))
    assert frontier_rows(blind, decide(blind, Constraints())) == [0, 1]
    blind = blind.with_columns(pl.lit(None, pl.Float64).alias("latency_ms"))
    assert frontier_rows(blind, decide(blind, Constraints())) == [0]
    empty = TABLE.clear()
    assert frontier_rows(empty, decide(empty, Constraints())) == []


@pytest.mark.parametrize(
    ("changed", "limits", "words"),
    [
        ({"n": 12}, {}, "Few queries: the chosen stack was scored on 12."),
        ({"n": None}, {}, "How many queries the chosen stack was scored on is not known."),
        ({"latency_high": 700.0}, {"sla_ms": 600}, "lies within the interval of its latency"),
        ({"latency_n": 15}, {}, "Its latency rests on 15 queries only, its quality on 50."),
        ({"p_feasible": 0.5}, {}, "In 50.0 % of the resamples"),
    ],
)
def test_warnings(changed, limits, words):
    first = pl.int_range(pl.len()) == 0
    table = TABLE.with_columns(pl.lit(None, pl.Float64).alias("p_feasible")).with_columns(
        pl.when(first).then(pl.lit(value)).otherwise(pl.col(name)).alias(name)
        for name, value in changed.items()
    )
    question = asking(table, Constraints(**limits), scope=UNJUDGED)
    found = warnings(table, decide(table, question.constraints), question)
    assert any(words in each for each in found), found


GRADES = {"q1": {"a": 5}, "q2": {"a": 5}, "q3": {"a": 5}}


def lab(tmp_path):
    """Two measured stacks that swap a query, and one known by its figures only."""
    hit, miss = ["a"], ["b"]
    made = Lab().judge(GRADES)
    made.run("fast", final={"q1": hit, "q2": miss, "q3": hit}, ms={"embed": [10.0, 20.0, 30.0]})
    made.run("slow", final={"q1": hit, "q2": hit, "q3": hit}, ms={"embed": [100.0, 200.0, 300.0]})
    figures = [
        {"measure": "RA-nWG", "k": 1, "stage": None, "value": 0.1, "n": 3},
        {"measure": "usd_per_1k", "k": None, "stage": None, "value": 1.0, "n": None},
    ]
    made.run("told", figures=figures)
    return made.write(tmp_path / "s").read()


AT_1 = Quality("RA-nWG", 1)


@pytest.mark.slow
def test_chances_of_measured_stacks(tmp_path):
    snapshot = lab(tmp_path)
    question = asked(quality=AT_1, snapshot=snapshot, scope=LAB, sla_ms=250)
    found = verdict(question)
    assert found.table["name"].to_list() == ["fast", "slow", "told"]
    sample = joint_sample(snapshot, found.table, LAB, quality=AT_1, latency=Latency())
    assert sample.quality[:2].tolist() == [[1, 0, 1], [1, 1, 1]]
    assert sample.latency_ms[1].tolist() == [100, 200, 300]
    rows = found.chances.to_dicts()
    assert rows[0]["p_sla"] == 1.0
    assert rows[1]["p_sla"] == pytest.approx(20 / 27, abs=0.04)  # the median of three draws of three
    assert [rows[2][name] for name in CHANCES] == [None] * len(CHANCES)
    assert rows[2]["reason"] == "no results per query for this stack"
    again = verdict(replace(question, seed=SEED))
    assert again.chances.equals(found.chances)


@pytest.mark.slow
def test_without_results_per_query_nothing_is_resampled(tmp_path):
    snapshot = lab(tmp_path)
    question = asked(quality=AT_1, snapshot=snapshot, scope=LAB)
    table = verdict(question).table.filter(pl.col("run_id") == "told")
    sample = joint_sample(snapshot, table, LAB, quality=AT_1, latency=Latency())
    found = shares(table, sample, (question.constraints, "quality"))
    assert found["reason"].to_list() == ["no results per query: nothing can be resampled"]
    assert np.isnan(found.select(CHANCES).cast(pl.Float64).to_numpy()).all()


def test_a_measure_that_nobody_reports_is_refused(tmp_path):
    with pytest.raises(UnknownNameError, match="ERRR"):
        verdict(asked(quality=Quality("ERRR", 10), snapshot=lab(tmp_path), scope=LAB))
