"""The page that says how sure a choice is, on tables made by hand."""

import numpy as np
import polars as pl
import pytest

from core.decide.joint import JointSample
from core.decide.rules import Constraints, decide
from core.decide.turning import turns
from core.views.confidence import sure, sure_charts, sure_details
from core.views.confidence.certainty import shares
from core.views.decision.facts import Asked
from core.views.workspace.scope import Latency
from tests.stores import HOSTILE
from tests.views.made import AT_10, stacks

RNG = np.random.default_rng(3)
PER_QUERY = np.clip(RNG.normal([[0.8], [0.8], [0.78], [0.4]], [[0.1]], size=(4, 60)), 0, 1)
PER_QUERY[1] = PER_QUERY[0]
PER_QUERY[2] = PER_QUERY[0] - 0.02
MEANS = PER_QUERY.mean(axis=1)
TABLE = stacks(
    name=["a", "twin", "little worse", "bad"],
    quality=MEANS.tolist(),
    quality_low=(MEANS - 0.03).tolist(),
    quality_high=(MEANS + 0.03).tolist(),
    n=[60] * 4,
    latency_ms=[100.0, 120.0, 90.0, 300.0],
    cost=[1.0, 1.1, 0.5, 0.1],
    candidates=[50, 50, 100, 50],
)
UNKNOWN = np.full(4, np.nan)
SAMPLE = JointSample(
    PER_QUERY, np.full((4, 60), np.nan), TABLE["cost"].to_numpy(), UNKNOWN, TABLE["latency_ms"].to_numpy()
)


def asked(**limits: float) -> Asked:
    return Asked(Constraints(**limits), "quality", AT_10, Latency())


def found(sample: JointSample | None = SAMPLE, table: pl.DataFrame = TABLE, **limits: float):
    wanted = asked(**limits)
    decision = decide(table, wanted.constraints)
    chances = shares(table, sample, (wanted.constraints, "quality"), resamples=400, seed=1)
    near = sure.alike(table, decision, sample, seed=1)
    return wanted, decision, chances, near


def test_the_set_that_cannot_be_told_apart_is_named_with_its_paired_difference():
    _, decision, _, near = found()
    assert TABLE["name"][decision.chosen] == "a"
    assert dict(near.select("name", "reading").iter_rows()) == {"twin": sure.SAME, "little worse": sure.APART}
    assert near["gap_ms"].to_list() == [20.0, -10.0]
    assert near["d_quality"].to_list() == pytest.approx([0.0, -0.02])
    assert near["d_high"][1] < 0


@pytest.mark.parametrize(
    ("limits", "names"),
    [
        ({"jitter_ms": 15.0}, ["little worse"]),
        ({"jitter_ms": 0.0}, []),
        ({"budget": 1.0}, ["little worse"]),  # what the limits exclude is no rival
        ({"sla_ms": 10.0}, []),
    ],
)
def test_only_feasible_stacks_in_the_jitter_band_are_rivals(limits: dict[str, float], names: list[str]):
    assert found(**limits)[3]["name"].to_list() == names


def test_without_results_per_query_the_band_still_stands_and_the_chances_are_unknown():
    wanted, decision, chances, near = found(None)
    assert near["d_quality"].null_count() == near.height == 2
    assert set(near["reading"]) == {sure.ALIKE}
    said = sure.said(TABLE, decision, wanted, chances, near)
    assert said.sentence.endswith("How sure that is, is unknown.")
    assert "n = 60" in said.sentence
    assert "no results per query" in said.details
    assert sure_charts.chances(sure.share_rows(TABLE, decision, chances)) is None


def test_the_answer_says_how_often_the_choice_is_the_best_alone_and_with_its_twins():
    wanted, decision, chances, near = found(sla_ms=200.0)
    said = sure.said(TABLE, decision, wanted, chances, near)
    assert "It is the best in 50.0 % of the resamples and within the limits in 100.0 %." in said.sentence
    assert "2 stacks cannot be told apart" in said.details
    assert "the best in 100.0 %" in said.details
    assert "1 of them still differ" in said.details
    assert sure.alike_words(near, decision.jitter_ms).endswith(
        "1 same score on every query; 1 apart when paired."
    )


def test_no_choice_is_said():
    wanted, decision, chances, near = found(floor=0.99)
    assert near.is_empty()
    assert sure.said(TABLE, decision, wanted, chances, near).sentence.startswith("No stack above")
    assert sure_charts.band(TABLE, near, decision, wanted) is None
    assert sure_details.turning_words(sure_details.turn_rows(TABLE, [])).startswith("There is no runner-up")


def test_every_stack_is_in_the_table_the_likeliest_first():
    _, decision, chances, _ = found()
    rows = sure.share_rows(TABLE, decision, chances)
    assert rows.height == TABLE.height
    assert rows["p_best"].to_list() == [0.5, 0.5, 0.0, 0.0]
    assert rows["status"].to_list()[:1] == ["chosen"]


def test_charts_escape_names_and_mark_the_chosen_one():
    table = TABLE.with_columns(pl.Series("name", HOSTILE[:4]))
    wanted, decision, chances, near = found(table=table)
    drawn = sure_charts.chances(sure.share_rows(table, decision, chances))
    band = sure_charts.band(table, near, decision, wanted)
    assert drawn is not None
    assert band is not None
    for figure in (drawn, band):
        assert "<img" not in figure.to_json().replace("\\u003c", "<")
    assert drawn.data[0].marker.color[0] == "#D55E00"
    (box,) = band.layout.shapes
    assert (box.y0, box.y1) == (table["quality_low"][0], table["quality_high"][0])


def test_what_would_turn_the_choice_is_said_with_units_and_winner():
    rows = sure_details.turn_rows(TABLE, turns(TABLE, Constraints(sla_ms=200.0)))
    assert rows["number"].to_list() == ["cost", "latency", "quality"] * 2
    cheaper = rows.row(0, named=True)
    assert cheaper["stack"] == "twin"
    assert cheaper["now"] == "$1.10 / 1k"
    assert cheaper["winner"] == "twin"
    assert cheaper["change"].startswith("−$0.10 / 1k (−9.")
    assert sure_details.turning_words(rows).startswith("The runner-up twin would win with one of: cost $1.10")


def test_every_excluded_stack_has_its_first_limit_and_by_how_much():
    decision = decide(TABLE, Constraints(sla_ms=110.0, floor=0.5))
    rows = sure_details.excluded_rows(TABLE, decision)
    assert rows.select("name", "constraint", "by", "unit").rows() == [
        ("twin", "sla", 10.0, "ms"),
        ("bad", "sla", 190.0, "ms"),
    ]
    assert sure_details.excluded_words(rows) == "2 stacks: 2 by the SLA."
    assert sure_details.excluded_words(rows.clear()).startswith("Nothing")


def test_the_frontier_in_numbers_keeps_its_corner_under_limits():
    free = sure_details.front(TABLE, decide(TABLE, Constraints()))
    tight = sure_details.front(TABLE, decide(TABLE, Constraints(budget=0.2)))
    assert free is not None
    assert tight is not None
    assert free.volume == free.of_all == tight.of_all
    assert tight.volume < free.volume
    assert (free.size, tight.size, tight.knee) == (3, 1, None)
    assert sure_details.front(stacks(2), decide(stacks(2), Constraints())) is None
    assert list(sure_details.front_cards(free)) == ["On the frontier", "Hypervolume", "Knee"]
