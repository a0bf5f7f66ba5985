"""Announced ends of models: each with a date, where it is said and when that was read."""

from __future__ import annotations

from datetime import date

import pytest

from core.providers.config import vendor_models
from core.providers.ends import End, ends


@pytest.mark.parametrize("end", ends().values(), ids=list(ends()))
def test_every_end_has_a_source_and_the_day_it_was_read(end: End):
    assert end.source.startswith("https://")
    assert isinstance(end.retires, date)
    assert date(2026, 1, 1) < end.read < end.retires
    assert end.successor != end.model
    assert end.model in vendor_models(end.kind)  # and its configuration is that of before


def test_the_first_end_stands_first():
    dates = [end.retires for end in ends().values()]
    assert dates == sorted(dates)
    assert ends()["voyage-3.5"].successor == "voyage-4"
