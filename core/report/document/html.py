"""Writes a document as one HTML file that needs no network: style, scripts and the charts' library within.

A content security policy in the file lets nothing run but its own scripts, by their hashes, and nothing load.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup

from core.bidi import isolated
from core.report.document.blocks import Document, charts
from core.report.document.link import safe_address
from core.views import theme

_FOLDER = Path(__file__).parent / "templates"
_POLICY = (
    "default-src 'none'; script-src {}; style-src 'unsafe-inline'; img-src data: blob:; "
    "base-uri 'none'; form-action 'none'"
)


def html(document: Document) -> str:
    """Write a document as a self-contained HTML file."""
    drawn = charts(document)
    scripts = [*([_library()] if drawn else []), _file("page.js")]
    return _page().render(
        document=document,
        policy=_POLICY.format(" ".join(_source(script) for script in scripts)),
        style=_own(_file("page.css")),
        scripts=[_own(script) for script in scripts],
        figures={chart.name: _embedded(chart.figure) for chart in drawn},
        config=_data({**theme.chart_config(""), "typesetMath": False}),
        address=safe_address,
    )


@cache
def _page() -> Template:
    loader = FileSystemLoader(_FOLDER)
    return Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_isolated,
    ).get_template("page.html")


def _isolated(value: object) -> object:
    """Texts of others so that they turn nothing round; markup of the product as it is."""
    return isolated(value) if isinstance(value, str) and not isinstance(value, Markup) else value


@cache
def _file(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")


@cache
def _library() -> str:
    """The charts' library, as the plotly package brings it."""
    from plotly.offline import get_plotlyjs  # noqa: PLC0415 - slow, and only needed here

    return str(get_plotlyjs())


@cache
def _source(script: str) -> str:
    """A script as the policy names it."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def _own(text: str) -> Markup:
    """Style or script of the product, which is not escaped."""
    return Markup(text)  # noqa: S704 - files of this package and of the plotly package


def _embedded(figure: go.Figure) -> Markup:
    """A figure as data: without the template that Plotly adds, in the document's font."""
    spec: dict[str, Any] = json.loads(figure.to_json(validate=False))
    layout = spec["layout"]
    layout.pop("template", None)
    layout.pop("uirevision", None)
    layout |= {"paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)"}
    layout["font"] = {"family": "system-ui, sans-serif", "size": 12, **layout.get("font", {})}
    for name, axis in layout.items():
        if name.startswith(("xaxis", "yaxis")):
            axis.setdefault("automargin", True)
    layout["colorway"] = list(theme.OKABE_ITO)
    return _data({"data": spec["data"], "layout": layout})


def _data(value: Mapping[str, object]) -> Markup:
    """JSON for the inside of a script element, which it cannot end."""
    written = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    safe = written.translate({ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"})
    return Markup(safe)  # noqa: S704 - no character of markup is left in it
