from __future__ import annotations

import statistics
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import InputError, UnknownNameError
from core.pipeline.ranking import Hits
from core.pipeline.ranking.pool import NORMALISE, fuse, fusion_options, reciprocal_rank_fusion
from tests.pipeline.corpora import hits

RANKINGS = st.lists(st.integers(0, 300), unique=True, max_size=150)


def naive(
    legs: list[list[int]], k: int, constant: int, depth: int, weights: list[float]
) -> list[tuple[int, float]]:
    scores: dict[int, float] = {}
    for weight, leg in zip(weights, legs, strict=True):
        for rank, passage in enumerate(leg[:depth], start=1):
            scores[passage] = scores.get(passage, 0.0) + weight / (constant + rank)
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))[:k]


@given(st.lists(RANKINGS, min_size=1, max_size=3), st.integers(1, 250), st.integers(0, 100))
def test_equals_dictionaries(legs: list[list[int]], k: int, constant: int):
    found = reciprocal_rank_fusion([hits(*leg) for leg in legs], k, constant=constant, depth=100)
    expected = naive(legs, k, constant, 100, [1.0] * len(legs))
    assert list(zip(found.passages.tolist(), found.scores.tolist(), strict=True)) == expected


@given(RANKINGS, RANKINGS, st.floats(0.1, 10), st.integers(0, 100))
def test_weights_count_a_ranking_more(one: list[int], other: list[int], weight: float, constant: int):
    spec = {"method": "rrf", "constant": constant, "weights": [1, weight]}
    found = fuse(spec, [hits(*one), hits(*other)], 250)
    expected = naive([one, other], 250, constant, 100, [1.0, weight])
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


def scored_hits(scores: dict[int, float]) -> Hits:
    ordered = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
    return Hits(
        np.array([at for at, _ in ordered], dtype=np.int64), np.array([value for _, value in ordered])
    )


@given(
    st.dictionaries(st.integers(0, 40), st.floats(-2, 20).map(lambda number: round(number, 2)), max_size=25),
    RANKINGS, st.floats(0, 10), st.integers(2, 12),
)  # fmt: skip
def test_what_stands_out_in_the_sparse_leg_counts_more(
    sparse: dict[int, float], dense: list[int], boost: float, level: int
):
    first = scored_hits(sparse)
    spec = {"method": "rrf-boosted", "boost": boost, "level": level}
    found = fuse(spec, [first, hits(*dense)], 300)
    expected: dict[int, float] = {}
    ranked = first.passages.tolist()
    best = max(sparse.values(), default=0.0)
    usual = max(0.0, sparse[ranked[level - 1]]) if len(ranked) >= level else 0.0
    for rank, passage in enumerate(ranked, 1):
        more = boost * max(0.0, sparse[passage] - usual) / best if best > 0 else 0.0
        expected[passage] = (1 + more) / (60 + rank)
    for rank, passage in enumerate(dense[:100], 1):
        expected[passage] = expected.get(passage, 0.0) + 1 / (60 + rank)
    scores = dict(zip(found.passages.tolist(), found.scores.tolist(), strict=True))
    assert scores == pytest.approx(expected)
    plain = fuse({"method": "rrf"}, [first, hits(*dense)], 300)
    level_field = fuse({**spec, "boost": 0.0}, [first, hits(*dense)], 300)
    assert level_field.passages.tolist() == plain.passages.tolist()


def test_a_rare_word_lifts_its_passage():
    sparse = scored_hits({1: 12.0, **{at: 4.0 - at / 100 for at in range(20, 40)}})
    dense = hits(20, 21, 22, 1)
    assert fuse({"method": "rrf"}, [sparse, dense], 1).passages.tolist() == [20]
    assert fuse({"method": "rrf-boosted"}, [sparse, dense], 1).passages.tolist() == [1]


def test_what_lies_deeper_than_the_depth_takes_no_part():
    found = reciprocal_rank_fusion([hits(*range(50)), hits(*range(50, 100))], 200, depth=20)
    assert sorted(found.passages.tolist()) == [*range(20), *range(50, 70)]


def test_the_best_score_of_two_legs_by_hand():
    found = reciprocal_rank_fusion([hits(8, 1), hits(8, 2)], 1)
    assert found.scores.tolist() == [2 / 61]


