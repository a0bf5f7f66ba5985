"""The interval of a mean: each kind against scipy or its paper's formula, and no jump where n passes ten."""

import numpy as np
import pytest
from scipy.stats import binomtest, bootstrap, norm, skew, t, ttest_1samp

from core.errors import InputError
from core.stats.intervals import CLUSTERS
from core.stats.means import mean_interval, share_interval, student

RNG = np.random.default_rng(8)
EVEN = [0.2, 0.9, 0.4, 0.6, 0.5, 0.3, 0.75, 0.45, 0.6, 0.55, 0.7, 0.35]  # little skewness
LONG = [*RNG.gamma(0.5, size=40)]  # much of it


def wilson(values):
    ends = binomtest(int(sum(values)), len(values)).proportion_ci(method="wilson")
    return ends.low, ends.high


def of_t(values, level=0.95):
    return tuple(ttest_1samp(values, 0).confidence_interval(level))


NOTHING = (np.nan, np.nan)


@pytest.mark.parametrize(
    ("values", "of", "expected"),
    [
        ([1.0, 0.0, 1.0, 1.0], "shares", wilson([1, 0, 1, 1])),
        ([1.0] * 30, "shares", wilson([1] * 30)),
        ([100.0, 0.0, 0.0], "points", tuple(100 * end for end in wilson([1, 0, 0]))),
        ([0.2, 0.3, 0.4, 0.5, 0.6, 0.7], "shares", of_t([0.2, 0.3, 0.4, 0.5, 0.6, 0.7])),
        (EVEN, "shares", of_t(EVEN)),
        ([100 * value for value in EVEN], "points", of_t([100 * value for value in EVEN])),
        ([3.0, 5.0, 4.0], "shares", of_t([3.0, 5.0, 4.0])),  # beyond 1: none
        ([-0.5, 0.5, 0.25], "differences", of_t([-0.5, 0.5, 0.25])),
        ([0.0, 0.0, 0.0, 0.0, 0.0, 0.05], "differences", of_t([0.0] * 5 + [0.05])),
        ([0.0, 1.0] * 8, "differences", of_t([0.0, 1.0] * 8)),
        (LONG, "differences", of_t(LONG)),
        ([2.0, 2.0, 2.0], "amounts", NOTHING),  # no spread says nothing of the next
        ([0.0] * 6, "differences", NOTHING),
        ([0.0] * 10, "differences", (0.0, 0.0)),
        ([0.5], "shares", NOTHING),
        ([], "shares", NOTHING),
    ],
)
def test_each_kind_has_its_interval(values, of, expected):
    low, high = mean_interval([*values, np.nan], of)
    assert (low[0], high[0]) == pytest.approx(expected, abs=1e-9, nan_ok=True)


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_what_is_skewed_has_bca_with_students_tails(level):
    n = len(LONG)
    assert n < 25 * skew(LONG) ** 2
    wider = norm.cdf(np.sqrt(n / (n - 1)) * t.ppf((1 + level) / 2, n - 1))
    known = bootstrap(
        (LONG,), np.mean, n_resamples=50_000, method="BCa", confidence_level=2 * wider - 1, rng=RNG
    ).confidence_interval
    low, high = mean_interval(LONG, "amounts", level=level)
    width = known.high - known.low
    assert low[0] == pytest.approx(known.low, abs=0.03 * width)
    assert high[0] == pytest.approx(known.high, abs=0.06 * width)  # the long tail, of 2,000 resamples


def test_few_skewed_shares_have_wilsons_for_the_variance_they_show():
    values = np.array([1, 1, 1, 1, 1, 0.9, 1, 0.4])
    mean, n = values.mean(), len(values)
    assert n < 25 * skew(values) ** 2
    low, high = mean_interval(values, "shares")
    shown = values.var(ddof=1) / (mean * (1 - mean))
    for end in (low[0], high[0]):  # where the mean is as far off as t standard errors of that share
        assert (mean - end) ** 2 == pytest.approx(t.ppf(0.975, n - 1) ** 2 * shown * end * (1 - end) / n)
    assert 0 < low[0] < mean < high[0] < 1


@pytest.mark.parametrize("values", [[0.5] * 4, [1.0] * 4, [0.25] * 40])
def test_equal_shares_have_wilsons_of_their_mean(values):
    low, high = mean_interval(values, "shares")
    assert (low[0], high[0]) == tuple(map(pytest.approx, share_interval(values[0], len(values))))


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng, n: np.where(rng.random(n) < 0.8, 1.0, rng.random(n)),
        lambda rng, n: rng.beta(0.4, 0.4, n),
        lambda rng, n: rng.beta(5, 5, n),
        lambda rng, n: (rng.random(n) < 0.7).astype(float),
    ],
    ids=["many ones", "both ends", "middle", "yes or no"],
)
def test_intervals_do_not_jump_at_ten(draw):
    rng = np.random.default_rng(4)
    nine, ten = (np.mean(np.diff(mean_interval(draw(rng, (3000, n)), "shares"), axis=0)) for n in (9, 10))
    assert 0.88 < ten / nine < 1.08, "as one more query narrows it: √(9 / 10) = .95"


