from itertools import combinations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.decide.ties import jitter, pass_differences
from core.stats.latency import per_query, per_repeat

SCHEMA = {
    "run_id": pl.String,
    "query_id": pl.String,
    "stage": pl.String,
    "repeat": pl.Int16,
    "ms": pl.Float64,
}


def timings(*rows):
    return pl.DataFrame(rows, schema=SCHEMA, orient="row").with_columns(place=pl.lit(None, pl.Int32))


def passes(run, *medians, stage="retrieve"):
    return [(run, query, stage, at, ms) for at, ms in enumerate(medians, 1) for query in ("q1", "q2")]


@pytest.mark.parametrize(
    ("rows", "differences"),
    [
        ([], []),
        (passes("a", 10.0), []),
        (passes("a", 10.0, 10.0), [0.0]),
        (passes("a", 10.0, 12.0, 15.0), [2.0, 3.0, 5.0]),
        (passes("a", 10.0, 12.0) + passes("b", 100.0, 107.0), [2.0, 7.0]),
        (
            passes("a", 10.0, 12.0) + passes("a", 1.0, 2.0, stage="rerank"),
            [3.0],
        ),  # the stages of a pass add up
        (passes("a", 10.0, 12.0) + passes("a", 1.0, 900.0, stage="generate"), [2.0]),
        # q3 was asked in the first pass only
        ([*passes("a", 10.0, 12.0), ("a", "q3", "retrieve", 1, 999.0)], [2.0]),
    ],
)
def test_differences_of_passes(rows, differences):
    found = pass_differences(per_repeat(timings(*rows)))
    assert sorted(found["ms"]) == pytest.approx(differences)


def test_the_jitter_is_a_percentile_of_all_pairs_of_passes():
    assert jitter(pl.Series(np.arange(101.0))) == pytest.approx(95)
    assert jitter(pl.Series([], dtype=pl.Float64)) is None


@pytest.mark.slow
@given(
    st.dictionaries(
        st.sampled_from("abc"),
        st.lists(st.lists(st.integers(0, 50), min_size=3, max_size=3), min_size=1, max_size=4),
        min_size=1,
    )
)
def test_against_a_loop_over_runs_and_passes(runs):
    rows = [
        (run, f"q{query}", "retrieve", at, float(ms))
        for run, done in runs.items()
        for at, times in enumerate(done)
        for query, ms in enumerate(times)
    ]
    expected = [
        abs(float(np.median(one)) - float(np.median(other)))
        for done in runs.values()
        for one, other in combinations(done, 2)
    ]
    found = pass_differences(per_repeat(timings(*rows)))["ms"]
    assert sorted(found) == pytest.approx(sorted(expected))
    if expected:
        assert jitter(found) == pytest.approx(np.quantile(expected, 0.95))


def test_repeats_of_a_query_are_one_latency():
    found = per_query(timings(*passes("a", 10.0, 12.0, 30.0))).filter(pl.col("stage") == "total")
    assert found["ms"].to_list() == [12.0, 12.0]
