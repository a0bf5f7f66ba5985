"""Dollars per correct answer, against cases by hand."""

import polars as pl
import pytest

from core.errors import InputError
from core.readers.curves import correct, per_correct
from tests.readers.test_curves import single, table

SCORES = table(
    *single(0, 0.0, 0.0, 0.0, 0.5),
    *single(1, 0.0, 0.0, 0.5, 1.0),
    *single(5, 0.0, 0.5, 0.5, 1.0),
    *single(10, 0.5, 0.5, 0.49, 1.0),
)
COSTS = pl.DataFrame({"k": [0, 1, 5], "usd": [0.001, 0.002, 0.003]}, schema_overrides={"k": pl.Int32})


@pytest.mark.parametrize(
    ("threshold", "shares"), [(0.5, [0.25, 0.5, 0.75, 0.75]), (1.0, [0.0, 0.25, 0.25, 0.25])]
)
def test_shares_of_correct_answers(threshold, shares):
    found = correct(SCORES, "f1", threshold).sort("k")
    assert found["value"].to_list() == pytest.approx(shares)
    assert (found["low"] <= found["value"]).all()
    assert (found["value"] <= found["high"]).all()


@pytest.mark.parametrize("threshold", [0, -1, 1.01])
def test_a_threshold_outside_the_scale_is_refused(threshold):
    with pytest.raises(InputError):
        correct(SCORES, "f1", threshold)


def test_passes_count_as_parts_of_a_query_and_scales_are_shares():
    rows = [{"query_id": "q0", "k": 5, "pass": p, "value": v, "scale": "1-5"} for p, v in ((1, 3), (2, 2))]
    assert correct(table(*rows), "f1", 0.5)["value"].to_list() == [0.5]


def test_means_are_shares_of_binary_scorers_only():
    rows = [{"k": 5, "value": 0.4, "n": 100, "scorer": name} for name in ("f1", "exact_match")]
    assert correct(table(*rows), "f1", 0.5).is_empty()
    assert correct(table(*rows), "exact_match", 0.5)["value"].to_list() == pytest.approx([0.4])


def test_dollars_per_correct_answer():
    found = per_correct(correct(SCORES, "f1", 0.5), COSTS).sort("k")
    # 0.001 / 0.25, 0.002 / 0.5, 0.003 / 0.75, and no price at k = 10
    assert found["usd_per_correct"].to_list() == pytest.approx([0.004, 0.004, 0.004, None])
    assert found.filter(k=5)["usd_low"][0] == pytest.approx(0.003 / found.filter(k=5)["high"][0])
    strict = per_correct(correct(SCORES, "f1", 1.0), COSTS).sort("k")
    assert strict["usd_per_correct"].to_list() == pytest.approx([None, 0.008, 0.012, None])
