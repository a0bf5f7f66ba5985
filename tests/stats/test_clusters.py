"""Questions in clusters: every resample, interval and test runs over the clusters, as loops over them do."""

import itertools

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from core.errors import InputError
from core.stats.intervals import CLUSTERS, Sample, columns_of, query_weights, resampled, weights, without_one
from core.stats.significance import Setup, compare, student_ends, swap_test

QUICK = Setup(resamples=300, permutations=199)
LABELS = np.array([7, 3, 3, 9, 7, 7, 1, 2, 2, 4, 5, 5, 6, 6, 8, 8, 8, 0])  # ten clusters of one to three


def figures(stacks=3, seed=4, share=0.15):
    rng = np.random.default_rng(seed)
    values = rng.random((stacks, len(LABELS)))
    values[rng.random(values.shape) < share] = np.nan
    return values


@pytest.mark.parametrize("ratio", [False, True])
def test_columns_are_clusters_and_n_is_of_queries(ratio):
    values, ceiling = figures(), 0.5 + figures(seed=8)
    sample = Sample.ratios(values, ceiling, LABELS) if ratio else Sample.means(values, LABELS)
    plain = Sample.ratios(values, ceiling) if ratio else Sample.means(values)
    assert sample.top.shape == (3, 10)
    assert sample.n.tolist() == plain.n.tolist() == plain.units.tolist()
    assert sample.estimate().tolist() == plain.estimate().tolist(), "the statistic is that of the queries"
    for cluster in range(10):
        there = plain.applies & (cluster == LABELS)
        assert sample.top[:, cluster] == pytest.approx((plain.top * there).sum(axis=1))
        assert sample.bottom[:, cluster] == pytest.approx((plain.bottom * there).sum(axis=1))
        assert sample.applies[:, cluster].tolist() == there.any(axis=1).tolist()
    assert sample.units.tolist() == sample.applies.sum(axis=1).tolist()


def test_a_resample_draws_whole_clusters():
    values, drawn = figures(), weights(10, 60)
    by_cluster = resampled(Sample.means(values, LABELS), drawn)
    by_query = resampled(Sample.means(values), query_weights(len(LABELS), 60, clusters=LABELS))
    assert by_cluster == pytest.approx(by_query)
    for row, times in zip(by_cluster.T, drawn, strict=True):
        picked = np.repeat(np.arange(len(LABELS)), times[LABELS].astype(int))
        assert row == pytest.approx(np.nanmean(values[:, picked], axis=1))


def test_the_jackknife_leaves_out_whole_clusters():
    values = figures()
    left = without_one(Sample.means(values, LABELS))
    for cluster, row in itertools.product(range(10), range(3)):
        rest = values[row, cluster != LABELS]
        if (~np.isnan(values[row, cluster == LABELS])).any():
            assert left[row, cluster] == pytest.approx(np.nanmean(rest))
        else:
            assert np.isnan(left[row, cluster])


def test_student_of_equal_clusters_is_that_of_their_means():
    labels, deltas = np.repeat(np.arange(9), 4), np.random.default_rng(2).normal(0.1, 0.3, 36)
    low, high = student_ends(deltas[None], 0.025, labels)
    known = ttest_1samp(deltas.reshape(9, 4).mean(axis=1), 0).confidence_interval(0.95)
    assert (low[0], high[0]) == (pytest.approx(known.low), pytest.approx(known.high))
    assert np.isnan(student_ends(deltas[None], 0.025, np.repeat(np.arange(6), 6))).all()


def test_swaps_take_all_queries_of_a_cluster():
    first, second = figures(2, share=0.0)
    (p,), (exact,) = swap_test(Sample.means([first, second], LABELS), [0], [1])
    gaps = np.bincount(LABELS, second - first)
    sums = [abs(np.dot(signs, gaps)) for signs in itertools.product((1, -1), repeat=10)]
    assert exact
    assert p == pytest.approx(np.mean(np.array(sums) >= abs(gaps.sum()) - 1e-9))


def test_a_comparison_of_clusters():
    values = figures(2)
    found = compare(Sample.means(values, LABELS), [0], [1], QUICK).row(0, named=True)
    plain = compare(Sample.means(values), [0], [1], QUICK).row(0, named=True)
    both = ~np.isnan(values).any(axis=0)
    assert (found["n"], found["units"]) == (both.sum(), len(set(LABELS[both])))
    assert plain["units"] == plain["n"]
    same = ("difference", "value_first", "value_second", "wins", "ties", "losses", "sd", "d_z", "superiority")
    assert [found[name] for name in same] == [plain[name] for name in same]


def test_copies_of_questions_say_no_more_than_one_of_each():
    values = np.random.default_rng(6).random((2, 12))
    once = compare(Sample.means(values), [0], [1], QUICK).row(0, named=True)
    copies = Sample.means(np.repeat(values, 5, axis=1), np.repeat(np.arange(12), 5))
    found = compare(copies, [0], [1], QUICK).row(0, named=True)
    for name in ("low", "high", "p", "detectable"):
        assert found[name] == pytest.approx(once[name])
    assert found["needed"] == pytest.approx(5 * once["needed"], rel=0.05)
    assert (found["n"], found["units"]) == (60, 12)


def test_few_clusters_say_nothing():
    labels = np.repeat(np.arange(CLUSTERS - 1), 20)
    values = np.random.default_rng(1).random((2, len(labels)))
    found = compare(Sample.means(values, labels), [0], [1], QUICK).row(0, named=True)
    assert [found[name] for name in ("low", "high", "p", "p_holm")] == [None] * 4
    assert found["units"] == CLUSTERS - 1


def test_a_cluster_each_is_no_cluster():
    values = figures()
    alone = Sample.means(values, np.arange(len(LABELS))[::-1])
    assert alone.clusters is None
    assert alone.top.tolist() == Sample.means(values).top.tolist()


@pytest.mark.parametrize("clusters", [[0, 1], [[0] * 18], np.full(18, 0.5), ["a"] * 18])
def test_clusters_that_are_none(clusters):
    with pytest.raises(InputError, match="Clusters of 18 queries"):
        columns_of(clusters, 18)
