"""What is kept is kept by everything that an argument says, and by nothing of those that begin with "_"."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event
from typing import Any

import polars as pl
import pytest

from core.analysis.workspace.comparable import Comparability
from core.analysis.workspace.scope import Latency, Quality, Scope
from core.analysis.workspace.view import View
from core.decide.rules import Constraints
from core.paths import PRICES
from core.prices import load_books
from core.records import Batch, Collection
from core.store import Store
from core.ui.cache import _Views, cached


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
        replace(view, snapshot=Store.open(published_store).read()),
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


CHANGES: dict[str, dict[str, Any]] = {
    "measure": {"quality": Quality("RA-nWG", 5)},
    "latency": {"latency": Latency("p95")},
    "scope": {"scope": Scope("python-docs", "python-docs-graded", ("r",))},
    "limit": {"constraints": Constraints(sla_ms=3.0)},
    "zone": {"constraints": Constraints(delta=0.02)},
    "jitter": {"constraints": Constraints(jitter_ms=2.0)},
    "said": {"compared": Comparability(sentences=("It differs.",))},
    "offered": {"compared": Comparability(offers=("It could.",))},
    "apart": {"compared": Comparability(apart=pl.DataFrame({"name": ["a"], "why": ["other queries"]}))},
    "noise": {"noise": "other"},
    "rule": {"rule": "cost"},
    "taken": {"take": "r-1"},
    "form": {"weak": True},
    "seed": {"seed": 3},
}


def test_who_asks_the_same_is_given_the_same_view(view: View) -> None:
    views = _Views()
    first = views.of(view)
    assert first is view
    assert views.of(replace(view, given=view.table)) is view


@pytest.mark.parametrize("name", CHANGES)
def test_whatever_else_is_asked_is_another_view(name: str, view: View) -> None:
    views, other = _Views(), replace(view, given=view.table, **CHANGES[name])
    views.of(view)
    assert views.of(other) is other
    assert views.of(view) is view


def test_what_is_written_meanwhile_is_seen(view: View, tmp_path: Path) -> None:
    store = Store.open(shutil.copytree(view.snapshot.path, tmp_path / "store"))
    views, mine = _Views(), replace(view, snapshot=store.read(), given=view.table)
    assert views.of(view) is view
    assert views.of(mine) is mine  # of another store
    with store.write("test") as writer:
        writer.add(Batch(collections=(Collection(collection_id="c", name="C"),)))
    later = replace(mine, snapshot=store.read())
    assert views.of(later) is later
    assert views.of(replace(mine, snapshot=store.read())) is later


def test_prices_that_were_changed_are_another_view(view: View) -> None:
    key = next(iter(view.book.newest))
    dear = view.book.with_changes({key: 7.5})
    views, other = _Views(), replace(view, given=view.table, book=dear)
    views.of(view)
    assert views.of(other) is other


def test_views_are_held_up_to_so_many_bytes_the_last_asked_ones(view: View) -> None:
    made = [replace(view, given=view.table, seed=seed) for seed in range(8)]
    views = _Views(3 << 20)
    for each in made:
        views.of(each)
    assert sum(size for _, size in views._held.values()) <= 3 << 20
    assert views.of(replace(made[-1])) is made[-1]
    again = replace(made[0])
    assert views.of(again) is again


def test_what_is_worked_out_of_a_view_is_worked_out_once(view: View) -> None:
    made: list[str] = []

    def drawn(asked: View, colour: str) -> str:
        assert asked is view
        made.append(colour)
        return f"in {colour}"

    assert [view.once(drawn, colour) for colour in ("red", "blue", "red")] == ["in red", "in blue", "in red"]
    assert made == ["red", "blue"]
    other = view.replace(rule="cost")
    assert other.once(lambda asked, colour: asked.rule + colour, "red") == "costred"
