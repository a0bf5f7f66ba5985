"""Degenerate inputs, means without warnings, reasons, shapes."""

import numpy as np
import pytest

from core.errors import InputError
from core.metrics import (
    REGISTRY,
    Measure,
    Weighting,
    aggregate,
    na_reason,
    reference,
    score,
    score_all,
    score_at,
    to_depth,
)

GOOD = ("RA-nWG", "N-Recall4+", "N-Recall5", "Hit")
RATES = ("Precision4+", "Harm", "HarmUpper", "Hole")
NA = None

# what, counts, ranking, K, expected value of each plain measure in the order of GOOD and RATES
DEGENERATE = [
    ("empty pool, unjudged ranking", (0, 0, 0, 0, 0), [0, 0], 2, (NA, NA, NA, NA, 0, 0, 1, 1)),
    ("empty pool, nothing ranked", (0, 0, 0, 0, 0), [], 2, (NA, NA, NA, NA, 0, 0, 0, 0)),
    ("judged query that is not ranked", (1, 1, 1, 1, 1), [], 5, (0, 0, 0, 0, 0, 0, 0, 0)),
    ("no grade 5", (0, 0, 0, 2, 0), [4, 4], 2, (1, 1, NA, 1, 1, 0, 0, 0)),
    ("grade 3 only", (0, 0, 2, 0, 0), [3, 0], 2, (0.5, NA, NA, NA, 0, 0, 0.5, 0.5)),
    ("grades 1 and 2 only", (1, 1, 0, 0, 0), [1, 2], 2, (NA, NA, NA, NA, 0, 1, 1, 0)),
    ("pool smaller than K", (0, 0, 0, 0, 2), [5, 5, 0, 0], 4, (1, 1, 1, 1, 0.5, 0, 0.5, 0.5)),
    ("everything ranked is unjudged", (0, 0, 0, 1, 1), [0, 0, 0], 3, (0, 0, 0, 0, 0, 0, 1, 1)),
    ("ranking shorter than K", (0, 1, 0, 0, 1), [5, 2], 4, (1, 1, 1, 1, 0.25, 0.25, 0.25, 0)),
    ("one passage, good", (0, 0, 0, 0, 1), [5], 1, (1, 1, 1, 1, 1, 0, 0, 0)),
    ("one passage, bad", (1, 0, 0, 0, 0), [1], 1, (NA, NA, NA, NA, 0, 1, 1, 0)),
]


@pytest.mark.parametrize(
    ("counts", "ranking", "k", "expected"),
    [row[1:] for row in DEGENERATE],
    ids=[row[0] for row in DEGENERATE],
)
def test_degenerate_queries(counts, ranking, k, expected):
    grades = np.array([ranking], dtype=np.int8).reshape(1, -1)
    for name, value in zip((*GOOD, *RATES), expected, strict=True):
        measure = Measure(name, k)
        made = score_at(measure, grades, np.array([counts]))
        np.testing.assert_allclose(made, [np.nan if value is NA else value], rtol=0, atol=1e-12, err_msg=name)
        assert (na_reason(measure, np.array(counts)) is None) == (value is not NA)


@pytest.mark.parametrize("shape", [(0, 5), (3, 0), (2, 0, 4), (0, 3, 4), (2, 3, 0)])
def test_empty_axes_give_empty_results(shape):
    grades = np.zeros(shape, dtype=np.int8)
    counts = np.ones((shape[-2], 5), dtype=np.int32)
    for name in REGISTRY:
        made = score(Measure(name), grades, counts, pool_grades=grades)
        assert made.shape == shape
        mean, n = aggregate(made)
        assert mean.shape == n.shape == (*shape[:-2], shape[-1])


def test_mean_of_no_query_is_nan_with_n_zero():
    mean, n = aggregate(np.full((2, 3, 4), np.nan))
    assert np.isnan(mean).all()
    assert (n == 0).all()


def test_mean_leaves_out_what_does_not_apply():
    mean, n = aggregate(np.array([[1.0, np.nan], [0.0, 0.5], [np.nan, np.nan]]))
    np.testing.assert_array_equal(mean, [0.5, 0.5])
    np.testing.assert_array_equal(n, [2, 1])


