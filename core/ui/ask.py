"""Asks the visitor what a section asks; consecutive questions stand in one row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import polars as pl
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.decide.rules import Decision
from core.ui.pick import pick_listed, pick_one, pick_stack, pick_stacks, still_offered_all
from core.ui.state import linked

T = TypeVar("T")


class Visitor:
    """Answers `core.views.ask.Ask` by widgets that are bound to the address."""

    def __init__(self) -> None:
        self._row: DeltaGenerator | None = None

    def next_row(self) -> None:
        """Begin another row with the next question."""
        self._row = None

    def one(
        self, label: str, options: Iterable[T], key: str, *, usual: T | None = None, about: str = ""
    ) -> T:
        """Ask for one of a few."""
        with self._place():
            return pick_one(label, options, key, usual=usual, help=about or None)

    def listed(
        self,
        label: str,
        options: Iterable[T],
        key: str,
        *,
        usual: T | None = None,
        about: str = "",
        width: int = 0,
    ) -> T:
        """Ask for one of a list."""
        with self._place():
            return pick_listed(label, options, key, usual=usual, help=about or None, **_wide(width))

    def number(
        self, label: str, key: str, usual: float | None, low: float, high: float | None = None,
        *, step: float = 1.0, about: str = "", width: int = 0,
    ) -> float | None:  # fmt: skip
        """Ask for a number."""
        with self._place():
            asked: float | None = st.number_input(
                label, low, high, usual, step, format="%.4g", **linked(key), help=about or None,
                placeholder="unknown", **_wide(width),
            )  # fmt: skip
        return asked

    def several(
        self, label: str, options: Iterable[str], key: str, *, usual: Sequence[str], words: str = "",
        most: int | None = None, about: str = "",
    ) -> list[str]:  # fmt: skip
        """Ask for several of a list."""
        offered = list(options)
        still_offered_all(key, offered)
        with self._place():
            picked = st.multiselect(
                label, offered, **linked(key), max_selections=most, placeholder=words or None,
                help=about or None,
            )  # fmt: skip
        return list(picked or usual)

    @contextmanager
    def aside(self, title: str) -> Iterator[None]:
        """Ask in a popover, which stands in the row."""
        row = self._place()
        with row:
            self._row = st.popover(title, icon=":material/tune:")
        try:
            yield
        finally:
            self._row = row

    def stack(self, table: pl.DataFrame, decision: Decision, label: str, key: str = "stack") -> str | None:
        """Ask for a stack."""
        with self._place():
            return pick_stack(table, decision, label, key)

    def stacks(
        self, table: pl.DataFrame, decision: Decision, key: str, *, usual: Sequence[str] = (), most: int = 8
    ) -> list[str]:
        """Ask for several stacks."""
        with self._place():
            return pick_stacks(table, decision, key, usual=usual, most=most)

    def _place(self) -> DeltaGenerator:
        if self._row is None:
            self._row = st.container(horizontal=True, vertical_alignment="bottom")
        return self._row


def _wide(width: int) -> dict[str, Any]:
    return {"width": width} if width else {}
