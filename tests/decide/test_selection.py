"""How sure a choice is and what it forgoes, against plain loops over the draws."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.analysis.status import marked
from core.decide.beliefs import beliefs
from core.decide.joint import JointSample
from core.decide.pareto import frontier
from core.decide.rules import Constraints, decide
from core.decide.selection import ALONE, AVERAGES, FEW, NOTHING, assess
from core.decide.ties import Paired
from core.stats.mixture import posterior_means

NAN = float("nan")
SEED = 11


def world(values, latency=None, cost=None, fixed=None):
    """A table, its results per query and what is believed of them."""
    values = np.asarray(values, dtype=float)
    count = len(values)
    ms = np.full(values.shape, NAN) if latency is None else np.asarray(latency, dtype=float)
    usd = np.full(count, NAN) if cost is None else np.asarray(cost, dtype=float)
    names = [f"s{row}" for row in range(count)]
    timed = [NAN if np.isnan(row).all() else float(np.nanmedian(row)) for row in ms]
    table = pl.DataFrame({"run_id": names, "quality": values.mean(axis=1), "latency_ms": timed, "cost": usd})
    sample = JointSample(values, ms, usd, np.full(count, NAN), np.full(count, NAN))
    return table.fill_nan(None), sample, Paired(names, values)


def judged(made, limits, rule="quality", take=None):
    table, sample, paired = made
    decision = decide(table, limits, rule, paired=paired, take=take)
    return decision, assess(table, decision, limits, beliefs(sample, seed=SEED), paired)


def looped(made, limits, decision):
    """Count draw by draw in which the chosen stack is feasible and nothing feasible is better by more."""
    _, sample, _ = made
    held = beliefs(sample, seed=SEED)
    sign, good, fits = 1 if limits.higher_is_better else -1, 0, 0
    for draw, counts in enumerate(held.drawn.astype(int)):
        picked = np.repeat(np.arange(len(counts)), counts)
        quality = held.quality[:, draw].astype(float)
        latency = np.median(sample.latency_ms[:, picked], axis=1)
        feasible = np.ones(len(quality), dtype=bool)
        if limits.sla_ms is not None:
            feasible &= latency <= limits.sla_ms
        if limits.budget is not None:
            feasible &= sample.cost <= limits.budget
        if limits.min_quality is not None:
            feasible &= sign * quality >= sign * limits.min_quality - 1e-6
        mine = decision.chosen
        fits += feasible[mine]
        if decision.rule == "quality":
            near = sign * quality[mine] >= (sign * quality)[feasible].max(initial=-9) - limits.delta - 1e-6
        elif decision.rule == "cost":
            near = sample.cost[mine] <= 1.01 * sample.cost[feasible].min(initial=1e9)
        else:
            near = latency[mine] <= latency[feasible].min(initial=1e9) + limits.jitter_ms + 1e-9
        good += feasible[mine] and near
    return good / len(held.drawn), fits / len(held.drawn)


@settings(max_examples=12, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    stacks=st.integers(2, 7),
    queries=st.integers(8, 30),
    rule=st.sampled_from(["quality", "cost", "latency"]),
    limits=st.builds(
        Constraints,
        sla_ms=st.sampled_from([None, 100.0]),
        budget=st.sampled_from([None, 2.0]),
        min_quality=st.sampled_from([None, 0.5]),
        jitter_ms=st.just(5.0),
        higher_is_better=st.booleans(),
        delta=st.sampled_from([0.0, 0.01, 0.1]),
    ),
)
def test_the_probability_of_good_selection_equals_a_loop(seed, stacks, queries, rule, limits):
    random = np.random.default_rng(seed)
    values = random.random(queries) * 0.5 + random.random((stacks, queries)) * 0.5
    made = world(values, random.normal(100, 20, (stacks, queries)), random.choice([1.0, 1.005, 3.0], stacks))
    decision, sure = judged(made, limits, rule)
    if decision.chosen is None:
        assert (sure.pgs, sure.unknown, sure.alternatives) == (None, NOTHING, ())
        return
    good, fits = looped(made, limits, decision)
    assert sure.p_feasible == pytest.approx(fits)
    assert sure.pgs is None or sure.pgs == pytest.approx(good)
    assert 0 <= good <= fits <= 1
    for other in sure.alternatives:
        assert other.p_within_delta is not None
        assert 0 <= other.p_within_delta <= 1


@pytest.mark.parametrize(
    ("values", "unknown"),
    [
        (np.full((3, 20), 0.5), ALONE),
        (np.random.default_rng(1).random((1, 20)), ALONE),
        (np.random.default_rng(1).random((3, 7)), FEW),
    ],
)
def test_where_nothing_can_be_said(values, unknown):
    _, sure = judged(world(values), Constraints())
    assert (sure.pgs, sure.unknown) == (None, unknown)


def test_averages_alone_say_nothing():
    table, _, _ = world(np.random.default_rng(1).random((3, 20)), cost=[1.0, 2.0, 3.0])
    decision = decide(table, Constraints(delta=0.01))
    sure = assess(table, decision, Constraints(delta=0.01), None, None)
    assert (sure.pgs, sure.expected, sure.unknown, sure.ahead) == (None, None, AVERAGES, False)
    assert all(other.low is other.p_within_delta is None for other in sure.alternatives)


def test_copies_count_once_and_tie():
    random = np.random.default_rng(4)
    values = random.random(40) * 0.3 + random.random((4, 40)) * 0.7
    plain, copied = world(values), world(np.vstack([values, values[:1], values[:1]]))
    one, other = (beliefs(made[1], seed=SEED) for made in (plain, copied))
    np.testing.assert_allclose(one.quality, other.quality[:4], atol=1e-6)
    np.testing.assert_allclose(one.expected, other.expected[:4], atol=1e-6)
    assert judged(copied, Constraints(delta=0.01))[1].pgs == pytest.approx(
        judged(plain, Constraints(delta=0.01))[1].pgs
    )


def test_stacks_without_a_difference_are_shrunk_to_one_value():
    random = np.random.default_rng(9)
    kept = []
    for _ in range(200):
        held = beliefs(world(random.random((6, 30)))[1], seed=SEED)
        kept.append(np.ptp(held.quality.mean(axis=1)) / np.ptp(held.means))
    assert np.median(kept) < 0.4


def em(means, variances, steps=20_000):
    """Expectation maximisation on a grid, step by step."""
    grid = np.linspace(means.min(), means.max(), 300)
    likelihood = np.exp(-((means[:, None] - grid) ** 2) / (2 * variances[:, None]))
    weights = np.full(300, 1 / 300)
    for _ in range(steps):
        weights = weights * (likelihood.T @ (1 / (likelihood @ weights))) / len(means)
    weighed = likelihood * weights
    return weighed @ grid / weighed.sum(axis=1)


@pytest.mark.slow
@pytest.mark.parametrize("stacks", [2, 3, 8, 22, 76])
@pytest.mark.parametrize("shape", ["normal", "two groups", "long tail", "equal"])
def test_the_posterior_is_that_of_the_likeliest_prior(stacks, shape):
    random = np.random.default_rng(stacks)
    true = {
        "normal": random.normal(0.5, 0.05, stacks),
        "two groups": random.choice([0.4, 0.6], stacks),
        "long tail": 0.5 - random.exponential(0.05, stacks),
        "equal": np.full(stacks, 0.5),
    }[shape]
    variances = np.full(stacks, 0.28**2 / 60) * random.uniform(0.5, 1.5, stacks)
    means = true + random.normal(size=stacks) * np.sqrt(variances)
    np.testing.assert_allclose(posterior_means(means, variances), em(means, variances), atol=2e-3)


def test_estimates_without_noise_stay():
    means = np.array([0.2, 0.5, 0.9])
    np.testing.assert_allclose(posterior_means(means, np.zeros(3)), means)
    np.testing.assert_allclose(posterior_means(np.full(3, 0.4), np.full(3, 0.01)), 0.4)


def test_alternatives_stand_on_the_frontier_and_the_likeliest_as_good_comes_first():
    base = np.random.default_rng(6).random(50) * 0.4
    values = np.stack([base + 0.5, base + 0.4999, base + 0.3, base + 0.29, base + 0.1])
    latency = np.tile(np.array([[500.0], [100.0], [100.0], [200.0], [490.0]]), (1, 50))
    made = world(values, latency, [5.0, 9.0, 1.0, 1.5, 4.99])
    decision, sure = judged(made, Constraints(jitter_ms=20.0, delta=0.01))
    assert decision.chosen == 0
    assert [other.row for other in sure.alternatives] == [1, 2]  # 3 is beaten by 2; 4 is neither
    faster, cheaper = sure.alternatives
    assert (faster.saves_ms, faster.saves_usd) == (400.0, pytest.approx(-4.0))
    assert (faster.p_within_delta, cheaper.p_within_delta) == (1.0, 0.0)
    assert cheaper.low == pytest.approx(-0.2) == cheaper.high
    assert sure.ahead
    steps = sure.prices["cost"]
    assert [(step.than, step.row) for step in steps] == [(2, 0)]
    assert steps[0].per_step == pytest.approx(4.0 / 0.2 * 0.01)


@pytest.mark.parametrize(
    ("cost", "ms", "apart", "twins"),
    [(1.005, 89.9, 0.0, 1), (0.8, 95.0, 0.0, 0), (1.005, 60.0, 0.0, 0), (1.005, 89.9, 0.01, 0)],
)
def test_alternatives_alike_but_for_noise_are_offered_as_one(cost, ms, apart, twins):
    base = np.random.default_rng(6).random(50) * 0.4
    other = base + apart * np.tile([1, -1], 25)
    values = np.stack([base + 0.3, base, other])
    latency = np.tile(np.array([[500.0], [90.0], [ms]]), (1, 50))
    _, sure = judged(world(values, latency, [5.0, 1.0, cost]), Constraints(jitter_ms=10.0, delta=0.01))
    assert {other.row for other in sure.alternatives} == {1, 2}
    assert sum(count for _, count in sure.offered) == twins
    assert len(sure.offered) == 2 - twins


def test_the_cheapest_within_the_zone_by_estimate_comes_first():
    random = np.random.default_rng(4)
    lost = np.array([[0.0], [0.004], [0.005], [0.05]])
    values = random.normal(0.6, [[0.02], [0.1], [0.2], [0.02]], (4, 60))
    values += 0.6 - lost - values.mean(axis=1, keepdims=True)
    latency = np.tile(np.array([[1100.0], [430.0], [7.0], [6.0]]), (1, 60))
    made = world(values, latency, [15.0, 6.0, 0.12, 0.11])
    _, sure = judged(made, Constraints(jitter_ms=1.0, delta=0.01))
    assert [other.row for other in sure.alternatives] == [2, 1, 3]
    assert all(other.much for other in sure.alternatives)
    assert sure.alternatives[0].p_within_delta < sure.alternatives[1].p_within_delta
    _, sure = judged(made, Constraints(jitter_ms=1.0, delta=0.0005))
    chances = [other.p_within_delta for other in sure.alternatives]
    assert chances == sorted(chances, reverse=True), "none is within it: the likeliest as good first"


def test_of_stacks_with_the_same_results_the_cheapest_is_named():
    random = np.random.default_rng(2)
    base = random.normal(0.5, 0.2, 40)
    close = base - 0.005 + random.normal(0, 0.1, 40)
    close += base.mean() - 0.005 - close.mean()
    values = np.stack([base, close, close, close, base])
    made = world(values, np.tile([[50.0], [90.0], [8.0], [7.0], [60.0]], (1, 40)), [3.0, 2.8, 1.0, 1.5, 3.5])
    decision, sure = judged(made, Constraints(delta=0.001, jitter_ms=5.0))
    assert decision.chosen == 0
    assert sure.rival == 2
    assert decision.runner_up == 2, "what has the results of the chosen one is no rival"
    twins, _ = judged(world(np.stack([base, base]), None, [1.0, 2.0]), Constraints(delta=0.01))
    assert (twins.chosen, twins.runner_up) == (0, 1), "unless nothing else is left"


def test_what_cannot_be_told_apart_in_latency_or_cost_is_no_step_in_its_price():
    base = np.random.default_rng(6).random(50) * 0.4
    values = np.stack([base + 0.5, base + 0.3, base + 0.1])
    latency = np.tile(np.array([[9.1], [8.7], [0.1]]), (1, 50))
    _, sure = judged(world(values, latency, [3.0, 2.99, 1.0]), Constraints(jitter_ms=1.0, delta=0.01))
    assert {key: [(step.than, step.row) for step in steps] for key, steps in sure.prices.items()} == {
        "cost": [(2, 0)],
        "latency": [(2, 0)],
    }
    assert sure.prices["latency"][0].more == pytest.approx(9.0)


@pytest.mark.parametrize(
    ("noise", "offered", "on", "steps"),
    [
        ([None] * 4, [1, 2], [0, 1, 2, 3], [(3, 2), (2, 1), (1, 0)]),
        ([0.14, 0.14, 0.1, 0.1], [2], [0, 2, 3], [(3, 2), (2, 0)]),
        ([0.14, None, None, None], [2], [0, 2, 3], [(3, 2), (2, 0)]),
    ],
    ids=["of none known", "timed", "one timed"],
)
def test_what_timing_leaves_unsure_is_no_saving_and_no_step(noise, offered, on, steps):
    """Three per cent of machine time are none; six times as cheap is, though the latencies are alike."""
    base = np.random.default_rng(6).random(50) * 0.4
    values = np.stack([base + 0.5, base + 0.44, base + 0.3, base + 0.29])
    latency = np.tile(np.array([[7.5], [7.4], [0.23], [0.04]]), (1, 50))
    table, *rest = world(values, latency, [0.12, 0.1165, 0.003, 0.0005])
    table = table.with_columns(cost_noise=pl.Series(noise, dtype=pl.Float64))
    limits = Constraints(jitter_ms=1.0, delta=0.01)
    decision, sure = judged((table, *rest), limits)
    assert decision.chosen == 0
    assert [other.row for other in sure.alternatives if other.row < 3] == offered
    assert np.flatnonzero(frontier(table, decision)).tolist() == on
    rows = marked(table, decision)
    assert rows["row"].filter(rows["line"]).to_list() == on, "the chart draws no other step"
    assert np.flatnonzero(frontier(table, decision, weak=True)).tolist() == [0, 1, 2, 3]
    assert [(step.than, step.row) for step in sure.prices["cost"]] == steps


def test_of_alternatives_that_only_noise_tells_apart_the_better_is_offered():
    base = np.random.default_rng(6).random(50) * 0.4
    values = np.stack([base + 0.5, base + 0.47, base + 0.44])
    latency = np.tile(np.array([[1135.0], [7.5], [7.4]]), (1, 50))
    table, *rest = world(values, latency, [15.0, 0.12, 0.1165])
    limits = Constraints(jitter_ms=1.0, delta=0.01)
    assert [other.row for other in judged((table, *rest), limits)[1].alternatives] == [1, 2]
    timed = table.with_columns(cost_noise=pl.Series([None, 0.1, 0.1], dtype=pl.Float64))
    assert [other.row for other in judged((timed, *rest), limits)[1].alternatives] == [1]


def test_the_rival_is_what_is_best_most_often_where_the_choice_is_not_good():
    random = np.random.default_rng(2)
    base = random.normal(0.5, 0.2, 40)
    close = base + random.normal(-0.005, 0.1, 40)
    values = np.stack([base, close, base - 0.4])
    decision, sure = judged(world(values, None, [1.0, 1.0, 1.0]), Constraints(delta=0.01))
    assert {decision.chosen, sure.rival} == {0, 1}
    assert 0 < sure.pgs < 1
    _, alone = judged(world(np.stack([base + 0.4, base]), None, [1.0, 1.0]), Constraints(delta=0.01))
    assert (alone.pgs, alone.rival) == (1.0, None)


def test_what_was_not_timed_is_no_alternative_to_what_was():
    base = np.random.default_rng(6).random(50)
    latency = np.stack([np.full(50, 500.0), np.full(50, NAN)])
    _, sure = judged(world(np.stack([base + 0.1, base]), latency, [5.0, 1.0]), Constraints())
    assert sure.alternatives == ()
    _, untimed = judged(world(np.stack([base + 0.1, base]), None, [5.0, 1.0]), Constraints())
    assert [other.row for other in untimed.alternatives] == [1]


@pytest.mark.parametrize("take", ["s1", "s2"])
def test_a_taken_stack_has_its_own_chances(take):
    base = np.random.default_rng(6).random(50) * 0.4
    made = world(np.stack([base + 0.5, base + 0.45, base + 0.1]), None, [3.0, 2.0, 1.0])
    decision, sure = judged(made, Constraints(delta=0.01), take=take)
    assert (decision.instead_of, sure.pgs) == (0, 0.0)
