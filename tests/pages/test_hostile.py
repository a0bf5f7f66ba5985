"""Names, queries and passages of users are text on every page, whatever they look like."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from streamlit import config
from streamlit.testing.v1 import AppTest

import core
from core.views.pages import GROUPS
from core.views.text import escape
from tests.pages.conftest import OpenPage
from tests.pages.reading import PAGES, TITLES, assert_sound, everything, figure, figures, stacks
from tests.stores import HOSTILE

MARKDOWN = ("markdown", "caption", "info", "warning", "error", "success", "metric", "slider", "selectbox")
# what is left of a name when every character with a meaning in Markdown is escaped
_BARE = re.compile(
    r"(?<!\\)(?<!-badge)[<\[]|(?<!\\):material/(?!(?:check_circle|warning):)|(?<!\\)\$|://|www\\\.evil"
)

_OURS = re.compile(r"</?(?:br|b|i|sub|sup|extra)>")
"""Markup that charts have of their own; that of names is escaped."""


def written(app: AppTest) -> Iterator[str]:
    """Everything that Streamlit takes for Markdown: bodies, and labels of widgets."""
    for kind in MARKDOWN:
        for each in app.get(kind):
            yield str(getattr(each, "label", ""))
            if kind not in ("metric", "slider", "selectbox"):
                yield each.value


DATA = {page.name for page in GROUPS["Data"]}
"""Pages without settings."""


NAMED = [page for page in PAGES if page != "add"]


def test_a_page_with_markup_of_its_own_opens(open_page: OpenPage, hostile_store: Path):
    assert_sound(open_page(hostile_store, "add"), TITLES["add"])


@pytest.mark.parametrize(
    ("page", "measure"),
    [(page, "RA-nWG") for page in NAMED]
    + [(page, HOSTILE[1]) for page in NAMED if page.partition("/")[0] not in DATA],
)
def test_names_are_never_markup(open_page: OpenPage, hostile_store: Path, page: str, measure: str):
    app = open_page(hostile_store, page, m=measure)
    assert_sound(app, TITLES[page])
    if page.partition("/")[0] not in DATA:
        assert app.session_state["m"] == measure
    shown = "\n".join(written(app))
    for name in HOSTILE:
        assert name not in shown or not _BARE.search(name)
    for line in shown.splitlines():
        if "evil" in line or "javascript" in line or "onerror" in line:
            assert not _BARE.search(line), line
    for chart in figures(app):
        for line in strings(chart):
            assert "<" not in _OURS.sub("", line), line
            assert HOSTILE[7] not in line
        for line in templates(chart):
            assert "{name}" not in line, line


def templates(chart: dict[str, Any]) -> Iterator[str]:
    """What Plotly fills values into: a name in it could ask for others."""
    for trace in chart["data"]:
        yield from strings([trace.get(key) for key in ("hovertemplate", "texttemplate")])


def strings(value: object) -> Iterator[str]:
    """Every text of a chart's specification."""
    if isinstance(value, dict):
        for each in value.values():
            yield from strings(each)
    elif isinstance(value, list):
        for each in value:
            yield from strings(each)
    elif isinstance(value, str):
        yield value


def test_tables_leave_the_page_by_our_own_downloads_only():
    """Streamlit's own download and clipboard of a table would leave a formula alive."""
    written = tomllib.loads((Path(core.__file__).parents[1] / ".streamlit" / "config.toml").read_text())
    assert written["client"]["disableDataExport"] is True
    assert config.get_options_for_section("client")["disableDataExport"] in (True, False)


@pytest.mark.slow
def test_a_hostile_name_is_read_as_it_was_written(open_page: OpenPage, hostile_store: Path):
    for name in HOSTILE[:5]:
        app = open_page(hostile_store, "decision", runs=[name])
        assert_sound(app)
        assert not app.warning
        assert name in everything(app)
    app = open_page(hostile_store, "decision")
    assert set(stacks(app)["name"]) == set(HOSTILE)
    chart = " ".join(strings(figure(app)))
    assert escape(HOSTILE[0]) in chart


@pytest.mark.slow
def test_a_hostile_name_survives_selection(open_page: OpenPage, hostile_store: Path):
    for name in (HOSTILE[0], HOSTILE[1], HOSTILE[5]):
        for page, key in (("decision", "stack"), ("queries", "stack"), ("curves", "curves")):
            app = open_page(hostile_store, page, **{key: name})
            assert_sound(app)
            assert not app.warning
            assert app.session_state[key] in (name, [name])
