"""The named tests and corrections of a comparison, against SciPy."""

import numpy as np
import pytest
from scipy.stats import false_discovery_control, ttest_rel, wilcoxon

from core.stats.intervals import Sample
from core.stats.significance import CORRECTIONS, TESTS, Setup, compare, holm

VALUES = np.random.default_rng(4).random((6, 30)).round(2) + np.linspace(0, 0.3, 6)[:, None]
FIRST, SECOND = [0] * 5, list(range(1, 6))
ORACLES = {"paired t": ttest_rel, "Wilcoxon": wilcoxon}


@pytest.mark.parametrize("test", ORACLES)
def test_a_named_test_is_that_of_scipy(test: str):
    found = compare(Sample.means(VALUES), FIRST, SECOND, Setup(test=test))
    expected = [
        ORACLES[test](np.round(VALUES[place] - VALUES[0], 12), np.zeros(30)).pvalue for place in SECOND
    ]
    assert found["p"].to_list() == pytest.approx(expected)
    assert not found["exact"].any()


@pytest.mark.parametrize("test", TESTS)
def test_equal_stacks_never_differ_and_few_clusters_are_unknown(test: str):
    same = Sample.means(np.vstack([VALUES[0], VALUES[0]]))
    assert compare(same, [0], [1], Setup(test=test))["p"].to_list() == [1.0]
    few = Sample.means(VALUES[:2], np.arange(30) // 5)  # six clusters
    assert compare(few, [0], [1], Setup(test=test))["p"].to_list() == [None]


@pytest.mark.parametrize("correction", CORRECTIONS)
def test_a_correction_is_over_the_pairs_that_have_a_p(correction: str):
    found = compare(Sample.means(VALUES), FIRST, SECOND, Setup(correction=correction))
    p = found["p"].to_numpy()
    expected = holm(p) if correction == "Holm" else false_discovery_control(p)
    assert found["p_adjusted"].to_list() == pytest.approx(expected.tolist())
    assert found["p_holm"].to_list() == pytest.approx(holm(p).tolist())
    unknown = CORRECTIONS[correction]([0.01, np.nan, 0.04])
    assert np.isnan(unknown).tolist() == [False, True, False]
    assert unknown[[0, 2]] == pytest.approx([0.02, 0.04])
