from pathlib import Path

import numpy as np
import polars as pl
import pytest

from core.analysis.workspace.scope import Latency
from core.decide.near import conditioned
from core.decide.rules import Constraints
from core.decide.ties import Paired
from core.errors import InputError
from core.store import Store
from core.views.curves import sections
from core.views.curves.sections import deeper_steps
from core.views.what_if import scenarios, targets, words
from core.views.what_if.scenarios import Scenario
from tests.stores import HOSTILE
from tests.views.made import AT_10, BOOK, DEMO, every_k, stacks, table

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
        (Scenario("s", "cost", min_quality=0.72), "small"),
        (Scenario("s", dim=512.0), "small"),  # an unknown dimension does not meet a limit
        (Scenario("s", depth=100.0), "deep"),
        (Scenario("s", "latency", jitter_ms=0.0), HOSTILE[0]),
        (Scenario("s", depth=500.0), None),
    ],
)
def test_a_scenario_chooses_by_its_rule_and_limits(scenario: Scenario, name: str | None):
    found = scenarios.choose(TABLE, scenario, Constraints())
    assert found == (None if name is None else TABLE.filter(name=name)["run_id"].item())


def test_the_papers_ideas_in_terms_of_another_workspace():
    made = {each.name: each.words() for each in scenarios.derived(TABLE)}
    assert made == {
        "Baseline": "highest quality",
        "Cost saver": "lowest cost, quality at least 0.688",
        "Quality push": "highest quality, whatever it costs",
        "Efficient small-dim": "highest quality, at most 512 d",
        "High-K check": "highest quality, K at least 200",
    }
    near = {
        each.name: each.dim
        for each in scenarios.derived(TABLE.with_columns(dim=pl.Series([384, 256, 384, None])))
    }
    assert near["Efficient small-dim"] == 256.0  # no stack has 192
    assert [each.name for each in scenarios.derived(stacks(2))] == ["Baseline", "Quality push"]


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        (0.005, [("Baseline", "r1"), ("Quality push", "r0")]),  # surely within the zone: the cheaper one
        (0.05, [("Baseline", "r0")]),  # one stack, one scenario
    ],
)
def test_two_scenarios_of_the_highest_quality_differ_or_are_one(loss: float, expected: list[tuple[str, str]]):
    best = np.linspace(0.3, 0.9, 40)
    near = stacks(2, quality=[0.6, 0.6 - loss], cost=[2.0, 1.0], latency_ms=[200.0, 100.0])
    paired = Paired(near["run_id"].to_list(), np.stack([best, best - loss]))
    found = scenarios.choices(near, {}, [], Constraints(delta=0.01), paired=paired)
    highest = [each for each in found if each.asked.startswith("highest quality") and each.kind == "derived"]
    assert [(each.name, each.run_id) for each in highest] == expected


def test_ones_own_scenario_takes_the_place_of_one_of_the_same_name():
    own = [Scenario("Baseline", "cost"), Scenario("Mine", depth=500.0)]
    found = scenarios.choices(TABLE, {"Quality push": "r2", "gone": "elsewhere"}, own, FREE)
    assert [(each.name, each.run_id, each.kind) for each in found] == [
        ("Quality push", "r2", "published"),
        (scenarios.YOURS, "r2", "yours"),
        ("Baseline", "r3", "own"),
        ("Mine", None, "own"),
    ]


