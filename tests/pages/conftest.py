"""Pages as a visitor gets them, without a browser."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.components.v2.component_manager import BidiComponentManager
from streamlit.runtime.pages_manager import PagesManager
from streamlit.testing.v1 import AppTest

from core.paths import ROOT
from core.ui import cache
from core.views.access import SETTING

OpenPage = Callable[..., AppTest]


@pytest.fixture
def open_page(monkeypatch: pytest.MonkeyPatch) -> OpenPage:
    """Open a page on a store, with settings in the address: ``open_page(store, "pareto", k="30")``.

    With ``fresh=True`` as the first visitor of a server does, see `core.ui.view.front_door`; with
    ``write="none"`` as one who may only look.
    """
    # AppTest makes the app the process's main module, which processes started by later tests would run.
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    # AppTest looks through all installed packages for components, which takes longer than a page.
    monkeypatch.setattr(BidiComponentManager, "discover_and_register_components", lambda *_, **__: None)
    began = PagesManager.__init__

    def settled(self: PagesManager, *args: object, **options: object) -> None:
        began(self, *args, **options)
        PagesManager.uses_pages_directory = False

    def opened(
        store: Path, page: str = "", *, fresh: bool = False, write: str = "all", **address: str | list[str]
    ) -> AppTest:
        monkeypatch.setenv("CLQ_STORE", str(store))
        monkeypatch.setenv(SETTING, write)  # AppTest comes through no door, so it would be a stranger
        cache.store.clear()
        if not fresh:  # AppTest forgets after every run that the server has seen st.navigation
            monkeypatch.setattr(PagesManager, "__init__", settled)
        app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
        if page:
            app.switch_page(f"pages/{page}.py")
        app.query_params = dict(address)
        return app.run()

    return opened
