"""Every page in light and dark, wide and narrow: nothing overflows, nothing leaves, pictures are taken."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from playwright.sync_api import expect

from core.paths import DATA, ROOT
from core.views.pages import PAGES, SECTION
from tests.e2e.watch import WINDOW, Visit
from tests.server import Server, serve

pytestmark = pytest.mark.e2e
Open = Callable[..., Visit]

ASKED = {
    "decision": {"ws": "docs-search", "sla_ms": "10"},
    "what_if/routing": {"k": "100"},
    "latency": {"ws": "clq-paper"},
    "queries": {"q": "q31"},
}
"""Settings with which a place has more to show than without."""
SHOTS = ROOT / "build" / "screenshots"
IN_README = ("decision", "headroom")
_LOW = """() => [...document.querySelectorAll(`.stMain :is(button:is([data-testid], [role]), a[data-testid],
    summary, [role="tab"], .stNumberInput input, .stTextInput input, input[role="combobox"])`)]
    .map(each => [each.innerText || each.ariaLabel, each.getBoundingClientRect().height])
    .filter(([, height]) => height > 1 && height < 41.5)"""
"""What is lower than 44 px for a thumb; a field is as high within its border."""


@pytest.mark.parametrize("page", PAGES)
def test_a_page_fits_its_window(server: Server, visit: Open, page: str) -> None:
    """Its sections are clicked on, unless one is shown with settings of its own: those are of an address."""
    SHOTS.mkdir(parents=True, exist_ok=True)
    seen, before = None, ""
    for place in PAGES[page].places:
        section = place.partition("/")[2]
        if seen is None:
            seen = visit(_address(server, place))
        elif place in ASKED or before in ASKED:
            seen.open(_address(server, place))
        else:
            seen.page.set_viewport_size(WINDOW)
            _click(seen, section)
        assert not section or parse_qs(urlsplit(seen.address).query)[SECTION] == [section]
        _look_at(seen, place)
        before = place


def test_on_a_phone_the_sidebar_makes_way_for_the_page_that_was_chosen(server: Server, visit: Open) -> None:
    seen = visit(_address(server, "library"))
    seen.look(dark=False, narrow=True)
    sidebar = seen.page.get_by_test_id("stSidebar")
    expect(sidebar).not_to_be_in_viewport()
    seen.page.get_by_test_id("stExpandSidebarButton").click()
    sidebar.get_by_role("link", name="Measures").click()
    expect(sidebar).not_to_be_in_viewport()
    seen.settle()
    assert urlsplit(seen.address).path == "/measures"


def test_on_a_phone_every_section_of_the_bar_is_seen(server: Server, visit: Open) -> None:
    seen = visit(_address(server, "golden/unseen"))
    seen.look(dark=False, narrow=True)
    for section in ("soundness", "unseen", "judge"):
        expect(seen.page.locator(f".st-key-{SECTION}").get_by_text(section, exact=True)).to_be_in_viewport()


def test_on_a_phone_nothing_that_is_touched_is_lower_than_44_px(server: Server, visit: Open) -> None:
    seen = visit(_address(server, "headroom"))
    seen.look(dark=False, narrow=True)
    assert seen.page.get_by_test_id("stMain").get_by_role("button").count() > 3
    assert not seen.page.evaluate(_LOW)


def _click(seen: Visit, section: str) -> None:
    """Click on a section in the bar, or behind "More"."""
    choice = seen.page.locator(f".st-key-{SECTION}").get_by_text(section, exact=True)
    if not choice.count():
        seen.page.get_by_role("button", name="More", exact=True).click()
        choice = seen.page.get_by_role("menuitem", name=section, exact=True)
    choice.click()
    seen.settle()


def _address(server: Server, place: str) -> str:
    page, _, section = place.partition("/")
    asked = ASKED.get(place, {}) | ({SECTION: section} if section else {})
    return f"{server.url}/{page}?{urlencode(asked)}"


def _look_at(seen: Visit, place: str) -> None:
    name = place.replace("/", "-").replace(" ", "-")
    for look in ("light", "dark", "narrow"):
        if look != "light":  # as the page opens
            seen.look(dark=look == "dark", narrow=look == "narrow")
        assert seen.overflow() <= 0, (place, look)
        assert seen.inks() <= {seen.ink()}, f"the text of {place}'s charts stays as it was before {look}"
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
