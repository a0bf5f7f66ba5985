"""Asks the visitor a section's questions; consecutive ones share a row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import polars as pl
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.choices import Choice
from core.decide.rules import Decision
from core.ui.address.state import linked
from core.ui.pick import (
    KEPT,
    carry_over,
    pick_choice,
    pick_listed,
    pick_one,
    pick_stack,
    pick_stacks,
    still_offered_all,
)
from core.views.ask import BESIDE, BY_RULE, RUNNER_UP

T = TypeVar("T")


class Visitor:
    """Answers `core.views.ask.Ask` with widgets bound to the URL."""

    def __init__(self) -> None:
        self._row: DeltaGenerator | None = None
        self._folded = False

    def next_row(self) -> None:
        """Start a new row with the next question."""
        self._row = None

    def one(
        self, label: str, options: Iterable[T], key: str, *, usual: T | None = None, about: str = "",
        quiet: bool = False,
    ) -> T:  # fmt: skip
        """Ask for one of a few options."""
        with self._place():
            shown: dict[str, Any] = {"label_visibility": "collapsed"} if quiet else {}
            return pick_one(label, options, key, usual=usual, help=about or None, **shown)

    def listed(
        self,
        label: str,
        options: Iterable[T],
        key: str,
        *,
        usual: T | None = None,
        about: str = "",
        width: int = 0,
        first: int | None = None,
    ) -> T:
        """Ask for one entry of a list."""
        offered = list(options)
        if self._unseen(key):
            return offered[0] if usual is None else usual
        if first is not None:
            chosen = {st.session_state.get(key), *st.query_params.get_all(key)}
            offered = offered[:first] + [option for option in offered[first:] if option in chosen]
        with self._place():
            return pick_listed(label, offered, key, usual=usual, help=about or None, **_wide(width))

    def typed(self, label: str, options: Sequence[str], key: str, *, usual: str, about: str = "") -> str:
        """Ask for one entry of a list, or for free text instead."""
        with self._place():
            asked: str = st.selectbox(
                label,
                options,
                options.index(usual),
                **linked(key),
                help=about or None,
                accept_new_options=True,
            )
        return asked

    def text(self, label: str, key: str, *, unsaid: str = "", about: str = "") -> str:
        """Ask for a line of text, kept from page to page."""
        carry_over(key)
        with self._place():
            line: str = st.text_input(label, **linked(key), placeholder=unsaid, help=about or None)
        st.session_state[KEPT + key] = line
        return line

    def number(
        self, label: str, key: str, usual: float | None, low: float, high: float | None = None,
        *, step: float = 1.0, about: str = "", width: int = 0, unsaid: str = "unknown",
    ) -> float | None:  # fmt: skip
        """Ask for a number."""
        with self._place():
            asked: float | None = st.number_input(
                label, low, high, usual, step, format="%g", **linked(key), help=about or None,
                placeholder=unsaid, **_wide(width),
            )  # fmt: skip
        return asked

    def slide(
        self, label: str, key: str, usual: Sequence[float], low: float, high: float, *, step: float,
        about: str = "",
    ) -> tuple[float, ...]:  # fmt: skip
        """Ask for one number of a range, or for two."""
        kept = st.session_state.get(key)
        if kept is not None:  # it may have another range
            ends = kept if isinstance(kept, tuple | list) else [kept]
            if not all(low <= float(end) <= high for end in ends):
                del st.session_state[key]
        value = (usual[0], usual[-1]) if len(usual) > 1 else usual[0]
        form = "%.4g" if isinstance(low, float) else None
        with self._place():
            asked = st.slider(label, low, high, value, step, form, **linked(key), help=about or None)
        return tuple(asked) if isinstance(asked, tuple) else (asked,)

    def several(
        self, label: str, options: Iterable[str], key: str, *, usual: Sequence[str], words: str = "",
        most: int | None = None, about: str = "", width: int = 0,
    ) -> list[str]:  # fmt: skip
        """Ask for several entries of a list."""
        offered, kept = list(options), key in st.session_state
        still_offered_all(key, offered)
        if kept and not words:  # missing ones belonged to another list
            st.session_state[key] = st.session_state[key] or list(usual)
        with self._place():
            picked = st.multiselect(
                label, offered, None if kept or words else list(usual), **linked(key), max_selections=most,
                placeholder=words or None, help=about or None, **_wide(width),
            )  # fmt: skip
        return list(picked or usual) if words else picked

    @contextmanager
    def aside(self, title: str) -> Iterator[None]:
        """Ask in a popover within the row.

        A list in it that stands at its default is drawn once it is opened: a hidden one would slow down
        every move of a slider.
        """
        row = self._place()
        with row:
            self._row = opened = st.popover(
                title, icon=":material/tune:", key=f"aside_{title}", on_change="rerun"
            )
        self._folded = not opened.open
        try:
            yield
        finally:
            self._row, self._folded = row, False

    def choice(self, choice: Choice, usual: T, options: Sequence[T] = (), *, off: bool = False) -> T:
        """Ask for a declared choice."""
        with self._place():
            return pick_choice(choice, usual, options, off=off)

    def stack(
        self, table: pl.DataFrame, decision: Decision, label: str, key: str = "stack", *,
        usual: str = BY_RULE, instead: str = "", about: str = "",
    ) -> str | None:  # fmt: skip
        """Ask for a stack."""
        if usual == BY_RULE and self._unseen(key):
            chosen = decision.chosen
            return None if chosen is None else str(table["run_id"][chosen])
        with self._place():
            return pick_stack(table, decision, label, key, usual, instead=instead, help=about or None)

    def stacks(
        self, table: pl.DataFrame, decision: Decision, key: str, *, usual: Sequence[str] | None = (),
        most: int = 8, label: str = BESIDE, unsaid: str = RUNNER_UP,
    ) -> list[str]:  # fmt: skip
        """Ask for several stacks."""
        with self._place():
            return pick_stacks(table, decision, key, usual=usual, most=most, label=label, unsaid=unsaid)

    def _unseen(self, key: str) -> bool:
        """Return whether a question is folded away, and nothing has been answered to it."""
        said = key in st.query_params or key in st.session_state or st.session_state.get(KEPT + key)
        return self._folded and not said

    def _place(self) -> DeltaGenerator:
        if self._row is None:
            self._row = st.container(horizontal=True, vertical_alignment="bottom")
        return self._row


def _wide(width: int) -> dict[str, Any]:
    return {"width": width} if width else {}
