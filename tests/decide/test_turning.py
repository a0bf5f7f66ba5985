import numpy as np
import polars as pl
import pytest

from core.decide.marginal import marginal
from core.decide.near import conditioned, turns
from core.decide.rules import Constraints, decide
from core.decide.ties import Paired
from core.errors import UnknownNameError

COLUMNS = ("run_id", "quality", "quality_low", "quality_high", "latency_ms", "cost", "candidates")


def table(*rows):
    floats = dict.fromkeys(COLUMNS[1:], pl.Float64)
    return pl.DataFrame(rows, schema={"run_id": pl.String, **floats}, orient="row")


APART = table(  # no ties: points without intervals, far apart in time
    ("good", 0.80, None, None, 500.0, 2.0, 100),
    ("cheap", 0.70, None, None, 200.0, 0.5, 50),
    ("poor", 0.40, None, None, 100.0, 0.1, 10),
)


def found(rows, constraints, rule="quality"):
    return {(turn.of, turn.axis.column): turn for turn in turns(rows, constraints, rule)}


def test_the_runner_up_needs_the_quality_of_the_chosen():
    made = found(APART, Constraints())
    gain = made[1, "quality"]
    assert gain.now == 0.70
    assert gain.then == pytest.approx(0.7995, abs=1e-6)  # printed as 0.800 it ties, and is cheaper
    assert gain.change == pytest.approx(0.0995, abs=1e-6)
    assert gain.winner == 1
    assert made[1, "cost"].then is None
    assert made[1, "cost"].reason == "not even a cost of $0 / 1k turns the choice"
    assert made[1, "latency_ms"].then is None


def test_the_chosen_loses_where_it_breaks_a_constraint():
    made = found(APART, Constraints(sla_ms=600, budget=2.5, min_quality=0.3))
    assert made[0, "latency_ms"].then == pytest.approx(600, abs=1e-3)
    assert made[0, "cost"].then == pytest.approx(2.5, abs=1e-3)
    assert made[0, "quality"].then == pytest.approx(0.7005, abs=1e-6)
    assert {turn.winner for turn in made.values() if turn.of == 0} == {1}


def test_price_at_which_the_cheapest_changes():
    made = found(APART, Constraints(min_quality=0.6), "cost")
    # within 1 % of the cheapest the better one is taken
    assert made[0, "cost"].then == pytest.approx(0.5 * 1.01, abs=1e-6)
    assert made[1, "cost"].then == pytest.approx(2.0 / 1.01, abs=1e-6)


def test_tiny_costs_turn_as_exactly_as_large_ones():
    tiny = APART.with_columns(pl.col("cost") * 1e-6)
    made = found(tiny, Constraints(min_quality=0.6), "cost")
    assert made[1, "cost"].then == pytest.approx(2e-6 / 1.01, rel=1e-6)
    assert found(tiny, Constraints(budget=2.5e-6))[0, "cost"].then == pytest.approx(2.5e-6, rel=1e-6)


def test_a_tie_within_the_zone_turns_the_choice_before_the_best_estimate_does():
    values = np.random.default_rng(2).random(40)
    pairs = Paired(["deep", "shallow"], np.stack([values, values - 0.1]))
    rows = table(
        ("deep", values.mean(), None, None, 500.0, 2.0, 100),
        ("shallow", values.mean() - 0.1, None, None, 490.0, 1.0, 50),
    )
    turned = turns(rows, Constraints(delta=0.02), paired=pairs)
    gain = next(turn for turn in turned if turn.of == 1 and turn.axis.column == "quality")
    assert gain.then == pytest.approx(values.mean() - 0.02, abs=1e-6)  # always 0.02 less: surely within


def test_what_is_said_is_what_is_then_chosen():
    for (row, axis), turn in found(APART, Constraints(sla_ms=600, budget=2.5)).items():
        if turn.then is not None:
            here = pl.int_range(pl.len()) == row
            after = APART.with_columns(pl.when(here).then(turn.then).otherwise(pl.col(axis)).alias(axis))
            assert decide(after, Constraints(sla_ms=600, budget=2.5)).chosen == turn.winner


