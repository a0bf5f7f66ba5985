"""Frames: what is remembered of one goes with it."""

from __future__ import annotations

import gc

import polars as pl

from core.tables import remembered


def test_a_function_of_a_frame_is_asked_once_for_each_frame_and_argument() -> None:
    asked: list[tuple[int, int]] = []

    @remembered
    def total(table: pl.DataFrame, times: int) -> int:
        asked.append((table.height, times))
        return int(table["a"].sum()) * times

    one, other = pl.DataFrame({"a": [1, 2]}), pl.DataFrame({"a": [5]})
    assert [total(one, 1), total(one, 1), total(other, 1), total(one, 2)] == [3, 3, 5, 6]
    assert asked == [(2, 1), (1, 1), (2, 2)]
    for number in range(50):  # a new frame may stand where an old one stood in memory
        assert total(pl.DataFrame({"a": [number]}), 1) == number
        gc.collect()
