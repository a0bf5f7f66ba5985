import numpy as np
import polars as pl
import pytest

from core.stats.intervals import quantile_ranks, too_few
from core.stats.latency import LEAST, per_query, per_repeat, quantile_gap, sampled, summary
from core.tables import frame


def timings(*rows):
    names = ("run_id", "query_id", "stage", "repeat", "ms")
    return frame("timings", [dict(zip(names, row, strict=True)) for row in rows])


def bounds(sample, q):
    """The order statistics that bracket a quantile; none where the sample is too small."""
    ranks = quantile_ranks(len(sample), q)
    return (None, None) if ranks is None else tuple(float(np.sort(sample)[rank - 1]) for rank in ranks)


def ms(found, run, stage):
    return found.filter((pl.col("run_id") == run) & (pl.col("stage") == stage))["ms"].to_list()


def test_repeats_are_reduced_before_queries():
    found = per_query(timings(*[("a", "q", "embed", n, value) for n, value in enumerate((1.0, 9.0, 2.0), 1)]))
    assert ms(found, "a", "embed") == [2.0]
    assert ms(found, "a", "total") == [2.0]


def test_total_is_the_median_of_the_sums_not_the_sum_of_the_medians():
    rows = [("embed", 1, 1.0), ("embed", 2, 5.0), ("embed", 3, 6.0)]
    rows += [("rerank", 1, 9.0), ("rerank", 2, 1.0), ("rerank", 3, 2.0)]
    found = per_query(timings(*[("a", "q", stage, repeat, value) for stage, repeat, value in rows]))
    assert ms(found, "a", "total") == [8.0]  # sums 10, 6, 8; the medians add up to 7


def test_generation_is_not_retrieval():
    rows = timings(("a", "q", "rerank", 1, 2.0), ("a", "q", "generate", 1, 900.0))
    assert ms(per_query(rows), "a", "total") == [2.0]
    assert ms(per_query(rows, stages=["generate"]), "a", "total") == [900.0]


def test_scopes():
    rows = timings(("a", "q", "embed", 1, 2.0), ("a", "q", "rerank", 1, 5.0), ("b", "q", "embed", 1, 1.0))
    assert ms(per_query(rows, scope="rerank"), "a", "total") == [5.0]
    assert ms(per_query(rows, scope="rerank"), "b", "total") == []
    assert ms(per_query(rows, stages=["embed"]), "b", "total") == [1.0]


def test_incomplete_repeat_has_no_total():
    rows = timings(
        ("a", "q1", "embed", 1, 1.0),
        ("a", "q1", "rerank", 1, 3.0),
        ("a", "q1", "embed", 2, 1.0),
        ("a", "q2", "embed", 1, 1.0),
        ("a", "q2", "rerank", 1, None),
    )
    found = per_query(rows)
    assert ms(found, "a", "total") == [4.0]
    assert sorted(ms(found, "a", "embed")) == [1.0, 1.0]


def test_a_run_timed_as_a_whole_keeps_its_total():
    rows = timings(("a", "q", "total", 1, 50.0), ("a", "q", "rerank", 1, 30.0), ("b", "q", "rerank", 1, 7.0))
    found = per_query(rows)
    assert ms(found, "a", "total") == [50.0]
    assert ms(found, "b", "total") == [7.0]
    assert ms(per_query(rows, scope="rerank"), "a", "total") == [30.0]


@pytest.mark.parametrize("n", [1, 5, 6, 59, 60, 75, 200, 298, 299, 400])
def test_summary_against_numpy_and_the_single_interval(n):
    sample = np.random.default_rng(n).gamma(3.0, 20.0, n)
    rows = frame(
        "timings",
        {
            "run_id": ["a"] * n,
            "query_id": [f"q{i}" for i in range(n)],
            "stage": ["rerank"] * n,
            "repeat": [1] * n,
            "ms": sample,
        },
    )
    row = summary(sampled(per_repeat(rows))).filter(pl.col("stage") == "rerank").row(0, named=True)
    assert row["n"] == n
    assert row["p50"] == pytest.approx(np.median(sample))
    median = bounds(sample, 0.5)
    assert (row["p50_low"], row["p50_high"]) == median
    tail = bounds(sample, 0.95)
    if n < 60:
        assert (row["p95"], row["p95_low"], row["p95_high"]) == (None, None, None)
        assert row["p95_reason"].startswith(f"{n} queries are too few")
        assert row["p95_reason"].endswith("at least 60 are needed")
    else:
        assert row["p95"] == pytest.approx(np.quantile(sample, 0.95))
        assert (row["p95_low"], row["p95_high"]) == tail
        assert row["p95_reason"] is None
    far = bounds(sample, 0.99)
    if n < 299:
        assert (row["p99"], row["p99_low"], row["p99_high"]) == (None, None, None)
        assert row["p99_reason"] == f"{too_few(n, 0.99)}: at least 299 are needed"
    else:
        assert row["p99"] == pytest.approx(np.quantile(sample, 0.99))
        assert (row["p99_low"], row["p99_high"]) == far
        assert (far[0] is not None, row["p99_reason"]) == (True, None)


def test_nothing_timed():
    assert summary(sampled(per_repeat(timings()))).height == 0


@pytest.mark.parametrize("percentile", ["p50", "p95"])
@pytest.mark.parametrize("serials", [(0.0, 0.0), (0.1, 0.7), (0.7, 0.0)])
@pytest.mark.parametrize("n", [12, 64, 150])
def test_a_difference_is_no_less_sure_than_its_two_latencies_allow(percentile, serials, n):
    drawn = np.random.default_rng(n)
    first, second = drawn.lognormal(0, 0.4, n), drawn.lognormal(1, 0.8, n)
    gap, low, high = quantile_gap(first, second, percentile, serials)
    sample = pl.DataFrame({"ms": [*first, *second], "run_id": ["a"] * n + ["b"] * n}).with_columns(
        stage=pl.lit("total"), query_id=pl.lit("q"), serial=pl.Series(np.repeat(serials, n))
    )
    one, other = summary(sample).iter_rows(named=True)
    assert low <= gap <= high
    if n >= LEAST.get(percentile, 0) and None not in (one[f"{percentile}_low"], other[f"{percentile}_low"]):
        assert low >= other[f"{percentile}_low"] - one[f"{percentile}_high"]
        assert high <= other[f"{percentile}_high"] - one[f"{percentile}_low"]
