"""REBEL's scoring rule by hand: relevance + Σ weight · rating, below relevance 3 nothing (§2.1, E.2)."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.providers.rerank.criteria import FIVE, WEIGHT, composite

FIXED = [each.weight for each in FIVE]


@pytest.mark.parametrize(
    ("relevance", "ratings", "score"),
    [
        (8, (4, 2, 3, 1, 0), 13.0),  # 8 + 0.5 · 10
        (10, (5, 5, 5, 5, 5), 22.5),  # the most there is
        (3, (0, 0, 0, 0, 0), 3.0),  # at the threshold: kept
        (2.5, (5, 5, 5, 5, 5), -math.inf),  # below it: discarded, whatever the rest
        (0, (), -math.inf),
        (7, (), 7.0),
        (6.5, (2.5, 1), 8.25),
        (7, (3, 3, 3), 11.5),  # three inferred criteria: 7 + 0.5 · 9
    ],
)
def test_by_hand(relevance: float, ratings: tuple[float, ...], score: float):
    assert composite(relevance, ratings, [WEIGHT] * len(ratings)) == score


@pytest.mark.parametrize(
    ("relevance", "ratings", "weights", "score"),
    [
        (7, (4, 2), (1, 0.25), 11.5),  # 7 + 4 + 0.5
        (7, (2, 4), (1, 0.25), 10.0),  # 7 + 2 + 1
        (6, (5, 5, 5), (0.75, 0, 0.5), 12.25),  # 6 + 3.75 + 0 + 2.5
        (2, (5, 5), (1, 1), -math.inf),  # discarded whatever the weights
        (10, (5, 5, 5, 5, 5), (1, 1, 1, 1, 1), 35.0),  # the most there is with weights of 1
    ],
)
def test_unequal_weights_by_hand(
    relevance: float, ratings: tuple[float, ...], weights: tuple[float, ...], score: float
):
    assert composite(relevance, ratings, weights) == score


def test_secondary_criteria_can_outweigh_relevance():
    # E.1: a passage strong in other qualities may pass one of slightly higher relevance.
    assert composite(7, (5, 4, 4, 3, 2), FIXED) > composite(9, (1, 1, 1, 1, 1), FIXED)


def test_the_threshold_is_a_parameter():
    assert composite(5, (4,), (0.5,), threshold=6) == -math.inf
    assert composite(2, (4,), (0.5,), threshold=2) == 4.0


@given(st.floats(3, 10), st.lists(st.floats(0, 5), min_size=5, max_size=5), st.integers(0, 4))
def test_bounds_and_monotonicity(relevance: float, ratings: list[float], at: int):
    score = composite(relevance, ratings, FIXED)
    assert relevance <= score <= 22.5
    better = [*ratings[:at], 5.0, *ratings[at + 1 :]]
    assert composite(relevance, better, FIXED) >= score


def test_the_five_fixed_criteria():
    assert len(FIVE) == len({each.name for each in FIVE}) == 5
    assert FIXED == [0.5] * 5
    assert all("5:" in each.meaning and "0:" in each.meaning for each in FIVE)
