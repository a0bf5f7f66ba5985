"""Every place, opened once a store: it answers with n, and says the same on screen, as data and in files."""

import json
import re
from collections.abc import Iterator
from functools import cache
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import jsonschema
import pytest
from streamlit.testing.v1 import AppTest

from core.analysis.workspace.view import Place
from core.cli.base import Context
from core.cli.deciding import QuestionOptions
from core.report import page as report
from core.report import render
from core.report.page import Said, as_file, as_json, flat, say
from core.store import Store
from core.ui.address.state import SETTINGS
from core.ui.show import configured
from core.views.blocks import Cards, Chart, Comparison, Table
from tests.pages.conftest import OpenPage
from tests.pages.reading import (
    PAGES,
    PAGES_OF,
    TITLES,
    answer,
    assert_settings,
    assert_sound,
    everything,
    figures,
    heading,
    opening,
    page_of,
    rows,
    unescaped,
)
from tests.shared import EVERY_PAGE

_SCHEMA = json.loads(Path(report.__file__).with_name("page.schema.json").read_text())
SCHEMA = jsonschema.validators.validator_for(_SCHEMA)(_SCHEMA)
WITHOUT_NUMBERS = {"cost", "add", "add/formats", "golden/questions", "library", "run", "measures"}
"""Places that need no results."""
CANNOT_FILL = {
    "measures/predicting answers": "No run here has answers with grades.",
    **{place: "Readers" for place in PAGES if place.startswith("readers")},
    **{place: "No embedder was measured on names yet." for place in PAGES if place.startswith("diagnostics")},
    "latency/reranker by K": "No stack here has a timed reranker.",
    "latency/generator": "No answer was timed here.",
    "latency/filters": "No query here has a filter.",
    "latency/indexes": "No stand-alone index benchmark yet.",
    "what_if/criteria weights": "No stack here was reranked by several criteria.",
    "curves/by candidate depth": "No two stacks here differ in their candidate depth K alone.",
    "golden/people": "Nobody has graded these passages by hand.",
    "diagnostics/noise": "No stack of this workspace was asked perturbed queries.",
    "diagnostics/drift": "No queries with a date yet.",
    "diagnostics/live quality": "No queries with a date yet.",
    "diagnostics/recall": "No stack of this workspace was asked perturbed queries.",
    "what_if/steps": "No stack is marked as running today.",
    "what_if/deadlines": "No stack is marked as running today.",
    "what_if/queries that change": "No stack is marked as running today.",
    "what_if/stay or switch": "No stack is marked as running today.",
}
"""Places that the demo has nothing for, with what they say."""
DEEPER = ("curves/by candidate depth",)
"""Places about the K of a reranker, of which the published figures have some."""
OF_OTHERS = {
    "curves/cutoff methods": "F1 of what is kept",
    "curves/cutoff table": "F1 of what is kept",
    "golden/judges": "how far judges agree",
    "golden/unseen": "passages that nobody judged",
    "latency": "milliseconds",
    "what_if/few grades": "what two stacks show differently",
}
"""Places whose numbers are of something else than the measure."""
FORMS = ("golden/build", "golden/judge", "run/your own", "run/readers")
"""Sections that make judgements or answers and so have no number yet."""
ANSWERED = {place for place in PAGES if PAGES_OF[place.partition("/")[0]].needs == "answers"}
"""Places that ask for answers, which the demo has none of."""
DRAWN = [place for page in PAGES_OF.values() for place in page.places[: len(page.drawn())]]
"""Places that yield blocks."""
BY_HAND = ("near_misses", "promising")
OPENED = ("alternatives", "price_of_quality")
"""Tables behind a button, made when it is opened: `tests/e2e/test_decide.py` opens it."""
DEMO, *OTHERS = ("demo_store", "published_store", "answered_store", "hostile_store")
CASES = [
    *[(DEMO, place) for place in PAGES],
    *[
        (kind, place)
        for at, place in enumerate(DRAWN)
        for kind in OTHERS
        if EVERY_PAGE
        or kind == OTHERS[at % 3]
        or (kind == "answered_store" and place in ANSWERED)
        or (kind == "published_store" and place in DEEPER)
    ],
]
"""Every place on the demo and, where it yields blocks, one more store in turn."""


