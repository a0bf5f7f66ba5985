"""The generator's speed: typed, or fitted to the timings of the workspace; always labelled as modelled."""

from __future__ import annotations

import streamlit as st

from core.stats.generation import Generation, Speed
from core.ui import cache
from core.ui.state import bound
from core.views.latency.page import fitted
from core.views.latency.page import timed_answers as read_answers
from core.views.latency.words import speed as in_words
from core.views.workspace.scope import Scope

_SPEEDS = (
    ("gbase", "Base (ms)", "Before anything depends on length: network, queue."),
    ("gin", "Per 1,000 prompt tokens (ms)", "Reading the prompt; decides the first token."),
    ("gout", "Per output token (ms)", "Writing the answer."),
)


timed_answers = cache.cached(entries=16)(read_answers)
"""The timed answers of a workspace, kept; see `core.views.latency.page.timed_answers`."""


def generation(revision: int, scope: Scope) -> Generation | None:
    """Draw the inputs of the model.

    Returns:
        The model; None where no speed was typed and none can be fitted.
    """
    with st.expander("Generation, modelled", expanded=True):
        typed = [
            st.number_input(label, min_value=0.0, value=None, help=text, **bound(key, None))
            for key, label, text in _SPEEDS
        ]
        found = fitted(timed_answers(cache.snapshot(revision), scope))
        speed = _speed(typed) or found.speed
        if any(value is not None for value in typed) and not _speed(typed):
            st.caption("Type both the time per prompt token and the time per output token.")
        elif speed is None:
            st.caption(
                "Unknown until you type its speed, or import timings of its answers with their tokens."
            )
        elif speed is found.speed:
            st.caption(in_words(found))
        chunks = st.number_input(
            "Chunks sent", 0, 1000, 10, **bound("gchunk", 10),
            help="For stacks whose specification does not say how many passages they send.",
        )  # fmt: skip
        sizes = [
            st.number_input(label, min_value=0, value=usual, **bound(key, usual))
            for key, label, usual in (
                ("gtok", "Tokens per chunk", 500),
                ("gprompt", "Other prompt tokens", 100),
                ("gans", "Output tokens", 200),
            )
        ]
    return None if speed is None else Generation(speed, int(chunks), *map(float, sizes))


def _speed(typed: list[float | None]) -> Speed | None:
    base, prompt, output = typed
    return None if prompt is None or output is None else Speed(base or 0.0, prompt, output)
