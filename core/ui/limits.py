"""The limits of a decision: one strip of sliders and fields on every page that decides.

The URL holds them, in number fields that are hidden while the strip works in the browser; if it
doesn't, those fields appear. The strip moves them, and anything that moves them (a link, a step back in the
browser, a button) moves the strip.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import streamlit as st

from core.analysis.workspace.figures.latencies import jitter_kinds
from core.analysis.workspace.scope import Latency, Quality, zone
from core.decide.axes import LIMITS, QUALITY
from core.decide.ties import JITTER_MS
from core.ui import address
from core.ui.address.state import PHONE, SETTINGS, TAKE, UNMOVED, linked, number
from core.ui.moves import STRIP
from core.ui.pick import ASKED, type_asked
from core.views.decision.limits import LARGEST, NO_LIMIT, Limit, limits
from core.views.link import written
from core.views.text import plain

_FIELDS = "limits"  # Key of the container of the fields, which the frame's style sheet hides
_ANSWERED, _KEPT = "_limits_answered", "_limits_kept"
_QUALITY = "_quality_limited"  # Session slot: whether higher is better, and the limit at that time
_HERE = Path(__file__).parent / "live"
TELLING: Mapping[str, Mapping[str, float | str]] = {
    "docs-search": {"sla_ms": 10.0},
    "clq-paper": {"sla_ms": 600.0, "budget": "2.5per1k"},
}
"""Limits under which the stacks of each demo workspace differ; a workspace is first shown with them."""
READABLE = r"^\s*[0-9]+(\.[0-9]+)?(per1[kM])?\s*$"
HOW = "Write 2.5per1k or 0.2per1M: dollars per 1,000 or per million."

_component = st.components.v2.component(
    "clq_limits",
    html=(_HERE / "strip.html").read_text(encoding="utf-8"),
    css=(_HERE / "strip.css").read_text(encoding="utf-8"),
    js=(_HERE / "strip.js").read_text(encoding="utf-8"),
    isolate_styles=False,
)


def constraints(table: pl.DataFrame, quality: Quality, latency: Latency) -> dict[str, Any]:
    """Draw the strip, and the fields of the limits; return the limits by their names in a question."""
    _lift_turned(quality)
    offered = offered_limits(table, quality, latency)
    with st.container(key=_FIELDS, horizontal=True):
        values = {limit.key: _field(limit) for limit in offered}
        st.text_input(ASKED["take"].choice.label, **linked(TAKE))
    _strip(offered)
    return _named(values)


def _lift_turned(quality: Quality) -> None:
    """Remove a quality limit if a new measure's direction would turn a floor into a cap, or the reverse."""
    now = quality.higher_is_better, number(st.query_params.get(QUALITY.limit, ""))
    before = st.session_state.get(_QUALITY, now)
    if now[0] != before[0] and now[1] == before[1] is not None:
        now = now[0], None
        st.session_state[QUALITY.limit] = None
        address.put({QUALITY.limit: None})
    st.session_state[_QUALITY] = now


def standing(table: pl.DataFrame, quality: Quality, latency: Latency) -> dict[str, Any]:
    """Return the limits set on other pages; takes the arguments of `constraints`, and draws nothing."""
    return _named(current(offered_limits(table, quality, latency)))


def _named(values: Mapping[str, float | None]) -> dict[str, Any]:
    """Return limits by their names in a question."""
    return {name: axis.said(values.get(name)) for name, axis in LIMITS.items()}


def _field(limit: Limit) -> float | None:
    """Draw a limit's field and return its value, or None."""
    about = {"placeholder": NO_LIMIT, "help": plain(limit.help), **linked(limit.key)}
    if limit.money:
        return limit.taken(st.text_input(limit.label, None, validate=(READABLE, HOW), **about))
    if limit.levels:
        words = (rf"^({'|'.join(limit.levels)})$", f"Write one of {', '.join(limit.levels)}.")
        return limit.taken(st.text_input(limit.label, None, validate=words, **about))
    value: float | None = st.number_input(
        limit.label,
        min_value=None if limit.counts else 0.0,
        max_value=1.0 if limit.share else LARGEST,
        value=None,
        format="%g",
        **about,
    )
    return limit.taken(value)


