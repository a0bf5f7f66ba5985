"""What is kept is kept by everything that an argument says, and by nothing of those that begin with "_"."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from core.paths import PRICES
from core.prices import load_books
from core.store import Store
from core.ui.cache import cached
from core.views.workspace.scope import Latency, Quality, Scope
from core.views.workspace.view import View


@dataclass(frozen=True)
class Kind:
    """An argument of a kind that is hashed by what it holds."""

    word: str
    of: tuple[int, ...]


@pytest.fixture
def view(demo_store: Path) -> View:
    scope = Scope("python-docs", "python-docs-graded")
    book = load_books(PRICES)["list"]
    return View(
        snapshot=Store.open(demo_store).read(), scope=scope, quality=Quality("RA-nWG", 10),
        latency=Latency(), book=book,
    )  # fmt: skip


def calls(*asked: tuple[Any, ...]) -> int:
    """How often a kept function runs when asked for each in turn, twice."""
    made: list[object] = []

    @cached(entries=64)
    def kept(one: object, two: object = None) -> int:
        made.append((one, two))
        return len(made)

    for given in (*asked, *asked):
        kept(*given)
    return len(made)


@pytest.mark.parametrize(
    "asked",
    [
        [("a", 1), ("a", 1.0), ("a", True), ("a", "1"), ("a", None), ("a",)],
        [("a; two='b'",), ("a", "b")],
        [((1, 2),), ((1, 2, 3),), (frozenset({1}),), (Kind("a", (1,)),), (Kind("a", (2,)),)],
    ],
    ids=["scalars", "words of another", "kinds"],
)
def test_arguments_that_differ_are_kept_apart(asked: list[tuple[Any, ...]]) -> None:
    same = 1 if ("a",) in asked else 0  # a default that is not given and None, which it is
    assert len(asked) - same <= calls(*asked) <= len(asked)


def test_all_that_a_stack_table_is_made_of_counts(view: View, published_store: Path) -> None:
    views = [
        view,
        replace(view, snapshot=view.snapshot.path and Store.open(published_store).read()),
        replace(view, scope=replace(view.scope, run_ids=("r",))),
        replace(view, quality=Quality("RA-nWG", 5)),
        replace(view, latency=Latency("p95")),
        replace(view, book=view.book.derived(())),
    ]
    assert calls(*((each,) for each in views)) == 5  # prices that nobody changed are the book's


def test_two_who_ask_at_once_wait_for_one() -> None:
    made, begun = list[int](), Event()

    @cached()
    def kept(_secret: Event, number: int) -> int:
        begun.set()
        Event().wait(0.05)
        made.append(number)
        return number

    with ThreadPoolExecutor(8) as visitors:
        assert {visit.result(30) for visit in [visitors.submit(kept, Event(), 7) for _ in range(8)]} == {7}
    assert made == [7]