@pytest.mark.slow
def test_the_matrix_of_a_measured_workspace_has_n_and_interval(demo_store: Path):
    snapshot = Store.open(demo_store).read()
    whole = table(snapshot, DEMO)
    own = [Scenario("Nothing", min_quality=1.0)]
    found = scenarios.choices(whole, {}, own, FREE)
    rows = scenarios.matrix(snapshot, whole, DEMO, found, BOOK, quality=AT_10, latency=Latency())
    assert rows["scenario"].to_list() == [each.name for each in found]
    for row in rows.filter(kind="derived").iter_rows(named=True):
        same = whole.filter(run_id=row["run_id"]).row(0, named=True)
        assert row["RA-nWG@10"] == pytest.approx(same["quality"])
        assert row["RA-nWG@10 in words"].startswith(f"{same['quality']:.3f} [{same['quality_low']:.3f}, ")
        assert row["RA-nWG@30 in words"].endswith(f"n = {same['n']}")
        assert row["latency_ms"] == same["latency_ms"]
    assert rows["name"].to_list()[-1] is None
    sentence, details = words.answer(rows, AT_10)
    assert details.startswith("Best RA-nWG@10: ")
    assert sentence.startswith(f"{rows.height - 1} of {rows.height} scenarios choose ")
    assert sentence.endswith(" one stack."), "of the rest"
    assert details.endswith("No stack meets the limits of Nothing.")
    assert "in its own terms" in words.legend(rows)
    outside = rows.with_columns(beyond=pl.lit("9 ms over the SLA"))
    assert "beyond your limits" not in details
    assert ", beyond your limits. Cost per " in words.answer(outside, AT_10)[1]


@pytest.mark.parametrize(
    ("line", "expected"),
    [("", [350.0, 500.0, 750.0, 1000.0]), ("500, 350ms;500", [350.0, 500.0]), ("0.5", [0.5])],
)
def test_targets_are_read(line: str, expected: list[float]):
    assert targets.read_targets(line, TABLE, Constraints()) == expected


def test_targets_that_jitter_cannot_tell_apart_count_once():
    table = pl.DataFrame(
        {"latency_ms": [0.3, 3.6, 3.7, 3.8, 200.0, 250.0], "quality": [0.4, 0.5, 0.51, 0.56, 0.2, 0.57]}
    )
    every = [0.3, 3.6, 3.7, 3.8, 250.0]
    assert targets.read_targets("", table, Constraints()) == every
    assert targets.read_targets("", table, Constraints(jitter_ms=0.15)) == [0.3, 3.8, 250.0]
    jitter = table.with_columns(jitter_ms=pl.Series([0.15] * 4 + [40.0, 40.0]))
    assert targets.read_targets("", jitter, Constraints()) == [0.3, 3.8, 250.0], "each pair by its own jitter"


@pytest.mark.parametrize("line", ["fast", "-1", "0", "nan", "1e99", ",".join(map(str, range(1, 12)))])
def test_targets_are_refused(line: str):
    with pytest.raises(InputError):
        targets.read_targets(line, TABLE, Constraints())


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        (Constraints(), [0.2, 1.0, 431.0]),  # what the frontier needs: those of 5 and 9 ms are off it
        (Constraints(sla_ms=500), [0.2, 1.0, 431.0, 500.0]),
        (Constraints(higher_is_better=False), [0.2, 5.0]),
    ],
)
def test_targets_of_a_fast_workspace_are_those_of_its_frontier_and_its_limit(limits, expected):
    fast = stacks(latency_ms=[0.2, 1.0, 5.0, 9.0, 430.8], quality=[0.4, 0.5, 0.2, 0.3, 0.6])
    assert targets.read_targets("", fast, limits) == expected


def test_the_usual_targets_hold_where_the_frontier_is_long_or_slow():
    many = stacks(latency_ms=[0.1 * at for at in range(1, 31)], quality=[0.01 * at for at in range(1, 31)])
    assert len(targets.read_targets("", many, Constraints(sla_ms=0.25))) == targets.MOST
    slow = targets.read_targets("", stacks(1), Constraints(sla_ms=520.0))
    assert slow == sorted([*targets.USUAL_MS, 520.0])


