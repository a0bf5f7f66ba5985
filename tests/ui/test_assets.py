"""What browsers load before a page says anything."""

import asyncio
import gzip
import re
from pathlib import Path

import pytest
import streamlit as st
from plotly.offline import get_plotlyjs_version
from starlette.responses import Response
from streamlit.file_util import get_static_dir

from core.ui import assets
from core.ui.assets import CARTESIAN, CHARTED, PLOTLY, UNTABLED
from core.views.pages import PAGES

_STATIC = Path(get_static_dir())
_NAMED = re.compile(r'href="\./static/js/([\w.-]+\.js)"')


def _found(path: str, *, packs: bool = False) -> Response | None:
    return asyncio.run(assets.find(path, packs=packs))


def _text(path: str) -> str:
    found = _found(path)
    assert found is not None
    return bytes(found.body).decode()


def test_the_pages_named_here_are_pages():
    assert {""} < CHARTED < {"", *PAGES}
    assert set(PAGES) > UNTABLED
    assert not UNTABLED & CHARTED


@pytest.mark.parametrize("page", ["", "queries", "library", "readers", "another"])
def test_a_page_s_frame_names_what_it_needs_and_all_that_this_imports(page: str):
    html = _text(f"/{page}")
    named = set(_NAMED.findall(html)) | set(re.findall(r'src="\./static/js/([\w.-]+\.js)"', html))
    kinds = {name.partition(".")[0] for name in named}
    assert {"BidiComponent", "Selectbox", "PageLink", "index"} <= kinds
    assert ("DataFrame" in kinds) is (page != "readers")
    assert "PlotlyChart" not in kinds
    imported = re.compile(r'(?:from|import)"\./([\w.-]+\.js)"')
    for name in named:
        assert set(imported.findall((_STATIC / "static" / "js" / name).read_text())) <= named
    assert (f'src="./{CARTESIAN}"' in html) is (page in CHARTED)
    files = re.findall(r'href="\./(static/[^"]+)"', html)
    assert len(files) == len(set(files))
    assert all((_STATIC / name).is_file() for name in files)
    assert any("MaterialSymbols" in name for name in files)
    assert any("css/DataFrame" in name for name in files) is (page != "readers")


def test_a_frame_knows_its_server_before_streamlit_s_script_runs():
    html = _text("/queries")
    told, begun = html.index("window.__streamlit"), html.index('<script type="module"')
    assert told < begun
    config = re.search(r"HOST_CONFIG: \{allowedOrigins: (\[.*?\]), useExternalAuthToken: false\}", html)
    assert config is not None
    assert all(origin in config[1] for origin in st.get_option("client.allowedOrigins"))
    assert st.get_option("client.allowedOrigins")  # without any, Streamlit's script asks first
    assert 'id="root"' in html


def test_pages_behind_a_path_have_frames_there_only():
    kept = st.get_option("server.baseUrlPath")
    st.config.set_option("server.baseUrlPath", "tools/clq")
    try:
        assert "window.__streamlit" in _text("/tools/clq/queries")
        assert _found("/tools") is not None  # nobody's page: Streamlit's own answer would be the same
        assert _found("/tools/clq") is None  # which Streamlit leads to the path with a slash
    finally:
        st.config.set_option("server.baseUrlPath", kept)


@pytest.mark.parametrize(
    "path",
    ["/favicon.png", "/_stcore/health", "/media/a.png", "/queries/", "/a/b", "//x", "/static/../app.py"],
)
def test_all_else_is_left_to_streamlit(path: str):
    assert _found(path) is None


@pytest.mark.parametrize("base", ["/", "/behind/a-proxy/"])
@pytest.mark.parametrize("packs", [True, False])
def test_streamlit_s_files_are_sent_as_they_are(base: str, packs: bool):
    for kind, packed in (("js/index.*.js", packs), ("css/index.*.css", packs), ("media/*.woff2", False)):
        path = next((_STATIC / "static").glob(kind))
        found = _found(base + path.relative_to(_STATIC).as_posix(), packs=packs)
        assert found is not None
        assert found.headers.get("content-encoding") == ("gzip" if packed else None)
        assert "immutable" in found.headers["cache-control"]
        body = bytes(found.body)
        assert (gzip.decompress(body) if packed else body) == path.read_bytes()


@pytest.mark.parametrize("packs", [True, False])
@pytest.mark.parametrize(("library", "said"), [(PLOTLY, ""), (CARTESIAN, " (cartesian - minified)")])
def test_the_library_is_served_once_per_version(packs: bool, library: str, said: str):
    found = _found(f"/behind/a-proxy/{library}", packs=packs)
    assert found is not None
    assert _found("/" + library.replace("plotly-", "plotly-0")) is None
    text = (gzip.decompress(found.body) if packs else bytes(found.body)).decode()
    assert found.headers["content-type"].startswith("text/javascript")
    assert f"plotly.js{said} v{get_plotlyjs_version()}" in text[:200]


def test_the_small_library_has_no_function_around_it():
    text = _text(f"/{CARTESIAN}")
    assert text.partition("*/")[2].lstrip().startswith('"use strict";var Plotly=(')
    assert text.rstrip().endswith("window.Plotly = Plotly;")
    assert assets._bare(b"of another release") == b"of another release"
