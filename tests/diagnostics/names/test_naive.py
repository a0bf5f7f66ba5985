"""The margins equal a plain recomputation outside the package (15 × 100: ``python -m bench.names``)."""

from __future__ import annotations

import pytest

from bench.names import compare


@pytest.mark.slow
def test_as_a_plain_recomputation_has_it():
    found = compare(runs=2, queries=6)
    assert found.height == 4 * (11 * 3 + 10)
    for row in found.iter_rows(named=True):
        assert row["ours"] == pytest.approx(row["naive"], rel=1e-4, abs=1e-5), row
        assert row["ours_sd"] == pytest.approx(row["naive_sd"], rel=1e-3, abs=1e-4), row