def test_every_target_has_its_row_and_its_panel():
    found = conditioned(TABLE, [50.0, 350.0, 1000.0], Constraints(sla_ms=1.0))
    rows = targets.target_rows(TABLE, found)
    assert rows.select("feasible", "frontier", "chosen").rows() == [
        (0, 0, None),
        (3, 3, "big"),
        (4, 4, "deep"),
    ]
    assert words.target_words(rows, AT_10, "{} against {}".format) == (
        "From 350 ms to 1.00 s, RA-nWG@10 goes from 0.800 to 0.810 (n = 50).",
        "deep against big: deep against big.",
    )
    assert words.target_words(rows.head(1), AT_10, "{}{}".format)[0].startswith("No stack")
    assert words.target_words(rows.head(2), AT_10, "{}{}".format)[0].startswith(
        "big is the choice from 350 ms"
    )
    more = pl.concat([rows, rows.tail(1).with_columns(sla_ms=9000.0, chosen=pl.lit("last"))])
    alike = {"big": "significant, +0.1", "deep": "no significant difference, +0.01"}
    assert words.target_words(more, AT_10, lambda _, other: alike[other]) == (
        "Allowing 9.00 s instead of 1.00 s gains nothing significant in RA-nWG@10.",
        "last against deep: no significant difference, +0.01. Against big at 350 ms: significant, +0.1.",
    )
    alike["big"] = alike["deep"]
    assert words.target_words(more, AT_10, lambda _, other: alike[other]) == (
        "Allowing 9.00 s instead of 350 ms gains nothing significant in RA-nWG@10.",
        "last against big: no significant difference, +0.01.",
    )
    drawn = targets.panels(TABLE, found, AT_10)
    assert drawn is not None
    of = {(trace.name, trace.yaxis): trace for trace in drawn.data}
    assert list(of["chosen", "y2"].x) == [1.0]
    assert list(of["frontier", "y2"].x) == [0.2, 0.6, 1.0]
    assert ("chosen", "y") not in of
    legend = [trace.name for trace in drawn.data if trace.showlegend]
    assert sorted(legend) == [
        "breaks a limit",
        "chosen",
        "frontier",
        "within the target and your other limits",
    ]
    assert drawn.layout.annotations[0].text == "≤ 50.0 ms: 0 stacks"
    ranges = {tuple(drawn.layout[f"xaxis{place}"].range) for place in ("", 2, 3)}
    assert len(ranges) == 1
    assert "<img" not in drawn.to_json().replace("\\u003c", "<")
    assert targets.panels(stacks(quality=[0.5]), found[:1], AT_10) is None


def test_steps_are_named_by_their_family_and_flagged(demo_store: Path):
    snapshot = Store.open(demo_store).read()
    scope, asked = every_k(snapshot), {"quality": AT_10, "latency": Latency()}
    whole = table(snapshot, scope)
    assert deeper_steps(snapshot, whole, scope, **asked).is_empty(), "no stack of the demo has a reranker"
    read = whole.with_columns(pl.col("spec").str.replace('"reranker":"none"', '"reranker":"r"'))
    rows = sections.step_rows(deeper_steps(snapshot, read, scope, **asked), whole)
    assert rows.height
    assert not any("K =" in name for name in rows["family"])
    assert (rows["d_quality"] == 0).all()
    assert sections.said(rows, AT_10, 5) == ("A larger K changes nothing here (RA-nWG@10, n = 5).", "")
    down = rows.with_columns(d_quality=pl.lit(-0.1))
    none = f"None of {rows.height} steps to a larger K pays off (RA-nWG@10, n = 5)."
    assert sections.said(down, AT_10, 5) == (none, "")
    one = down.filter(series=down["series"][0])
    least = one["from_k"].min()
    more = f"Reranking more than {least} candidates does not"
    assert sections.said(one, AT_10, 5) == (f"{more} measurably improve RA-nWG@10 (n = 5).", "")
    held = sections.within_limits(one.with_columns(pays=True), dict.fromkeys(one["name"], "over the SLA"))
    assert sections.said(held, AT_10, 5) == (f"{more} pay off within your limits (RA-nWG@10, n = 5).", "")
    up, most = sections.said(rows.with_columns(d_quality=pl.lit(0.1), pays=pl.lit(value=True)), AT_10, 5)
    assert up.startswith(f"A larger K pays off in {rows.height} of {rows.height} step")
    assert ": +0.100 (95 % CI" in most


def test_no_step_pays_that_breaks_a_limit():
    rows = pl.DataFrame(
        {"name": ["a", "b", "c"], "pays": [True, True, False], "reason": [None, None, "no gain"]}
    )
    held = sections.within_limits(rows, {"b": "9 ms over the SLA", "c": "8 ms over the SLA"})
    assert held.select("pays", "reason").rows() == [
        (True, None),
        (False, "9 ms over the SLA"),
        (False, "no gain"),
    ]
