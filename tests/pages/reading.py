"""What a visitor reads on a page."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import polars as pl
from streamlit.runtime.pages_manager import PagesManager
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from core.ui.pages import MOVED, SECTION, Page
from core.ui.pages import PAGES as PAGES_OF

TITLES = {place: page.title for page in PAGES_OF.values() for place in page.places}
"""Pages by their name, and their further sections as "page/section", with their heading."""
PAGES = tuple(TITLES)


def like_a_server(began: Callable[..., None]) -> Callable[..., None]:
    """What AppTest forgets after every run: that st.navigation finds the pages; see `core.ui.startup`."""

    def settled(self: PagesManager, *args: object, **options: object) -> None:
        began(self, *args, **options)
        PagesManager.uses_pages_directory = False

    return settled


def go(app: AppTest, place: str) -> AppTest:
    """Have the next run show a page, a section ("page/section") or what an old address leads to."""
    name, _, section = place.partition("/")
    if name == next(iter(PAGES_OF)):
        app._page_hash = ""
    elif name in MOVED:  # no file stands behind it
        app._page_hash = calc_hash(name)
    elif name:
        app.switch_page(f"pages/{name}.py")
    if section:
        app.query_params |= {SECTION: section}
    return app


_ESCAPE = re.compile(r"\\([^a-zA-Z0-9\s])")


def unescaped(markdown: str) -> str:
    """Markdown of `plain` as it is read: without escapes and word joiners."""
    return _ESCAPE.sub(r"\1", markdown).replace("\u2060", "")


def page_of(app: AppTest) -> Page:
    """The page that is shown."""
    return PAGES_OF[app.session_state["_page"]]


def answer(app: AppTest) -> str:
    """The first sentence of a page."""
    return unescaped(app.title[0].value)


def details(app: AppTest) -> str:
    """The quieter sentence below it."""
    return unescaped(app.main.markdown[0].value)


def opening(app: AppTest) -> str:
    """The first sentence of a page, and its cards with what stands below their numbers."""
    cards = [f"{each.label} {each.value}" for each in app.main.metric]
    return unescaped("\n".join([answer(app), *cards, *(each.value for each in app.main.caption)]))


def everything(app: AppTest) -> str:
    """All words of a page, read."""
    kinds = ("markdown", "caption", "info", "warning", "error", "success", "text", "metric", "title")
    parts = [getattr(each, "label", "") + " " + str(each.value) for kind in kinds for each in app.get(kind)]
    return unescaped("\n".join(parts))


def figure(app: AppTest, place: int = 0) -> dict[str, Any]:
    """A chart as it is sent to the browser."""
    return figures(app)[place]


def figures(app: AppTest) -> list[dict[str, Any]]:
    """Every chart of the page: the live one first, then those that Streamlit draws."""
    specs = [json.loads(each.proto.mixed.json)["figure"] for each in live_charts(app)]
    return [json.loads(spec) for spec in [*specs, *(each.proto.spec for each in app.get("plotly_chart"))]]


def live_charts(app: AppTest) -> list[Any]:
    """What the live charts of the page are sent."""
    return [each for each in app.get("bidi_component") if "figure" in each.proto.mixed.json]


def live(app: AppTest) -> dict[str, Any]:
    """What the live chart of the page is sent beside its numbers."""
    (sent,) = live_charts(app)
    data: dict[str, Any] = json.loads(sent.proto.mixed.json)
    return data


def live_points(app: AppTest) -> pl.DataFrame:
    """The numbers that the live chart of the page compares with its limits."""
    (sent,) = live_charts(app)
    (blob,) = sent.proto.mixed.arrow_blobs.values()
    return pl.read_ipc_stream(blob.data)


def rows(app: AppTest, place: int = 0) -> pl.DataFrame:
    """A table of the page."""
    return pl.from_pandas(app.dataframe[place].value)


def assert_sound(app: AppTest, title: str | None = None) -> None:
    """No exception, no error, one heading."""
    assert not app.exception, [each.message for each in app.exception]
    assert not app.error, [each.value for each in app.error]
    assert len(app.title) == 1, [each.value for each in app.title]
    if title:
        assert page_of(app).title == title