SCORED = st.lists(
    st.tuples(st.integers(0, 30), st.integers(-8, 8)), unique_by=lambda pair: pair[0], max_size=20
)
Leg = list[tuple[int, int]]


def ranking(leg: Leg) -> Hits:
    """Passages with scores, ranked; quarters, so that sums are exact."""
    ranked = sorted(leg, key=lambda pair: (-pair[1], pair[0]))
    passages = np.array([passage for passage, _ in ranked], dtype=np.int64)
    return Hits(passages, np.array([score / 4 for _, score in ranked], dtype=np.float64))


def common_scale(leg: Hits, normalise: str) -> tuple[dict[int, float], float]:
    """Score of every passage of a leg, and of those it lacks."""
    found = dict(zip(leg.passages.tolist(), leg.scores.tolist(), strict=True))
    values = list(found.values())
    low, high = min(values), max(values)
    if normalise == "minmax":
        return {p: 1.0 if low == high else (s - low) / (high - low) for p, s in found.items()}, 0.0
    if normalise == "zscore":
        mean, spread = statistics.fmean(values), statistics.pstdev(values)
        scaled = {p: (s - mean) / spread if spread else 0.0 for p, s in found.items()}
        return scaled, min(scaled.values())
    return found, low


def naive_sum(legs: list[Hits], weights: list[float], normalise: str) -> dict[int, float]:
    scores = {int(passage): 0.0 for leg in legs for passage in leg.passages}
    for leg, weight in zip(legs, weights, strict=True):
        if len(leg.passages):
            found, missing = common_scale(leg, normalise)
            for passage in scores:
                scores[passage] += weight * found.get(passage, missing)
    return scores


@given(
    st.lists(SCORED, min_size=2, max_size=2),
    st.sampled_from(list(NORMALISE)),
    st.integers(1, 40),
    st.integers(1, 25),
    st.lists(st.sampled_from([0, 0.5, 1, 2]), min_size=2, max_size=2).filter(any),
)
def test_weighted_sums_equal_dictionaries(
    drawn: list[Leg], normalise: str, k: int, depth: int, weights: list[float]
):
    legs = [ranking(leg) for leg in drawn]
    spec = {"method": "weighted", "weights": weights, "normalise": normalise, "depth": depth}
    found = fuse(spec, legs, k)
    expected = naive_sum([Hits(leg.passages[:depth], leg.scores[:depth]) for leg in legs], weights, normalise)
    assert len(found.passages) == min(k, len(expected))
    best = sorted(expected.values(), reverse=True)[:k]
    np.testing.assert_allclose(found.scores, best, atol=1e-9)
    np.testing.assert_allclose(found.scores, [expected[p] for p in found.passages.tolist()], atol=1e-9)
    tied = np.diff(found.scores) == 0
    assert (np.diff(found.passages)[tied] > 0).all()


@given(SCORED, SCORED, st.sampled_from(list(NORMALISE)), st.sampled_from([0.0, 0.25, 0.5, 1.0]))
def test_convex_weighs_the_second_leg_with_alpha(one: Leg, other: Leg, normalise: str, alpha: float):
    legs = [ranking(one), ranking(other)]
    found = fuse({"method": "convex", "alpha": alpha, "normalise": normalise}, legs, 50)
    weighted = {"method": "weighted", "weights": [1 - alpha, alpha], "normalise": normalise}
    same = fuse(weighted, legs, 50)
    assert found.passages.tolist() == same.passages.tolist()
    assert found.scores.tolist() == same.scores.tolist()


@given(SCORED.filter(len), SCORED.filter(len), st.sampled_from(["minmax", "zscore"]))
def test_scales_of_the_engines_do_not_matter(one: Leg, other: Leg, normalise: str):
    legs = [ranking(one), ranking(other)]
    scaled = [legs[0], Hits(legs[1].passages, legs[1].scores * 64 - 16)]
    spec = {"method": "convex", "normalise": normalise}
    first, second = fuse(spec, legs, 50), fuse(spec, scaled, 50)
    np.testing.assert_allclose(first.scores, second.scores, atol=1e-9)


def test_rrf_by_its_specification():
    legs = [hits(5, 2, 9), hits(2, 7)]
    found = fuse({"method": "rrf", "constant": 10, "depth": 2}, legs, 3)
    alone = reciprocal_rank_fusion(legs, 3, constant=10, depth=2)
    assert found.passages.tolist() == alone.passages.tolist() == [2, 5, 7]
    assert found.scores.tolist() == alone.scores.tolist()


