"""Pages as a visitor gets them, without a browser."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.components.v2.component_manager import BidiComponentManager
from streamlit.runtime.pages_manager import PagesManager
from streamlit.runtime.scriptrunner.script_cache import ScriptCache
from streamlit.testing.v1 import AppTest, app_test, local_script_runner

from core.paths import ROOT
from core.ui import cache
from core.ui.door import SETTING
from core.views.pages import PAGES
from tests.pages.reading import go, like_a_server

OpenPage = Callable[..., AppTest]
_SCRIPTS = ScriptCache()
_WAIT = local_script_runner.require_widgets_deltas


def _wait(runner: local_script_runner.LocalScriptRunner, timeout: float = 3) -> None:
    """Sleep until the script has ended, where AppTest looks a thousand times a second whether it has."""
    if runner._script_thread is not None:
        runner._script_thread.join(timeout)
    _WAIT(runner, 1 if runner.script_stopped() else 0)


@pytest.fixture
def store_of(demo_store: Path, answered_store: Path) -> Callable[[str], Path]:
    """A store whose first workspace fills a page: the demo, which has no answers, or one with some."""
    return lambda page: answered_store if PAGES[page.partition("/")[0]].needs == "answers" else demo_store


@pytest.fixture
def open_page(monkeypatch: pytest.MonkeyPatch) -> OpenPage:
    """Open a page on a store, with settings in the address: ``open_page(store, "decision", k="30")``.

    A section of a page stands behind a slash; with ``write="none"`` as one who may only look; with
    ``first=True`` as one who was never here.
    """
    # AppTest makes the app the process's main module, which processes started by later tests would run.
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    # AppTest looks through all installed packages for components, which takes longer than a page.
    monkeypatch.setattr(BidiComponentManager, "discover_and_register_components", lambda *_, **__: None)
    monkeypatch.setattr(PagesManager, "__init__", like_a_server(PagesManager.__init__))
    # A server compiles a page once, AppTest at every run.
    monkeypatch.setattr(app_test, "ScriptCache", lambda: _SCRIPTS)
    monkeypatch.setattr(local_script_runner, "ScriptCache", lambda: _SCRIPTS)
    monkeypatch.setattr(local_script_runner, "require_widgets_deltas", _wait)

    def opened(
        store: Path, page: str = "", *, write: str = "all", first: bool = False, **address: str | list[str]
    ) -> AppTest:
        monkeypatch.setenv("CLQ_STORE", str(store))
        monkeypatch.setenv(SETTING, write)  # AppTest comes through no door, so it would be a stranger
        cache.store.clear()
        app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
        app.session_state["_visited"] = not first
        go(app, page)
        app.query_params |= address
        return app.run()

    return opened
