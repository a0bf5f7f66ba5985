"""What other pages need is worked out behind the first: once, in one thread, and never beside a visitor."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from core.analysis.workspace.scope import Latency, Quality, Scope
from core.analysis.workspace.view import View
from core.paths import PRICES
from core.prices import load_books
from core.store import Store
from core.ui import cache
from core.ui.behind import DEAR, Behind, steps
from core.ui.serving import Turns
from core.views.ask import Given
from core.views.pages import PAGES

SHORT_S, LONG_S = 0.01, 30.0


@pytest.fixture
def view(demo_store: Path) -> View:
    return View(
        snapshot=Store.open(demo_store).read(), scope=Scope("python-docs", "python-docs-graded"),
        quality=Quality("RA-nWG", 10), latency=Latency(), book=load_books(PRICES)["list"],
    )  # fmt: skip


class Work:
    """Steps that are counted, and the rests before them."""

    def __init__(self, count: int = 3) -> None:
        self.count = count
        self.done: list[Any] = []
        self.rests = 0

    def rest(self, _: float) -> None:
        self.rests += 1

    def steps(self, view: Any) -> Iterator[object]:
        for _ in range(self.count):
            self.done.append(view)
            yield

    def behind(self) -> Behind:
        behind = Behind(self.rest, self.steps)
        behind.begin()
        return behind


def shown(behind: Behind, *views: Any) -> int:
    """Show views, each keyed by itself; how many threads that took."""
    threads = [behind.shown(view, view) for view in views]
    for thread in filter(None, threads):
        thread.join(LONG_S)
    return sum(thread is not None for thread in threads)


def test_nothing_begins_before_the_process_is_ready() -> None:
    work = Work(1)
    behind = Behind(work.rest, work.steps)
    assert shown(behind, "one") == 0
    assert work.done == []
    thread = behind.begin()
    assert thread is not None
    thread.join(LONG_S)
    assert work.done == ["one"]


@pytest.mark.parametrize(
    ("seen", "done"),
    [(("one",), ["one"]), (("one", "one"), ["one"]), (("one", "two", "one"), ["one", "two"])],
)
def test_what_is_asked_alike_is_worked_out_once(seen: tuple[str, ...], done: list[str]) -> None:
    work = Work(1)
    behind = work.behind()
    for view in seen:
        shown(behind, view)
    assert work.done == done


def test_it_rests_before_every_step() -> None:
    work = Work(3)
    shown(work.behind(), "one")
    assert work.rests == 1 + 3


def test_one_thread_works_and_the_newest_goes_next() -> None:
    work, goes, free = Work(1), Event(), Event()

    def rest(_: float) -> None:
        goes.set()
        free.wait(LONG_S)

    behind = Behind(rest, work.steps)
    behind.begin()
    first = behind.shown("one", "one")
    goes.wait(LONG_S)
    assert [behind.shown(each, each) for each in ("two", "three")] == [None, None]
    free.set()
    assert first is not None
    first.join(LONG_S)
    assert work.done == ["one", "three"]


def within(act: Callable[[], object]) -> Thread:
    thread = Thread(target=act, daemon=True)
    thread.start()
    return thread


def test_nobody_rests_while_a_page_is_drawn_or_waited_for() -> None:
    turns = Turns(LONG_S)
    with turns.take():
        resting = within(lambda: turns.rest(SHORT_S))
        time.sleep(5 * SHORT_S)
        assert resting.is_alive()
    resting.join(LONG_S)
    assert not resting.is_alive()


@pytest.mark.slow
def test_a_visitor_who_comes_later_waits_for_nothing(view: View, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.forget()
    made: list[str] = []
    whole = cache._Results.of

    def counted(held: Any, asked: str, make: Callable[[], object]) -> object:
        return whole(held, asked, lambda: made.append(asked) or make())

    monkeypatch.setattr(cache._Results, "of", counted)
    for _ in steps(view):
        pass
    assert made
    made.clear()
    for page in DEAR:
        list(PAGES[page].drawn()[0].draw(view, Given({})))
    assert made == []
