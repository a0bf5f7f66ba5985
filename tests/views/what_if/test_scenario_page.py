from pathlib import Path

import polars as pl
import pytest

from core.decide.marginal import marginal
from core.decide.rules import Constraints
from core.decide.slo import conditioned
from core.errors import InputError
from core.store import Store
from core.views.what_if import deeper_chart, scenario_page, targets
from core.views.what_if.deeper import steps
from core.views.what_if.scenario_text import Scenario
from core.views.workspace.scope import Latency
from tests.stores import HOSTILE
from tests.views.made import AT_10, BOOK, DEMO, stacks, table

TABLE = stacks(
    name=["big", "small", "deep", HOSTILE[0]],
    quality=[0.80, 0.75, 0.81, 0.70],
    quality_low=[0.79, 0.74, 0.80, 0.69],
    quality_high=[0.81, 0.76, 0.82, 0.71],
    latency_ms=[300.0, 200.0, 900.0, 100.0],
    cost=[1.0, 0.6, 4.0, 0.2],
    dim=[1024, 256, 1024, None],
    candidates=[50, 50, 200, 20],
)
FREE = Constraints()


@pytest.mark.parametrize(
    ("scenario", "name"),
    [
        (Scenario("s"), "deep"),
        (Scenario("s", sla_ms=500.0), "big"),
        (Scenario("s", "cost"), HOSTILE[0]),
        (Scenario("s", "cost", floor=0.72), "small"),
        (Scenario("s", dim=512.0), "small"),  # an unknown dimension does not meet a limit
        (Scenario("s", depth=100.0), "deep"),
        (Scenario("s", "latency", jitter_ms=0.0), HOSTILE[0]),
        (Scenario("s", depth=500.0), None),
    ],
)
def test_a_scenario_chooses_by_its_rule_and_limits(scenario: Scenario, name: str | None):
    found = scenario_page.choose(TABLE, scenario, Constraints())
    assert found == (None if name is None else TABLE.filter(name=name)["run_id"].item())


def test_the_papers_ideas_in_terms_of_another_workspace():
    made = {each.name: each.words() for each in scenario_page.derived(TABLE)}
    assert made == {
        "Baseline": "highest quality",
        "Cost saver": "lowest cost, quality at least 0.688",
        "Quality push": "highest quality",
        "Efficient small-dim": "highest quality, at most 512 dimensions",
        "High-K check": "highest quality, K at least 200",
    }
    assert [each.name for each in scenario_page.derived(stacks(2))] == ["Baseline", "Quality push"]


def test_ones_own_scenario_takes_the_place_of_one_of_the_same_name():
    own = [Scenario("Baseline", "cost"), Scenario("Mine", depth=500.0)]
    found = scenario_page.choices(TABLE, {"Quality push": "r2", "gone": "elsewhere"}, own, FREE)
    assert [(each.name, each.run_id, each.kind) for each in found] == [
        ("Quality push", "r2", "published"),
        (scenario_page.SIDEBAR, "r2", "sidebar"),
        ("Baseline", "r3", "own"),
        ("Mine", None, "own"),
    ]


def test_the_matrix_of_a_measured_workspace_has_n_and_interval(demo_store: Path):
    snapshot = Store.open(demo_store).read()
    whole = table(snapshot, DEMO)
    own = [Scenario("Nothing", floor=1.0)]
    found = scenario_page.choices(whole, {}, own, FREE)
    rows = scenario_page.matrix(snapshot, whole, DEMO, found, BOOK, quality=AT_10, latency=Latency())
    assert rows["scenario"].to_list() == [each.name for each in found]
    for row in rows.filter(kind="derived").iter_rows(named=True):
        same = whole.filter(run_id=row["run_id"]).row(0, named=True)
        assert row["RA-nWG@10"] == pytest.approx(same["quality"])
        assert row["RA-nWG@10 in words"].startswith(f"{same['quality']:.3f} [{same['quality_low']:.3f}, ")
        assert row["RA-nWG@30 in words"].endswith(f"n = {same['n']}")
        assert row["latency_ms"] == same["latency_ms"]
    assert rows["name"].to_list()[-1] is None
    sentence, details = scenario_page.answer(rows, AT_10)
    assert "RA-nWG@10" in sentence
    assert details.endswith("Nothing is left for Nothing.")
    assert "in its own terms" in scenario_page.legend(rows)


