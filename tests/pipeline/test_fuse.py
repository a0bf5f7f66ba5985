import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.pipeline.fuse import reciprocal_rank_fusion
from tests.pipeline.corpora import hits

RANKINGS = st.lists(st.integers(0, 300), unique=True, max_size=150)


def naive(legs: list[list[int]], k: int, constant: int, depth: int) -> list[tuple[int, float]]:
    scores: dict[int, float] = {}
    for leg in legs:
        for rank, passage in enumerate(leg[:depth], start=1):
            scores[passage] = scores.get(passage, 0.0) + 1 / (constant + rank)
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))[:k]


@given(st.lists(RANKINGS, min_size=1, max_size=3), st.integers(1, 250), st.integers(0, 100))
def test_equals_dictionaries(legs: list[list[int]], k: int, constant: int):
    found = reciprocal_rank_fusion([hits(*leg) for leg in legs], k, constant=constant, depth=100)
    expected = naive(legs, k, constant, 100)
    assert list(zip(found.passages.tolist(), found.scores.tolist(), strict=True)) == expected


@pytest.mark.parametrize(
    ("legs", "expected"),
    [
        ([[], []], []),
        ([[3, 1], []], [3, 1]),
        ([[5, 2], [2, 5]], [2, 5]),
        ([[9], [4]], [4, 9]),
        ([[1, 2, 3], [3, 7]], [3, 1, 2, 7]),
    ],
    ids=["empty", "one leg", "mirrored legs tie", "disjoint legs tie", "found twice wins"],
)
def test_cases(legs: list[list[int]], expected: list[int]):
    assert reciprocal_rank_fusion([hits(*leg) for leg in legs], 10).passages.tolist() == expected


def test_what_lies_deeper_than_the_depth_takes_no_part():
    found = reciprocal_rank_fusion([hits(*range(50)), hits(*range(50, 100))], 200, depth=20)
    assert sorted(found.passages.tolist()) == [*range(20), *range(50, 70)]


def test_the_best_score_of_two_legs_by_hand():
    found = reciprocal_rank_fusion([hits(8, 1), hits(8, 2)], 1)
    assert found.scores.tolist() == [2 / 61]
