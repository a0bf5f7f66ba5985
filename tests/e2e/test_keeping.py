"""What is asked of a workspace is kept by every link, by a reload, and by each step back."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import parse_qs, urlencode, urljoin, urlsplit

import pytest
from playwright.sync_api import Locator, expect

from tests.e2e.watch import Visit
from tests.server import Server
from tests.shared import EVERY_PAGE

pytestmark = pytest.mark.e2e
Open = Callable[..., Visit]

ASKED = {
    "ws": ["clq-paper"],  # not the first
    "sla_ms": ["700"],
    "budget": ["3per1k"],
    "jitter": ["50"],
    "price": ["voyage/rerank-2.5:0.04", "voyage/rerank-2.5-lite:0.03"],
}
ROOMS = "[data-testid=stSidebar] [data-testid=stPageLink-NavLink]"


def asked_of(address: str) -> dict[str, list[str]]:
    """The settings of an address that are among those asked for."""
    return {key: texts for key, texts in parse_qs(urlsplit(address).query).items() if key in ASKED}


def assert_kept(seen: Visit) -> None:
    """The page, its address and its links have what is asked for."""
    assert asked_of(seen.address) == ASKED
    assert seen.page.locator(".st-key-ws input").input_value() == "clq-paper"
    if seen.page.locator(".clq-strip").count():
        assert [seen.field(name).input_value() for name in ("SLA", "Budget")] == ["700", "3.00"]
    links = seen.page.get_by_test_id("stPageLink-NavLink").evaluate_all("all => all.map(one => one.href)")
    assert [link for link in links if asked_of(link) != ASKED] == []


def follow(seen: Visit, link: Locator) -> None:
    """Click a link, which keeps what is asked for."""
    path = urlsplit(urljoin(seen.address, link.get_attribute("href"))).path
    link.click()
    seen.page.wait_for_function("path => location.pathname == path", arg=path)
    seen.settle()
    assert_kept(seen)


@pytest.mark.slow
def test_every_link_keeps_what_is_asked_for(server: Server, visit: Open) -> None:
    seen = visit(f"{server.url}/?{urlencode(ASKED, doseq=True)}")
    rooms = seen.page.locator(ROOMS).filter(visible=True)  # each stands there twice, once for its tooltip
    count = rooms.count()
    for here in range(count):
        address = seen.address
        for to in range(count) if EVERY_PAGE else [here]:
            follow(seen, rooms.nth(to))
            if seen.address != address:
                seen.open(address)
        follow(seen, rooms.nth((here + 1) % count))
        before = (seen.answer, seen.address)
        seen.page.reload()
        seen.settle()
        assert_kept(seen)
        assert (seen.answer, seen.address) == before


def test_back_from_another_workspace_shows_what_was_there(server: Server, visit: Open) -> None:
    seen = visit(f"{server.url}/?{urlencode(ASKED, doseq=True)}")
    states = [(seen.address, seen.answer)]
    steps = seen.page.evaluate("history.length")

    control = seen.page.locator(".st-key-ws")
    control.get_by_role("button", name="Open").click()
    seen.page.get_by_role("option", name="python-docs", exact=True).click()
    expect(control.get_by_role("combobox")).to_have_value("python-docs")
    seen.settle()
    states.append((seen.address, seen.answer))
    assert asked_of(seen.address)["ws"] == ["python-docs"]
    assert not asked_of(seen.address).keys() & {"sla_ms", "budget"}, "limits of another workspace"

    seen.press(seen.slider("SLA"), "PageDown")
    states.append((seen.address, seen.answer))
    seen.page.locator(ROOMS).filter(visible=True, has_text="Headroom").click()
    seen.page.wait_for_url("**/headroom*")
    seen.settle()
    states.append((seen.address, seen.answer))
    assert seen.page.evaluate("history.length") == steps + 3, "a step each"

    for go, expected in ((seen.page.go_back, states[-2::-1]), (seen.page.go_forward, states[1:])):
        for address, answer in expected:
            go()
            seen.settle()
            assert (seen.address, seen.answer) == (address, answer)


def test_the_first_address_is_one_step_of_the_history(server: Server, visit: Open) -> None:
    """The workspace is written into it, in its place; words with a hyphen stay whole in its heading."""
    seen = visit(f"{server.url}/")
    assert asked_of(seen.address)["ws"]
    assert seen.page.evaluate("history.length") == 2, "a blank page, and this one"
    torn = "[...document.querySelectorAll('h1 em')].filter(each => each.getClientRects().length > 1).length"
    seen.page.set_viewport_size({"width": 390, "height": 800})
    assert seen.page.evaluate(torn) == 0
    assert "*" not in seen.answer
