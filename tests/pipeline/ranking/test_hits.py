import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.pipeline.ranking import top_k, top_k_rows


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


ROW = st.lists(
    st.tuples(st.integers(0, 50), st.sampled_from([0.0, 0.25, 0.5, 1.0])),
    unique_by=lambda pair: pair[0],
    min_size=1,
    max_size=12,
)


@pytest.mark.slow
@given(st.lists(ROW, min_size=1, max_size=6), st.integers(1, 14), st.booleans())
def test_rows_of_any_order_equal_a_full_sort(rows: list[list[tuple[int, float]]], k: int, ordered: bool):
    width = max(len(row) for row in rows)
    passages, scores = np.full((len(rows), width), -1), np.full((len(rows), width), -1e38, dtype=np.float32)
    for at, row in enumerate(rows):
        pairs = sorted(row, key=lambda pair: -pair[1]) if ordered else row
        passages[at, : len(row)] = [passage for passage, _ in pairs]
        scores[at, : len(row)] = [score for _, score in pairs]
    for row, found in zip(rows, top_k_rows(passages, scores, k), strict=True):
        expected = sorted(row, key=lambda pair: (-pair[1], pair[0]))[:k]
        assert list(zip(found.passages.tolist(), found.scores.tolist(), strict=True)) == expected
