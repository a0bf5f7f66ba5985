"""Who may not write is told so, and nothing happens whatever the browser sends."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.errors import AccessError
from core.store import Store
from core.ui import access, cache
from core.ui.access import SETTING
from core.ui.add import files, large
from core.views.golden import judges
from core.views.library import data
from core.work.imports import background, imports
from core.work.work import Work
from tests.pages.conftest import OpenPage
from tests.pages.reading import assert_sound, everything
from tests.stores import Lab


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    lab = Lab().judge({"q1": {"p1": 5}}).judge({"q1": {"p1": 4}}, "other")
    lab.run("a", final={"q1": ["p1"]}).write(tmp_path / "store")
    monkeypatch.setenv("CLQ_STORE", str(tmp_path / "store"))
    return tmp_path / "store"


@pytest.mark.parametrize(
    ("write", "page", "offers"),
    [
        ("all", "add", {"File Uploader"}),
        ("none", "add", set()),
        ("local", "add", set()),  # nobody has said that this visitor is here
        ("all", "library", {"Delete…"}),
        ("none", "library", set()),
        ("all", "run", {"Specification"}),
        ("none", "run", set()),
        ("all", "golden/judges", {"Write it"}),
        ("none", "golden/judges", set()),
    ],
)
def test_what_a_page_offers(open_page: OpenPage, store: Path, write: str, page: str, offers: set[str]):
    app = open_page(store, page, write=write)
    assert_sound(app)
    found = {each.label for each in [*app.main.button, *app.main.text_area]} | {
        "File Uploader" for _ in app.get("file_uploader")
    }
    assert offers <= found
    if not offers:
        assert found <= {"Prepare", "Back to defaults"}, "neither writes"
        assert SETTING in everything(app)


def _pressed(*_: object, **__: object) -> bool:
    return True


ACTIONS: dict[str, Callable[[Any], object]] = {
    "delete": lambda _: access.act(data.delete, cache.store(), ["a"], "run"),
    "restore": lambda _: access.act(data.restore, cache.store(), ["a"], "run"),
    "import": lambda made: large.write(made, ["file"], "refuse", None),
    "large import": lambda made: large.start([], made, None, ready=True),
    "read": lambda _: files.offered(),
    "merge": lambda _: access.act(judges.write_merged, cache.store(), ["gold", "other"], "mean", "both"),
}


@pytest.mark.parametrize("action", ACTIONS)
def test_nothing_is_done_for_who_may_not(store: Path, monkeypatch: pytest.MonkeyPatch, action: str):
    """A button that is not drawn, or drawn disabled, can still be pressed by a crafted message."""
    monkeypatch.setenv(SETTING, "none")
    cache.store.clear()
    monkeypatch.setattr("streamlit.button", _pressed)
    for module, name in ((imports, "store_import"), (background, "begin"), (data, "delete")):
        monkeypatch.setattr(module, name, lambda *_, **__: pytest.fail("done"))
    monkeypatch.setattr(judges, "write_merged", lambda *_: pytest.fail("done"))
    if action in ("delete", "restore", "merge"):
        ACTIONS[action](None)
    else:
        with pytest.raises(AccessError):
            ACTIONS[action](type("Made", (), {"skip": ()})())
    assert Store.open(store).revision() == 1


@pytest.mark.parametrize("asked", [1, 2])
def test_a_form_that_was_drawn_before_reads_and_starts_nothing(
    open_page: OpenPage, demo_store: Path, monkeypatch: pytest.MonkeyPatch, asked: int
):
    """Asked when a specification is read, and once more when it is begun."""
    app = open_page(demo_store, "run", ws="python-docs")
    assert_sound(app)
    app.button(key="run_now").click()
    left = iter(range(asked - 1))
    monkeypatch.setattr(Work, "begin", lambda *_: pytest.fail("done"))
    monkeypatch.setattr(access, "require", lambda: None if next(left, None) is not None else _refuse())
    app.run()
    assert SETTING in app.error[0].value.replace("\\", "")


def _refuse() -> None:
    raise AccessError(f"Not with {SETTING}.")


def test_the_setting_is_asked_every_time(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(SETTING, "all")
    access.require()
    monkeypatch.setenv(SETTING, "none")
    with pytest.raises(AccessError, match=SETTING):
        access.require()
