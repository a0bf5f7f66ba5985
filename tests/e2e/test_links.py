"""A copied address shows the same elsewhere: every page, with each of its controls set."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from core.views.pages import PAGES, SECTION
from tests.e2e.controls import differences, set_all, unfold
from tests.e2e.watch import Visit
from tests.server import Server
from tests.shared import EVERY_PAGE

pytestmark = pytest.mark.e2e
Open = Callable[..., Visit]

PLACES = [place for page in PAGES.values() for place in (page.places if EVERY_PAGE else page.places[:1])]
"""Every page; its further sections stand in `tests/pages/test_links.py`, without a browser."""
ANSWERED = ("readers", "measures/predicting answers")  # need answers, which python-docs has none of
_TRIES = 20
STAYS = frozenset({"ws", SECTION})  # the place itself


def _address(server: Server, place: str) -> str:
    page, _, section = place.partition("/")
    asked = {"ws": "ragged" if place.startswith(ANSWERED) else "python-docs"}
    return f"{server.url}/{page}?{urlencode(asked | ({SECTION: section} if section else {}))}"


@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES)
def test_a_link_shows_the_same_with_every_control_set(server: Server, visit: Open, place: str) -> None:
    seen = visit(_address(server, place))
    if seen.page.get_by_role("slider", name="SLA").count():
        seen.press(seen.slider("SLA"), "ArrowDown", 2)
    unfold(seen)
    done = set_all(seen, but=STAYS)
    carried = parse_qs(urlsplit(seen.address).query).keys()
    assert not done or done & carried, "no control that was set stands in the address"
    unfold(seen)
    other = visit(seen.copy_link() if PAGES[place.partition("/")[0]].settings else seen.address)
    unfold(other)
    for _ in range(_TRIES):  # what the browser itself draws comes last
        for page in (seen, other):  # a fold, too, may come late
            unfold(page)
        if not (apart := differences(seen, other)):
            break
        other.page.wait_for_timeout(500)
    assert apart == []
