import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from core.errors import UnknownNameError
from core.stats.correlation import KINDS, best_alpha, correlate

SCIPY = {
    "pearson": lambda x, y: stats.pearsonr(x, y).statistic,
    "spearman": lambda x, y: stats.spearmanr(x, y).statistic,
    "kendall-b": lambda x, y: stats.kendalltau(x, y, variant="b").statistic,
    "kendall-c": lambda x, y: stats.kendalltau(x, y, variant="c").statistic,
}
SAMPLES = st.lists(st.tuples(st.integers(0, 6), st.integers(1, 5)), min_size=3, max_size=40)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@given(samples=SAMPLES)
def test_it_agrees_with_scipy(kind, samples):
    x, y = np.array(samples, dtype=float).T
    assume(len(set(x)) > 1 and len(set(y)) > 1)
    assert correlate(x, y, kind=kind, resamples=0).value == pytest.approx(SCIPY[kind](x, y), abs=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_a_built_correlation_is_found_inside_its_interval(kind):
    rng = np.random.default_rng(7)
    x = rng.integers(0, 20, 600) / 19
    y = np.clip(np.round(1 + 4 * (0.6 * x + 0.4 * rng.random(600))), 1, 5)
    found = correlate(x, y, np.arange(600) % 200, kind=kind)
    assert found.n == 600
    assert found.low is not None
    assert found.high is not None
    assert found.low < SCIPY[kind](x, y) < found.high
    assert found.low > 0.4


def test_samples_of_one_query_do_not_narrow_the_interval():
    """Every sample ten times over says nothing new: the interval over queries stays as wide."""
    rng = np.random.default_rng(3)
    x, y = rng.random(40).round(1), rng.integers(1, 6, 40).astype(float)
    query = np.arange(40)
    one = correlate(x, y, query)
    ten = correlate(np.tile(x, 10), np.tile(y, 10), np.tile(query, 10))
    assert (ten.value, ten.low, ten.high) == pytest.approx((one.value, one.low, one.high))


@pytest.mark.parametrize(
    ("x", "y", "reason"),
    [
        ([], [], "fewer than two samples"),
        ([1.0, np.nan], [1.0, 2.0], "fewer than two samples"),
        ([1.0, 1.0], [1.0, 2.0], "the measure has one value only"),
        ([1.0, 2.0], [3.0, 3.0], "the outcome has one value only"),
    ],
)
def test_what_is_not_defined_says_why(x, y, reason):
    found = correlate(x, y)
    assert (found.value, found.low, found.high, found.reason) == (None, None, None, reason)


def test_an_unknown_coefficient_is_named():
    with pytest.raises(UnknownNameError, match="spearman"):
        correlate([1, 2], [1, 2], kind="gamma")  # type: ignore[arg-type]


def test_the_best_alpha_is_found_and_its_worth_on_other_queries_is_lower():
    rng = np.random.default_rng(11)
    query = np.repeat(np.arange(60), 5)
    truth, noise = rng.random(300), rng.random(300)
    alphas = np.round(np.arange(0, 1.01, 0.1), 1)
    measures = np.array([(1 - alpha) * truth + alpha * noise for alpha in alphas])
    found = best_alpha(measures, alphas, truth.round(1), query)
    assert found.best == 0.0
    assert set(found.chosen) == {0.0}
    assert found.in_sample == pytest.approx(found.values[0])
    nothing = best_alpha(rng.random((30, 300)), np.linspace(0, 1, 30), rng.integers(1, 6, 300), query)
    assert nothing.in_sample is not None
    assert nothing.cross_validated is not None
    assert nothing.cross_validated < nothing.in_sample


def test_the_best_alpha_of_one_query_has_no_cross_validation():
    found = best_alpha([[1.0, 2.0], [2.0, 1.0]], [0.0, 1.0], [1.0, 2.0], ["q", "q"])
    assert (found.best, found.in_sample, found.cross_validated, found.chosen) == (0.0, 1.0, None, ())
