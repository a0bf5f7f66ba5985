"""The page that says how sure a choice is, on tables made by hand."""

import numpy as np
import polars as pl
import pytest

from core.decide.axes import QUALITY
from core.decide.joint import JointSample
from core.decide.near import Turn, turns
from core.decide.rules import Constraints, decide
from core.views.confidence import charts, hold, words
from core.views.confidence.hold import shares
from core.views.words.choice import meaning
from tests.stores import HOSTILE
from tests.views.made import asking, stacks

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
SAMPLE = JointSample(
    PER_QUERY,
    np.full((4, 60), np.nan),
    TABLE["cost"].to_numpy(),
    np.full(4, np.nan),
    TABLE["latency_ms"].to_numpy(),
)


def found(sample: JointSample | None = SAMPLE, table: pl.DataFrame = TABLE, **limits: float):
    """The workspace, the chances of its stacks and those that tie."""
    view = asking(table, Constraints(**limits), sample=sample)
    chances = shares(table, sample, (view.constraints, "quality"), resamples=400, seed=1)
    return view, chances, hold.tie_rows(view, view.decision)


def test_what_ties_with_the_best_is_what_the_decision_ties_with_its_paired_difference():
    view, _, tied = found(delta=0.01)
    assert tied["row"].to_list() == list(view.decision.ties)
    assert dict(tied.select("name", "reading").iter_rows()) == {"a": hold.BEST, "twin": hold.SAME}
    assert tied["gap_ms"].to_list() == [0.0, 20.0]
    assert tied["d_quality"].to_list() == tied["d_low"].to_list() == [0.0, 0.0]


def test_shares_of_equal_stacks_are_said_to_add_up_to_more_than_all():
    _, chances, _ = found()
    assert chances["p_best"].sum() > 1.9, "twins win each resample together"
    assert words.about_best(chances["p_best"]) == ("2 stacks are never the best.", words.BEST_TOGETHER)
    assert words.about_best(chances["p_best"][1:2]) == ("", "")
    assert words.about_best(pl.Series([None], dtype=pl.Float64)) == ("", "")
    assert words.about_best(pl.Series([0.05] * 14))[0] == "2 more are in the table."


def test_what_is_surely_within_the_zone_ties_and_the_cheapest_of_them_ships():
    view, _, tied = found(delta=0.025)
    assert view.table["name"][view.decision.chosen] == "little worse"
    assert dict(tied.select("name", "reading").iter_rows()) == {
        "little worse": hold.ALIKE, "a": hold.BEST, "twin": hold.SAME,
    }  # fmt: skip
    assert tied["d_quality"].to_list() == pytest.approx([-0.02, 0.0, 0.0], abs=0.002)
    assert view.sure.pgs == 1.0


@pytest.mark.parametrize(
    ("limits", "names"),
    [
        ({"jitter_ms": 15.0}, ["a"]),
        ({"budget": 1.0}, ["a"]),  # what the limits exclude does not tie
        ({"sla_ms": 10.0}, []),
    ],
)
def test_only_feasible_stacks_in_the_jitter_band_tie(limits: dict[str, float], names: list[str]):
    assert found(**limits)[2]["name"].to_list() == names


def test_without_results_per_query_averages_tie_where_they_read_the_same_and_chances_are_unknown():
    view, chances, tied = found(None)
    assert tied["name"].to_list() == ["a", "twin"]
    assert tied["d_low"].null_count() == tied.height
    assert set(tied["reading"]) == {hold.BEST, hold.AVERAGE}
    assert words.held(view) == "How sure a is, is unknown: there are no results per query."
    shown = words.held_cards(view, chances, (60, None))
    assert [(label, value) for label, value, _ in shown][1:] == [("Latency", "100 ms"), ("Cost", "$1.00")]
    assert shown[0][2].endswith(f"n = 60, {meaning(view.quality)}")
    assert charts.chances(hold.share_rows(TABLE, view.decision, chances)) is None


def test_the_answer_is_the_chance_of_a_good_selection_with_what_stands_beside_it():
    view, chances, _ = found(sla_ms=200.0, delta=0.01)
    assert words.held(view) == "a is within 0.01 of the best in 100.0 % of resamples."
    cards = {label: (value, about) for label, value, about in words.held_cards(view, chances, (60, None))}
    assert cards["Confidence"] == ("100.0 %", "within 0.01 of the best; resamples of 60 queries")
    value, about = cards["Expected on new queries"]
    assert float(value) == pytest.approx(view.sure.expected, abs=5e-4)
    assert about.startswith(f"[{view.sure.expected_low:.3f}, {view.sure.expected_high:.3f}]")
    assert view.sure.expected_low < view.sure.expected < view.sure.expected_high
    assert cards["RA-nWG@10"][0].startswith("0.7")


