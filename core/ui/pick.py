"""Choosing stacks: from a list, or by a click on a chart; both set the same URL setting."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import polars as pl
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.analysis.workspace.question import Question
from core.axes import as_offered
from core.choices import Choice, declared
from core.decide.axes import QUALITY, Axis
from core.decide.rules import Decision
from core.tables import remembered
from core.ui.address import put
from core.ui.address.state import bound, linked
from core.ui.view import just_arrived
from core.views.ask import BESIDE, BY_RULE, RUNNER_UP, run_of, usual_stacks

T = TypeVar("T")


_LISTED = 300
_MOST = 1e9  # No declared choice is meaningful above this number
KEPT = "_kept_"
"""Prefix of a setting's name for the slot of its choice while pages without its widget are shown."""


def pick_stack(
    table: pl.DataFrame,
    decision: Decision,
    label: str,
    key: str = "stack",
    default: str = BY_RULE,
    *,
    instead: str = "",
    **more: Any,
) -> str | None:
    """Draw a list of stacks, by name.

    Args:
        key: URL setting of the choice.
        default: The first entry, for making no choice.
        instead: A further entry, for no stack.

    Returns:
        run_id of the stack; the decision's chosen one if nothing was picked and `default` is
        `BY_RULE`, otherwise None.
    """
    carry_over(key)
    further = [instead] if instead else []
    picked = pick_listed(label, [default, *further, *listed(table, key, decision.quality)], key, **more)
    st.session_state[KEPT + key] = None if picked == default else picked
    if picked == default:
        chosen = decision.chosen if default == BY_RULE else None
        return None if chosen is None else str(table["run_id"][chosen])
    return None if picked == instead else run_of(table, picked)


def pick_choice(choice: Choice, usual: T, options: Sequence[T] = (), *, off: bool = False) -> T:
    """Draw the field of a declared choice, empty while the default applies, which it shows in grey.

    Args:
        options: Its options; without any it is a number.
        off: Whether it has no effect, as something it needs is missing.
    """
    about = {**linked(choice.key), "help": choice.about or None, "disabled": off}
    if options:
        still_offered(choice.key, [None, *options])
        picked: T | None = st.selectbox(choice.label, options, None, placeholder=str(usual), **about)
        return usual if picked is None else picked
    kind: type[float] = int if choice.whole else float
    low, high = (
        end if at is None else kind(at) for at, end in ((choice.low, None), (choice.high, kind(_MOST)))
    )
    step = None if choice.step is None else kind(choice.step)
    form, said = "%d" if choice.whole else "%.6g", f"{usual:,.10g}"
    typed: Any = st.number_input(choice.label, low, high, None, step, format=form, placeholder=said, **about)
    return usual if typed is None else typed


def pick_one(
    label: str,
    options: Iterable[T],
    key: str,
    *,
    usual: T | None = None,
    place: DeltaGenerator | None = None,
    setting: bool = False,
    **more: Any,
) -> T:
    """Draw a choice of one of a few, by default the first or `usual`; it is kept in the URL.

    A choice no longer offered becomes the first: Streamlit would show that while the URL kept
    the old one.

    Args:
        setting: Whether it counts among the settings that differ from their default.
    """
    offered, default, about = _asked(options, key, usual, setting=setting)
    if len(offered) == 1:  # a switch with one button switches nothing
        return default
    draw = st.segmented_control if place is None else place.segmented_control
    chosen: T = draw(label, offered, default=default, required=True, **about, **more)
    return chosen


def pick_listed(
    label: str,
    options: Iterable[T],
    key: str,
    *,
    usual: T | None = None,
    place: DeltaGenerator | None = None,
    setting: bool = False,
    **more: Any,
) -> T:
    """Draw a list with one entry chosen; otherwise like `pick_one`."""
    offered, default, about = _asked(options, key, usual, setting=setting)
    draw = st.selectbox if place is None else place.selectbox
    chosen: T = draw(label, offered, index=offered.index(default), **about, **more)
    return chosen


def _asked(
    options: Iterable[T], key: str, usual: T | None, *, setting: bool
) -> tuple[list[T], T, dict[str, Any]]:
    """Return the options, the default, and how the URL keeps the choice."""
    offered = list(options)
    default = offered[0] if usual is None else usual
    still_offered(key, offered)
    return offered, default, bound(key, default) if setting else linked(key)


ASKED = declared(Question)


def pick_asked(
    name: str,
    options: Iterable[T],
    *,
    usual: T | None = None,
    few: bool = False,
    about: str = "",
    **more: Any,
) -> T:
    """Draw a choice of `Question`, by its name, among the settings.

    Args:
        few: Whether the options are few enough to be side by side.
        about: Its help text here, if it differs from the choice's own.
    """
    choice, draw = ASKED[name].choice, pick_one if few else pick_listed
    return draw(
        choice.label, options, choice.key, usual=usual, setting=True, help=about or choice.about, **more
    )


