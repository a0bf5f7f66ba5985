"""The URL, written only here: once per script run, whole, with the values that its widgets then hold.

Streamlit would write it key by key: the browser as its user moves a widget, the server for each key that code
has set or that has gone. A step back then led to states that never existed, such as a workspace with other
limits than its own, and a click on a page lost settings without a widget there. Here widgets still start from
the URL, but the browser doesn't know that; and every link includes the settings that each page reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any
from urllib.parse import parse_qs

import streamlit as st
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.scriptrunner_utils.script_run_context import ScriptRunContext
from streamlit.runtime.state.query_params import QueryParams

from core.ui.address.state import CARRIED, NEXT, SETTINGS, same
from core.ui.moves import moved
from core.views.link import written

_HELD = "_held"  # Session slot: the settings held by the last run's widgets, with their ids
_ASKED = "_asked_of_page"  # Session slot: the settings that code set for the next page
_AROUND = "_held_around"  # Session slot: those of the widgets around the part that a limit draws again
_OWED = "_owed"  # Attribute of a run: whether its browser has not been sent the URL yet


def begin(*, arrived: bool) -> None:
    """Adopt the URL for this script run.

    Args:
        arrived: Whether the previous run drew another page, whose widgets don't apply to this one.
    """
    context = get_script_run_ctx(suppress_warning=True)
    if context is None:
        return
    context.enqueue = partial(_send, context)  # type: ignore[method-assign]
    held: Mapping[str, str] = st.session_state.get(_HELD, {})
    with context.session_state.query_params() as address:
        _let_go(address)
        # Settings moved by the user or set by a callback aren't in it yet; a step back uses the URL.
        asked = st.session_state.pop(_ASKED, frozenset())
        own = frozenset() if context.is_history_navigation else held.keys() - asked
        said = [key for key in own if (not arrived or key in CARRIED) and key in st.session_state]
        if sum(_say(context, address, key, held[key]) for key in said):
            address.set_initial_query_params_from_current()
            address.update({})
    if arrived:
        st.session_state[_HELD] = {}
    if not moved():
        st.session_state[_AROUND] = {}


def part() -> None:
    """Begin the part of the run that a move of a limit runs alone: the widgets drawn so far stay."""
    context = get_script_run_ctx(suppress_warning=True)
    if context is not None:
        with context.session_state.query_params() as address:
            st.session_state[_AROUND] = _bound(address)


def _send(context: ScriptRunContext, message: ForwardMsg) -> None:
    """Send a message to the browser, without anything that lets the browser write its URL itself."""
    if message.HasField("page_info_changed"):
        setattr(context, _OWED, True)
        return
    if message.HasField("delta") and message.delta.HasField("new_element"):
        element = message.delta.new_element
        drawn = getattr(element, element.WhichOneof("type") or "empty")
        if "query_param_key" in drawn.DESCRIPTOR.fields_by_name:
            drawn.ClearField("query_param_key")
        elif element.HasField("page_link") and not drawn.page:  # the first page, from wherever it is opened
            drawn.page = "./"
    ScriptRunContext.enqueue(context, message)


def _bound(address: QueryParams) -> dict[str, str]:
    """Return the settings bound to widgets of this run, with the id of each widget."""
    bound = address._bindings_by_param
    return {key: bound[key].widget_id for key in SETTINGS if key in bound}


def _let_go(address: QueryParams) -> dict[str, str]:
    """Unbind all widgets from the URL, so that code can write all of it; return the previous bindings."""
    bound = _bound(address)
    for widget_id in bound.values():
        address.unbind_widget(widget_id)
    return bound


def follow() -> None:
    """Update the URL of this run to the values of the widgets drawn so far."""
    context = get_script_run_ctx(suppress_warning=True)
    if context is None:
        return
    with context.session_state.query_params() as address:
        for key, widget_id in _bound(address).items():
            _say(context, address, key, widget_id)


def _say(context: ScriptRunContext, address: QueryParams, key: str, widget_id: str) -> bool:
    """Write a widget's value to the URL, or nothing if it is the default; return whether it changed."""
    widget = context.session_state._state.get_widget_metadata(widget_id)
    if widget is None:
        return False
    value = st.session_state[key]
    if value == widget.deserializer(None):
        return _put(address, key, ())
    return _put(address, key, _said(widget.serializer(value)) or ([""] if widget.clearable else []))


def _said(value: Any) -> list[str]:
    return [repr(value).removesuffix(".0")] if isinstance(value, float) else written(value)


def _put(address: QueryParams, key: str, texts: Sequence[str]) -> bool:
    """Write a setting, in its previous spelling if that is equivalent; return whether it changed."""
    before = address.get_initial_value(key) or []
    said = [*before] if same(before, texts) else [*texts]
    if said == address.get_all(key):
        return False
    if said:
        address.set_with_no_forward_msg(key, said)
    else:
        address.discard_param_no_forward_msg(key)
    return True


def put(settings: Mapping[str, object]) -> None:
    """Change the URL of this run before widgets start from it; None removes a key."""
    context = get_script_run_ctx(suppress_warning=True)
    if context is None:
        return
    with context.session_state.query_params() as address:
        for key, value in settings.items():
            _put(address, key, _said(value))
        address.set_initial_query_params_from_current()


def stepped() -> bool:
    """Return whether this run follows a step back or forward in the browser."""
    context = get_script_run_ctx(suppress_warning=True)
    return context is not None and context.is_history_navigation


def carried() -> dict[str, list[str]]:
    """Return the settings included in every link: those in this run's URL that each page reads."""
    held = set(st.query_params)
    return {key: st.query_params.get_all(key) for key in CARRIED if key in held}


def write(*, whole: bool) -> None:
    """Send the browser its URL, as one history entry, if this run has changed it.

    Args:
        whole: Whether settings and page were drawn to the end, so that missing ones are gone.
    """
    context = get_script_run_ctx(suppress_warning=True)
    if context is None:
        return
    follow()
    with context.session_state.query_params() as address:
        held = st.session_state.get(_AROUND, {}) | _let_go(address)
        before = st.session_state.get(_HELD, {})
        for key in before.keys() - held.keys() if whole else ():
            address.discard_param_no_forward_msg(key)
        st.session_state[_HELD] = held if whole else before | held
        _release(context)
        now = {key: address.get_all(key) for key in address}
        if getattr(context, _OWED, False) or now != parse_qs(context.query_string, keep_blank_values=True):
            address.update({})
            setattr(context, _OWED, False)


def leave(asked: Mapping[str, str | Iterable[str]]) -> dict[str, str | Iterable[str]]:
    """End the run for another page, with settings for its URL in addition to those in every link.

    Settings of this workspace are not taken to another one (``ws``).
    """
    follow()
    elsewhere = "ws" in asked
    settings = {**({} if elsewhere else carried()), **asked}
    context = get_script_run_ctx(suppress_warning=True)
    if context is not None:
        with context.session_state.query_params() as address:
            _let_go(address)
        _release(context)
    if elsewhere:
        st.session_state[NEXT] = asked["ws"]
    st.session_state[_ASKED] = frozenset(SETTINGS if elsewhere else asked)
    return settings


def _release(context: ScriptRunContext) -> None:
    """Let the rest of this run reach the browser as Streamlit sends it."""
    vars(context).pop("enqueue", None)
