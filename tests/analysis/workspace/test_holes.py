from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from core.analysis.workspace.scores import Evidence, bounds
from core.decide.rules import Constraints, decide
from core.metrics import Measure, score_at
from core.views.words.near import overturned
from tests.stores import Lab
from tests.views.made import AT_10, LAB, stacks, table


def evidence_of(grades: np.ndarray, counts: np.ndarray) -> Evidence:
    return Evidence(
        run_ids=tuple(f"r{run}" for run in range(grades.shape[0])),
        query_ids=tuple(f"q{query}" for query in range(grades.shape[1])),
        grades=grades,
        pool_grades=grades,
        pool_counts=counts,
        unjudged_queries=np.zeros(grades.shape[0], dtype=np.int32),
    )


@pytest.mark.slow
@given(
    arrays.arrays(np.int8, (2, 3, 4), elements=st.integers(-1, 5)),
    arrays.arrays(np.int32, (3, 5), elements=st.integers(0, 3)),
    st.sampled_from(["RA-nWG@3", "N-Recall4+@4", "Precision4+@2", "Harm@3"]),
)
def test_bounds_are_the_scores_with_the_holes_filled_in(grades, counts, name):
    """The oracle fills holes run by run and query by query."""
    measure = Measure.parse(name)
    counts = counts + np.stack([(grades == grade).sum(axis=(0, 2)) for grade in range(1, 6)], axis=1)
    low, high = bounds(evidence_of(grades, counts), measure)
    for run in range(2):
        ends = []
        for grade in (1, 5):
            values = []
            for query in range(3):
                row = grades[run, query, : measure.k].copy()
                judged = counts[query].copy()
                judged[grade - 1] += (row == 0).sum()
                row[row == 0] = grade
                if not judged.any():  # a query without judgements is left out
                    continue
                values.append(score_at(measure, row[None], judged[None])[0])
            known = [value for value in values if not np.isnan(value)]
            ends.append(np.mean(known) if known else np.nan)
        assert low[run] == pytest.approx(np.fmin(*ends), nan_ok=True, abs=1e-12)
        assert high[run] == pytest.approx(np.fmax(*ends), nan_ok=True, abs=1e-12)


def test_without_holes_the_bounds_are_the_score(tmp_path: Path):
    lab = Lab().judge({"q1": {"a": 5, "b": 3}})
    lab.run("whole", final={"q1": ["b", "a"]}).run("holey", final={"q1": ["b", "x"]})
    rows = table(lab.write(tmp_path / "store").read(), LAB).sort("run_id")
    holey, whole = rows.iter_rows(named=True)
    assert whole["hole_low"] == whole["quality"] == whole["hole_high"]
    assert holey["hole_low"] == pytest.approx(holey["quality"])
    # x as grade 5: n5 = 2, n3 = 1, so that w3 = min(0.1/(1/3) / (1/(2/3)), 0.25) = 0.2 of an ideal of 2.2.
    assert holey["hole_high"] == pytest.approx((0.2 + 1) / 2.2)


def test_a_measure_of_the_pool_has_no_bounds_for_holes_of_the_pool_count_too():
    grades = np.array([[[5, 0, 3]]], dtype=np.int8)
    low, high = bounds(evidence_of(grades, np.ones((1, 5), dtype=np.int32)), Measure("PROC[RA-nWG]", 2))
    assert np.isnan(low).all()
    assert np.isnan(high).all()


def _decided(rows: pl.DataFrame):
    return overturned(rows, decide(rows, Constraints()), AT_10)


def test_a_rival_whose_holes_could_lift_it_is_named():
    figures = {"latency_ms": [10.0, 10.0], "cost": [1.0, 1.0], "hole": [0.0, 0.3]}
    ends = {"quality_low": [0.79, 0.6], "quality_high": [0.81, 0.62], "hole_low": [0.8, 0.61]}
    rows = stacks(quality=[0.8, 0.61], hole_high=[0.8, 0.9], **ends, **figures)
    assert _decided(rows) == (
        "Judging more passages could overturn the choice: 1 other stack within the limits could "
        "overtake it if every unjudged passage "
        "in the Top-10 were of grade 5 (reaching at most 0.900: stack 1, 30.0 % unjudged)."
    )
    assert _decided(rows.with_columns(hole_high=pl.Series([0.8, 0.7]))) is None


def test_where_nothing_was_judged_here_nothing_is_said():
    assert _decided(stacks(quality=[0.8, 0.7], latency_ms=[1.0, 1.0], cost=[1.0, 1.0])) is None
    assert _decided(stacks(quality=[None], latency_ms=[1.0], cost=[1.0])) is None
