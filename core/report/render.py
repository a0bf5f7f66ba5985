"""Fills a template of this package, as one HTML file that needs no network or as Markdown.

The template is the same for both; the macros it calls (a table, a note) are in parts.html or parts.md.
All texts are escaped where they are inserted, so any may contain user names. A content security policy in the
HTML allows only its own scripts to run, by their hashes, and nothing to load.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import plotly.graph_objects as go
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from core.bidi import CONTROLS, isolated, strip_bidi_controls
from core.report.svg import svg
from core.views import text, theme

_FOLDER = Path(__file__).parent / "templates"
_POLICY = (
    "default-src 'none'; script-src {}; style-src 'unsafe-inline'; img-src data: blob:; "
    "base-uri 'none'; form-action 'none'"
)
_STILL = "default-src 'none'; style-src {}; base-uri 'none'; form-action 'none'"
_ADDRESS = "%/:?#[]@!$&'()*+,;=~-._"
_SPECIAL = frozenset("\\`*_[]<>|~&$#!")
_JOINER = "\u2060"
_LINKED_LATE = re.compile(r"://|www\.|@(?=[-\w]+\.[-\w])|:(?=[-+\w]+:)", re.IGNORECASE)
"""Marks that renderers turn into links and icons after escapes are gone; a joiner keeps them from it."""
_COPIED = re.compile(rf"(https?://[^\s<>`|{CONTROLS}]*[^\s<>`|{CONTROLS}.,;:!?)\]'\"*_])", re.IGNORECASE)
"""An address that is to be copied, without the marks that end a sentence."""
_BLOCK_START = re.compile(r"^(\d{1,9})(?=[.)](?:\s|$))|^(?=[-+=:])")
"""Positions at which a line would begin a list, a rule or a heading, to be escaped with a backslash."""


@dataclass(frozen=True)
class Chart:
    """A figure, whose texts are already escaped for Plotly; its content in words; how to read it."""

    figure: go.Figure
    alt: str
    caption: str = ""
    image: Markup | None = None  # as SVG, if no script draws it


def html(template: str, charts: Mapping[str, Chart], **context: object) -> str:
    """Fill a template as a self-contained HTML file; charts are keyed by their file name."""
    scripts = [*([_library()] if charts else []), _file("page.js")]
    page = environment("html")
    return page.get_template("page.html").render(
        body=Markup(page.get_template(template).render(charts=charts, **context)),  # noqa: S704 - escaped there
        policy=_POLICY.format(" ".join(_source(script) for script in scripts)),
        style=_own(_file("page.css")),
        scripts=[_own(script) for script in scripts],
        figures={name: _embedded(chart.figure) for name, chart in charts.items()},
        config=_data({**theme.chart_config(""), "typesetMath": False}),
        **context,
    )


def still(template: str, charts: Mapping[str, Chart], **context: object) -> str:
    """Fill a template as a self-contained HTML file in which no script may run; charts are images."""
    style = _file("page.css")
    page = environment("html")
    return page.get_template("page.html").render(
        body=Markup(page.get_template(template).render(charts=charts, **context)),  # noqa: S704 - escaped there
        policy=_STILL.format(_source(style)),
        style=_own(style),
        scripts=(),
        figures={},
        **context,
    )


def part(template: str, charts: Mapping[str, Chart], **context: object) -> str:
    """Fill a template as a fragment of another page, such as a notebook; charts are images."""
    page = environment("html")
    drawn = {name: (chart, svg(chart.figure, chart.alt)) for name, chart in charts.items()}
    images = {
        name: replace(chart, image=Markup(image))  # noqa: S704 - words are escaped there
        for name, (chart, image) in drawn.items()
        if image
    }
    body = Markup(page.get_template(template).render(charts=images, **context))  # noqa: S704 - escaped there
    return page.get_template("notebook.html").render(body=body, style=_own(_file("notebook.css")), **context)


def markdown(template: str, charts: Mapping[str, Chart], **context: object) -> str:
    """Fill a template as Markdown (GitHub's tables); charts are named, their numbers are in the tables."""
    body = environment("md").get_template(template).render(charts=charts, **context)
    return body.rstrip("\n") + "\n"


@cache
def environment(form: str) -> Environment:
    """Return the templates, for "html" or "md"."""
    templates = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_isolated if form == "html" else _in_markdown,
    )
    templates.globals |= {"parts": f"parts.{form}", "address": safe_address, "text": text, "theme": theme}
    templates.filters |= {"code": _code, "fenced": _fenced, "json": _json}
    return templates


