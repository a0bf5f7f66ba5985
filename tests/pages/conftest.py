"""Pages as a visitor gets them, without a browser."""

from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from core.paths import ROOT
from core.ui import cache, draw
from core.ui.access import SETTING
from core.views.pages import PAGES
from tests.pages.reading import go
from tests.pages.served import served

OpenPage = Callable[..., AppTest]
_CLOSED = draw.opened


@pytest.fixture
def store_of(demo_store: Path, answered_store: Path) -> Callable[[str], Path]:
    """A store whose first workspace fills a page: the demo, which has no answers, or one with some."""
    return lambda page: answered_store if PAGES[page.partition("/")[0]].needs == "answers" else demo_store


@pytest.fixture
def open_page(monkeypatch: pytest.MonkeyPatch) -> OpenPage:
    """Open a page on a store, with settings in the address: ``open_page(store, "decision", k="30")``.

    A section of a page stands behind a slash; with ``write="none"`` as one who may only look; with
    ``first=True`` as one who was never here; ``folded=True`` with folds closed, not opened.
    """
    served(monkeypatch)

    def opened(
        store: Path,
        page: str = "",
        *,
        write: str = "all",
        first: bool = False,
        folded: bool = False,
        **address: str | list[str],
    ) -> AppTest:
        monkeypatch.setattr(draw, "opened", _CLOSED if folded else lambda _, fold: fold.blocks)
        monkeypatch.setenv("CLQ_STORE", str(store))
        monkeypatch.setenv(SETTING, write)  # AppTest comes through no door, so it would be a stranger
        cache.store.clear()
        app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
        app.session_state["_visited"] = not first
        go(app, page)
        app.query_params |= address
        return app.run()

    return opened