MODELS = table(
    ("weighted", 0.80, None, None, 7.5, 0.2, 50),
    ("even", 0.79, None, None, 7.4, 0.19, 50),
    ("dense", 0.78, None, None, 3.0, 0.1, 50),
    ("other", 0.60, None, None, 0.2, 0.01, 50),
).with_columns(embedder=pl.Series(["e", "e", "e", "f"]), reranker=pl.lit("none"), sparse=pl.lit("bm25"))


@pytest.mark.parametrize(
    ("limits", "axis", "then", "winner"),
    [
        (Constraints(sla_ms=20), "latency_ms", 20.0, 2),  # "even" is as slow with it; "dense" takes 8 ms then
        (Constraints(sla_ms=20, min_quality=0.5), "quality", 0.7905, 1),  # quality is each stack's own
        (Constraints(budget=0.9), "cost", 0.9, 2),
    ],
)
def test_time_and_cost_change_for_all_stacks_of_the_same_models(limits, axis, then, winner):
    turn = found(MODELS, limits)[0, axis]
    assert turn.then == pytest.approx(then, rel=1e-3)
    assert turn.winner == winner


def test_a_cheaper_model_is_cheaper_for_all_stacks_that_use_it():
    assert {turn.then for turn in found(MODELS.head(2), Constraints(), "cost").values()
            if turn.axis.key == "cost"} == {None}  # fmt: skip


def test_a_quality_beyond_one_is_looked_for_where_it_can_be():
    percent = APART.with_columns(pl.col("quality") * 100)
    made = found(percent, Constraints())
    assert made[1, "quality"].then == pytest.approx(80.0, abs=1e-2)
    assert made[0, "quality"].then == pytest.approx(70.0, abs=1e-2)


def test_without_a_runner_up_or_a_value_nothing_is_said():
    assert turns(APART, Constraints(sla_ms=50)) == []
    assert turns(APART.head(1), Constraints()) == []
    unknown = APART.with_columns(pl.lit(None, pl.Float64).alias("cost"))
    made = found(unknown, Constraints())
    assert (made[0, "cost"].then, made[0, "cost"].reason) == (None, "its cost is unknown")


def test_frontier_and_choice_at_several_targets():
    made = conditioned(APART, [150, 350, 1e9], Constraints(sla_ms=1, min_quality=0.1))
    assert [each.decision.chosen for each in made] == [2, 1, 0]
    assert [each.frontier.tolist() for each in made] == [[2], [2, 1], [2, 1, 0]]
    assert conditioned(APART.clear(), [350], Constraints())[0].decision.chosen is None


def steps(**changed):
    rows = {
        "series": ["s"] * 4,
        "run_id": ["k200", "k50", "k100", "k150"],
        "candidates": [200, 50, 100, 150],
        "quality": [0.80, 0.70, 0.75, 0.80],
        "latency_ms": [700.0, 300.0, 500.0, 400.0],
        "cost": [5.0, 1.0, 2.0, None],
    }
    return pl.DataFrame({**rows, **changed})


def test_steps_between_consecutive_k():
    made = marginal(steps())
    assert made.select("from_k", "to_k").rows() == [(50, 100), (100, 150), (150, 200)]
    assert made["d_quality"].to_list() == pytest.approx([0.05, 0.05, 0.0])
    assert made["per_100_ms"].to_list()[0] == pytest.approx(0.025)
    assert made["per_100_ms"].to_list()[1] is None  # faster: nothing is paid
    assert made["per_usd"].to_list() == [pytest.approx(0.05), None, None]
    assert made["pays"].to_list() == [True, True, False]
    assert made["reason"].to_list() == [None, None, "no gain in quality"]


def test_what_a_step_must_buy():
    chance = marginal(steps().with_columns(gain_low=-0.01, gain_high=0.1))
    assert chance["reason"][0] == "the gain may be chance: its interval reaches 0"
    with pytest.raises(UnknownNameError, match="series"):
        marginal(steps().drop("series"))
