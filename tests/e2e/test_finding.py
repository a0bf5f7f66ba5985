"""How a visitor finds a place: the bar of sections with its "More"."""

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
    seen = visit(f"{server.url}/latency?ws=docs-search&sla=20")
    first = shown(seen)
    assert "generator" not in first
    seen.page.get_by_role("button", name="More", exact=True).focus()
    seen.page.keyboard.press("Enter")
    seen.page.wait_for_timeout(800)  # until the menu has come in
    seen.page.keyboard.press("ArrowDown")
    seen.page.keyboard.press("Enter")
    expect(seen.page).to_have_url(re.compile(r"sla=20.*sec=generator"))
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
