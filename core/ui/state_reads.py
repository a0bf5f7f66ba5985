"""Reads of one value of a visitor's state, for which Streamlit would read all of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from streamlit.runtime.state.safe_session_state import SafeSessionState
from streamlit.runtime.state.session_state import SessionState


class OneByOne(Mapping[str, Any]):
    """What a session holds under names, each value read when it is asked for.

    A field or a list asks only whether its own value is there; Streamlit reads a hundred of them for each.
    """

    def __init__(self, state: SessionState) -> None:
        self._state = state

    def __getitem__(self, key: str) -> Any:
        return self._state[key]

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and key in self._state

    def __iter__(self) -> Iterator[str]:
        return iter(self._state.filtered_state)

    def __len__(self) -> int:
        return len(self._state.filtered_state)


def read_one_by_one() -> None:
    """Have the widgets of all sessions of this process read no more than they ask for."""
    if isinstance(getattr(SafeSessionState, "filtered_state", None), property):  # else another release
        SafeSessionState.filtered_state = property(lambda safe: OneByOne(safe._state))  # type: ignore[assignment, method-assign]
