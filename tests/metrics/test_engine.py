"""Degenerate inputs, means without warnings, reasons, shapes."""

from collections.abc import Callable

import numpy as np
import pytest

from core.errors import InputError
from core.metrics import (
    REGISTRY,
    Extra,
    Measure,
    Weighting,
    aggregate,
    engine,
    na_reason,
    ratio_of_means,
    score,
    score_all,
    score_at,
    shares_of_means,
    to_depth,
)

GOOD = ("RA-nWG", "N-Recall4+", "N-Recall5", "Hit")
NEVER_NA = ("P", "Success", "RR", "RBP", "T", "T_u", "nDCG-found")
NEED_RELEVANT = ("R", "F1", "AP", "F", "N-Recall")
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


def full_extra(grades):
    """Whatever a measure may need: every passage of a source of its own, every answer half correct."""
    sources = np.broadcast_to(np.arange(grades.shape[-1], dtype=np.int32), grades.shape)
    facets = np.zeros((grades.shape[-2], 32), dtype=np.int64)
    facets[:, [1, 2, 4, 8, 16]] = 1
    answers = np.full(grades.shape, 0.5)
    depths = np.tile(np.arange(5, 0, -1), (grades.shape[-2], 1))
    of_sources = {"sources": sources, "pool_sources": sources, "facets": facets, "depths": depths}
    of_sources["source_grades"] = grades
    of_sources["nuggets"] = np.broadcast_to(
        np.uint64(1) << (np.arange(grades.shape[-1], dtype=np.uint64) % np.uint64(6)), grades.shape
    )
    of_sources["nuggets_listed"] = np.full((*grades.shape[:-1], 2), 63, dtype=np.uint64)
    of_sources["states"] = np.ones(grades.shape, dtype=np.int8)
    of_sources["filtered"] = np.full((*grades.shape[:-1], 2), 1000, dtype=np.int32)
    return Extra(**of_sources, answers=answers, perturbed={"noise 4": grades})


@pytest.mark.parametrize("row", DEGENERATE, ids=[row[0] for row in DEGENERATE])
def test_degenerate_queries_of_the_classical_measures(row):
    """Where nothing is relevant a share of it is not applicable; nothing found is 0; found all of it is 1."""
    _, counts, ranking, k, _ = row
    grades = np.array([ranking], dtype=np.int8).reshape(1, -1)
    present, found = sum(counts[3:]), sum(grade >= 4 for grade in ranking[:k])
    made = {
        name: score_at(Measure(name, k), grades, np.array([counts]))[0]
        for name in (*NEVER_NA, *NEED_RELEVANT)
    }
    assert not any(np.isnan(made[name]) for name in NEVER_NA)
    assert all(np.isnan(made[name]) == (present == 0) for name in NEED_RELEVANT)
    others = k - found  # also the slots that a short ranking leaves empty
    assert made["T"] == pytest.approx(0.5 * found - 0.5 * others / k)
    assert made["T_u"] == pytest.approx(0.5 * (found - others))
    assert made["Success"] == (found > 0)
    if present and found == present == len(ranking):
        assert made["R"] == made["AP"] == made["RR"] == made["nDCG-found"] == 1
    ndcg = score_at(Measure("nDCG", k), grades, np.array([counts]))[0]
    assert np.isnan(ndcg) == (sum(counts) == 0)


@pytest.mark.parametrize("shape", [(0, 5), (3, 0), (2, 0, 4), (0, 3, 4), (2, 3, 0)])
def test_empty_axes_give_empty_results(shape):
    grades = np.zeros(shape, dtype=np.int8)
    counts = np.ones((shape[-2], 5), dtype=np.int32)
    for name in REGISTRY:
        made = score(Measure(name), grades, counts, pool_grades=grades, extra=full_extra(grades))
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


def test_the_mean_of_what_queries_add_is_the_ratio_of_means():
    rng = np.random.default_rng(3)
    ceiling = rng.random((2, 40, 3))
    actual = ceiling * rng.random(ceiling.shape)
    ceiling[0, 5], actual[0, 5] = 0.0, 0.0  # nothing to reach: it counts, and changes nothing
    actual[1, 7:9] = np.nan
    parts = shares_of_means(actual, ceiling)
    mean, n = aggregate(parts)
    np.testing.assert_allclose(mean, ratio_of_means(actual, ceiling), rtol=1e-12)
    assert (n == [[40] * 3, [38] * 3]).all()
    # its spread is that of the ratio under resampling, to first order
    drawn = rng.integers(40, size=(4000, 40))
    many = actual[0, drawn, 0].sum(axis=1) / ceiling[0, drawn, 0].sum(axis=1)
    assert parts[0, :, 0].std() / np.sqrt(40) == pytest.approx(many.std(), rel=0.05)


def test_proc_without_a_pool_is_refused():
    with pytest.raises(InputError, match="candidate pool"):
        score(Measure("PROC[RA-nWG]"), np.zeros((1, 2), dtype=np.int8), np.ones((1, 5), dtype=np.int32))


@pytest.mark.parametrize(
    ("name", "missing"),
    [
        ("Novelty-RA-nWG", "source of every"),
        ("PROC[Novelty-RA-nWG]", "candidate pool"),
        ("Acc|Hit", "answers with grades"),
    ],
)
def test_what_a_measure_needs_is_asked_for(name, missing):
    with pytest.raises(InputError, match=missing):
        score(
            Measure(name),
            np.full((1, 2), 5, dtype=np.int8),
            np.ones((1, 5), dtype=np.int32),
            pool_grades=None,
            extra=Extra(facets=np.ones((1, 32), dtype=np.int64)),
        )


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
        score(Measure(name), grades, counts, pool_grades=grades, extra=full_extra(grades))
    np.testing.assert_array_equal(grades, before[0])
    np.testing.assert_array_equal(counts, before[1])


