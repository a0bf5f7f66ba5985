from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from core.stats.intervals import SEED, resample_weights
from core.stats.judges import (
    RESAMPLES,
    alpha,
    alpha_of,
    coincidences,
    confusion,
    fleiss_of,
    kappa,
    kappa_of,
    shares_of,
)

# Krippendorff (2011), Computing Krippendorff's Alpha-Reliability, section C: four observers, twelve units.
TEXTBOOK = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, 0, 0, 0],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, 0, 3],
        [0, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, 0],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, 0],
    ]
)
ONE_QUERY = np.zeros(12, dtype=np.int64)


@pytest.mark.parametrize(("level", "value"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_alpha_of_the_textbook(level: str, value: float):
    counts = coincidences(TEXTBOOK, ONE_QUERY)
    assert counts.sum() == pytest.approx(40), "eleven units can be paired; they have 40 grades"
    assert alpha(counts.sum(axis=0), level) == pytest.approx(value, abs=5e-4)  # type: ignore[arg-type]


def naive_alpha(grades: np.ndarray) -> float:
    """Ordinal alpha by its definition, pair by pair."""
    units = [[int(g) for g in column if g] for column in grades.T]
    units = [unit for unit in units if len(unit) > 1]
    values = [grade for unit in units for grade in unit]
    count = {grade: values.count(grade) for grade in range(1, 6)}

    def distance(one: int, other: int) -> float:
        low, high = min(one, other), max(one, other)
        return (sum(count[g] for g in range(low, high + 1)) - (count[low] + count[high]) / 2) ** 2

    observed = sum(
        distance(a, b) / (len(unit) - 1)
        for unit in units
        for i, a in enumerate(unit)
        for j, b in enumerate(unit)
        if i != j
    ) / len(values)
    expected = sum(distance(a, b) for i, a in enumerate(values) for j, b in enumerate(values) if i != j)
    return 1 - observed / (expected / (len(values) * (len(values) - 1)))


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1), st.integers(2, 4))
def test_alpha_equals_its_definition(seed: int, judges: int):
    rng = np.random.default_rng(seed)
    grades = rng.integers(0, 6, size=(judges, 15))
    query = rng.integers(0, 4, size=15)
    found = alpha(coincidences(grades, query).sum(axis=0))
    given_ = grades[:, (grades > 0).sum(axis=0) > 1]
    if len(np.unique(given_[given_ > 0])) > 1:
        assert found == pytest.approx(naive_alpha(grades), abs=1e-9)
    else:
        assert np.isnan(found)


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1))
def test_kappa_equals_scikit_learn(seed: int):
    rng = np.random.default_rng(seed)
    first = rng.integers(1, 6, size=20)
    second = np.clip(first + rng.integers(-1, 2, size=20), 1, 5)
    counts = confusion(first, second, rng.integers(0, 3, size=20)).sum(axis=0)
    labels = [1, 2, 3, 4, 5]
    assert kappa(counts) == pytest.approx(cohen_kappa_score(first, second, labels=labels), abs=1e-12)
    quadratic = cohen_kappa_score(first, second, labels=labels, weights="quadratic")
    assert kappa(counts, "quadratic") == pytest.approx(quadratic, abs=1e-12)


FLEISS = (
    (0, 0, 0, 0, 14), (0, 2, 6, 4, 2), (0, 0, 3, 5, 6), (0, 3, 9, 2, 0), (2, 2, 8, 1, 1),
    (7, 7, 0, 0, 0), (3, 2, 6, 3, 0), (2, 5, 3, 2, 2), (6, 5, 2, 1, 0), (0, 2, 2, 3, 7),
)  # fmt: skip
"""Fourteen judges, ten passages, how many gave each grade: an example of Fleiss' kappa, which is .210."""


