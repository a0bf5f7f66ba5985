"""AppTest made as quick as a server, which finds components and compiles pages once."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest
from streamlit.components.v2.component_manager import BidiComponentManager
from streamlit.runtime.pages_manager import PagesManager
from streamlit.runtime.scriptrunner.script_cache import ScriptCache
from streamlit.testing.v1 import app_test, local_script_runner

_SCRIPTS = ScriptCache()
_WAIT = local_script_runner.require_widgets_deltas


def _like_a_server(began: Callable[..., None]) -> Callable[..., None]:
    """What AppTest forgets after every run: that st.navigation finds the pages; see `core.ui.serving`."""

    def settled(self: PagesManager, *args: object, **options: object) -> None:
        began(self, *args, **options)
        PagesManager.uses_pages_directory = False

    return settled


def _wait(runner: local_script_runner.LocalScriptRunner, timeout: float = 3) -> None:
    """Sleep until the script has ended, where AppTest looks a thousand times a second whether it has."""
    if runner._script_thread is not None:
        runner._script_thread.join(timeout)
    _WAIT(runner, 1 if runner.script_stopped() else 0)


_PATCHES = (
    # AppTest looks through all installed packages for components, which takes longer than a page.
    (BidiComponentManager, "discover_and_register_components", lambda *_, **__: None),
    (PagesManager, "__init__", _like_a_server(PagesManager.__init__)),
    # A server compiles a page once, AppTest at every run.
    (app_test, "ScriptCache", lambda: _SCRIPTS),
    (local_script_runner, "ScriptCache", lambda: _SCRIPTS),
    (local_script_runner, "require_widgets_deltas", _wait),
)


def served(patch: pytest.MonkeyPatch) -> None:
    """Have AppTest behave so while a patch lasts."""
    # AppTest makes the app the process's main module, which processes started by later tests would run.
    patch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    for owner, name, value in _PATCHES:
        patch.setattr(owner, name, value)