@pytest.fixture(autouse=True, scope="module")
def library_left_out() -> Iterator[None]:
    """Five megabytes of every file are the charts' library; `tests/report/test_snapshot.py` reads it too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(render, "_library", lambda: "'of charts'")
        yield


@pytest.mark.parametrize(("kind", "place"), CASES)
def test_a_place_says_the_same_on_screen_as_data_and_in_files(
    open_page: OpenPage, request: pytest.FixtureRequest, kind: str, place: str
):
    store = request.getfixturevalue(kind)
    app = open_page(store, place)
    if kind == DEMO:
        assert_answers_with_n(app, place)
    if place in DEEPER and kind == "published_store":
        assert_says_n(app, place)
    if place in ANSWERED and kind == "answered_store":
        assert_sound(app, TITLES[place])
        assert_settings(app, place)
    numbers = {widget.key for widget in [*app.number_input, *app.slider]} & set(SETTINGS)
    assert all(SETTINGS[key].number for key in numbers), "what takes a number is declared as one"
    if place not in DRAWN:
        return
    filled = app.title and app.title[0].value != page_of(app).title
    shown = app.session_state["_view"].scope.collection_id if filled else None
    for collection in (
        collections(store) if kind != "published_store" else {shown} - {None}
    ):  # the demo has all
        found = said(store, place, collection)
        assert_sound_in_files(found)
        if collection == shown:
            assert_same(app, found)


def assert_answers_with_n(app: AppTest, place: str) -> None:
    """A page on the demo answers, with the measure and the number of queries."""
    assert_sound(app, TITLES[place])
    assert not app.warning
    if place not in ANSWERED:
        assert_settings(app, place)
    if place in CANNOT_FILL:
        assert answer(app) == CANNOT_FILL[place]
    elif place not in WITHOUT_NUMBERS and place not in FORMS:
        assert_says_n(app, place)


def assert_says_n(app: AppTest, place: str) -> None:
    """Answer or cards name the measure and the number of queries."""
    said = opening(app)
    assert "RA-nWG@10" in said or place in OF_OTHERS, "answer or cards name the measure with its cutoff"
    assert re.search(r"n = \d+|of \d+ queries", said), "answer or cards say n"


def assert_same(app: AppTest, found: Said) -> None:
    """The page shows the answer, cards, tables and charts of the blocks."""
    assert heading(app) == unescaped(found.answer)
    cards = [card for block in found.blocks if isinstance(block, Cards) for card in block.cards]
    compared = [own for block in found.blocks if isinstance(block, Comparison) for _, own, _ in block.numbers]
    cards += [card for own in compared for card in own if len(own) == 2]
    assert [unescaped(each.value) for each in app.main.metric] == [value for _, value, _ in cards]
    tables = [block for block in flat(found.blocks) if isinstance(block, Table) and block.name not in OPENED]
    for block in [block for block in tables if block.name in BY_HAND]:
        tables.remove(block)  # which the page draws otherwise: the first of its rows as a line
        assert block.rows["stack"][0][:30] in everything(app)
        if "let_in_by" in block.rows.columns:
            assert unescaped(app.button(key="near_0").label) == f"Set {block.rows['let_in_by'][0]}"
    assert len(app.dataframe) == len(tables)
    for at, block in enumerate(tables):
        shown = rows(app, at)
        assert set(shown.columns) <= set(configured(block.of.columns))
        assert shown.height == min(block.rows.height, 100)
    charts = [block for block in flat(found.blocks) if isinstance(block, Chart)]
    drawn = [[trace.get("name") for trace in each["data"]] for each in figures(app)]
    assert drawn == [[trace.name for trace in block.figure.data] for block in charts]


def assert_sound_in_files(found: Said) -> None:
    """Its JSON keeps to the schema, its HTML holds no element of others, and Markdown has its heading."""
    data = json.loads(as_json(found), parse_constant=pytest.fail)
    SCHEMA.validate(data)
    page = as_file(found, "html")
    parser = _Scripts()
    parser.feed(page)
    assert parser.foreign == []
    assert found.answer[:30] in unescape(page)
    assert as_file(found, "md").startswith(f"# {found.page.title}")


def said(store: Path, place: str, collection: str) -> Said:
    """What the command line says of a place."""
    name, _, section = place.partition("/")
    page = PAGES_OF[name]
    return say(page, section or None, workspace(store, collection, whole=page.settings), {})


@cache
def workspace(store: Path, collection: str, *, whole: bool) -> Place:
    """A workspace that all places share; whole with what it compares, as the command line asks for it."""
    question, context = QuestionOptions(collection=collection), Context(store)
    return question.on_page(context) if whole else question.in_store(context)


@cache
def collections(store: Path) -> list[str]:
    """The workspaces of a store with runs, the first that the dashboard opens first."""
    runs = Store.open(store).read().runs()
    return runs["collection_id"].unique().sort().to_list()


class _Scripts(HTMLParser):
    """Collects elements that only a name of others could have brought."""

    def __init__(self) -> None:
        super().__init__()
        self.foreign: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("img", "iframe", "a", "object") or any(name.startswith("on") for name, _ in attrs):
            self.foreign.append(tag)
