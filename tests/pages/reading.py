"""What a visitor reads on a page."""

from __future__ import annotations

import json
import re
from typing import Any

import polars as pl
from streamlit.testing.v1 import AppTest

TITLES = {
    "overview": "Overview",
    "pareto": "Pareto",
    "certainty": "How sure",
    "scenarios": "Scenarios",
    "next": "Next evaluation",
    "routing": "Routing",
    "cost": "Cost calculator",
    "headroom": "Headroom",
    "latency": "Latency",
    "curves": "K curves",
    "compare": "Compare",
    "sensitivity": "Sensitivity",
    "queries": "Queries",
    "evidence": "Evidence",
    "outcome": "Measure and outcome",
    "measures": "Measures",
    "import": "Import",
    "formats": "Formats",
    "data": "Data",
    "run": "Run",
}
"""Pages by the name of their file, with their heading."""
PAGES = tuple(TITLES)
_ESCAPE = re.compile(r"\\([^a-zA-Z0-9\s])")


def unescaped(markdown: str) -> str:
    """Markdown of `plain` as it is read: without escapes and word joiners."""
    return _ESCAPE.sub(r"\1", markdown).replace("\u2060", "")


def answer(app: AppTest) -> str:
    """The first sentence of a page."""
    first = next(each.value for each in app.main.markdown if each.value.startswith("#### "))
    return unescaped(first.removeprefix("#### "))


def details(app: AppTest) -> str:
    """The quieter sentence below it."""
    values = [each.value for each in app.main.markdown]
    place = next(i for i, value in enumerate(values) if value.startswith("#### "))
    return unescaped(values[place + 1])


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
    specs = [live(app)["figure"]] if app.get("bidi_component") else []
    return [json.loads(spec) for spec in [*specs, *(each.proto.spec for each in app.get("plotly_chart"))]]


def live(app: AppTest) -> dict[str, Any]:
    """What the live chart of the page is sent beside its numbers."""
    (sent,) = app.get("bidi_component")
    data: dict[str, Any] = json.loads(sent.proto.mixed.json)
    return data


def live_points(app: AppTest) -> pl.DataFrame:
    """The numbers that the live chart of the page compares with its limits."""
    (sent,) = app.get("bidi_component")
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
        assert app.title[0].value == title
