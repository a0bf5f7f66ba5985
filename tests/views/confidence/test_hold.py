"""The page that says how sure a choice is, on tables made by hand."""

import numpy as np
import polars as pl
import pytest

from core.decide.axes import QUALITY
from core.decide.joint import JointSample
from core.decide.near import Turn, turns
from core.decide.rules import Constraints, decide
from core.decide.ties import Paired
from core.views.confidence import charts, hold, words
from core.views.confidence.hold import shares
from core.views.workspace.scope import Latency
from core.views.workspace.view import View
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


def asked(**limits: float) -> View:
    return View(None, None, quality=AT_10, latency=Latency(), book=None, constraints=Constraints(**limits))


def found(sample: JointSample | None = SAMPLE, table: pl.DataFrame = TABLE, **limits: float):
    wanted = asked(**limits)
    known = sample is not None
    paired = Paired(table["run_id"].to_list(), sample.quality) if known else None
    decision = decide(table, wanted.constraints, paired=paired)
    chances = shares(table, sample, (wanted.constraints, "quality"), resamples=400, seed=1)
    return wanted, decision, chances, hold.tie_rows(table, decision, sample, seed=1)


def test_what_ties_with_the_best_is_what_the_decision_ties_with_its_paired_difference():
    _, decision, _, tied = found()
    assert tied["row"].to_list() == list(decision.ties)
    assert dict(tied.select("name", "reading").iter_rows()) == {"a": hold.BEST, "twin": hold.SAME}
    assert tied["gap_ms"].to_list() == [0.0, 20.0]
    assert tied["d_quality"].to_list() == tied["d_low"].to_list() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("limits", "names"),
    [
        ({"jitter_ms": 15.0}, ["a"]),
        ({"budget": 1.0}, ["a"]),  # what the limits exclude does not tie
        ({"sla_ms": 10.0}, []),
    ],
)
def test_only_feasible_stacks_in_the_jitter_band_tie(limits: dict[str, float], names: list[str]):
    assert found(**limits)[3]["name"].to_list() == names


def test_without_results_per_query_averages_tie_and_the_chances_are_unknown():
    wanted, decision, chances, tied = found(None)
    assert tied["d_quality"].null_count() == tied.height == 3
    assert set(tied["reading"]) == {hold.BEST, hold.AVERAGE}
    assert "is unknown: no results per query" in words.held(TABLE, decision, wanted, chances)
    shown = words.held_cards(TABLE, decision, wanted, chances, (60, None))
    assert [(label, value) for label, value, _ in shown][1:] == [("Latency", "100 ms"), ("Cost", "$1.00")]
    assert shown[0][2].endswith("n = 60")
    assert charts.chances(hold.share_rows(TABLE, decision, chances)) is None


def test_the_answer_says_how_often_the_choice_is_the_best_alone_and_with_its_twins():
    wanted, decision, chances, _ = found(sla_ms=200.0)
    said = words.held(TABLE, decision, wanted, chances)
    assert said.startswith("a or the one tied with it")
    assert said.index("100.0 %") < said.index("50.0 %")
    cards = {
        label: (value, about)
        for label, value, about in words.held_cards(TABLE, decision, wanted, chances, (60, None))
    }
    assert cards["Feasible"] == ("100.0 %", "within 200 ms (p50)")
    assert cards["RA-nWG@10"][1].endswith("n = 60")


def test_no_choice_is_said():
    wanted, decision, chances, tied = found(floor=0.99)
    assert tied.is_empty()
    assert words.held(TABLE, decision, wanted, chances).startswith("No stack above")
    assert charts.ties(TABLE, tied, decision, wanted) is None
    assert words.turning_words(hold.turn_rows(TABLE, [])).startswith("There is no runner-up")