def _isolated(value: object) -> object:
    """Return others' texts isolated, so that they cannot reverse the text direction; own markup unchanged."""
    return isolated(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _in_markdown(value: object) -> Markup:
    return value if isinstance(value, Markup) else Markup(escaped(str(value)))  # noqa: S704 - it was escaped


def escaped(words: str) -> str:
    """Return text escaped for a line of Markdown, including its start, and for a cell of a table.

    An address is a span of code: nothing links it, and a copy of it works.
    """
    parts = _COPIED.split(isolated(" ".join(words.split())))
    line = "".join(f"`{part}`" if at % 2 else _plain(part) for at, part in enumerate(parts))
    return _BLOCK_START.sub(r"\g<1>\\", line)


def _plain(line: str) -> str:
    line = _LINKED_LATE.sub(lambda match: "".join(char + _JOINER for char in match[0]), line)
    return "".join(f"\\{char}" if char in _SPECIAL else char for char in line)


def _code(words: str) -> Markup:
    """Return a span of code in Markdown; its fence is longer than any run of backticks in it."""
    line = strip_bidi_controls(" ".join(words.split()))
    fence = "`" * (1 + max((len(run) for run in re.findall(r"`+", line)), default=0))
    return Markup(f"{fence} {line} {fence}")  # noqa: S704 - nothing ends it


def _fenced(words: str) -> Markup:
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall(r"`+", words)), default=0))
    return Markup(f"{fence}\n{strip_bidi_controls(words)}\n{fence}")  # noqa: S704 - nothing ends it


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


def safe_address(address: str) -> str | None:
    """Return the URL with unsafe characters quoted, or None unless it is http or https."""
    try:
        split = urlsplit(address.strip())
        _ = split.port  # raises if it isn't a number
    except ValueError:
        return None
    if split.scheme not in ("http", "https") or not split.hostname:
        return None
    return quote(address.strip(), safe=_ADDRESS)


@cache
def _file(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")


@cache
def _library() -> str:
    """Return the charting library shipped with the plotly package."""
    from plotly.offline import get_plotlyjs  # noqa: PLC0415 - slow, and only needed here

    return str(get_plotlyjs())


@cache
def _source(script: str) -> str:
    """Return the hash of a script or style in the form of the policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def _own(words: str) -> Markup:
    """Return the product's own style or script, which is not escaped."""
    return Markup(words)  # noqa: S704 - files of this package and of the plotly package


def figure_data(figure: go.Figure) -> dict[str, Any]:
    """Return a figure as plain data: its traces and its layout, without the template that Plotly adds."""
    spec: dict[str, Any] = json.loads(figure.to_json(validate=False))
    for name in ("template", "uirevision"):
        spec["layout"].pop(name, None)
    return {"data": spec["data"], "layout": spec["layout"]}


def _embedded(figure: go.Figure) -> Markup:
    """Return a figure as data, in the document's font."""
    spec = figure_data(figure)
    layout = spec["layout"]
    layout |= {"paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)"}
    layout["font"] = {"family": "system-ui, sans-serif", "size": 12, **layout.get("font", {})}
    for name, axis in layout.items():
        if name.startswith(("xaxis", "yaxis")):
            axis.setdefault("automargin", True)
    layout["colorway"] = list(theme.OKABE_ITO)
    return _data(spec)


def _data(value: Mapping[str, object]) -> Markup:
    """Return JSON for a script element, which it cannot close."""
    written = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    safe = written.translate({ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"})
    return Markup(safe)  # noqa: S704 - no character of markup is left in it