def type_asked(name: str, usual: float | None, **more: Any) -> float | None:
    """Draw the field of a number of `Question`, by its name, among the settings."""
    choice = ASKED[name].choice
    low, step = (None if value is None else float(value) for value in (choice.low, choice.step))
    high = None if choice.high is None else float(choice.high)
    typed: float | None = st.number_input(
        choice.label,
        low,
        high,
        usual,
        step,
        format="%g",
        help=choice.about,
        **bound(choice.key, usual),
        **more,
    )
    return typed


def carry_over(key: str) -> None:
    """Keep a choice from page to page: the URL drops settings whose widgets a page lacks."""
    kept = st.session_state.get(KEPT + key)
    if kept and just_arrived() and key not in st.query_params:
        st.session_state[key] = kept


def still_offered(key: str, options: Sequence[object]) -> None:
    """Reset a choice no longer in a list to its first, also in the URL; before it is drawn."""
    _renewed(key, options)
    if options and (held := st.session_state.get(key, options[0])) not in options:
        now = as_offered(held, options)
        st.session_state[key] = now if now in options else options[0]


def still_offered_all(key: str, options: Collection[str]) -> None:
    """Drop choices no longer in a list of several, before it is drawn."""
    _renewed(key, options)
    if key in st.session_state:
        held = [as_offered(name, options) for name in st.session_state[key]]
        st.session_state[key] = list(dict.fromkeys(name for name in held if name in options))


def _renewed(key: str, options: Collection[object]) -> None:
    """Rewrite stack names in the URL to the list's names, before a widget starts from it."""
    said = [] if key in st.session_state else st.query_params.get_all(key)
    now = [as_offered(name, options) for name in said]
    if now != said:
        put({key: now})


def listed(table: pl.DataFrame, key: str, quality: Axis = QUALITY) -> list[str]:
    """Return the stacks offered in a list: all, or the best few hundred and those already chosen."""
    if table.height <= _LISTED:
        return table["name"].to_list()
    names = _best(table, quality)
    state = st.session_state.get(key)
    asked = {*([state] if isinstance(state, str) else state or []), *st.query_params.get_all(key)}
    others = sorted(asked.difference(names))
    return names + [name for name in others if table["name"].index_of(name) is not None]


@remembered
def _best(table: pl.DataFrame, quality: Axis) -> list[str]:
    best = np.argsort(-quality.merit(quality.read(table)), kind="stable")[:_LISTED]
    return table["name"].gather(best).sort().to_list()


def pick_from_chart(table: pl.DataFrame, chart_key: str) -> Callable[[], None]:
    """Choose, on a click on a mark, the stack in the mark's first custom datum."""

    def picked() -> None:
        row = selected_row(chart_key)
        if row is not None and row < table.height:
            st.session_state["stack"] = table["name"][row]

    return picked


def selected_row(key: str) -> int | None:
    """Return the row ticked in a table, or of a chart's clicked mark: its first custom datum."""
    state = st.session_state[key]
    if "selection" not in state:
        picked = state.get("picked")  # clients can send anything
        return picked if isinstance(picked, int) and picked >= 0 else None
    selection = state["selection"]
    if rows := selection.get("rows"):
        return int(rows[0])
    points = selection.get("points")
    data = points[0].get("customdata") if points else None
    if not data:
        return None
    # Numbers sent as a typed array come back as a mapping from position to value.
    return int(data["0"] if isinstance(data, Mapping) else data[0])


def pick_stacks(
    table: pl.DataFrame,
    decision: Decision,
    key: str,
    *,
    usual: Sequence[str] | None = (),
    most: int = 8,
    label: str = BESIDE,
    unsaid: str = RUNNER_UP,
) -> list[str]:
    """Draw a choice of several stacks, by name.

    Under `BESIDE` the first of the usual ones is always included.

    Args:
        key: URL setting of the choice.
        usual: The stacks if nothing was picked; () = the chosen one and the runner-up, or the first of the
            table if nothing is feasible; None = none, and the choice is kept from page to page.
        most: How many may be picked.
        unsaid: Label of the usual ones.
    """
    offered = listed(table, key, decision.quality)
    if usual is None:
        carry_over(key)
    still_offered_all(key, offered)
    picked = st.multiselect(
        label,
        offered,
        **linked(key),
        max_selections=most,
        placeholder=unsaid,
    )
    if usual is None:
        st.session_state[KEPT + key] = list(picked)
        return picked
    usual = usual or usual_stacks(table, decision)
    return list(dict.fromkeys([*(usual[:1] if label == BESIDE else ()), *(picked or usual)]))
