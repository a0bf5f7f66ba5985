"""Every page in light and dark, wide and narrow: nothing overflows, nothing leaves, pictures are taken."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import expect

from core.paths import DATA, ROOT
from core.views.pages import PAGES, SECTION
from tests.e2e.watch import Visit
from tests.server import Server, serve

pytestmark = pytest.mark.e2e
Open = Callable[..., Visit]

ASKED = {
    "decision": {"ws": "docs-search", "sla": "5"},
    "what_if/routing": {"k": "100"},
    "latency": {"ws": "clq-paper"},
    "queries": {"q": "q31"},
}
"""Settings with which a place has more to show than without."""
PLACES = [place for page in PAGES.values() for place in page.places]
SHOTS = ROOT / "build" / "screenshots"
IN_README = ("decision", "headroom")


@pytest.mark.parametrize("place", PLACES)
def test_a_page_fits_its_window(server: Server, visit: Open, place: str) -> None:
    page, _, section = place.partition("/")
    asked = ASKED.get(place, {}) | ({SECTION: section} if section else {})
    seen = visit(f"{server.url}/{page}?{urlencode(asked)}")
    name = place.replace("/", "-").replace(" ", "-")
    SHOTS.mkdir(parents=True, exist_ok=True)
    for look in ("light", "dark", "narrow"):
        if look != "light":  # as the page opens
            seen.look(dark=look == "dark", narrow=look == "narrow")
        assert seen.overflow() <= 0, look
        assert seen.inks() <= {seen.ink()}, f"the text of charts stays as it was before {look}"
        seen.page.screenshot(path=SHOTS / f"{name}-{look}.png")
    if name in IN_README and os.environ.get("CLQ_REFRESH_SCREENSHOTS"):
        (DATA / "screenshots").mkdir(exist_ok=True)
        shutil.copy(SHOTS / f"{name}-light.png", DATA / "screenshots" / f"{name}.png")


@pytest.fixture(scope="module")
def empty_server(empty_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serve(tmp_path_factory.mktemp("log") / "server.log", CLQ_STORE=str(empty_store)) as running:
        yield running


def test_an_empty_store_says_what_to_do(empty_server: Server, visit: Open) -> None:
    page = visit(empty_server.url)
    walked = []
    for name in page.walk():
        walked.append(name)
        said = page.page.locator("[data-testid=stMain]").inner_text()
        assert page.page.get_by_test_id("stAlertContentError").count() == 0, name
        if PAGES[name or next(iter(PAGES))].needs:
            assert "The store is empty" in said, name
            expect(page.page.get_by_role("button", name="Load the demo")).to_be_enabled()
    assert walked == ["", *list(PAGES)[1:]]


@pytest.fixture(scope="module")
def hostile_server(hostile_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serve(tmp_path_factory.mktemp("log") / "server.log", CLQ_STORE=str(hostile_store)) as running:
        yield running


def test_markup_in_names_and_passages_stays_text(hostile_server: Server, visit: Open) -> None:
    page = visit(hostile_server.url, height=1600)
    main = page.page.locator("[data-testid=stMain]")
    for name in page.walk():
        found = main.locator("img[src='x'], a[href^=javascript], a[href*='evil.example']")
        assert found.count() == 0, name
