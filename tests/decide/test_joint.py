from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.decide import joint
from core.decide.joint import JointSample, chances, weighted_percentile
from core.decide.pareto import undominated
from core.decide.rules import Constraints
from core.errors import InputError, UnknownNameError
from core.stats.intervals import SEED, weights

NAN = float("nan")


def sample(quality, latency=None, cost=None, *, fixed_quality=None, fixed_latency=None, share=0.5):
    quality = np.array(quality, dtype=float)
    unknown = np.full(len(quality), NAN)
    return JointSample(
        quality,
        np.full(quality.shape, NAN) if latency is None else np.array(latency, dtype=float),
        unknown if cost is None else np.array(cost, dtype=float),
        unknown if fixed_quality is None else np.array(fixed_quality, dtype=float),
        unknown if fixed_latency is None else np.array(fixed_latency, dtype=float),
        share,
    )


def test_a_constructed_case_has_its_known_answer():
    # Of two queries drawn twice, the first is drawn 0, 1 or 2 times with chances 1/4, 1/2 and 1/4, so that
    # the first stack is worse, equal and better; the third is beaten by the second whatever is drawn.
    made = sample([[1.0, 0.0], [0.5, 0.5], [0.4, 0.4]], cost=[1.0, 1.0, 1.0])
    found = chances(made, Constraints(), resamples=4_000, seed=SEED)
    assert found.frontier == pytest.approx([0.75, 0.75, 0.0], abs=0.025)
    assert found.best == pytest.approx([0.75, 0.75, 0.0], abs=0.025)  # each of equal bests is the best
    assert found.feasible.tolist() == [1.0, 1.0, 1.0]
    assert np.isnan(found.sla).all()


def test_chance_to_meet_an_sla_on_the_median():
    # The median of three draws of three queries is the slowest one where it is drawn twice or three times.
    made = sample([[0.5] * 3] * 2, latency=[[100, 200, 300], [NAN] * 3], fixed_latency=[NAN, 200.0])
    found = chances(made, Constraints(sla_ms=250), resamples=4_000, seed=SEED)
    assert found.sla == pytest.approx([20 / 27, 1.0], abs=0.025)
    assert found.varies.tolist() == [True, True]


def test_quality_and_latency_come_from_the_same_queries():
    # A query is either good and slow or bad and fast: the stack is never good and fast at once.
    made = sample([[1.0, 0.0]], latency=[[300.0, 100.0]])
    found = chances(made, Constraints(sla_ms=250, min_quality=0.9), resamples=500, seed=SEED)
    assert found.feasible.tolist() == [0.0]
    assert found.best.tolist() == [0.0]
    apart = chances(made, Constraints(min_quality=0.9), resamples=500, seed=SEED)
    assert apart.feasible[0] > 0.15
    assert found.sla[0] > 0.6


def test_shares_of_what_is_unknown_are_unknown():
    made = sample([[0.5, 0.6], [0.7, 0.8], [NAN, NAN]], cost=[1.0, NAN, 1.0])
    free = chances(made, Constraints(), resamples=50, seed=1)
    assert free.best.tolist() == [0.0, 1.0, 0.0]  # nobody asks for the cost
    assert free.feasible.tolist() == pytest.approx([1.0, 1.0, NAN], nan_ok=True)
    assert free.frontier.tolist() == pytest.approx([1.0, NAN, NAN], nan_ok=True)
    asked = chances(made, Constraints(budget=2.0), resamples=50, seed=1)
    assert asked.best.tolist() == [1.0, 0.0, 0.0]
    assert asked.feasible.tolist() == pytest.approx([1.0, NAN, NAN], nan_ok=True)
    # nobody was timed, so nobody meets an SLA
    assert chances(made, Constraints(sla_ms=10), resamples=50, seed=1).best.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("latency", "cost", "frontier"),
    [
        ([[1.0], [2.0]], [1.0, 2.0], [1.0, 1.0]),
        ([[1.0], [NAN]], [1.0, 2.0], [1.0, NAN]),
        ([[NAN], [NAN]], [1.0, 2.0], [1.0, 1.0]),  # compared in cost and quality alone
        ([[NAN], [NAN]], [NAN, NAN], [NAN, NAN]),  # quality alone is no frontier
    ],
)
def test_the_chance_to_be_on_the_frontier_is_unknown_where_a_number_is(latency, cost, frontier):
    made = sample([[0.5], [0.6]], latency=latency, cost=cost)
    found = chances(made, Constraints(), resamples=20, seed=1)
    assert found.frontier.tolist() == pytest.approx(frontier, nan_ok=True)