def test_fleiss_of_the_textbook():
    grades = np.array([np.repeat(np.arange(1, 6), row) for row in FLEISS]).T
    found = fleiss_of(coincidences(grades, np.arange(10) // 5, once=True), 10)
    assert found.value == pytest.approx(0.20993, abs=5e-6)
    assert (found.n, found.queries) == (10, 2)
    assert found.low <= found.value <= found.high


@pytest.mark.parametrize("judges", [2, 3, 6])
def test_fleiss_equals_its_definition_however_many_judged_a_passage(judges: int):
    rng = np.random.default_rng(judges)
    grades = rng.integers(1, 6, size=(judges, 60)) * (rng.random((judges, 60)) < 0.7)
    rated = [[int(grade) for grade in column if grade] for column in grades.T]
    several = [given for given in rated if len(given) > 1]
    same = [
        sum(one == two for one, two in permutations(given, 2)) / (len(given) * (len(given) - 1))
        for given in several
    ]
    mix = [np.mean([given.count(grade) / len(given) for given in several]) for grade in range(1, 6)]
    chance = sum(share**2 for share in mix)
    found = fleiss_of(coincidences(grades, np.arange(60) % 7, once=True), len(several)).value
    assert found == pytest.approx((np.mean(same) - chance) / (1 - chance))


def test_one_grade_only_leaves_nothing_to_disagree_on():
    ones = np.ones(4, dtype=np.int64)
    assert np.isnan(kappa(confusion(ones, ones, ones - 1).sum(axis=0)))
    assert np.isnan(alpha(coincidences(np.stack([ones, ones]), ones - 1).sum(axis=0)))


def test_intervals_are_over_queries():
    rng = np.random.default_rng(5)
    first = rng.integers(1, 6, size=400)
    second = np.clip(first + rng.integers(-1, 2, size=400), 1, 5)
    query = np.repeat(np.arange(40), 10)
    found = kappa_of(confusion(first, second, query), "quadratic")
    assert (found.n, found.queries) == (400, 40)
    assert found.low < found.value < found.high
    again = kappa_of(confusion(first, second, query), "quadratic")
    assert (found.low, found.high) == (again.low, again.high)
    whole = alpha_of(coincidences(np.stack([first, second]), query), 400)
    assert whole.low < whole.value < whole.high
    assert kappa_of(confusion(first, second, query), "quadratic", seed=6).low != found.low


def test_one_query_has_no_interval():
    found = alpha_of(coincidences(TEXTBOOK, ONE_QUERY), 11)
    assert found.value == pytest.approx(0.815, abs=5e-4)
    assert np.isnan(found.low)
    assert np.isnan(found.high)
    empty = kappa_of(confusion(*(np.zeros(0, dtype=np.int64),) * 3))
    assert np.isnan(empty.value)
    assert (empty.n, empty.queries) == (0, 0)


def test_shares_of_a_row_and_their_intervals():
    source = np.random.default_rng(3)
    first, second = source.integers(1, 6, 400), source.integers(1, 5, 400)
    query = source.integers(0, 40, 400)
    counts = confusion(first, second, query)
    share, low, high = shares_of(counts)
    weights = resample_weights(40, RESAMPLES, SEED)
    for row in range(5):
        of_row = first == row + 1
        drawn = [
            weight[query[of_row & (second == 2)]].sum() / weight[query[of_row]].sum() for weight in weights
        ]
        assert share[row, 1] == pytest.approx((of_row & (second == 2)).sum() / of_row.sum())
        assert (low[row, 1], high[row, 1]) == pytest.approx(tuple(np.percentile(drawn, [2.5, 97.5])))
    assert share.sum(axis=1) == pytest.approx(np.ones(5))
    assert share[:, 4].sum() == 0


@pytest.mark.parametrize("queries", [0, 1])
def test_shares_of_too_few(queries: int):
    share, low, _ = shares_of(np.ones((queries, 5, 5)))
    assert np.isnan(low).all()
    assert np.isnan(share).all() == (queries == 0)