@pytest.mark.parametrize(
    ("normalise", "legs", "expected"),
    [
        ("minmax", [[(4, 8), (7, 4), (1, 0)], []], [(4, 0.5), (7, 0.25), (1, 0.0)]),
        ("minmax", [[(4, 8)], []], [(4, 0.5)]),
        ("minmax", [[(4, 8)], [(6, 3), (4, 1)]], [(4, 0.5), (6, 0.5)]),
        ("minmax", [[(4, 8), (2, 8)], [(3, 3)]], [(2, 0.5), (3, 0.5), (4, 0.5)]),
        ("zscore", [[(4, 8), (2, 8)], [(3, 3)]], [(2, 0.0), (3, 0.0), (4, 0.0)]),
        ("zscore", [[(4, 8), (2, 0)], [(3, 3)]], [(4, 0.5), (2, -0.5), (3, -0.5)]),
        ("none", [[(4, 8), (2, 4)], [(3, 4)]], [(4, 1.5), (2, 1.0), (3, 1.0)]),
        ("minmax", [[], []], []),
    ],
    ids=[
        "one leg is empty",
        "one passage gets 1",
        "found by one, best of the other",
        "constant lists get 1",
        "constant lists get 0",
        "a lacking passage is as bad as the worst",
        "scores as they are",
        "nothing at all",
    ],
)
def test_scales_by_hand(normalise: str, legs: list[Leg], expected: list[tuple[int, float]]):
    found = fuse({"method": "convex", "normalise": normalise}, [ranking(leg) for leg in legs], 10)
    assert list(zip(found.passages.tolist(), found.scores.tolist(), strict=True)) == expected


def test_options_are_filled_in():
    plain = {"method": "rrf", "constant": 60, "depth": 100}
    assert fusion_options({"method": "rrf"}) == plain
    assert fusion_options({"method": "rrf", "weights": [2, 2.0]}) == plain, "equal weights are none"
    assert fusion_options({"method": "rrf", "weights": [1, 1.3]}) == {**plain, "weights": [1.0, 1.3]}
    assert fusion_options({"method": "convex", "alpha": 0.3}) == {
        "method": "convex",
        "alpha": 0.3,
        "normalise": "minmax",
        "depth": 100,
    }
    weighted = fusion_options({"method": "weighted"})
    assert weighted == {"method": "weighted", "weights": [0.5] * 2, "normalise": "minmax", "depth": 100}


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ({}, r"No fusion ''.*convex, rrf, rrf-boosted, weighted"),
        ({"method": "sum"}, r"No fusion 'sum'"),
        ({"method": "rrf", "alpha": 1}, r"fusion rrf: No option 'alpha'.*constant, depth"),
        ({"method": "rrf", "weights": [1]}, r"fusion rrf.*weights=\[1\].*2 numbers"),
        ({"method": "convex", "weights": [1, 2]}, r"No option 'weights'"),
        ({"method": "rrf", "constant": -1}, r"constant=-1 is not allowed"),
        ({"method": "rrf", "depth": 0}, r"depth=0 is not allowed"),
        ({"method": "convex", "alpha": 1.1}, r"alpha=1.1 is not allowed.*0 to 1"),
        ({"method": "convex", "normalise": "softmax"}, r"normalise=softmax.*minmax \| zscore \| none"),
        ({"method": "weighted", "weights": [1]}, r"weights=\[1\].*2 numbers"),
        ({"method": "weighted", "weights": [1, -1]}, r"weights=\[1, -1\]"),
        ({"method": "weighted", "weights": [0, 0]}, r"not all 0"),
        ({"method": "weighted", "weights": [1, float("nan")]}, r"weights=\[1, nan\]"),
        ({"method": "weighted", "weights": [True, 1]}, r"weights=\[True, 1\]"),
        ({"method": "weighted", "weights": "1,1"}, r"weights='1,1'"),
    ],
)
def test_fusions_that_cannot_work(spec: dict[str, Any], says: str):
    with pytest.raises((InputError, UnknownNameError), match=says):
        fuse(spec, [hits(1, 2), hits(3)], 10)