def test_reasons_say_what_is_missing():
    nothing, low = np.zeros(5, dtype=int), np.array([1, 0, 0, 0, 0])
    assert na_reason(Measure("RA-nWG", 10), nothing) == "No passage of the query is judged."
    assert "carries weight" in na_reason(Measure("RA-nWG", 10), low)
    assert "grade 4 or 5" in na_reason(Measure("PROC[Hit]", 10), low)
    assert na_reason(Measure("Harm", 10), nothing) is None
    two_good = np.array([0, 0, 0, 1, 1])
    assert "ceiling" not in str(na_reason(Measure("%PROC[Hit]", 2), two_good))
    assert "reaches 0" in na_reason(Measure("%PROC[Hit]", 1), two_good)
    assert "reaches 0" in na_reason(Measure("%PROC[Hit]", 2), two_good, np.array([5, 0], dtype=np.int8))
    assert na_reason(Measure("%PROC[Hit]"), two_good) is None


def test_proc_without_a_pool_is_refused():
    with pytest.raises(InputError, match="candidate pool"):
        score(Measure("PROC[RA-nWG]"), np.zeros((1, 2), dtype=np.int8), np.ones((1, 5), dtype=np.int32))


def test_value_at_a_cutoff_needs_one():
    with pytest.raises(InputError, match="RA-nWG@10"):
        score_at(Measure("RA-nWG"), np.zeros((1, 2), dtype=np.int8), np.ones((1, 5), dtype=np.int32))


@pytest.mark.parametrize(
    ("counts", "pools"), [((2, 5), (1, 2)), ((1, 4), (1, 2)), ((1, 5), (2, 2)), ((5,), (1, 2))]
)
def test_shapes_that_do_not_belong_together_are_refused(counts, pools):
    with pytest.raises(ValueError, match="grades"):
        score(
            Measure("PROC[Hit]"),
            np.zeros((1, 2), dtype=np.int8),
            np.ones(counts, dtype=np.int32),
            pool_grades=np.zeros(pools, dtype=np.int8),
        )


def test_inputs_are_not_changed():
    grades = np.array([[5, 0, -1], [4, 3, 1]], dtype=np.int8)
    counts = np.ones((2, 5), dtype=np.int32)
    before = grades.copy(), counts.copy()
    for name in REGISTRY:
        score(Measure(name), grades, counts, pool_grades=grades)
    np.testing.assert_array_equal(grades, before[0])
    np.testing.assert_array_equal(counts, before[1])


def test_several_cutoffs_of_one_measure_share_one_result():
    grades, counts = np.array([[5, 0]], dtype=np.int8), np.ones((1, 5), dtype=np.int32)
    made = score_all([Measure("RA-nWG", 1), Measure("RA-nWG", 2)], grades, counts)
    assert list(map(str, made)) == ["RA-nWG@1", "RA-nWG@2"]
    assert made[Measure("RA-nWG", 1)] is made[Measure("RA-nWG", 2)]


def test_to_depth_cuts_and_fills():
    grades = np.array([[5, 0]], dtype=np.int8)
    np.testing.assert_array_equal(to_depth(grades, 1), [[5]])
    np.testing.assert_array_equal(to_depth(grades, 4), [[5, 0, -1, -1]])


@pytest.mark.parametrize(
    "wrong",
    [{"b": (0, 0, 0.1, 0.5, 0)}, {"b": (0, 1)}, {"cap4": -1}, {"alpha": float("nan")}, {"fallback": ()}],
)
def test_impossible_weightings_are_refused(wrong):
    with pytest.raises(InputError, match="weighting"):
        Weighting(**wrong)


def test_reference_describes_every_measure_completely():
    rows = reference()
    assert [row["name"] for row in rows] == list(REGISTRY)
    for row in rows:
        assert all(row[key] for key in ("text", "formula", "section", "range", "better", "na")), row
    (ra_nwg,) = (row for row in rows if row["name"] == "RA-nWG")
    assert "alpha=1 (0 to 4)" in ra_nwg["params"]
