"""The bar of sections: what stands in it, and what behind "More"; and what of a wide table stays in sight."""

import json
from pathlib import Path

import pytest

from core.ui.address.state import PHONE
from core.views.pages import PAGES, SECTION
from tests.pages.conftest import OpenPage

LATENCY = PAGES["latency"].sections


@pytest.mark.parametrize(
    ("place", "opened", "bar"),
    [
        ("latency", "where the time goes", ["where the time goes", "index loss"]),
        ("latency/generator", "generator", ["where the time goes", "generator", "index loss"]),
        ("latency/index loss", "index loss", ["where the time goes", "index loss"]),
    ],
)
def test_a_section_behind_more_stands_in_the_bar_while_it_is_open(
    open_page: OpenPage, demo_store: Path, place: str, opened: str, bar: list[str]
) -> None:
    app = open_page(demo_store, place)
    choice = app.segmented_control(key=SECTION)
    assert (choice.value, list(choice.options)) == (opened, bar)
    (more,) = [each for each in app.get("menu_button") if each.proto.label == "More"]
    assert [*more.proto.options] == [name for name in LATENCY if name not in bar]


@pytest.mark.parametrize(
    ("phone", "more", "stays"), [(False, False, []), (False, True, ["stack"]), (True, False, ["passage"])]
)
def test_the_first_column_stays_in_sight_where_others_are_moved_past_it(
    open_page: OpenPage, demo_store: Path, *, phone: bool, more: bool, stays: list[str]
) -> None:
    """Only there: what is pinned is paler."""
    app = open_page(demo_store, "measures" if phone else "decision")
    app.session_state[PHONE] = phone
    (app.toggle[0].set_value(True) if more else app).run()
    columns = json.loads(app.dataframe[0].proto.columns)
    assert [name for name, about in columns.items() if about.get("pinned")] == stays


def test_what_a_fold_holds_is_drawn_when_it_is_opened(open_page: OpenPage, demo_store: Path) -> None:
    """What asks nothing waits: a closed fold's tables would slow the first visit down."""
    app = open_page(demo_store, "cost", folded=True)
    closed = len(app.dataframe)
    (fold,) = [each.label for each in app.expander if each.label == "Price book list"]
    app.session_state[f"fold_{fold}"] = True  # what a click leaves behind
    assert len(app.run().dataframe) == closed + 1
    assert len(open_page(demo_store, "cost").dataframe) > closed + 1


def test_what_stands_on_a_tab_is_drawn_when_it_is_chosen(open_page: OpenPage, demo_store: Path) -> None:
    app = open_page(demo_store, "queries", folded=True)
    assert [tab.label for tab in app.tabs] == ["Queries", "By tag"]
    assert [len(tab.dataframe) for tab in app.tabs] == [1, 0]
    assert [len(tab.dataframe) for tab in open_page(demo_store, "queries").tabs] == [1, 1]