def test_one_table_holds_every_chance_with_what_it_asks_and_why_it_differs():
    view, chances, _ = found(sla_ms=200.0, delta=0.01)
    row = chances.row(view.decision.chosen, named=True)
    rows = words.how_sure(view, row, 0.9)
    assert rows["chance"].to_list()[:3] == [view.sure.pgs, view.sure.p_feasible, row["p_best"]]
    assert row["p_best"] == 1.0, "its twin is the best as well, and takes nothing from it"
    assert rows["sure"][0] == "Is it within 0.01 of the best?"
    assert rows.filter(pl.col("sure").str.contains("endless"))["chance"].item() == 0.9
    assert not rows["sure"].str.contains("unjudged").any(), "nothing waits to be judged"
    assert rows["why"].str.split(" ").list.len().max() <= 14
    assert words.how_sure(view, row, None).height == rows.height - 1, "what is unknown is left out"


def test_no_choice_is_said():
    view, _, tied = found(min_quality=0.99)
    assert tied.is_empty()
    assert words.held(view).startswith("No stack above")
    assert words.held_cards(view, shares(TABLE, SAMPLE, (view.constraints, "quality")), (60, None)) == []
    assert words.turning_words(hold.turn_rows(TABLE, []), "RA-nWG@10").startswith("There is no runner-up")


def test_every_stack_is_in_the_table_the_likeliest_first():
    view, chances, _ = found()
    rows = hold.share_rows(TABLE, view.decision, chances)
    assert rows.height == TABLE.height
    assert rows["p_best"].to_list() == [1.0, 1.0, 0.0, 0.0], "each of equal bests is one"
    assert rows["status"].to_list()[:1] == ["chosen"]


def test_charts_escape_names_and_mark_the_chosen_one():
    table = TABLE.with_columns(pl.Series("name", HOSTILE[:4]))
    view, chances, _ = found(table=table)
    drawn = charts.chances(hold.share_rows(table, view.decision, chances))
    assert drawn is not None
    assert "<img" not in drawn.to_json().replace("\\u003c", "<")
    assert drawn.data[0].marker.color[0] == "#D55E00"
    assert list(drawn.data[0].x) == [1.0, 1.0], "those that are never the best are left out"
    assert len(drawn.data) == 1, "every one of them is always within the limits"
    rare = chances.with_columns(p_feasible=pl.lit(0.7))
    _, within = charts.chances(hold.share_rows(table, view.decision, rare)).data
    assert list(within.x) == [0.7, 0.7]


def test_what_would_turn_the_choice_is_said_with_units_and_winner():
    rows = hold.turn_rows(TABLE, turns(TABLE, Constraints(sla_ms=200.0)))
    assert rows["number"].to_list() == ["cost", "latency", "quality"] * 2
    cheaper = rows.row(0, named=True)
    assert cheaper["stack"] == "twin"
    assert cheaper["now"] == "$1.10 / 1k"
    assert cheaper["winner"] == "twin"
    assert cheaper["change"].startswith("−$0.11 / 1k (−10."), "within 1 % a cost is equal"
    said = words.turning_words(rows, "RA-nWG@10")
    of_quality = rows.row(2, named=True)
    assert said == f"twin would win if its RA-nWG@10 went from 0.796 to {of_quality['then']}."


def test_a_change_too_small_to_be_read_is_no_number():
    made = [Turn(0, QUALITY, 0.805, 0.805 + step, 1) for step in (1e-9, -1e-9)]
    rows = hold.turn_rows(TABLE, made)
    assert rows["now"].to_list() == ["0.805"] * 2
    assert rows["then"].to_list() == ["just above 0.805", "just below 0.805"]
    assert rows["change"].unique().to_list() == ["next to nothing"]


def test_every_excluded_stack_has_its_first_limit_and_by_how_much():
    decision = decide(TABLE, Constraints(sla_ms=110.0, min_quality=0.5))
    rows = hold.excluded_rows(TABLE, decision)
    assert rows.select("name", "constraint", "by", "unit").rows() == [
        ("twin", "sla_ms", 10.0, "ms"),
        ("bad", "sla_ms", 190.0, "ms"),
    ]
    assert words.excluded_words(rows) == "2 stacks by the SLA."
    assert words.excluded_words(rows.clear()).startswith("Nothing")


def test_the_frontier_in_numbers_keeps_its_corner_under_limits():
    free = hold.front(TABLE, decide(TABLE, Constraints()))
    tight = hold.front(TABLE, decide(TABLE, Constraints(budget=0.2)))
    assert free is not None
    assert tight is not None
    assert (free.size, tight.size, tight.knee) == (3, 1, None)
    assert hold.front(stacks(2), decide(stacks(2), Constraints())) is None
    label, size, about = words.front_card(free)
    assert (label, size) == ("On the frontier", "3")
    assert about.endswith("best trade-off (knee): little worse")
