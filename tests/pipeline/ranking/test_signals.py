from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.pipeline.ranking import SIGNALS, signals

POOLS = st.lists(st.floats(-1e9, 1e9), min_size=2, max_size=60)


def naive_entropy(scores: Sequence[float], temperature: float) -> float:
    raised = [math.exp((score - max(scores)) / temperature) for score in scores]
    shares = [each / sum(raised) for each in raised]
    return -sum(share * math.log(share) for share in shares if share > 0) / math.log(len(scores))


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([], (None, None, None, None)),
        ([0.7], (0.7, None, None, None)),
        ([0.5, 0.5, 0.5], (0.5, 0.0, 0.0, 1.0)),
        ([1, 4, 2], (4.0, 2.0, 3.0, naive_entropy([1, 4, 2], math.sqrt(14 / 9)))),
    ],
)
def test_cases(scores: list[float], expected: tuple[float | None, ...]):
    assert tuple(signals(scores).values()) == pytest.approx(expected)
    assert tuple(signals(scores)) == SIGNALS


@given(POOLS)
def test_bounds(scores: list[float]):
    found = signals(scores)
    assert found["top1"] == max(scores)
    assert 0 <= found["top_margin"] <= found["score_gap"]
    assert -1e-9 <= found["score_entropy"] <= 1 + 1e-9


@given(st.lists(st.integers(-50, 50), min_size=2, max_size=30).filter(lambda scores: len({*scores}) > 1))
def test_entropy_equals_its_definition(scores: list[int]):
    found = signals(scores)["score_entropy"]
    assert found == pytest.approx(
        naive_entropy([float(score) for score in scores], statistics.pstdev(scores))
    )


@given(st.lists(st.integers(-50, 50), min_size=2, max_size=30), st.sampled_from([0.25, 8.0]))
def test_the_scale_of_an_engine_does_not_change_the_entropy(scores: list[int], factor: float):
    scaled = [score * factor + 3 for score in scores]
    assert signals(scaled)["score_entropy"] == pytest.approx(signals(scores)["score_entropy"])


def test_a_clear_winner_leaves_little_entropy():
    clear, even = signals([9.0] + [1.0] * 9), signals([9.0, 8.5, 8.0, 7.5, 7.0, 6.5, 6.0, 5.5, 5.0, 4.5])
    assert clear["score_entropy"] < even["score_entropy"]
