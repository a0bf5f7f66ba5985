"""Grades that decide: an interval that may be read after every question, from draws of unequal chances."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.stats.deciding import ALPHA, Draw, decision, drawn, expected_more, looks

K = 10


def world(n: int, lift: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the least, the most and the true difference of n questions; on some nothing differs."""
    apart = np.where(rng.random(n) < 0.3, 0, rng.integers(1, K + 1, n))
    useful = rng.beta(1, 3, n)
    new = rng.binomial(apart, np.minimum(useful + lift, 1))
    return -apart / K, apart / K, (new - rng.binomial(apart, useful)) / K


def test_questions_on_which_nothing_differs_are_not_drawn():
    low, high, _ = world(50, 0.1, np.random.default_rng(1))
    order = drawn(low, high).order
    assert sorted(order) == np.flatnonzero(high > low).tolist()
    assert (drawn(low, high).order == order).all()


def test_a_question_is_drawn_first_in_proportion_to_its_range():
    low, high = np.zeros(3), np.array([1.0, 2.0, 5.0])
    first = np.bincount([drawn(low, high, seed).order[0] for seed in range(4000)], minlength=3) / 4000
    assert first == pytest.approx([1 / 8, 2 / 8, 5 / 8], abs=0.03)


@given(st.integers(1, 40), st.integers(0, 2**32 - 1))
def test_ends_begin_at_what_is_sure_and_meet_at_the_truth(n, seed):
    low, high, true = world(n, 0.1, np.random.default_rng(seed))
    draw = drawn(low, high, seed)
    told = looks(draw, true[draw.order], means=50)
    assert told.low[0] == pytest.approx(low.mean())
    assert told.high[0] == pytest.approx(high.mean())
    assert told.low[-1] == pytest.approx(true.mean())
    assert told.high[-1] == pytest.approx(true.mean())
    assert (told.low <= told.value + 1e-12).all()
    assert (told.value <= told.high + 1e-12).all()


@given(st.integers(2, 30), st.integers(0, 2**32 - 1))
def test_the_two_stacks_exchanged_give_the_interval_mirrored(n, seed):
    low, high, true = world(n, 0.2, np.random.default_rng(seed))
    draw = drawn(low, high, seed)
    seen = true[draw.order[: n // 2]]
    told, mirrored = looks(draw, seen), looks(Draw(-high, -low, draw.order), -seen)
    assert told.low == pytest.approx(-mirrored.high)
    assert told.high == pytest.approx(-mirrored.low)


def test_bets_agree_with_a_capital_reckoned_by_hand():
    """One question of two judged, each with a range of -1 to 1: stakes of .2 to .99 against a sum of s."""
    draw = Draw(np.full(2, -1.0), np.full(2, 1.0), np.array([0, 1]))
    told = looks(draw, np.array([1.0]), alpha=0.8, means=4000)
    # Before the draw the sum lies in -2..2; at a sum of s the expected place is (s + 2) / 4, seen is 1.
    bets = np.array([0.2, 0.5, 0.99])
    sums = np.linspace(-1.999, 1.999, 4000)
    capital = np.array([np.mean(1 + bets * (4 / (s + 2) - 1)) for s in sums])
    ruled_out = sums[capital >= 1 / 0.4].max()
    assert 2 * told.low[1] == pytest.approx(max(ruled_out, 0.0), abs=0.01)  # a sum below 1 − 1 is impossible
    assert told.high[1] == pytest.approx(1.0)


@pytest.mark.slow
@pytest.mark.parametrize("lift", [0.0, 0.1])
def test_looking_after_every_question_keeps_the_level(lift):
    outside = 0
    for seed in range(400):
        low, high, true = world(80, lift, np.random.default_rng(seed))
        draw = drawn(low, high, seed)
        told = looks(draw, true[draw.order], means=200)
        mean = true.mean()
        outside += bool(((told.low > mean + 1e-9) | (told.high < mean - 1e-9)).any())
    assert outside <= ALPHA * 400


@pytest.mark.parametrize(
    ("low", "high", "answer"),
    [
        (0.01, 0.2, "switch"),
        (-0.2, -0.01, "stay"),
        (-0.005, 0.008, "no difference"),
        (0.0, 0.05, None),
        (-0.05, 0.05, None),
    ],
)
def test_what_an_interval_decides(low, high, answer):
    assert decision(low, high, margin=0.0, delta=0.01) == answer


def test_a_margin_is_what_a_move_has_to_bring():
    assert decision(0.01, 0.03, margin=0.05, delta=0.005) == "stay"
    assert decision(0.01, 0.08, margin=0.05, delta=0.005) is None


def test_a_large_effect_is_expected_to_take_fewer_questions():
    few, many = (
        expected_more(draw, true[draw.order[:20]], 0.0, 0.02) for draw, true in (_begun(0.4), _begun(0.08))
    )
    assert few is not None
    assert many is not None
    assert few < many
    draw, true = _begun(0.4)
    assert expected_more(draw, true[draw.order[:3]], 0.0, 0.02) is None


def _begun(lift: float) -> tuple[Draw, np.ndarray]:
    low, high, true = world(150, lift, np.random.default_rng(7))
    return drawn(low, high), true
