"""Other weights: a limit moves the choice in the cells while the page stays."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.e2e.controls import unfold
from tests.e2e.watch import Visit
from tests.server import Server

pytestmark = pytest.mark.e2e
Open = Callable[..., Visit]


def test_a_quality_floor_moves_the_choice_cell_by_cell(server: Server, visit: Open) -> None:
    page = visit(f"{server.url}/sensitivity?ws=python-docs")
    before = page.answer
    assert "24 settings" in before, "all of them, or most: the two cheapest swap by their measured cost"
    words = page.page.locator(".js-plotly-plot").first.locator(".heatmap-label")
    expect(words).to_have_count(24)
    expect(words.first).to_have_text(re.compile("[A-Z]$"))
    floor = page.slider("Quality at least")
    page.press(floor, "PageUp", 12)
    assert page.answer != before
    assert page.answer.startswith("No stack is within the limits as usual")
    unfold(page)  # what changes nothing is folded
    expect(page.page.get_by_text("– = none")).to_be_visible()
    colleague = visit(page.copy_link())
    assert colleague.answer == page.answer


def test_one_stack_is_followed_by_its_name_in_the_link(server: Server, visit: Open) -> None:
    page = visit(f"{server.url}/sensitivity?ws=python-docs&stack=BM25%2C%20K%20%3D%2050")
    words = page.page.locator(".js-plotly-plot").nth(1).locator(".heatmap-label")
    expect(words).to_have_count(24)
    expect(words.first).to_contain_text("#")
