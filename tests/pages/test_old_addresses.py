"""Addresses and links of the last release lead to the page and section of now, with what they set."""

from pathlib import Path
from types import SimpleNamespace
from urllib.parse import parse_qs, urlsplit

import pytest

from core.decide.axes import FORMER
from core.report.page import say
from core.store import Store
from core.ui import pages
from core.views.link import pinned
from core.views.pages import MOVED, PAGES, SECTION
from tests.pages.conftest import OpenPage
from tests.pages.reading import TITLES, assert_sound, everything, unescaped
from tests.pages.test_addresses import refused
from tests.pages.test_places import workspace

LAST_RELEASE = {
    "overview": "decision",
    "pareto": "decision",
    "certainty": "confidence",
    "routing": "what_if/routing",
    "scenarios": "what_if",
    "next": "confidence/worth measuring more",
    "cost": "cost",
    "headroom": "headroom",
    "latency": "latency",
    "curves": "curves",
    "compare": "compare",
    "sensitivity": "confidence/other weights",
    "queries": "queries",
    "evidence": "golden",
    "outcome": "measures/predicting answers",
    "measures": "measures",
    "import": "add",
    "formats": "add/formats",
    "data": "library",
    "run": "run",
}
"""Every address that the last release had, with where it leads now."""


@pytest.mark.parametrize("old", LAST_RELEASE)
def test_an_old_address_leads_to_its_page(open_page: OpenPage, demo_store: Path, old: str):
    app = open_page(demo_store, old)
    assert_sound(app, TITLES[LAST_RELEASE[old]])
    assert not app.warning
    _, _, section = LAST_RELEASE[old].partition("/")
    page = PAGES[LAST_RELEASE[old].partition("/")[0]]
    if page.sections:
        assert app.session_state[SECTION] == (section or page.sections[0])


GONE = [(page.name, section, there) for page in PAGES.values() for section, there in page.gone.items()]
"""Sections that stood on a page, with where what they said stands now."""


@pytest.mark.parametrize(("name", "section", "there"), GONE)
def test_a_section_that_went_leads_to_where_its_fact_stands(
    open_page: OpenPage, demo_store: Path, name: str, section: str, there: tuple[str, str]
):
    page, now = PAGES[there[0]], there[1]
    app = open_page(demo_store, f"{name}/{section}", sla="1000", per="$1")
    assert_sound(app, page.title)
    assert not app.warning
    assert app.session_state["sla_ms"] == 1000
    assert app.query_params.get(SECTION, now) == now
    view = workspace(demo_store, "python-docs", whole=True)
    data = say(PAGES[name], section, view, {"of old": ["x"]})
    assert (data.page, data.section) == (page, now or page.drawn()[0].name)


def test_an_address_without_a_page_opens_the_first_and_says_so(
    open_page: OpenPage, demo_store: Path, monkeypatch: pytest.MonkeyPatch
):
    unknown = iter(["nosuch"])
    monkeypatch.setattr(pages, "_unknown_address", lambda: next(unknown, ""))
    app = open_page(demo_store, "nosuch", sla_ms="80")
    assert_sound(app, "Decision")
    assert [unescaped(each.value) for each in app.warning] == [
        "Not followed: page “nosuch”, which does not exist."
    ]
    assert app.session_state["sla_ms"] == 80


@pytest.mark.parametrize(
    ("asked", "there", "unknown"),
    [("nosuch", "", "nosuch"), ("headroom", "", ""), ("pareto", "", ""), ("", "", ""), ("nosuch", "hash", ""),
     ("<b>", "", "")],
)  # fmt: skip
def test_only_what_names_no_page_is_an_unknown_address(
    monkeypatch: pytest.MonkeyPatch, asked: str, there: str, unknown: str
):
    manager = SimpleNamespace(intended_page_name=asked, intended_page_script_hash=there)
    found = SimpleNamespace(pages_manager=manager)
    monkeypatch.setattr(pages, "get_script_run_ctx", lambda **_: found)
    assert pages._unknown_address() == unknown


def test_every_address_of_the_last_release_is_kept():
    assert set(LAST_RELEASE) <= {*MOVED, *PAGES}


@pytest.mark.parametrize(
    "old", ["overview", "pareto", "certainty", "next", "scenarios", "headroom", "curves"]
)
def test_a_link_of_the_last_release_keeps_what_it_set(open_page: OpenPage, demo_store: Path, old: str):
    """Those links name every setting, defaults too, and so do the links of records and snapshots."""
    values = {"ws": "clq-paper", "m": "RA-nWG", "k": 10, "on": "p50", "lat": "path"}
    limits = {"sla": 520.0, "budget": 2.5, "floor": 0.5}
    revision = Store.open(demo_store).revision()
    link = pinned("http://host/" + old, values | limits, revision)
    asked = {key: texts[0] for key, texts in parse_qs(urlsplit(link).query).items()}
    app = open_page(demo_store, old, **asked)
    assert_sound(app, TITLES[LAST_RELEASE[old]])
    assert "Not followed" not in everything(app)
    now = {FORMER.get(key, key): value for key, value in limits.items()}
    taken = {key: app.session_state[key] for key in (*values, *now, "rev")}
    assert taken == values | now | {"budget": "2.5per1k", "rev": str(revision)}


@pytest.mark.parametrize("page", ["decision", "library"])
def test_limits_of_the_last_release_stand_in_the_address_by_their_names_of_now(
    open_page: OpenPage, demo_store: Path, page: str
):
    asked = {name: f"0.{at}" for at, name in enumerate(FORMER, 1) if name != "cap"}
    app = open_page(demo_store, page, **asked, max_harm="0.25")
    told = {FORMER[name]: text for name, text in asked.items()} | {"max_harm": "0.25"}
    assert {key: app.query_params[key] for key in told} == told
    assert not asked.keys() - {"harm"} & set(app.query_params)
    assert refused(app) == "“harm” (unknown, nearest is max_harm)", "said by both names"
