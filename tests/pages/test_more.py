"""The bar of sections: what stands in it, and what behind "More"; and what of a wide table stays in sight."""

import json
from pathlib import Path

import pytest

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


def test_the_first_column_of_a_wide_table_stays_in_sight(open_page: OpenPage, demo_store: Path) -> None:
    (first, *_) = open_page(demo_store, "decision").dataframe
    columns = json.loads(first.proto.columns)
    assert [name for name, about in columns.items() if about.get("pinned")] == ["stack"]
