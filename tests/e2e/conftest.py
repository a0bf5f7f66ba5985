"""Servers on stores of their own, and a browser that notes whatever leaves this machine."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests import warm
from tests.e2e.watch import WINDOW, Visit
from tests.server import CHROMIUM_ARGS, Server, find_chromium, serve
from tests.shared import once

_CLIPBOARD = ["clipboard-read", "clipboard-write"]


@pytest.fixture(scope="session")
def real_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The whole demo, by the command line; to be copied, not written to."""

    def build(path: Path) -> None:
        begun = warm.command(["--store", str(path), "demo", "--measure"], os.environ)
        told = begun.communicate()
        assert begun.returncode == 0, told

    return once(tmp_path_factory, "real", build)


class Shared:
    """A server for many tests, whose log each of them reads on from where the last one stopped."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._read = 0

    def assert_no_traceback(self) -> None:
        """Look at what was logged since the last look."""
        new = self.server.log.read_text()[self._read :]
        self._read += len(new)
        assert "Traceback" not in new


@pytest.fixture(scope="session")
def shared_server(real_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    """A server on the demo that only looks, as long as the session."""
    log = tmp_path_factory.mktemp("log") / "server.log"
    with serve(log, CLQ_STORE=str(real_store)) as running:
        shared = Shared(running)
        yield shared
    shared.assert_no_traceback()


@pytest.fixture
def server(shared_server: Shared) -> Iterator[Server]:
    """A server on the demo that only looks; where it logs an error, the test fails that caused it."""
    yield shared_server.server
    shared_server.assert_no_traceback()


@pytest.fixture
def own_store(real_store: Path, tmp_path: Path) -> Path:
    """A copy of the demo that a test may write to."""
    shutil.copytree(real_store, tmp_path / "store")
    return tmp_path / "store"


@pytest.fixture
def own_server(own_store: Path, tmp_path: Path) -> Iterator[Server]:
    """A fresh server on a store that the test may write to."""
    with serve(tmp_path / "server.log", CLQ_STORE=str(own_store)) as running:
        yield running
    assert "Traceback" not in (tmp_path / "server.log").read_text()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Headless Chromium."""
    path = find_chromium()
    if path is None and not os.environ.get("CI"):
        pytest.skip("Chromium is not installed")
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=path, args=list(CHROMIUM_ARGS))
        yield launched
        launched.close()


@pytest.fixture(scope="session")
def tabs(browser: Browser) -> Iterator[list[Page]]:
    """Tabs, each in a context of its own, that keep what they have loaded and compiled, and nothing else."""
    pages: list[Page] = []
    yield pages
    for each in pages:
        each.context.close()


@pytest.fixture
def visit(browser: Browser, tabs: list[Page]) -> Iterator[Callable[..., Visit]]:
    """Open a page, each in a context of its own; afterwards nothing may have left this machine."""
    visits: list[Visit] = []

    def open_page(url: str, *, width: int = WINDOW["width"], height: int = WINDOW["height"]) -> Visit:
        if len(visits) == len(tabs):
            tabs.append(browser.new_context(reduced_motion="reduce", permissions=_CLIPBOARD).new_page())
        page = tabs[len(visits)]
        page.set_viewport_size({"width": width, "height": height})
        visits.append(Visit(page))
        page.goto(url)
        visits[-1].settle()
        return visits[-1]

    yield open_page
    for each in visits:
        each.leave()
    for each in visits:
        assert each.outside == [], "requests that left this machine"
        assert each.errors == [], "errors in the browser's console"
        assert each.dialogs == [], "a dialog opened"
