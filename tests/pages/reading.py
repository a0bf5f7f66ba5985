"""What a visitor reads on a page."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import parse_qs

import polars as pl
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from core.views.pages import PAGES as PAGES_OF
from core.views.pages import SECTION, Page

TITLES = {place: page.title for page in PAGES_OF.values() for place in page.places}
"""Pages by their name, and their further sections as "page/section", with their heading."""
PAGES = tuple(TITLES)
FIRST = tuple(page.places[0] for page in PAGES_OF.values())
"""A place of each page: for what is said before any of its sections is drawn."""


def go(app: AppTest, place: str) -> AppTest:
    """Have the next run show a page, a section ("page/section") or what an old address leads to."""
    name, _, section = place.partition("/")
    if name:  # that of the first page is another: its own address leads to the root
        app._page_hash = calc_hash("root" if name == next(iter(PAGES_OF)) else name)
    if section:
        app.query_params |= {SECTION: section}
    return app


def press(app: AppTest, label: str) -> AppTest:
    """Press a button."""
    return next(button for button in app.button if button.label == label).click().run()


def follow(app: AppTest, label: str) -> AppTest:
    """Click a link of the page."""
    (link,) = (each.proto for each in app.main.get("page_link") if each.proto.label == label)
    app._page_hash = link.page_script_hash
    app.query_params = parse_qs(link.query_string)
    return app.run()


_KEPT_WHOLE = re.compile(r"(?<!\\)\*")
_ESCAPE = re.compile(r"\\([^a-zA-Z0-9\s])")


def unescaped(markdown: str) -> str:
    """Markdown of `plain` as it is read: without escapes and word joiners, and with all blanks alike."""
    return _ESCAPE.sub(r"\1", markdown).replace("\u2060", "").replace("\u00a0", " ")


def page_of(app: AppTest) -> Page:
    """The page that is shown."""
    return PAGES_OF[app.session_state["_page"]]


def heading(app: AppTest) -> str:
    """The first sentence of a page, without the marks of its words that stay whole."""
    return unescaped(_KEPT_WHOLE.sub("", app.title[0].value))


def answer(app: AppTest) -> str:
    """The first sentence of a page, and of the first page the line below it and its numbers too."""
    parts = [heading(app)]
    if page_of(app).name == next(iter(PAGES_OF)):
        parts += [details(app), *(f"{each.label} {each.value}" for each in app.main.metric)]
        parts += [each.value for each in app.main.caption if "-badge[" in each.value]
    return unescaped("; ".join(parts))


def details(app: AppTest) -> str:
    """The quieter sentence below it."""
    return unescaped(app.main.markdown[0].value)


def opening(app: AppTest) -> str:
    """The first sentence of a page, the line below it, and its cards with what stands below their numbers."""
    cards = [f"{each.label} {each.value}" for each in app.main.metric]
    below = [details(app)] if app.main.markdown else []
    return unescaped("\n".join([answer(app), *below, *cards, *(each.value for each in app.main.caption)]))


def everything(app: AppTest) -> str:
    """All words of a page, read."""
    kinds = "markdown", "caption", "info", "warning", "error", "success", "text", "metric", "subheader"
    parts = [getattr(each, "label", "") + " " + str(each.value) for kind in kinds for each in app.get(kind)]
    return "\n".join([unescaped("\n".join(parts)), *([heading(app)] if app.title else [])])


def figure(app: AppTest, place: int = 0) -> dict[str, Any]:
    """A chart as it is sent to the browser."""
    return figures(app)[place]


def figures(app: AppTest) -> list[dict[str, Any]]:
    """Every chart of the page: the live one first."""
    sent = [(each, data[name]) for name in ("figure", "chart") for each, data in _sent(app) if name in data]
    return [json.loads(_table(each, told)["json"].item()) for each, told in sent]


def _sent(app: AppTest) -> list[tuple[Any, dict[str, Any]]]:
    """What the components of the page are sent."""
    said = [(each, each.proto.mixed.json or each.proto.json) for each in app.get("bidi_component")]
    return [(each, _opened(json.loads(data))) for each, data in said if data]


def _opened(data: Any) -> Any:
    """What a component is sent, as the dictionary that its script makes of it."""
    told = data[0] if isinstance(data, list) else data
    return {**told, **told.pop("told", ({},))[0]}


def _live(app: AppTest) -> list[tuple[Any, dict[str, Any]]]:
    return [(each, data) for each, data in _sent(app) if "figure" in data]


def live(app: AppTest) -> dict[str, Any]:
    """What the live chart of the page is sent beside its numbers."""
    ((_, data),) = _live(app)
    return data


def strip(app: AppTest) -> dict[str, Any]:
    """What the strip of limits is sent."""
    (data,) = [data for _, data in _sent(app) if "limits" in data]
    return data


def live_points(app: AppTest) -> pl.DataFrame:
    """The numbers that the live chart of the page compares with its limits."""
    return _live_tables(app)["points"]


def _live_tables(app: AppTest) -> dict[str, pl.DataFrame]:
    """The tables that the live chart of the page is sent."""
    ((sent, data),) = _live(app)
    return {name: _table(sent, data[name]) for name in ("figure", "points")}


def _table(sent: Any, told: dict[str, str]) -> pl.DataFrame:
    return pl.read_ipc_stream(sent.proto.mixed.arrow_blobs[told["__streamlit_arrow_ref__"]].data)


def stacks(app: AppTest) -> pl.DataFrame:
    """The table of stacks of the first page."""
    (found,) = [each.value for each in app.dataframe if "outcome" in each.value.columns]
    equal = r" \(\+\d+ equal\)$"
    return pl.from_pandas(found).with_columns(name=pl.col("stack").str.replace(equal, ""))


def rows(app: AppTest, place: int = 0) -> pl.DataFrame:
    """A table of the page."""
    return pl.from_pandas(app.dataframe[place].value)


def assert_settings(app: AppTest, place: str) -> None:
    """Pages about data have neither settings nor limits; those about evidence have no limits."""
    there = {widget.key for widget in [*app.number_input, *app.selectbox]}
    group = PAGES_OF[place.partition("/")[0]].group
    assert ("m" in there) == (group != "Data")
    assert ("sla_ms" in there) == (group in ("Decide", "Explain"))


def assert_sound(app: AppTest, title: str | None = None) -> None:
    """No exception, no error, one heading, no table with a column that it hides."""
    assert not app.exception, [each.message for each in app.exception]
    assert not app.error, [each.value for each in app.error]
    assert len(app.title) == 1, [each.value for each in app.title]
    if title:
        assert page_of(app).title == title
    for table in app.dataframe:
        settings: dict[str, dict[str, Any]] = json.loads(table.proto.columns or "{}")
        assert not [name for name, about in settings.items() if about.get("hidden") and name != "_index"]
