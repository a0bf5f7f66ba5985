"""Ratings weighed anew: rankings by hand, ties, what is discarded, and a search for planted weights."""

from __future__ import annotations

import numpy as np
import pytest

from core.decide.weighing import FOLDS, Ratings, offered, ranked, tuned
from core.stats.means import mean_interval

HAND = Ratings(
    np.array([[8.0, 2.0, 6.0, np.nan, 3.0]]),
    np.array([[[4, 0], [0, 0], [0, 5], [0, 0], [1, 1]]], dtype=np.float64),
    np.array([[1, 2, 3, 4, 5]], dtype=np.int8),
)


@pytest.mark.parametrize(
    ("weights", "threshold", "grades"),
    [
        ((0.0, 0.0), 3, [1, 3, 5, 4, -1]),  # relevance alone; 2 is discarded; without a rating: last
        ((0.0, 1.0), 3, [3, 1, 5, 4, -1]),  # 8, 11, 4
        ((0.0, 0.4), 3, [1, 3, 5, 4, -1]),  # 8 and 8: the one that stands first
        ((0.0, 0.0), 0, [1, 3, 5, 2, 4]),
        ((0.0, 0.0), 6.5, [1, 4, -1, -1, -1]),
    ],
)
def test_a_ranking_by_hand(weights: tuple[float, float], threshold: float, grades: list[int]):
    assert ranked(HAND, np.array([weights]), threshold)[0, 0].tolist() == grades
    assert ranked(HAND, np.array([weights]), threshold, 2)[0, 0].tolist() == grades[:2]


def test_weights_on_offer_are_distinct_and_begin_with_the_usual():
    rows = offered(3, np.array([0.5, 0.5, 0.5]), 1)
    assert rows[0].tolist() == [0.5] * 3
    assert len(np.unique(rows, axis=0)) == len(rows) > 300
    assert rows.min() == 0
    assert rows.max() == 1


def test_a_query_is_judged_by_weights_that_others_chose():
    values = np.zeros((3, 40))
    values[1] = 0.5
    values[2, 7] = 30.0  # best of all, by one query alone
    picked = tuned(values, 3)
    assert picked[7] == 1, "its own value does not choose for it"
    assert set(picked) == {1, 2}
    assert (picked == 1).sum() == 40 // FOLDS, "of its fold alone"
    assert set(tuned(-values, 3, higher_is_better=False)) == {1, 2}
    assert set(tuned(np.full((3, 9), np.nan), 3)) == {0}


@pytest.mark.parametrize(("planted", "gains"), [((0.0, 1.0), True), ((0.5, 0.5), False)])
def test_planted_weights_are_found_and_nothing_is_found_where_nothing_is(
    planted: tuple[float, float], gains: bool
):
    """200 queries of 20 passages graded by relevance + planted weights · ratings."""
    random = np.random.default_rng(5)
    relevance = random.uniform(3, 10, (200, 20))
    criteria = random.uniform(0, 5, (200, 20, 2))
    score = relevance + criteria @ np.array(planted) + random.normal(0, 1.0, relevance.shape)
    grades = np.digitize(score, np.quantile(score, [0.4, 0.6, 0.8, 0.95])).astype(np.int8) + 1
    ratings = Ratings(relevance, criteria, grades.astype(np.int8))
    weights = offered(2, np.array([0.5, 0.5]), 1)
    values = ranked(ratings, weights, 3, 5).mean(axis=2).astype(np.float64)
    gain = values[tuned(values, 1), np.arange(200)] - values[0]
    (low,), (high,) = mean_interval(gain, "differences")
    assert low > 0.1 if gains else low < 0.02 and high > -0.02
