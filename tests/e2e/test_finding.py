"""How a visitor finds a place: the bar of sections with its "More", and the search."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from core.views.pages import SECTION
from tests.e2e.watch import Visit
from tests.server import Server

pytestmark = pytest.mark.e2e
Open = Callable[..., Visit]


def shown(seen: Visit) -> list[str]:
    return seen.page.locator(f".st-key-{SECTION} button").all_inner_texts()


def open_section(seen: Visit) -> str:
    return seen.page.locator(f".st-key-{SECTION} [aria-checked=true]").inner_text()


def test_a_section_behind_more_opens_by_keys_and_steps_lead_back(server: Server, visit: Open) -> None:
    seen = visit(f"{server.url}/latency?ws=docs-search&sla_ms=20")
    first = shown(seen)
    assert "generator" not in first
    seen.page.get_by_role("button", name="More", exact=True).focus()
    seen.page.keyboard.press("Enter")
    seen.page.wait_for_timeout(800)  # until the menu has come in
    seen.page.keyboard.press("ArrowDown")
    seen.page.keyboard.press("Enter")
    expect(seen.page).to_have_url(re.compile(r"sla_ms=20.*sec=generator"))
    seen.settle()
    assert open_section(seen) == "generator"
    assert {*shown(seen)} == {*first, "generator"}
    seen.page.locator(f".st-key-{SECTION}").get_by_text(first[0], exact=True).click()
    seen.settle()
    assert shown(seen) == first
    seen.page.go_back()
    seen.settle()
    assert open_section(seen) == "generator"
    seen.page.go_back()
    seen.settle()
    assert (shown(seen), open_section(seen)) == (first, first[0])


def test_the_search_opens_places_and_fields_and_keeps_the_limits(server: Server, visit: Open) -> None:
    seen = visit(f"{server.url}/?ws=docs-search&sla_ms=20")
    keys = seen.page.keyboard

    def look_for(words: str, key: str = "Control+k") -> list[str]:
        keys.press(key)
        keys.type(words)
        return seen.page.locator("#clq-found li b").all_inner_texts()

    assert look_for("MRR", "/")[0] == "RR"
    keys.press("Enter")
    expect(seen.page).to_have_url(re.compile(r"/measures\?.*sla_ms=20.*ref=RR"))
    seen.settle()
    found = look_for("reranker")
    assert "Latency → reranker by K" in found
    for _ in range(found.index("Latency → reranker by K")):
        keys.press("ArrowDown")
    keys.press("Enter")
    expect(seen.page).to_have_url(re.compile(r"/latency\?.*sla_ms=20.*sec=reranker"))
    seen.settle()
    assert open_section(seen) == "reranker by K"
    assert look_for("budget")[0].startswith("Budget")
    keys.press("Enter")
    field = seen.page.locator("#clq-limit-budget + input")
    assert field.evaluate("field => field === document.activeElement")
    look_for("jitter")
    keys.press("Enter")
    jitter = seen.page.locator(".st-key-jitter input")
    jitter.wait_for()
    seen.page.wait_for_timeout(300)
    assert jitter.evaluate("field => field === document.activeElement")
    assert look_for("no such thing at all") == []
    keys.press("Escape")
    assert not seen.page.locator(".clq-find dialog").is_visible()
    assert look_for("clq-paper")[0] == "clq-paper"
    keys.press("Enter")
    expect(seen.page).to_have_url(re.compile(r"/\?ws=clq-paper$"))
    seen.settle()
    assert "voyage" in seen.answer, "and nothing of the workspace that was left"