@pytest.mark.parametrize("few", [0, 64])
@pytest.mark.parametrize(
    ("latency", "cost", "noise", "frontier"),
    [
        ([10.0, 9.0], [2.0, 1.95], [0.1, 0.1], [1, 0]),  # both savings lie within noise
        ([10.0, 9.0], [2.0, 1.0], [0.1, 0.1], [1, 1]),
        ([10.0, 5.0], [2.0, 1.95], [0.1, 0.1], [1, 1]),
        ([10.0, 9.0], [2.0, 1.95], [NAN, 0.1], [1, 0]),
        ([10.0, 9.0], [2.0, 1.95], [NAN, NAN], [1, 1]),  # nothing was measured twice
    ],
)
def test_a_saving_within_the_noise_of_timing_is_none(few, latency, cost, noise, frontier):
    made = replace(
        sample([[0.6, 0.6], [0.5, 0.5]], latency=[[ms, ms] for ms in latency], cost=cost),
        band=np.array([2.0, 2.0]),
        cost_noise=np.array(noise),
    )
    with patch.object(joint, "_FEW", few):
        assert chances(made, Constraints(), resamples=20, seed=1).frontier.tolist() == frontier


def test_a_measure_that_is_better_the_lower():
    made = sample([[0.2, 0.2], [0.5, 0.5], [0.9, 0.9]], cost=[3.0, 2.0, 1.0])
    up, down = Constraints(min_quality=0.5), Constraints(min_quality=0.5, higher_is_better=False)
    for limits, best, feasible in ((up, [0, 0, 1], [0, 1, 1]), (down, [1, 0, 0], [1, 1, 0])):
        found = chances(made, limits, resamples=20, seed=1)
        assert (found.best.tolist(), found.feasible.tolist()) == (best, feasible)
    assert chances(made, up, resamples=20, seed=1).frontier.tolist() == [0, 0, 1]
    assert chances(made, down, resamples=20, seed=1).frontier.tolist() == [1, 1, 1]
    assert chances(made, down, "cost", resamples=20, seed=1).best.tolist() == [0, 1, 0]


def test_a_harm_cap_is_resampled_with_the_queries():
    # Harm is 0 on one query and 1 on the other: of two draws the mean is 0, 1/2 or 1 with 1/4, 1/2 and 1/4.
    base = sample([[0.5, 0.5]] * 3, cost=[1.0] * 3)
    harm = np.array([[0.0, 1.0], [NAN, NAN], [NAN, NAN]])
    made = replace(base, beside={"harm": (harm, np.array([NAN, 0.2, NAN]))})
    found = chances(made, Constraints(max_harm=0.5), resamples=4_000, seed=SEED)
    assert found.feasible.tolist() == pytest.approx([0.75, 1.0, NAN], abs=0.025, nan_ok=True)
    free = chances(made, Constraints(), resamples=20, seed=SEED)
    assert free.feasible.tolist() == [1.0, 1.0, 1.0]  # harm is only required where it is capped


def test_rules():
    made = sample(
        [[0.5, 0.5], [0.6, 0.6], [0.9, 0.9]],
        latency=[[100.0, 100.0], [150.0, 150.0], [400.0, 400.0]],
        cost=[1.0, 1.0, 2.0],
    )
    for rule, best in (("quality", 2), ("cost", 1), ("latency", 1)):
        assert chances(made, Constraints(), rule, resamples=20, seed=1).best.argmax() == best
    narrow = chances(made, Constraints(jitter_ms=10), "latency", resamples=20, seed=1)
    assert narrow.best.tolist() == [1.0, 0.0, 0.0]
    with pytest.raises(UnknownNameError, match="rule"):
        chances(made, Constraints(), "speed", seed=1)


