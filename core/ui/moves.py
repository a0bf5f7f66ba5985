"""The part of a page that a move of a limit runs alone; everything else runs all of the page.

Streamlit runs a part alone for every widget inside of it. Here only the strip of limits may: what other
widgets change, such as a measure or a price, is also read around the part.
"""

from __future__ import annotations

from contextlib import suppress

from streamlit.errors import StreamlitAPIException
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.scriptrunner import get_script_run_ctx

PART = "page_part"
"""Name of the part."""
STRIP = "limits_strip"
"""Key of the strip of limits."""


def moved() -> bool:
    """Return whether this run is of the part alone."""
    context = get_script_run_ctx(suppress_warning=True)
    return context is not None and bool(context.fragment_ids_this_run)


def run_alone() -> None:
    """Let only moves of a limit run the part alone, in all sessions of this process."""
    request = AppSession.request_rerun
    if getattr(request, "__module__", "") == __name__:
        return

    def request_rerun(session: AppSession, client_state: ClientState | None) -> None:
        if client_state is not None and client_state.fragment_id and not _alone(session, client_state):
            client_state.fragment_id = ""
        request(session, client_state)

    AppSession.request_rerun = request_rerun  # type: ignore[method-assign,assignment]


def _alone(session: AppSession, asked: ClientState) -> bool:
    """Return whether a request may run its part alone: it is a move of a limit, or another part."""
    own: list[str] = []
    with suppress(StreamlitAPIException):  # a page that ended early has no such part
        own = session._fragment_storage.resolve_target(PART)
    return asked.fragment_id not in own or any(
        widget.HasField("json_trigger_value") and STRIP in widget.id for widget in asked.widget_states.widgets
    )
