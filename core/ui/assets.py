"""What browsers load before a page says anything: its frame, Streamlit's scripts, Plotly; from memory.

Streamlit reads each of a first visit's hundred files in pieces. Its frame first looks for the server below
the page's own path, in vain, and loads a table's scripts once the table has come; this one names both.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from mimetypes import guess_type
from pathlib import Path
from types import MappingProxyType

import plotly
import streamlit as st
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response
from streamlit.file_util import get_static_dir

_WHOLE = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
_SMALL = Path(__file__).parent / "live" / "plotly-cartesian-4.1.1.min.js.gz"
"""File of the package plotly.js-cartesian-dist-min, in the version of the Python package."""
PLOTLY = f"plotly-{plotly.__version__}/plotly.min.js"
CARTESIAN = f"plotly-small/{_SMALL.stem}"
"""Paths of the whole library, and of one for charts with only two axes, as nearly all are, beside the pages;
a new version has new paths, so browsers may keep them for good. Streamlit's copy is three times as large."""
CHARTED = frozenset(
    {"", "cost", "headroom", "curves", "latency", "compare", "queries", "golden", "diagnostics"}
)
"""Pages whose first screen has a chart, by their paths."""
UNTABLED = frozenset({"readers", "add"})
"""Pages whose first screen has no table."""
_PARTS = ("BidiComponent", "Selectbox", "Html", "PageLink", "ButtonGroup", "TextInput", "NumberInput")
_TABLES = ("DataFrame", "DownloadButton", "Checkbox", "Multiselect", "Metric")
"""Streamlit's scripts of what nearly all pages have, and of what stands where a table does."""
_HOW = {
    ".js": '<link rel="modulepreload" crossorigin href="./{}">',
    ".css": '<link rel="preload" as="style" crossorigin href="./{}">',
    ".woff2": '<link rel="preload" as="font" crossorigin href="./{}">',
}
_STATIC = Path(get_static_dir())
_IMPORT = re.compile(r"""(?:from|import)\s*["'`]\./([\w.-]+\.js)["'`]""")
_WRAPPED = re.compile(
    rb"(.*?)\(\s*function\(root, factory\).*?\(\) => \{(.*)return Plotly;\s*\}\)\);\s*", re.DOTALL
)
_PAGE = re.compile(r"/([a-z_]*)")
_KEPT = {"Cache-Control": "public, max-age=31536000, immutable"}
_FRESH = {"Cache-Control": "no-cache"}


async def find(path: str, *, packs: bool) -> Response | None:
    """Return a page's frame or a file that pages load; None for all else.

    Args:
        packs: Whether the browser unpacks what is sent.
    """
    base = st.get_option("server.baseUrlPath").strip("/")
    page = _PAGE.fullmatch(path.removeprefix(f"/{base}") if base else path)
    name = _kind(page[1]) if page else next((each for each in _ends(path) if each in _files()), None)
    if name is None:
        return None
    media = "text/html" if page else "text/javascript" if ".js" in name else guess_type(name)[0]
    headers = {**(_FRESH if page else _KEPT), "Vary": "Accept-Encoding"}
    if packs and (media or "").startswith("text/"):
        headers["Content-Encoding"] = "gzip"
        return Response(await run_in_threadpool(_packed, name), media_type=media, headers=headers)
    return Response(await run_in_threadpool(_read, name), media_type=media, headers=headers)


def _kind(page: str) -> str:
    """Return the frame that a page shares with others; it ends where no file does."""
    return f"{page if page in CHARTED | UNTABLED else 'other'}/"


def _ends(path: str) -> Iterator[str]:
    """Yield ends of a path, for pages may lie anywhere behind a proxy."""
    parts = path.split("/")
    return ("/".join(parts[-deep:]) for deep in (2, 3))


@cache
def _files() -> Mapping[str, Path]:
    found = (path for path in (_STATIC / "static").rglob("*") if path.is_file())
    ours = {PLOTLY: _WHOLE, CARTESIAN: _SMALL}
    return MappingProxyType({_name(path): path for path in found} | ours)


def _name(path: Path) -> str:
    return path.relative_to(_STATIC).as_posix()


_ONE_ENTRY = (
    "if (!location.search) { const push = history.pushState; history.pushState = function(state, title, to) {"
    "history.pushState = push; return (new URL(to, location.href).pathname === location.pathname "
    "? this.replaceState : push).call(this, state, title, to) } }"
)
"""Has the browser put the workspace into an address without settings in its place: one step back leaves."""


@cache
def _packed(name: str) -> bytes:
    return gzip.compress(_read(name), 6)


@cache
def _read(name: str) -> bytes:
    if name == CARTESIAN:
        return _bare(gzip.decompress(_SMALL.read_bytes()))
    return _frame(name[:-1]) if name.endswith("/") else _files()[name].read_bytes()


def _bare(library: bytes) -> bytes:
    """Return Plotly without the function around it, which browsers parse twice, and in the page's thread."""
    found = _WRAPPED.fullmatch(library)
    return b"".join(found.groups()) if found else library


def _frame(page: str) -> bytes:
    """Return Streamlit's frame of a page, with the server and what the page needs named in it."""
    html = (_STATIC / "index.html").read_text(encoding="utf-8")
    hosts = json.dumps(list(st.get_option("client.allowedOrigins"))).replace("<", "\\u003c")
    config = f"{{allowedOrigins: {hosts}, useExternalAuthToken: false}}"
    first = '<script>window.__streamlit = {BACKEND_BASE_URL: new URL(".", location.href).href, '
    first += f"HOST_CONFIG: {config}}};{_ONE_ENTRY}</script>"
    if page in CHARTED:  # removed if it fails: who draws tries again, and learns of it
        first += f'<script async fetchpriority="high" src="./{CARTESIAN}" onerror="this.remove()"></script>'
    parts = _PARTS if page in UNTABLED else _PARTS + _TABLES
    later = "".join(
        _HOW[file.suffix].format(_name(file)) for file in _needed(parts) if _name(file) not in html
    )
    html = html.replace("<script type", f"{first}<script type", 1)
    return html.replace("</head>", f"{later}</head>", 1).encode()


def _needed(parts: Iterable[str]) -> Iterator[Path]:
    """Yield the icons, the files of Streamlit's parts, and the scripts that these import."""
    folder = _STATIC / "static"
    yield from folder.glob("media/MaterialSymbols*.woff2")
    left = [
        path for part in parts for kind in ("css", "js") for path in folder.glob(f"{kind}/{part}.*.{kind}")
    ]
    known = set[Path]()
    for path in left:  # which grows
        if path not in known:
            known.add(path)
            yield path
            left += map(path.with_name, _IMPORT.findall(path.read_text(encoding="utf-8")))
