"""How tables of the dashboard write numbers that the browser would write otherwise."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from core.ui.show import _minus, _signed, configured
from core.views import columns as cols


@pytest.mark.parametrize(
    ("value", "form", "written"),
    [
        (1234.0, ".0f", "1,234"),
        (-1234.5, "+.1f", "−1,234.5"),
        (1_000_000, ".0f", "1,000,000"),
        (-1234.5, ",.1f", "−1,234.5"),
        (-0.04, "+.1f", "+0.0"),
        (-0.04, ".1f", "0.0"),
        (0.04, "+.1f", "+0.0"),
        (-0.05, "+.2f", "−0.05"),
    ],
)
def test_signs_and_thousands(value: float, form: str, written: str):
    assert _minus(value, form) == written


@pytest.mark.parametrize("column", configured([cols.number("x", digits=3), cols.signed("y")]).values())
def test_a_number_below_0_has_a_minus_in_every_kind_of_column(column: Any):
    written, columns = _signed(pl.DataFrame({"x": [None, -1.5, 0.25]}), {"x": column}, ())
    assert columns["x"]["type_config"]["format"] is None  # the style writes it, not the browser
    assert written.data["x"].tolist()[1:] == [-1.5, 0.25]