@pytest.mark.parametrize(
    ("line", "expected"),
    [("", [350.0, 500.0, 750.0, 1000.0]), ("500, 350ms;500", [350.0, 500.0]), ("0.5", [0.5])],
)
def test_targets_are_read(line: str, expected: list[float]):
    assert targets.read_targets(line, TABLE) == expected


@pytest.mark.parametrize("line", ["fast", "-1", "0", "nan", "1e99", ",".join(map(str, range(1, 12)))])
def test_targets_are_refused(line: str):
    with pytest.raises(InputError):
        targets.read_targets(line, TABLE)


def test_targets_of_a_fast_workspace_come_from_its_latencies():
    fast = stacks(latency_ms=[0.2, 0.71])
    assert targets.read_targets("", fast) == [0.18, 0.35, 0.53, 0.71]
    assert targets.read_targets("", stacks(1)) == list(targets.USUAL_MS)


def test_every_target_has_its_row_and_its_panel():
    found = conditioned(TABLE, [50.0, 350.0, 1000.0], Constraints(sla_ms=1.0))
    rows = targets.target_rows(TABLE, found)
    assert rows.select("feasible", "frontier", "chosen").rows() == [
        (0, 0, None),
        (3, 3, "big"),
        (4, 4, "deep"),
    ]
    assert targets.target_words(rows) == "Within 350 ms: big (0.800); within 1.00 s: deep (0.810, +0.010)."
    assert targets.target_words(rows.head(1)).startswith("No stack")
    assert targets.target_words(rows.head(2)).endswith("do not change that.")
    assert targets.panel_title(rows.row(0, named=True)) == (
        "At most 50.0 ms: 0 stacks.",
        "Nothing to choose.",
    )
    ranges = targets.spans(TABLE)
    assert ranges is not None
    drawn = targets.panel(TABLE, found[1], AT_10, ranges)
    assert list(drawn.data[-1].x) == [1.0]  # the ring
    assert list(drawn.data[2].x) == [0.2, 0.6, 1.0]  # the frontier
    assert "<img" not in drawn.to_json().replace("\\u003c", "<")
    assert len(targets.panel(TABLE, found[0], AT_10, ranges).data) == 3
    assert targets.spans(stacks(quality=[0.5])) is None


def test_steps_are_named_by_their_family_and_flagged(demo_store: Path):
    snapshot = Store.open(demo_store).read()
    whole = table(snapshot, DEMO)
    rows = deeper_chart.step_rows(steps(snapshot, whole, DEMO, quality=AT_10, latency=Latency()), whole)
    assert rows.height
    assert not any("K =" in name for name in rows["family"])
    assert deeper_chart.step_words(rows).startswith(f"{rows['pays'].sum()} of {rows.height} step")
    assert deeper_chart.step_words(rows.clear()).startswith("No two stacks")
    assert deeper_chart.step_chart(rows.clear(), "100 ms") is None


def test_a_step_that_does_not_pay_is_hollow():
    spec = ['{"candidates": 20}', '{"candidates": 50}', '{"candidates": 100}']
    made = stacks(
        name=["a, K = 20", "a, K = 50", "a, K = 100"],
        quality=[0.5, 0.6, 0.6],
        latency_ms=[100.0, 200.0, 300.0],
        candidates=[20, 50, 100],
        spec=spec,
    ).with_columns(pl.lit("s").alias("series"))
    rows = deeper_chart.step_rows(marginal(made), made)
    drawn = deeper_chart.step_chart(rows, "100 ms")
    assert drawn is not None
    assert list(drawn.data[0].marker.symbol) == ["circle", "circle-open"]
    assert list(drawn.data[0].y) == pytest.approx([0.1, 0.0])
    assert deeper_chart.step_chart(rows, "$1 / 1k") is None  # cost unknown
    assert "1 of 1 family stop paying" in deeper_chart.step_words(rows)
