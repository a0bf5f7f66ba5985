"""One value of a visitor's state is read like all of them at once."""

from __future__ import annotations

import pytest
from streamlit.runtime.state.session_state import STREAMLIT_INTERNAL_KEY_PREFIX, SessionState

from core.ui.address.reads import OneByOne


@pytest.fixture
def state() -> SessionState:
    held = SessionState()
    held["kept"], held["empty"] = 5, None
    held[f"{STREAMLIT_INTERNAL_KEY_PREFIX}_key"] = "of Streamlit"
    return held


def test_names_say_the_same(state: SessionState) -> None:
    read = OneByOne(state)
    assert dict(read) == state.filtered_state == {"kept": 5, "empty": None}
    assert (len(read), "kept" in read, "empty" in read) == (2, True, True)


def test_what_is_not_there_is_not_there(state: SessionState) -> None:
    read = OneByOne(state)
    assert "other" not in read
    assert 5 not in read
    with pytest.raises(KeyError):
        read["other"]
    assert read.get("other") is None


def test_one_value_is_read_alone(state: SessionState, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    whole = SessionState.__getitem__
    monkeypatch.setattr(SessionState, "__getitem__", lambda held, key: read.append(key) or whole(held, key))
    assert OneByOne(state)["kept"] == 5
    assert read == ["kept"]
