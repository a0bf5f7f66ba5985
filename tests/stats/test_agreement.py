"""Overlap and Kendall's tau-b against scipy, by hand and by invariants."""

import math
from itertools import permutations, product

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau

from core.stats.correlation import AGREEMENT, agreement, order_agreement, top_agreement


def ranking(**lists):
    """Rankings of one-letter passages: ``ranking(q1="abc")``."""
    return pl.DataFrame(
        [
            (query, passage, rank)
            for query, passages in lists.items()
            for rank, passage in enumerate(passages, 1)
        ],
        schema={"query_id": pl.String, "passage_id": pl.String, "rank": pl.Int32},
        orient="row",
    )


def rank_biased(one: str, other: str, k: int) -> float:
    """Webber, Moffat and Zobel (2010), equation 32, from its text; p = 0.9."""
    common = [len({*one[:depth]} & {*other[:depth]}) for depth in range(1, k + 1)]
    seen = sum(0.1 * 0.9 ** (depth - 1) * shared / depth for depth, shared in enumerate(common, 1))
    return seen + 0.9**k * common[-1] / k


@pytest.mark.parametrize(
    ("first", "second", "k", "row"),
    [
        ("abc", "abc", 3, (3, 1.0, 1.0)),
        ("abc", "cba", 3, (3, 1.0, -1.0)),
        ("abc", "bac", 3, (3, 1.0, 1 / 3)),
        ("abcd", "abef", 4, (2, 0.5, 1.0)),
        ("abcd", "efgh", 4, (0, 0.0, None)),
        ("abcd", "aefg", 4, (1, 0.25, None)),
        ("abcd", "dcba", 2, (0, 0.0, None)),  # beyond K nothing counts
        ("ab", "abcd", 4, (2, 0.5, 1.0)),  # a short list shares at most what it has
        ("ab", "ba", 10, (2, 1.0, -1.0)),  # both shorter than K
        ("abc", "", 3, (0, 0.0, None)),
    ],
)
def test_by_hand(first, second, k, row):
    found = agreement(ranking(q=first), ranking(q=second), k)
    assert dict(found.schema) == dict(AGREEMENT)
    assert found.row(0)[1:] == pytest.approx((*row, rank_biased(first, second, k)))


def test_no_rankings_at_all():
    assert agreement(ranking(), ranking(), 5).is_empty()
    assert agreement(ranking(q="a"), ranking(p="a"), 5)["overlap"].to_list() == [0.0, 0.0]


@pytest.mark.slow
@given(st.integers(0, 2**32 - 1), st.integers(1, 12))
def test_equals_scipy_query_by_query(seed, k):
    rng = np.random.default_rng(seed)
    letters = np.array(list("abcdefghijklmnop"))
    lists = [
        {f"q{n}": "".join(rng.permutation(letters)[: rng.integers(0, 16)]) for n in range(6)}
        for _ in range(2)
    ]
    found = agreement(ranking(**lists[0]), ranking(**lists[1]), k)
    assert found["query_id"].to_list() == sorted(q for q in lists[0] if lists[0][q] or lists[1][q])
    back = agreement(ranking(**lists[1]), ranking(**lists[0]), k)
    assert back["overlap"].to_list() == found["overlap"].to_list()
    assert back["tau"].to_list() == pytest.approx(found["tau"].to_list())
    assert back["rbo"].to_list() == pytest.approx(found["rbo"].to_list())
    for query, shared, overlap, tau, rbo in found.rows():
        one, other = lists[0][query][:k], lists[1][query][:k]
        common = [letter for letter in one if letter in other]
        assert shared == len(common)
        assert rbo == pytest.approx(rank_biased(one, other, k))
        assert overlap == pytest.approx(len(common) / max(len(one), len(other)))
        if len(common) < 2:
            assert tau is None
        else:
            theirs = kendalltau(range(len(common)), [other.index(letter) for letter in common])
            assert tau == pytest.approx(theirs.statistic)


def test_many_long_lists_are_compared_in_blocks():
    rng = np.random.default_rng(3)
    names = [f"p{n}" for n in range(300)]
    lists = [{f"q{n}": list(rng.permutation(names)) for n in range(60)} for _ in range(2)]
    found = agreement(ranking(**lists[0]), ranking(**lists[1]), 300)
    for query, tau in found.select("query_id", "tau").rows()[::20]:
        places = {name: place for place, name in enumerate(lists[1][query])}
        expected = kendalltau(range(300), [places[name] for name in lists[0][query]]).statistic
        assert tau == pytest.approx(expected)


def test_agreement_of_orders_of_stacks():
    nan = math.nan
    assert order_agreement(np.array([0.1, 0.2, 0.3]), np.array([0.2, 0.5, 0.9])) == 1.0
    assert order_agreement(np.array([0.1, 0.2, nan]), np.array([0.5, 0.2, 0.9])) == -1.0
    tied = order_agreement(np.array([0.1, 0.2, 0.2 + 1e-15]), np.array([0.1, 0.2, 0.3]))
    assert tied == pytest.approx(kendalltau([1, 2, 2], [1, 2, 3]).statistic)
    assert math.isnan(order_agreement(np.array([0.1, nan]), np.array([0.1, 0.2])))
    assert math.isnan(order_agreement(np.array([0.1, 0.1]), np.array([0.1, 0.2])))


def broken(scores):
    """Every way to break the ties of some scores, as orders of places, best first."""
    groups = [[at for at, each in enumerate(scores) if each == value] for value in sorted(set(scores))[::-1]]
    for parts in product(*(permutations(group) for group in groups)):
        yield [at for part in parts for at in part]


def ap_correlation(actual, order):
    """Yilmaz et al. 2008, equation 3, of two orders without ties."""
    rank = {at: place for place, at in enumerate(actual)}
    shares = [
        sum(rank[above] < rank[order[place]] for above in order[:place]) / place
        for place in range(1, len(order))
    ]
    return 2 * sum(shares) / len(shares) - 1


@pytest.mark.parametrize(
    ("usual", "other", "value"),
    [
        ([4, 3, 2, 1], [4, 3, 2, 1], 1.0),
        ([4, 3, 2, 1], [1, 2, 3, 4], -1.0),
        ([4, 3, 2, 1], [3, 4, 2, 1], 2 * (0 + 1 + 1) / 3 - 1),  # the best two swapped
        ([4, 3, 2, 1], [4, 3, 1, 2], 2 * (1 + 1 + 2 / 3) / 3 - 1),  # the last two: less is lost
        ([3, 2, 1, math.nan], [2, 3, 1, 5], 0.0),  # of three
        ([1, 1, 1], [1, 2, 3], None),
        ([1], [1], None),
    ],
)
def test_ap_correlation_of_orders(usual, other, value):
    found = top_agreement(np.array(usual, dtype=float), np.array(other, dtype=float))
    assert math.isnan(found) if value is None else found == pytest.approx(value)


@given(st.integers(2, 5).flatmap(lambda n: st.lists(st.lists(st.integers(0, 2), min_size=n, max_size=n),
                                                    min_size=2, max_size=2)))  # fmt: skip
def test_ap_correlation_with_ties_is_the_mean_over_all_ways_to_break_them(scores):
    usual, other = scores
    found = top_agreement(np.array(usual, dtype=float), np.array(other, dtype=float))
    if len(set(usual)) == 1 or len(set(other)) == 1:
        assert math.isnan(found)
        return
    ways = [ap_correlation(one, two) for one, two in product(broken(usual), broken(other))]
    assert found == pytest.approx(sum(ways) / len(ways))
