"""The server as a process: cold start under load, where it connects, what it tells whom."""

import asyncio
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from core.ui.access import HEADERS
from core.views.pages import MOVED, PAGES
from tests.client import Session, visiting
from tests.server import Server, serve_cold

pytestmark = pytest.mark.slow

VISITORS = 12
WATCHED = Path(__file__).with_name("watched")
LATE = (
    "pandas",
    "plotly",
    "polars",
    "pyarrow",
    "numpy",
    "scipy",
    "sklearn",
    "streamlit",
    "core",
    "PIL",
    "narwhals",
)
"""Libraries that no session may be the first to import once the server has imported all."""
HARMLESS = {"plotly.animation", "streamlit.runtime.scriptrunner.magic_funcs"}
"""Tried in vain by plotly each time; one small module of Streamlit's own."""


@dataclass(frozen=True)
class Watched:
    """A server with a record of what it did."""

    server: Server
    bound: str
    events: Path


@pytest.fixture(scope="module", params=["localhost", "0.0.0.0"])  # noqa: S104 - as `make run HOST=` does
def watched(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, demo_store: Path
) -> Iterator[Watched]:
    folder = tmp_path_factory.mktemp("server")
    environment = {
        "CLQ_STORE": str(demo_store),
        "STREAMLIT_SERVER_ADDRESS": request.param,
        "WATCH_LOG": str(folder / "events"),
        "PYTHONPATH": str(WATCHED),
    }
    (folder / "events").touch()
    with serve_cold(folder / "log", **environment) as server:
        visiting(_all_at_once(server.url))  # while a thread imports the rest
        while "all imported\n" not in (folder / "events").read_text():
            time.sleep(0.1)
        visiting(_all_at_once(server.url))
        yield Watched(server, request.param, folder / "events")


async def _all_at_once(url: str) -> None:
    """The first sessions of a cold server, each on a page of its own or at an old address of one."""
    addresses = [*MOVED, *PAGES]
    await asyncio.gather(*(_open(f"{url}/{address}") for address in addresses[:VISITORS]))


async def _open(url: str, **headers: str) -> set[str | None]:
    """The kinds of elements that a page shows to a browser that came there itself."""
    origin = "/".join(url.split("/")[:3])
    sent = {"Origin": origin} | {name.replace("_", "-"): value for name, value in headers.items()}
    async with Session(url, sent) as session:
        assert "exception" not in session.shown, url
        assert "heading" in session.shown, url
        return session.shown


def test_sessions_go_before_imports_and_then_find_everything_imported(watched: Watched):
    assert "Traceback" not in watched.server.log.read_text()
    after = watched.events.read_text().partition("all imported\n")[2].splitlines()
    imported = [line.split()[1] for line in after if line.startswith("import ")]
    assert {name for name in imported if name.split(".")[0] in LATE} <= HARMLESS


def test_it_connects_to_nobody(watched: Watched):
    """Neither at the start nor after pages from elsewhere that are turned away."""

    async def knock(origin: str) -> None:
        with pytest.raises((ConnectionClosed, InvalidStatus)):
            await _open(watched.server.url, Origin=origin)

    for origin in ("https://evil.example", "http://192.0.2.1:8501", "null"):
        visiting(knock(origin))
    assert [line for line in watched.events.read_text().splitlines() if line.startswith("socket.")] == []


def test_every_answer_carries_the_headers(watched: Watched):
    for path in ("", "/pareto", "/_stcore/health", "/static/nothing"):
        try:
            with urllib.request.urlopen(watched.server.url + path, timeout=10) as answer:  # noqa: S310
                found = answer.headers
        except urllib.error.HTTPError as error:
            found = error.headers
        assert {name: found[name] for name in HEADERS} == dict(HEADERS)


@pytest.mark.parametrize(
    ("headers", "elsewhere"),
    [({}, False), ({"X_Forwarded_For": "192.0.2.9"}, True), ({"Clq_Visitor": "here", "Via": "1.1 p"}, True)],
)
def test_only_who_is_here_may_import(watched: Watched, headers: dict[str, str], elsewhere: bool):
    shown = visiting(_open(f"{watched.server.url}/import", **headers))
    assert ("file_uploader" in shown) is (watched.bound == "localhost" and not elsewhere)