def test_several_cutoffs_of_one_measure_share_one_result():
    grades, counts = np.array([[5, 0]], dtype=np.int8), np.ones((1, 5), dtype=np.int32)
    made = score_all([Measure("RA-nWG", 1), Measure("RA-nWG", 2)], grades, counts)
    assert list(map(str, made)) == ["RA-nWG@1", "RA-nWG@2"]
    assert np.shares_memory(made[Measure("RA-nWG", 1)], made[Measure("RA-nWG", 2)])


def test_a_deep_ranking_is_counted_beyond_sixteen_bits():
    grades = np.full((1, 40_000), 5, dtype=np.int8)
    counts = np.array([[0, 0, 0, 0, 40_000]])
    for name in ("RA-nWG", "N-Recall5", "P", "AP", "nDCG", "F1", "T"):
        last = score(Measure(name), grades, counts)[0, -1]
        assert last == pytest.approx(20_000 if name == "T" else 1), name


@pytest.mark.slow
def test_blocks_of_runs_and_queries_equal_the_whole(monkeypatch):
    rng = np.random.default_rng(1)
    grades = rng.integers(-1, 6, (5, 7, 11)).astype(np.int8)
    counts, apart = rng.integers(0, 4, (7, 5)), rng.integers(0, 4, (5, 7, 5))
    measures = [Measure(name) for name, info in REGISTRY.items() if info.needs <= {"pool"}]
    for pool_counts in (counts, apart):
        whole = score_all(measures, grades, pool_counts, pool_grades=grades)
        for size in (1, 11 * 7 * 2, 11 * 3):
            monkeypatch.setattr(engine, "_BLOCK", size)
            blocks = score_all(measures, grades, pool_counts, pool_grades=grades)
            for measure in measures:
                np.testing.assert_array_equal(blocks[measure], whole[measure], err_msg=str(measure))
        monkeypatch.undo()


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


@pytest.mark.parametrize(("name", "worst"), [("Success", min), ("Harm", max)])
def test_robust_with_names_is_the_naive_worst(name: str, worst: Callable[..., float]):
    random = np.random.default_rng(5)
    clean, noise, near, both = (random.integers(0, 6, (30, 4)).astype(np.int8) for _ in range(4))
    counts = np.tile([1, 1, 1, 1, 1], (30, 1))
    told = {"noise 4": noise, "names 1": near, "noise 4 names 1": both, "names mask": 0 * clean}
    measure = Measure.parse(f"Robust[{name}]@3(names=1)")
    assert dict(measure.values)["names"] == "1"
    made = score_at(measure, clean, counts, extra=Extra(perturbed=told))
    each = [score_at(Measure.parse(f"{name}@3"), rows, counts) for rows in (clean, noise, near, both)]
    np.testing.assert_array_equal(made, [worst(values) for values in zip(*each, strict=True)])
    assert (made != each[0]).any()
    with pytest.raises(InputError, match="names=4"):
        Measure.parse(f"Robust[{name}]@3(names=4)")


def test_robust_is_the_worst_of_each_chosen_perturbation_by_itself():
    measure = Measure.parse("Robust[N-Recall4+]@2(typo=1)")
    assert str(measure) == "Robust[N-Recall4+]@2(typo=1)"
    assert Measure.parse("Robust[N-Recall4+]@2(noise=4,typo=1)") == measure
    counts = np.array([[0, 0, 0, 0, 2], [0, 0, 0, 0, 1], [0, 0, 0, 0, 1], [0, 0, 1, 0, 0]])
    clean = np.array([[5, 5], [5, 0], [5, 0], [3, 0]], dtype=np.int8)
    noise = np.array([[5, 0], [5, 0], [0, 5], [3, 0]], dtype=np.int8)
    typo = np.array([[0, 5], [0, 0], [-2, -2], [3, 0]], dtype=np.int8)
    made = score_at(measure, clean, counts, extra=Extra(perturbed={"noise 4": noise, "typo 1": typo}))
    np.testing.assert_array_equal(made, [0.5, 0.0, np.nan, np.nan])
    both = np.array([[0, 0], [5, 0], [5, 0], [3, 0]], dtype=np.int8)
    told = {"noise 4": noise, "typo 1": typo, "noise 4 typo 1": both, "noise 2 typo 1": np.zeros_like(both)}
    at_once = score_at(measure, clean, counts, extra=Extra(perturbed=told))
    np.testing.assert_array_equal(at_once, [0.0, 0.0, np.nan, np.nan])
    both[0] = -2
    left_out = score_at(measure, clean, counts, extra=Extra(perturbed=told))
    np.testing.assert_array_equal(left_out, made, err_msg="what was not run at once is left out")
    harm = score_at(
        Measure.parse("Robust[Harm]@2"), clean, counts, extra=Extra(perturbed={"noise 4": 0 * clean + 1})
    )
    np.testing.assert_array_equal(harm, 1.0)
    alone = Measure.parse("Robust[N-Recall4+]@1(noise=0)")
    np.testing.assert_array_equal(score_at(alone, clean, counts)[:2], [1.0, 1.0])
    with pytest.raises(InputError, match="perturbed queries"):
        score_at(measure, clean, counts, extra=Extra(perturbed={"typo 1": typo}))


def test_every_measure_is_declared_completely():
    for info in REGISTRY.values():
        assert all((info.text, info.formula, info.section)), info.name
    assert {info.range for info in REGISTRY.values()} == {"0 to 1", "0 to ∞", "-1 to ∞", "−∞ to ∞"}
    alpha = REGISTRY["RA-nWG"].param("alpha")
    assert alpha is not None
    assert (alpha.default, alpha.range) == (1, "0 to 4")
