from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.decide.learning import (
    ByTag,
    ByThreshold,
    cross_validated,
    in_sample,
)
from core.decide.routing import Depths, at_random, oracle, outcome
from core.errors import InputError

N = 200


def told(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two depths; 30 % of the queries are hard: only they gain from the deeper one, all others lose."""
    random = np.random.default_rng(seed)
    hard = np.arange(N) < 0.3 * N
    quality = np.vstack([np.where(hard, 0.2, 0.8), np.where(hard, 0.9, 0.7)])
    return hard, quality, random


def test_a_signal_that_parts_the_queries_gives_the_oracle():
    hard, quality, random = told()
    margin = np.where(hard, random.uniform(0, 0.4, N), random.uniform(0.6, 1, N))
    rule, depths = ByThreshold(-margin), Depths.of(quality)
    learnt, choices = in_sample(rule, quality)
    assert 0.4 < -learnt[0] < 0.6
    assert (choices == hard).all()
    made = outcome(depths, cross_validated(rule, quality))
    assert made.quality == pytest.approx(outcome(depths, oracle(depths)).quality)
    assert made.deeper == pytest.approx(0.3)


def test_a_constant_signal_is_chance():
    _, quality, _ = told()
    depths, shares = Depths.of(quality), cross_validated(ByThreshold(np.zeros(N)), quality)
    made = outcome(depths, shares)
    # all or nobody: deeper is better on average, so everybody
    assert made.deeper == 1
    assert made.quality == outcome(depths, at_random(depths, made.rates)).quality


def test_a_useless_signal_is_worth_no_more_than_chance_and_looks_better_in_sample():
    _, quality, random = told()
    depths, routed, optimistic = Depths.of(quality), [], []
    for _ in range(5):
        rule = ByThreshold(random.random(N), most=0.5)
        made = outcome(depths, cross_validated(rule, quality, repeats=3))
        routed.append(made.quality - outcome(depths, at_random(depths, made.rates)).quality)
        _, choices = in_sample(rule, quality)
        seen = outcome(depths, (choices == np.arange(2)[:, None]).astype(float))
        optimistic.append(seen.quality - outcome(depths, at_random(depths, seen.rates)).quality)
    assert abs(np.mean(routed)) < 0.01
    assert np.mean(optimistic) > np.mean(routed)


def naive(urgency, quality, most):
    """Try every pair of cuts between different urgencies."""
    finite = np.isfinite(urgency)
    thresholds = [np.inf, *np.unique(urgency[finite])]
    best = -np.inf
    for cuts in product(thresholds, repeat=len(quality) - 1):
        if list(cuts) != sorted(cuts):
            continue
        choice = sum((finite & (urgency >= cut)).astype(int) for cut in cuts)
        if (choice > 0).sum() <= most * len(urgency) + 1e-9:
            best = max(best, quality[choice, np.arange(len(urgency))].mean())
    return best


@given(
    st.integers(2, 3),
    st.lists(st.sampled_from([0.0, 1.0, 2.0, 3.0, np.nan]), min_size=1, max_size=8),
    st.sampled_from([0.0, 0.3, 0.5, 1.0]),
    st.integers(0, 1000),
)
def test_the_thresholds_are_the_best_there_are(depths, urgency, most, seed):
    quality = np.random.default_rng(seed).random((depths, len(urgency))).round(1)
    rule = ByThreshold(np.array(urgency), most)
    learnt, choices = in_sample(rule, quality)
    assert list(learnt) == sorted(learnt)
    found = quality[choices, np.arange(len(urgency))].mean()
    assert found == pytest.approx(naive(np.array(urgency), quality, most))
    assert (choices > 0).sum() <= most * len(urgency) + 1e-9


def test_of_equal_gains_the_fewest_queries_go_deeper():
    quality = np.array([[0.5] * 4, [0.9, 0.5, 0.5, 0.5]])
    learnt, choices = in_sample(ByThreshold(np.array([4.0, 3.0, 2.0, 1.0])), quality)
    assert choices.tolist() == [1, 0, 0, 0]
    assert learnt == (3.5,)


def test_a_query_whose_signal_is_unknown_stays_shallow():
    quality = np.array([[0.0] * 3, [1.0] * 3])
    _, choices = in_sample(ByThreshold(np.array([1.0, np.nan, 2.0])), quality)
    assert choices.tolist() == [1, 0, 1]


def test_tags_go_where_they_score_best():
    quality = np.array([[0.2, 0.2, 0.8, 0.8, 0.1], [0.9, 0.5, 0.1, 0.9, 1.0]])
    learnt, choices = in_sample(ByTag(["hard", "hard", "easy", "easy", ""]), quality)
    assert learnt == {"hard": 1}
    assert choices.tolist() == [1, 1, 0, 0, 0]


def test_tags_of_the_greatest_gain_come_first_within_the_limit():
    quality = np.array([[0.0] * 6, [0.2, 0.2, 0.9, 0.9, 0.1, 0.1]])
    learnt, choices = in_sample(ByTag(["a", "a", "b", "b", "c", "c"], most=0.4), quality)
    assert learnt == {"b": 1}
    assert choices.tolist() == [0, 0, 1, 1, 0, 0]


def test_a_cross_validation_repeats_itself_and_needs_queries():
    _, quality, random = told()
    rule = ByThreshold(random.random(N))
    first, second = (cross_validated(rule, quality, repeats=2) for _ in range(2))
    assert (first == second).all()
    assert first.sum(axis=0) == pytest.approx(np.ones(N))
    with pytest.raises(InputError, match="too few"):
        cross_validated(ByThreshold(np.zeros(5)), quality[:, :5])


def test_thresholds_must_fit_the_depths():
    with pytest.raises(InputError, match="do not part"):
        ByThreshold(np.zeros(3)).choose((1.0,), 3)