def test_every_stack_is_in_the_table_the_likeliest_first():
    _, decision, chances, _ = found()
    rows = hold.share_rows(TABLE, decision, chances)
    assert rows.height == TABLE.height
    assert rows["p_best"].to_list() == [0.5, 0.5, 0.0, 0.0]
    assert rows["status"].to_list()[:1] == ["chosen"]


def test_charts_escape_names_and_mark_the_chosen_one():
    table = TABLE.with_columns(pl.Series("name", HOSTILE[:4]))
    wanted, decision, chances, tied = found(table=table)
    drawn = charts.chances(hold.share_rows(table, decision, chances))
    band = charts.ties(table, tied, decision, wanted)
    assert drawn is not None
    assert band is not None
    for figure in (drawn, band):
        assert "<img" not in figure.to_json().replace("\\u003c", "<")
    assert drawn.data[0].marker.color[0] == "#D55E00"
    assert {trace.name for trace in band.data} >= {"chosen", "ties with the best (1)"}
    low, high = band.layout.xaxis.range
    assert low < table["latency_ms"].min() < table["latency_ms"].max() < high < 400
    assert not band.layout.shapes, "a band of 75 ms is most of this plot"
    narrow = charts.ties(table, tied, decide(table, Constraints(jitter_ms=5.0)), wanted)
    (strip,) = narrow.layout.shapes
    assert (strip.x0, strip.x1) == (95.0, 105.0)


def test_what_would_turn_the_choice_is_said_with_units_and_winner():
    rows = hold.turn_rows(TABLE, turns(TABLE, Constraints(sla_ms=200.0)))
    assert rows["number"].to_list() == ["cost", "latency", "quality"] * 2
    cheaper = rows.row(0, named=True)
    assert cheaper["stack"] == "twin"
    assert cheaper["now"] == "$1.10 / 1k"
    assert cheaper["winner"] == "twin"
    assert cheaper["change"].startswith("−$0.10 / 1k (−9.")
    said = words.turning_words(rows)
    assert "twin" in said
    assert f"cost {cheaper['then']} instead of $1.10 / 1k" in said


def test_ties_stay_unknown_where_only_averages_are_known():
    decision = decide(TABLE, Constraints(sla_ms=95.0))
    assert "unknown" in words.no_tie(decision, known=False)
    assert "unknown" not in words.no_tie(decision, known=True)


def test_a_change_too_small_to_be_read_is_no_number():
    made = [Turn(0, QUALITY, 0.805, 0.805 + step, 1) for step in (1e-9, -1e-9)]
    rows = hold.turn_rows(TABLE, made)
    assert rows["now"].to_list() == ["0.805"] * 2
    assert rows["then"].to_list() == ["just above 0.805", "just below 0.805"]
    assert rows["change"].unique().to_list() == ["next to nothing"]


def test_every_excluded_stack_has_its_first_limit_and_by_how_much():
    decision = decide(TABLE, Constraints(sla_ms=110.0, floor=0.5))
    rows = hold.excluded_rows(TABLE, decision)
    assert rows.select("name", "constraint", "by", "unit").rows() == [
        ("twin", "sla", 10.0, "ms"),
        ("bad", "sla", 190.0, "ms"),
    ]
    assert words.excluded_words(rows) == "2 stacks: 2 by the SLA."
    assert words.excluded_words(rows.clear()).startswith("Nothing")


def test_the_frontier_in_numbers_keeps_its_corner_under_limits():
    free = hold.front(TABLE, decide(TABLE, Constraints()))
    tight = hold.front(TABLE, decide(TABLE, Constraints(budget=0.2)))
    assert free is not None
    assert tight is not None
    assert free.volume == free.of_all == tight.of_all
    assert tight.volume < free.volume
    assert (free.size, tight.size, tight.knee) == (3, 1, None)
    assert hold.front(stacks(2), decide(stacks(2), Constraints())) is None
    assert [label for label, _, _ in words.front_cards(free)] == ["On the frontier", "Hypervolume"]
    assert "(knee): little worse" in words.front_cards(free)[0][2]
