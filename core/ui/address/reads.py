"""Single-value reads of a visitor's state, for which Streamlit would read all values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from streamlit.runtime.state.safe_session_state import SafeSessionState
from streamlit.runtime.state.session_state import SessionState


class OneByOne(Mapping[str, Any]):
    """A session's named values, each read on demand.

    A field or list only checks whether its own value exists; Streamlit reads a hundred of them for each.
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
    """Make the widgets of all sessions of this process read only the values they need."""
    if isinstance(getattr(SafeSessionState, "filtered_state", None), property):  # otherwise another release
        SafeSessionState.filtered_state = property(lambda safe: OneByOne(safe._state))  # type: ignore[assignment, method-assign]