def test_shares_stay_within_their_range():
    low, high = mean_interval([[1.0] * 11 + [0.0, 0.8], [0.0] * 11 + [0.9, 0.2]], "shares")
    assert (low >= 0).all()
    assert (high <= 1).all()


def test_a_row_does_not_depend_on_its_company():
    values = RNG.beta(0.3, 2, size=(1500, 12))
    values[RNG.random(values.shape) < 0.2] = np.nan
    low, high = mean_interval(values, "shares")
    for row in (0, 700, 1499):
        assert (low[row], high[row]) == pytest.approx(
            [end[0] for end in mean_interval(values[row], "shares")], abs=1e-12
        )


def of_clusters(values, labels, level=0.95):
    """Bell and McCaffrey's, by their matrices."""
    ones, n = np.ones((len(values), 1)), len(values)
    hat = ones @ ones.T / n
    residual, score = np.eye(n) - hat, np.zeros((n, labels.max() + 1))
    for cluster in range(labels.max() + 1):
        rows = np.flatnonzero(labels == cluster)
        own = np.eye(len(rows)) - hat[np.ix_(rows, rows)]
        eigen, vectors = np.linalg.eigh(own)
        adjusted = vectors @ np.diag(eigen**-0.5) @ vectors.T @ np.ones(len(rows)) / n
        score[:, cluster] = residual[:, rows] @ adjusted
    variance = np.sum((values @ score) ** 2)
    spectrum = np.linalg.eigvalsh(score.T @ score)
    freedom = spectrum.sum() ** 2 / (spectrum**2).sum()
    reach = t.ppf((1 + level) / 2, freedom) * np.sqrt(variance)
    return values.mean() - reach, values.mean() + reach, freedom


@pytest.mark.parametrize("sizes", [[3] * 9, [1, 1, 1, 2, 4, 4, 7, 9], [20, 1, 1, 1, 1, 1, 1, 1, 1, 1]])
@pytest.mark.parametrize("level", [0.9, 0.95])
def test_clusters_have_bell_and_mccaffreys_interval(sizes, level):
    labels = np.repeat(np.arange(len(sizes)), sizes)
    values = RNG.random(len(labels)) + 0.3 * RNG.random(len(sizes))[labels]
    *expected, freedom = of_clusters(values, labels, level)
    low, high = mean_interval(values, "amounts", level=level, clusters=labels)
    assert (low[0], high[0]) == pytest.approx(tuple(expected))
    assert freedom <= len(sizes) - 1 + 1e-9
    if len(set(sizes)) == 1:
        means = values.reshape(len(sizes), -1).mean(axis=1)
        assert (low[0], high[0]) == pytest.approx(of_t(means, level))


def test_few_clusters_have_no_interval():
    labels = np.arange(60) % (CLUSTERS - 1)
    for of in ("shares", "amounts", "differences"):
        assert np.isnan(mean_interval(RNG.random(60), of, clusters=labels)).all()
    low, high = mean_interval(np.ones(60), "shares", clusters=np.arange(60) % 12)
    assert (low[0], high[0]) == pytest.approx(wilson([1] * 12)), "as of one answer a cluster"


def test_one_unit_has_no_degrees_of_freedom():
    low, high = student(np.array([[0.5, np.nan]]), np.array([[1.0, 0.0]]), 0.025)
    assert np.isnan([low, high]).all()


@pytest.mark.parametrize("level", [0.0, 1.0, 1.5])
def test_level_is_checked(level):
    with pytest.raises(InputError, match="coverage"):
        mean_interval([0.1, 0.2], "shares", level=level)


def test_no_queries_are_refused():
    with pytest.raises(InputError, match="hold no query"):
        mean_interval(np.empty((2, 0)), "shares")


@pytest.mark.parametrize(("right", "n"), [(0, 1), (1, 1), (0, 39), (39, 39), (26, 39), (1266, 2837)])
def test_the_interval_of_a_share_agrees_with_scipy(right, n):
    expected = binomtest(right, n).proportion_ci(method="wilson")
    low, high = share_interval([right / n], n)
    assert (low[0], high[0]) == pytest.approx((expected.low, expected.high), abs=1e-12)