def alike(table: pl.DataFrame, quality: Quality) -> dict[str, Any]:
    """Draw the fields of the jitter band and of the indifference zone, which are rarely changed."""
    bands = jitter_kinds(table)
    usual = f"{JITTER_MS:g}" if len(bands) != 1 else bands[0].partition(" ")[0]
    band = type_asked("jitter_ms", None, placeholder=usual)
    if band is None and bands:
        st.caption(plain("; ".join(bands)))
    zone_of = zone(quality, table)
    return {"jitter_ms": band, "indifference": type_asked("indifference", None, placeholder=f"{zone_of:g}")}


def adopt() -> None:
    """Adopt limits, and the stack taken by hand, from the URL, on a page without fields for them."""
    st.session_state.update({**_in_address(), TAKE: st.query_params.get(TAKE, "")})


def offered_limits(table: pl.DataFrame, quality: Quality, latency: Latency) -> list[Limit]:
    """Return the limits applicable to a workspace, and those set in the URL."""
    asked = tuple(key for key, value in _in_address().items() if value is not None)
    return limits(table, quality, latency, asked)


def _in_address() -> dict[str, float | str | None]:
    """Return the limits in the form of their fields: numbers, and dollars with their unit."""
    said = {key: st.query_params.get(key, "") for key in LIMITS}
    worded = {key for key in LIMITS if SETTINGS[key].money or not SETTINGS[key].number}
    return {key: (text or None) if key in worded else number(text) for key, text in said.items()}


def turn(old: str | None, new: str | None) -> None:
    """Remove the old workspace's limits; a workspace visited before gets its own back.

    A demo workspace not visited before gets limits under which its stacks differ.
    """
    kept = st.session_state.setdefault(_KEPT, {})
    if old is not None:
        kept[old] = _in_address()
    own: dict[str, float | str | None] = dict.fromkeys(LIMITS)
    if new is not None and new != old:
        own |= kept.get(new, TELLING.get(new, {}))
    st.session_state.update(own)
    address.put(own)


def _strip(offered: Sequence[Limit]) -> None:
    """Draw the limits as sliders and fields."""

    def released() -> None:
        sent = (st.session_state.get(STRIP) or {}).get("released")
        if isinstance(sent, dict) and isinstance(sent.get("values"), dict):  # clients can send anything
            take(offered, sent["values"])
            number = sent.get("number")
            st.session_state[_ANSWERED] = number if isinstance(number, int) else 0

    def noted() -> None:
        st.session_state[PHONE] = (st.session_state.get(STRIP) or {}).get("phone") is True
        st.session_state[UNMOVED] = True

    _component(
        key=STRIP,
        # A list, as Streamlit would look whether each value of a dictionary is a table.
        data=[
            {
                "limits": [limit.spec() for limit in offered],
                "values": current(offered),
                "address": {each.key: written(st.session_state.get(each.key)) for each in offered},
                "answered": st.session_state.get(_ANSWERED, 0),
                "free": NO_LIMIT,
                "phone": bool(st.session_state.get(PHONE)),
            }
        ],
        on_released_change=released,
        on_phone_change=noted,
    )


def current(offered: Sequence[Limit]) -> dict[str, float | None]:
    """Return the limits of this script run."""
    return {limit.key: limit.taken(st.session_state.get(limit.key)) for limit in offered}


def take(offered: Sequence[Limit], values: Mapping[str, object]) -> None:
    """Set limits from elsewhere: valid numbers, or None for no limit (a callback)."""
    for limit in offered:
        if limit.key not in values:
            continue
        asked = values[limit.key]
        value = limit.taken(asked)
        if (asked is None or value is not None) and limit.allows(value):
            st.session_state[limit.key] = limit.held(value)
