"""How tables of the dashboard write numbers that the browser would write otherwise."""

from __future__ import annotations

import polars as pl
import pytest

from core.ui.show import _has_sign_or_thousands, _minus


@pytest.mark.parametrize(
    ("value", "form", "written"),
    [
        (1234.0, ".0f", "1,234"),
        (-1234.5, "+.1f", "−1,234.5"),
        (1_000_000, ".0f", "1,000,000"),
        (-0.04, "+.1f", "+0.0"),
        (-0.04, ".1f", "0.0"),
        (0.04, "+.1f", "+0.0"),
        (-0.05, "+.2f", "−0.05"),
    ],
)
def test_signs_and_thousands(value: float, form: str, written: str):
    assert _minus(value, form) == written


@pytest.mark.parametrize(
    ("values", "told"),
    [
        (pl.Series([1, 255], dtype=pl.UInt8), False),  # which holds no 1,000 to compare with
        (pl.Series([999.9, None]), False),
        (pl.Series([1000]), True),
        (pl.Series([-0.1, 1.0]), True),
        (pl.Series([None], dtype=pl.Float64), False),
        (pl.Series([], dtype=pl.Int64), False),
    ],
)
def test_what_the_browser_would_write_otherwise(values: pl.Series, told: bool):
    assert _has_sign_or_thousands(values) is told
