import json
import re

import numpy as np
import pytest
from typer.testing import CliRunner

from core.analysis.workspace.scope import Latency
from core.cli.app import app
from core.decide.rules import Constraints, decide
from core.decide.ties import Paired
from core.report.page import for_people
from core.store import Store
from core.views.words.near import broken, gain_words, kind, near_rows, near_table, own_scope, sentence, way_in
from tests.views.made import AT_10, DEMO, PAPER, stacks
from tests.views.made import table as table_of

TABLE = stacks(
    name=["chosen", "slow", "dear"],
    quality=[0.5, 0.8, 0.7],
    latency_ms=[400.0, 506.6, 300.0],
    cost=[1.0, 1.25, 2.25],
)
KEYS = {"stack", "run_id", "limit", "value", "over", "unit", "gain", "set_to"}


def listed(limits, table=TABLE):
    return near_rows(table, decide(table, limits), limits)


def test_near_misses_as_data_and_in_words():
    slow, dear = listed(Constraints(sla_ms=500, budget=2))
    assert set(slow) >= KEYS
    assert (slow["stack"], slow["run_id"], slow["set_to"], slow["edge"]) == ("slow", "r1", 510, True)
    assert (way_in(slow), way_in(dear)) == ("SLA 510 ms", "budget $2.25 / 1k")
    assert broken(dear) == "$0.25 / 1k over the budget (12.5 % beyond)"
    assert (kind(slow), kind(dear)) == ("near miss", "next better stack")
    assert sentence(dear, AT_10.name) == (
        "dear: RA-nWG@10 0.700 (+0.200); 300 ms; $2.25 / 1k; $0.25 / 1k over the budget (12.5 % beyond)."
    )


def test_a_gain_has_the_interval_of_the_queries_of_both():
    values = np.random.default_rng(3).normal([[0.5], [0.7]], 0.1, (2, 30))
    table = stacks(quality=values.mean(axis=1).tolist(), latency_ms=[10.0, 300.0], cost=[1.0, 1.0])
    paired = Paired(table["run_id"].to_list(), values)
    limits = Constraints(sla_ms=100)
    (row,) = near_rows(table, decide(table, limits, paired=paired), limits, paired=paired)
    assert row["gain_low"] < row["gain"] < row["gain_high"]
    assert re.fullmatch(r"\+0\.1\d\d \[\+0\.1\d\d, \+0\.2\d\d\]", gain_words(row)), gain_words(row)
    assert gain_words(row) in sentence(row, AT_10.name)
    assert gain_words(row) in str(near_table([row]).cells)


@pytest.mark.parametrize(
    ("low", "near", "said"),
    [
        (0.1, False, "next better stack"),
        (-0.04, False, "not surely better"),
        (None, False, "next better stack"),
        (-0.04, True, "near miss"),
    ],
)
def test_only_what_is_surely_better_is_called_better(low: float | None, near: bool, said: str):
    assert kind({"near": near, "gain": 0.02, "gain_low": low}) == said


@pytest.mark.parametrize(
    ("gain", "ms", "named"), [(0.009, 506, True), (0.009, 900, False), (0.011, 900, True)]
)
def test_what_gains_less_than_matters_is_named_at_the_edge_alone(gain: float, ms: float, named: bool):
    table = stacks(quality=[0.5, 0.5 + gain], latency_ms=[400.0, ms], cost=[1.0, 1.0])
    assert bool(listed(Constraints(sla_ms=500, delta=0.01), table)) == named


def test_without_a_choice_there_is_no_gain():
    rows = listed(Constraints(sla_ms=100, budget=9))
    assert [(row["stack"], row["gain"]) for row in rows] == [
        ("dear", None),
        ("slow", None),
    ]  # the closest first
    assert [(row["then"], kind(row)) for row in rows] == [
        ("dear", "out of the limits"),
        ("slow", "out of the limits"),
    ]
    assert "+" not in sentence(rows[0], AT_10.name)
    (floor,) = listed(Constraints(sla_ms=400, budget=2, min_quality=0.6), TABLE.head(1))
    assert (way_in(floor), broken(floor)) == (
        "quality floor 0.5",
        "0.100 under the quality floor (16.7 % beyond)",
    )


@pytest.mark.slow
def test_the_paper_at_500_ms(published_store, tmp_path):
    question = ["--collection", "clq-paper", "--sla-ms", "500", "--budget", "2.5"]

    def call(*words):
        result = CliRunner().invoke(app, ["--store", str(published_store), *words, *question])
        assert result.exit_code == 0, result.output
        return result.stdout

    found = json.loads(call("decide", "--format", "json"))
    assert found["chosen"]["quality"] == pytest.approx(0.610)
    miss = found["near_misses"][0]
    assert (miss["value"], miss["limit"], miss["unit"], miss["set_to"]) == (506.6, "sla_ms", "ms", 510)
    assert (miss["quality"], miss["edge"]) == (0.805, True)
    assert miss["cost"] == pytest.approx(1.25, abs=0.005)
    assert miss["gain"] == pytest.approx(0.195)
    assert f"{miss['stack']}: RA-nWG@10 0.805 (+0.195)" in call("decide")
    files = {ending: tmp_path / f"record{ending}" for ending in (".html", ".md", ".json")}
    for path in files.values():
        call("record", str(path))
    written = {ending: path.read_text(encoding="utf-8") for ending, path in files.items()}
    assert json.loads(written.pop(".json"))["near_misses"] == found["near_misses"]
    labels = [column.label for column in for_people(near_table(found["near_misses"]))[1]]
    for text in written.values():
        assert "SLA 510 ms" in text
        assert "0.195" in text
    for label in labels:
        assert re.search(f"<th scope=.col.[^>]*>{label}<".replace("$", r"\$"), written[".html"])
        assert re.search(label.replace("$", r"\$"), written[".md"])


@pytest.mark.parametrize(
    ("scope", "latency", "offered"),
    [(PAPER, Latency(), True), (PAPER, Latency("p50", "rerank"), False), (DEMO, Latency(), False)],
)
def test_the_papers_own_latency_is_offered_where_the_path_is_unknown(demo_store, scope, latency, offered):
    snapshot = Store.open(demo_store).read()
    said = own_scope(snapshot, table_of(snapshot, scope, AT_10, latency), latency)
    assert bool(said) == offered
    if offered:
        assert "3 stacks is unknown" in said
