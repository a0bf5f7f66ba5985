"""Results that are kept: the last one, where nobody keeps more."""

import polars as pl
import pytest

from core.analysis import cache as kept


def test_the_last_result_is_kept_for_the_very_same_arguments(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(kept, "_KEEPING", [])
    calls: list[tuple[int, str]] = []

    @kept.cached()
    def size(rows: pl.DataFrame, unit: str) -> int:
        calls.append((rows.height, unit))
        return rows.height

    one, two = pl.DataFrame({"a": [1]}), pl.DataFrame({"a": [1, 2]})
    assert [size(one, "x"), size(one, unit="x"), size(one, "x"), size(two, "x"), size(two, "y")] == [
        1,
        1,
        1,
        2,
        2,
    ]
    assert calls == [(1, "x"), (1, "x"), (1, "x"), (2, "x"), (2, "y")]
    assert size(two, "y") == 2
    assert len(calls) == 5
