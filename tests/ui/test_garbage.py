"""What pages leave behind is collected between them; what lives with the process is not walked again."""

from __future__ import annotations

import gc
import tomllib
import weakref
from collections.abc import Iterator
from contextlib import nullcontext

import pytest

from core.paths import ROOT
from core.ui.garbage import Garbage
from core.ui.serving import Turns

LONG_S = 3600.0


class Cycle:
    """Something that only a collection frees."""

    def __init__(self) -> None:
        self.me = self


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    before = gc.get_threshold()
    gc.unfreeze()
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


def left_behind() -> weakref.ref[Cycle]:
    return weakref.ref(Cycle())


def drawn(garbage: Garbage, *pages: str) -> int:
    """Draw pages; the number of collections."""
    threads = [garbage.drawn(page) for page in pages]
    for thread in filter(None, threads):
        thread.join(30)
    return sum(thread is not None for thread in threads)


def test_nothing_is_collected_before_all_is_imported() -> None:
    assert drawn(Garbage(nullcontext, 2), *"aabbab") == 0
    assert not gc.get_freeze_count()


def test_what_imports_and_the_first_drawing_of_a_page_have_made_stays_out_of_sight() -> None:
    garbage = Garbage(nullcontext, 10)
    garbage.drawn("before")
    garbage.settle()
    made: list[list[int]] = []

    def frozen(page: str) -> int:
        before = gc.get_freeze_count()
        made.extend([] for _ in range(1_000))
        drawn(garbage, page)
        return gc.get_freeze_count() - before

    # Nothing of a page that was drawn before the imports ended: their freeze took it.
    assert [frozen(page) > 900 for page in ("before", "first", "first", "second")] == [
        False,
        True,
        False,
        True,
    ]


def test_what_many_drawings_leave_behind_is_collected_when_no_page_is_drawn() -> None:
    turns = Turns(LONG_S)
    garbage = Garbage(turns.take, 3)
    garbage.settle()
    drawn(garbage, "page")
    left = left_behind()
    assert drawn(garbage, "page", "page") == 0
    assert left() is not None
    with turns.take():
        thread = garbage.drawn("page")
        assert thread is not None
        thread.join(0.05)
        assert left() is not None  # while a page is drawn
    thread.join(30)
    assert left() is None


def test_streamlit_collects_nothing_after_a_run() -> None:
    settings = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))
    assert settings["runner"]["postScriptGC"] is False
