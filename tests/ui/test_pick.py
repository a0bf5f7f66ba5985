from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
import streamlit as st

from core.ui import pick
from core.ui.pick import listed, pick_from_chart, pick_one, still_offered, still_offered_all
from tests.views.made import stacks


class Session(dict[str, Any]):
    """Session state and address of a visitor, as far as lists of stacks read them."""

    def get_all(self, key: str) -> list[str]:
        return list(self.get(key, []))


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Session:
    state = Session()
    monkeypatch.setattr(st, "session_state", state)
    monkeypatch.setattr(st, "query_params", Session())
    return state


def many(height: int) -> pl.DataFrame:
    return stacks(quality=[None, *(row / height for row in range(1, height))])


def test_a_switch_with_one_button_is_not_drawn(session: Session, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delattr(st, "segmented_control")
    session["rdx"] = "gone"
    assert pick_one("Against", ["passages"], "rdx") == "passages"


@pytest.mark.parametrize("height", [0, 1, 2, 300])
def test_a_short_list_has_every_stack(session: Session, height: int):
    table = stacks(height)
    assert listed(table, "stack") == table["name"].to_list()


def test_a_long_list_has_the_best_in_order_of_their_names(session: Session):
    table = many(1000)
    names = listed(table, "stack")
    assert len(names) == 300
    assert names == sorted(names)
    assert set(names) == set(table.top_k(300, by="quality")["name"])


def test_what_is_chosen_stays_in_a_long_list(session: Session):
    table = many(1000)
    session["stack"], session["curves"] = "stack 3", ["stack 4", "gone"]
    st.query_params["vs"] = ["stack 5", "gone"]
    assert listed(table, "stack")[-1:] == ["stack 3"]
    assert listed(table, "curves")[-1:] == ["stack 4"]
    assert listed(table, "vs")[-1:] == ["stack 5"]
    assert len(listed(table, "vs")) == 301


def test_many_unknown_qualities_leave_a_list(session: Session):
    assert len(listed(stacks(1000), "stack")) == 300


@pytest.mark.parametrize(
    ("said", "renewed"),
    [
        (["BM25, K = 20"], ["BM25"]),
        (["a + b, K = 20"], ["a + b, K = 20"]),
        (["BM25"], ["BM25"]),
        (["gone, K = 20"], ["gone, K = 20"]),
        ([], []),
    ],
)
@pytest.mark.parametrize("offer", [still_offered, still_offered_all])
def test_an_address_of_before_names_stacks_as_they_are_offered(
    session: Session,
    monkeypatch: pytest.MonkeyPatch,
    offer: Callable[[str, list[str]], None],
    said: list[str],
    renewed: list[str],
):
    monkeypatch.setattr(pick, "put", st.query_params.update)
    st.query_params["stack"] = said
    offer("stack", ["chosen stack", "BM25", "a + b, K = 20"])
    assert st.query_params["stack"] == renewed
    assert "stack" not in session, "the widget begins with the address"


@pytest.mark.parametrize(
    ("state", "chosen"),
    [
        ({"selection": {"points": []}}, None),
        ({"selection": {"points": [{"x": 1}]}}, None),
        ({"selection": {"points": [{"customdata": None}]}}, None),
        ({"selection": {"points": [{"customdata": [2, 0.5]}]}}, "stack 2"),
        ({"selection": {"points": [{"customdata": [1.0]}, {"customdata": [2]}]}}, "stack 1"),
        ({"selection": {"points": [{"customdata": {"0": 3, "1": 0.5}}]}}, "stack 3"),
        ({}, None),
        ({"picked": 3}, "stack 3"),
        ({"picked": 5}, None),
        ({"picked": -1}, None),
        ({"picked": "3"}, None),
    ],
)
def test_a_click_chooses_the_row_of_its_mark(session: Session, state: dict[str, Any], chosen: str | None):
    table = stacks(5)
    session["chart"] = state
    pick_from_chart(table, "chart")()
    assert session.get("stack") == chosen
