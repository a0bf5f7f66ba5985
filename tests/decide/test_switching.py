"""Stay or switch: what a move needs, what it costs, when it has paid back, and the rule."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.switching import KINDS, moved
from core.axes import KEYS
from core.decide.switching import (
    LEVEL,
    STEPS,
    Gain,
    Move,
    SwitchItem,
    Terms,
    gains,
    largest,
    needed,
    payback,
    stay_or_switch,
    total,
)

DENSE = {"mode": "dense", "embedder": "voyage-3.5", "dim": 1024, "index": "flat", "reranker": "none"}
SPARSE = {"mode": "sparse", "sparse": "bm25", "reranker": "none"}
BOTH = DENSE | SPARSE | {"mode": "hybrid"}


@pytest.mark.parametrize(
    ("now", "then", "step"),
    [
        (DENSE, DENSE, "none"),
        (DENSE, DENSE | {"reranker": "rerank-2.5", "candidates": 50}, "none"),
        (BOTH, BOTH | {"fusion": {"method": "rrf", "weights": [1, 2]}}, "none"),
        (DENSE, DENSE | {"index": "hnsw-f32"}, "rebuild"),
        (DENSE, DENSE | {"embedder": "voyage-3-large"}, "embed"),
        (DENSE, DENSE | {"chunker": {"method": "fixed", "size": 200}}, "embed"),
        (DENSE, DENSE | {"dim": 2048}, "embed"),
        (DENSE, DENSE | {"dim": 512}, "rebuild"),
        (SPARSE, BOTH, "embed"),
        (DENSE, BOTH, "rebuild"),
        (BOTH, SPARSE, "none"),
        (BOTH, DENSE, "none"),
        (DENSE, {"mode": "own", "call": "mine:search"}, None),
        ({}, DENSE, None),
    ],
)
def test_what_a_move_needs(now: dict[str, Any], then: dict[str, Any], step: str | None):
    assert largest(needed(now, then, shortens=True)) == step


specs = st.fixed_dictionaries(
    {
        "mode": st.sampled_from(["dense", "sparse", "hybrid"]),
        "embedder": st.sampled_from(["one", "other"]),
        "dim": st.sampled_from([256, 1024]),
        "index": st.sampled_from(["flat", "hnsw-f32"]),
        "sparse": st.just("bm25"),
        "reranker": st.sampled_from(["none", "rerank-2.5"]),
        "candidates": st.sampled_from([10, 50]),
    }
)


@given(specs, specs, specs)
def test_a_way_over_another_stack_never_needs_less(one: dict, other: dict, third: dict):
    assert largest(needed(one, one)) == "none"
    straight, first, second = (largest(needed(a, b)) for a, b in ((one, third), (one, other), (other, third)))
    if one["mode"] == other["mode"] == third["mode"]:
        assert STEPS.index(straight) <= max(STEPS.index(first), STEPS.index(second))


def test_every_key_says_what_its_change_needs():
    assert {key.step for key in KEYS.values()} == set(STEPS)


@pytest.mark.parametrize(
    ("once", "saved", "months"),
    [
        (1200.0, 100.0, 12.0),
        (1200.0, 0.0, math.inf),
        (1200.0, -5.0, math.inf),
        (0.0, -5.0, 0.0),
        (None, 100.0, None),
        (None, -5.0, math.inf),
        (100.0, None, None),
    ],
)
def test_payback(once: float | None, saved: float | None, months: float | None):
    assert payback(once, saved) == months


def test_an_unknown_amount_makes_the_sum_unknown():
    assert total([1.0, 2.5]) == 3.5
    assert total([]) == 0.0
    assert total([1.0, None]) is None


def gain(difference: float = 0.0, *, better: float = 1.0, no_worse: float = 1.0) -> Gain:
    return Gain(difference, -1.0, 1.0, 0.5, better, no_worse, 100)


COSTS = (SwitchItem("embed again", 1200.0, ""),)


@pytest.mark.parametrize(
    ("move", "terms", "answer"),
    [
        ({"gain": None}, {}, "unknown"),
        ({"gain": gain(0.1, better=0.001)}, {}, "switch"),
        ({"gain": gain(0.1, better=LEVEL)}, {}, "stay"),
        ({"gain": gain(no_worse=0.001), "saves_usd": 100.0, "saves_ms": 0.0}, {}, "switch"),
        ({"gain": gain(no_worse=0.001), "saves_usd": 100.0, "saves_ms": 0.0}, {"months": 11}, "stay"),
        ({"gain": gain(no_worse=0.2), "saves_usd": 100.0, "saves_ms": 0.0}, {}, "stay"),
        ({"gain": gain(no_worse=0.001), "saves_usd": 0.0, "saves_ms": 0.0}, {}, "stay"),
        ({"gain": gain(no_worse=0.001), "saves_usd": 0.0, "saves_ms": 50.0}, {}, "stay"),
        ({"gain": gain(no_worse=0.001), "saves_usd": 0.0, "saves_ms": 50.0, "items": ()}, {}, "switch"),
        ({"gain": gain(no_worse=0.001), "saves_usd": 0.0, "saves_ms": 9.0, "items": ()}, {}, "stay"),
        ({"gain": gain(no_worse=0.001), "saves_usd": None, "saves_ms": 0.0}, {}, "unknown"),
        (
            {"gain": gain(no_worse=0.001), "saves_usd": 9.0, "items": (SwitchItem("embed", None, ""),)},
            {},
            "unknown",
        ),
        (
            {"gain": gain(0.1, better=0.001), "saves_usd": 0.0},
            {"value_usd": 0.01, "queries_per_month": 100_000.0},
            "switch",
        ),
        (
            {"gain": gain(0.1, better=0.001), "saves_usd": 0.0},
            {"value_usd": 0.001, "queries_per_month": 100_000.0},
            "stay",
        ),
    ],
)
def test_the_rule(move: dict[str, Any], terms: dict[str, Any], answer: str):
    asked = Move(**{"saves_usd": None, "saves_ms": None, "alike_ms": 10.0, "items": COSTS} | move)
    assert stay_or_switch(asked, Terms(**terms)).answer == answer


def test_a_gain_is_that_of_a_paired_test():
    rng = np.random.default_rng(3)
    values = rng.normal(0.5, 0.2, (3, 40))
    values[2, :5] = np.nan
    found = gains(values, 0, 0.0, 0.01)
    from scipy import stats

    p = [stats.ttest_1samp(values[row] - values[0], 0, nan_policy="omit") for row in (1, 2)]
    one_sided = [each.pvalue / 2 if each.statistic > 0 else 1 - each.pvalue / 2 for each in p]
    for row, chance in zip((1, 2), one_sided, strict=True):
        assert found[row].p_better == pytest.approx(1 - chance)
        assert found[row].n == np.count_nonzero(~np.isnan(values[row]))
    least = min(found[row].better for row in (1, 2))
    assert least >= min(2 * min(one_sided), 1)
    unskewed = [
        _unskewed(values[row] - values[0], each.statistic) for row, each in zip((1, 2), p, strict=True)
    ]
    assert least == pytest.approx(min(2 * min(unskewed), 1))


def _unskewed(gaps: np.ndarray, t: float) -> float:
    """One-sided p of the statistic that is as likely without skewness."""
    from scipy import optimize, stats

    known = gaps[~np.isnan(gaps)]
    n = len(known)
    low = stats.skew(known) - 4 * (6 / n) ** 0.5
    z = optimize.brentq(lambda z: z - low * (2 * z**2 + 1) / (6 * n**0.5) - t, -2, 20)
    return float(stats.t.sf(min(t, z), n - 1))


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_no_better_candidate_is_switched_to_in_one_of_forty_worlds(kind: str):
    """As the table of docs/switch.md says of more worlds; three standard errors are allowed."""
    rng = np.random.default_rng(29)
    rate = np.mean([moved(KINDS[kind](rng, 1, 64)) for _ in range(4_000)])
    assert rate <= LEVEL + 3 * (LEVEL * (1 - LEVEL) / 4_000) ** 0.5


def test_few_but_large_losses_do_not_look_surely_better():
    """Student's t says switch in 6 % of such worlds, in which nothing is better."""
    rng = np.random.default_rng(3)
    values = np.stack([KINDS["few but large losses"](rng, 1, 64) for _ in range(1_000)])
    by_student = [stats_of(world[1] - world[0]) < LEVEL for world in values]
    assert np.mean([moved(world) for world in values]) < 0.04 < np.mean(by_student)


def stats_of(gaps: np.ndarray) -> float:
    from scipy import stats

    return float(stats.ttest_1samp(gaps, 0, alternative="greater").pvalue)


def test_equal_stacks_are_never_better_and_never_worse():
    found = gains(np.full((2, 20), 0.4), 0, 0.0, 0.01)[1]
    assert (found.difference, found.p_better, found.better, found.no_worse) == (0.0, 0.5, 0.5, 0.0)


@pytest.mark.parametrize(("n", "answer"), [(2, "unknown"), (7, "unknown"), (8, "switch")])
def test_on_few_queries_nothing_is_said(n: int, answer: str):
    values = np.vstack([np.zeros(n), np.linspace(0.5, 0.6, n)])
    gain = gains(values, 0, 0.0, 0.01)[1]
    found = stay_or_switch(Move(gain=gain, saves_usd=None, saves_ms=None), Terms())
    assert (found.answer, gain.n, gain.difference) == (answer, n, pytest.approx(0.55))
    assert math.isfinite(gain.low) is (answer == "switch")