def test_refuses_what_does_not_belong_together():
    with pytest.raises(InputError, match="do not belong together"):
        sample([[0.5]], latency=[[1.0, 2.0]])
    with pytest.raises(InputError, match="percentile"):
        sample([[0.5]], share=95)


@given(
    values=st.lists(st.one_of(st.just(NAN), st.floats(0, 1e4)), min_size=1, max_size=12),
    share=st.sampled_from([0.5, 0.95, 0.99]),
)
@settings(max_examples=50)
def test_weighted_percentile_equals_numpy_on_repeated_values(values, share):
    table, drawn = np.array(values), weights(len(values), 8, 3)
    found = weighted_percentile(table, drawn.T.astype(np.int32), share) if not np.isnan(table).all() else None
    for resample, row in enumerate(drawn.astype(int)):
        repeated = np.repeat(table, row)
        repeated = repeated[~np.isnan(repeated)]
        if found is not None:
            expected = np.quantile(repeated, share) if len(repeated) else NAN
            assert found[resample] == pytest.approx(expected, nan_ok=True)


def oracle(made, limits, rule, drawn):
    """One resample after the other, one stack after the other."""
    stacks, sign = len(made.cost), 1 if limits.higher_is_better else -1
    sums = np.zeros((3, stacks))
    for row in drawn.astype(int):
        picked = np.repeat(np.arange(len(row)), row)
        quality, latency = made.fixed_quality.copy(), made.fixed_latency.copy()
        for s in range(stacks):
            q, ms = made.quality[s, picked], made.latency_ms[s, picked]
            if made.quality_varies[s]:
                quality[s] = np.nanmean(q) if (~np.isnan(q)).any() else NAN
            if made.latency_varies[s]:
                latency[s] = np.nanquantile(ms, made.share) if (~np.isnan(ms)).any() else NAN
        sums[0] += undominated([made.cost, latency, -sign * quality])
        ok = ~np.isnan(quality)
        ok &= latency <= limits.sla_ms if limits.sla_ms is not None else True
        ok &= made.cost <= limits.budget if limits.budget is not None else True
        ok &= sign * quality >= sign * limits.min_quality if limits.min_quality is not None else True
        sums[1] += ok
        if ok.any():
            among = ok & (made.cost <= 1.01 * made.cost[ok].min()) if rule == "cost" else ok
            best = among & (sign * quality >= (sign * quality)[among].max() - 1e-12)
            sums[2] += best  # each of equal bests is the best
    return sums / len(drawn)


figures = st.one_of(st.just(NAN), st.integers(0, 5).map(float))


@settings(max_examples=25)
@given(data=st.data(), stacks=st.integers(1, 6), queries=st.integers(1, 4))
def test_equals_an_oracle_that_loops(data, stacks, queries):
    def drawn(*shape):
        size = int(np.prod(shape))
        return np.array(data.draw(st.lists(figures, min_size=size, max_size=size))).reshape(shape)

    known = np.nan_to_num(drawn(stacks))  # an axis that is unknown throughout is not compared at all
    made = JointSample(drawn(stacks, queries), drawn(stacks, queries), known, drawn(stacks), known, 0.95)
    limits = Constraints(
        sla_ms=data.draw(st.sampled_from([None, 3.0])),
        min_quality=data.draw(st.sampled_from([None, 2.0])),
        budget=2.0,
        higher_is_better=data.draw(st.booleans()),
    )
    rule = data.draw(st.sampled_from(["quality", "cost"]))
    with patch.object(joint, "_FEW", data.draw(st.sampled_from([0, 64]))):  # both ways to the frontier
        found = chances(made, limits, rule, resamples=12, seed=5)
    frontier, feasible, best = oracle(made, limits, rule, weights(queries, 12, 5))
    unscored = ~made.quality_varies & np.isnan(made.fixed_quality)
    assert found.frontier == pytest.approx(np.where(unscored, NAN, frontier), nan_ok=True)
    assert found.feasible == pytest.approx(np.where(unscored, NAN, feasible), nan_ok=True)
    assert found.best == pytest.approx(best)
