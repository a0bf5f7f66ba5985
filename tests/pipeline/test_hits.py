import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.pipeline.hits import top_k


@pytest.mark.parametrize(
    ("scores", "k", "expected"),
    [
        ([], 3, []),
        ([0.5], 3, [0]),
        ([1.0, 1.0, 1.0], 2, [0, 1]),
        ([0.1, 0.9, 0.5, 0.9], 3, [1, 3, 2]),
        ([0.3, 0.2, 0.3, 0.2, 0.2], 4, [0, 2, 1, 3]),
    ],
)
def test_ties_follow_the_corpus(scores: list[float], k: int, expected: list[int]):
    found = top_k(np.arange(len(scores)), np.array(scores), k)
    assert found.passages.tolist() == expected
    assert found.scores.tolist() == [scores[at] for at in expected]


@given(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), max_size=40), st.integers(1, 45))
def test_equals_a_full_sort(scores: list[float], k: int):
    expected = sorted(range(len(scores)), key=lambda at: (-scores[at], at))[:k]
    assert top_k(np.arange(len(scores)), np.array(scores), k).passages.tolist() == expected
