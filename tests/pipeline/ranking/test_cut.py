from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import InputError, UnknownNameError
from core.pipeline.ranking.cut import CUTS, cut_options, cut_report, keep

METHODS = list(CUTS)
# Whole numbers, so that shifting and scaling by powers of two is exact.
LISTS = st.lists(st.integers(-40, 40), min_size=1, max_size=40).map(lambda s: sorted(s, reverse=True))

CLIFF = [0.9, 0.88, 0.3, 0.29, 0.28]
PLATEAU = [0.9, 0.89, 0.88, 0.87, 0.3]
STEPS = [5, 4, 3, 2, 1]
TWO_LEVELS = [3, 3, 3, 1, 1, 1]
HYPERBOLA = [12 / rank for rank in range(1, 11)]


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        (CLIFF, [1, 2, 2, 2, 2, 2]),
        (PLATEAU, [1, 4, 5, 5, 4, 4]),
        (STEPS, [1, 1, 5, 5, 2, 2]),
        (TWO_LEVELS, [3, 3, 3, 3, 3, 3]),
        (HYPERBOLA, [1, 1, 2, 1, 1, 1]),
        ([7], [1] * 6),
        ([7, 7, 7], [3] * 6),
        ([7, 5], [1, 1, 2, 2, 1, 1]),
        ([], [0] * 6),
    ],
    ids=["cliff", "plateau", "steps", "two levels", "hyperbola", "one", "flat", "two", "none"],
)
def test_cases(scores: list[float], expected: list[int]):
    assert [keep({"method": method}, scores) for method in METHODS] == expected


def naive(method: str, scores: list[int]) -> int:
    """The definitions, place by place; equal places: the first."""
    n = len(scores)
    if method == "percentile":
        at = (n - 1) * 0.1  # from the top, as the list descends
        low, part = int(at), at - int(at)
        threshold = scores[low] + part * (scores[min(low + 1, n - 1)] - scores[low])
        return sum(score >= threshold - 1e-9 for score in scores)
    if method == "max-gap":
        drops = [scores[at] - scores[at + 1] for at in range(n - 1)]
        return drops.index(max(drops)) + 1
    if method == "second-derivative":
        bends = [scores[at - 1] - 2 * scores[at] + scores[at + 1] for at in range(1, n - 1)]
        return bends.index(max(bends)) + 1 if bends and max(bends) > 0 else n
    between = []
    for split in range(1, n):
        upper, lower = np.mean(scores[:split]), np.mean(scores[split:])
        between.append(split * (n - split) * (upper - lower) ** 2)
    return 1 + next(at for at, value in enumerate(between) if value >= max(between) * (1 - 1e-9))


@given(LISTS.filter(lambda scores: scores[0] > scores[-1]))
@pytest.mark.parametrize("method", ["percentile", "max-gap", "second-derivative", "otsu"])
def test_equals_the_definition(method: str, scores: list[int]):
    assert keep({"method": method}, scores) == naive(method, scores)


@given(LISTS, st.sampled_from([0.25, 1.0, 8.0]), st.integers(-16, 16))
@pytest.mark.parametrize("method", METHODS)
def test_bounds_and_scales(method: str, scores: list[int], factor: float, shift: int):
    kept = keep({"method": method}, scores)
    assert 1 <= kept <= len(scores)
    assert keep({"method": method}, [score * factor + shift for score in scores]) == kept


@given(st.floats(-1e6, 1e6), st.integers(1, 30))
@pytest.mark.parametrize("method", METHODS)
def test_flat_lists_are_kept_whole(method: str, score: float, count: int):
    assert keep({"method": method}, [score] * count) == count


@given(st.integers(2, 20), st.integers(3, 20), st.floats(0.0, 0.02), st.integers(0, 5))
@pytest.mark.parametrize("method", ["max-gap", "second-derivative", "otsu", "gmm"])
def test_a_clear_cliff_is_found(method: str, good: int, bad: int, noise: float, seed: int):
    draw = np.random.default_rng(seed)
    levels = np.concatenate([np.full(good, 0.9), np.full(bad, 0.1)]) + noise * draw.random(good + bad)
    assert keep({"method": method}, np.sort(levels)[::-1]) == good


def test_options_move_the_cut():
    scores = list(range(100, 0, -1))
    kept = [keep({"method": "percentile", "percentile": share}, scores) for share in (100, 90, 50, 0)]
    assert kept == [1, 10, 50, 100]
    loose, strict = (keep({"method": "knee", "sensitivity": s}, HYPERBOLA) for s in (1, 50))
    assert (loose, strict) == (2, 10)


def test_options_are_filled_in():
    assert cut_options({"method": "percentile"}) == {"method": "percentile", "percentile": 90.0}
    assert cut_options({"method": "otsu"}) == {"method": "otsu"}


@pytest.mark.parametrize(
    ("cut", "says"),
    [
        ({}, r"No cut ''.*gmm, knee, max-gap, otsu, percentile, second-derivative"),
        ({"method": "elbow"}, "No cut 'elbow'"),
        ({"method": "otsu", "bins": 8}, r"cut otsu: No option 'bins'"),
        ({"method": "percentile", "percentile": 101}, "percentile=101 is not allowed"),
        ({"method": "percentile", "percentile": None}, "percentile=None is not allowed"),
    ],
)
def test_cuts_that_cannot_work(cut: dict[str, Any], says: str):
    with pytest.raises((InputError, UnknownNameError), match=says):
        keep(cut, [2, 1])


@pytest.mark.parametrize("scores", [[1, 2], [float("nan")], [float("inf"), 1.0]])
def test_scores_that_are_no_ranking_are_refused(scores: list[float]):
    with pytest.raises(InputError, match="not finite numbers in descending order"):
        keep({"method": "otsu"}, scores)


GRADES = st.lists(st.integers(-1, 5), min_size=6, max_size=6)


@pytest.mark.slow
@given(st.lists(st.tuples(GRADES, st.integers(0, 6), st.integers(0, 4)), min_size=1, max_size=8))
def test_the_report_equals_a_count_by_hand(queries: list[tuple[list[int], int, int]]):
    grades = np.array([each for each, _, _ in queries], dtype=np.int8)
    kept = np.array([each for _, each, _ in queries])
    more = np.array([each for _, _, each in queries])  # relevant, but not ranked
    relevant = (grades >= 4).sum(axis=1) + more
    report = cut_report(kept, grades, relevant)
    for at, (row, count, _) in enumerate(queries):
        good = sum(grade >= 4 for grade in row[:count])
        precision = good / count if count else 0.0
        recall = good / relevant[at] if relevant[at] else float("nan")
        f1 = 2 * precision * recall / (precision + recall) if precision + recall > 0 else recall * 0
        expected = [precision, recall, f1, count]
        found = [report.precision[at], report.recall[at], report.f1[at], report.kept[at]]
        np.testing.assert_allclose(found, expected)


def test_the_report_takes_many_runs_and_another_threshold():
    grades = np.array([[[5, 3, 0]], [[3, 5, 3]]], dtype=np.int8)
    report = cut_report(np.array([[1], [2]]), grades, np.array([4]), threshold=3)
    assert report.precision.tolist() == [[1.0], [1.0]]
    assert report.recall.tolist() == [[0.25], [0.5]]
    assert report.kept.tolist() == [[1.0], [2.0]]
