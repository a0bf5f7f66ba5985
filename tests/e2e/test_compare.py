"""Comparing stacks: choose them, see the difference, open a query that flips, come back by the link."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from playwright.sync_api import Locator, expect

from tests.e2e.watch import Visit
from tests.server import Server

pytestmark = pytest.mark.e2e
Open = Callable[..., Visit]

SPARSE, HYBRID = "BM25", "BM25 ⊕ wordllama 256 d"
UNREAD = quote(", K = 20")  # until 0.2 a stack was named with a K that nothing reads
PAIR = f"compare?ws=python-docs&k=20&stack={quote(HYBRID)}{UNREAD}&vs={quote(SPARSE)}{UNREAD}"


def settings(visit: Visit) -> dict[str, list[str]]:
    return parse_qs(urlsplit(visit.address).query)


def chart(visit: Visit, axis: str) -> Locator:
    """The chart with a word in the title of an axis."""
    return visit.page.locator(".js-plotly-plot").filter(has=visit.page.locator("text", has_text=axis)).first


def test_a_click_on_a_query_opens_it_with_both_stacks(server: Server, visit: Open) -> None:
    page = visit(f"{server.url}/{PAIR}")
    assert "RA-nWG@20" in page.answer
    expect(page.page.get_by_text(f"A: {HYBRID} · B: {SPARSE}")).to_be_visible()
    mark = chart(page, "RA-nWG@20 of").locator(".points path.point").first
    page.click_mark(mark)
    page.page.wait_for_url("**/queries*")
    page.settle()
    asked = settings(page)
    assert asked["stack"] == [HYBRID]
    assert asked["vs"] == [SPARSE]
    assert asked["k"] == ["20"], "the sidebar stays as it was"
    expect(page.page.get_by_text(asked["q"][0]).first).to_be_visible()
    assert HYBRID in page.answer


def test_the_settings_of_a_comparison_travel_in_the_link(server: Server, visit: Open) -> None:
    page = visit(f"{server.url}/{PAIR}")
    page.page.get_by_text("How to compare").click()
    page.page.get_by_text("BCa", exact=True).click()
    page.page.keyboard.press("Escape")
    page.settle()
    page.page.get_by_text("Tests, effect sizes, all pairs").click()
    expect(page.page.get_by_text("95 % interval by BCa of 2,000 resamples")).to_be_visible()
    link = page.copy_link()
    colleague = visit(link)
    assert colleague.answer == page.answer
    assert settings(colleague)["ci"] == ["BCa"]


def test_a_pair_of_a_change_is_compared_after_a_click(server: Server, visit: Open) -> None:
    page = visit(f"{server.url}/{PAIR}&change={quote('index: flat → hnsw-f32')}")
    page.page.get_by_text("One change, every pair of stacks").click()
    expect(page.page.get_by_text("on average over 6 pairs of stacks")).to_be_visible()
    page.settle()
    charts = page.page.locator(".js-plotly-plot")
    asked = page.address
    page.click_mark(charts.last.locator(".points path.point").first)
    page.page.wait_for_url(lambda address: address != asked)
    page.settle()
    ((after,), (before,)) = (settings(page)[key] for key in ("stack", "vs"))
    assert after.replace(" hnsw-f32", "") == before
    expect(page.page.get_by_text(f"A: {after} · B: {before}")).to_be_visible()


def test_a_link_to_what_was_ticked_shows_the_same_elsewhere(server: Server, visit: Callable[..., Visit]):
    seen = visit(f"{server.url}/?ws=python-docs")
    table = seen.page.locator("[data-testid=stDataFrame]").first
    table.scroll_into_view_if_needed()
    box = table.bounding_box()
    assert box is not None
    for row in (3, 6):
        seen.page.mouse.click(box["x"] + 18, box["y"] + 22 + 35 * row)
        seen.settle()
    seen.page.get_by_role("button", name="Compare", exact=True).click()
    seen.settle()
    link = seen.copy_link()
    assert {"ws=python-docs", "stack=", "vs=", "rev="} <= _parts(link)
    here = _numbers(seen)
    seen.page.reload()
    seen.settle()
    assert _numbers(seen) == here
    other = visit(link)
    assert _numbers(other) == here


def _parts(link: str) -> set[str]:
    pairs = link.partition("?")[2].split("&")
    return {pair if pair.startswith("ws=") else pair.partition("=")[0] + "=" for pair in pairs}


def _numbers(seen: Visit) -> list[str]:
    return [
        seen.answer,
        *seen.page.locator("[data-testid=stMain] [data-testid=stMetricValue]").all_inner_texts(),
    ]
