"""Cached reads. What is cached is immutable and keyed by the store's revision, so nothing goes stale.

`cache_resource` returns the object itself, `cache_data` a pickled copy; frames are never modified
in place, so sharing them is safe and a slider move doesn't pay for a copy of 10,000 rows.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial, wraps
from inspect import signature
from pathlib import Path
from threading import Lock
from typing import Any, ClassVar, Generic, ParamSpec, TypeVar
from weakref import WeakSet

import polars as pl
import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from core.analysis.cache import cache_by
from core.analysis.workspace.choices import choices
from core.analysis.workspace.choices import holds as read_holds
from core.analysis.workspace.choices import workspaces as read_workspaces
from core.analysis.workspace.comparable import at_machine
from core.analysis.workspace.query_sets import query_sets as read_query_sets
from core.analysis.workspace.scope import Latency, Quality, Scope
from core.analysis.workspace.stacks import stack_table
from core.analysis.workspace.view import View
from core.paths import PRICES
from core.prices import DEFAULT_BOOK, PriceBook, load_books, own_files, own_folder
from core.store import Snapshot, Store
from core.tables import remembered

_MOST_BYTES, _LEAST_BYTES, _TIMES = 96 << 20, 1 << 19, 2
"""Maximum bytes of all cached views; minimum bytes of each, and as a multiple of its stack table."""
P = ParamSpec("P")
R = TypeVar("R")


def cached(words: str | bool = False, *, entries: int = 32) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Cache a pure function's results by its arguments, except those whose names begin with "_".

    Args:
        words: The page's message while it runs; none by default.

    Returns:
        A decorator. A snapshot is keyed by its store and revision, a price book by its digest, a view by the
        sources of its stack table (`table_key`): a function of a view must not use limits or decision.
        Concurrent callers wait for the same result.
    """

    def keeping(compute: Callable[P, R]) -> Callable[P, R]:
        simple: _Results[R] = _Results(entries, words)

        def kept(known: str, others: tuple[object, ...], _compute: Callable[[], R]) -> R:
            del known, others  # part of the cache key
            with _saying(words):
                return _compute()

        kept.__module__, kept.__qualname__ = compute.__module__, f"{compute.__qualname__}.kept"
        ask = st.cache_resource(show_spinner=False, max_entries=entries, hash_funcs=_HASHED)(kept)
        names = list(signature(compute).parameters)

        @wraps(compute)
        def asked(*args: P.args, **kwargs: P.kwargs) -> R:
            given = {**dict(zip(names, args, strict=False)), **kwargs}
            counted = [(name, value) for name, value in given.items() if not name.startswith("_")]
            # Streamlit's own argument hashing costs as much as many a result.
            known = [f"{name}={_SAID[type(value)](value)}" for name, value in counted if type(value) in _SAID]
            others = tuple(value for _, value in counted if type(value) not in _SAID)
            make = partial(compute, *args, **kwargs)
            return ask("; ".join(known), others, make) if others else simple.of("; ".join(known), make)

        return asked

    return keeping


class _Results(Generic[R]):
    """A function's latest results, by its arguments; concurrent callers wait for the same one."""

    every: ClassVar[WeakSet[_Results[Any]]] = WeakSet()

    def __init__(self, entries: int, words: str | bool) -> None:
        self._entries, self._words = entries, words
        self._kept: dict[str, R] = {}
        self._made: dict[str, Lock] = {}
        self._lock = Lock()
        self.every.add(self)

    def of(self, asked: str, make: Callable[[], R]) -> R:
        """Return the cached result for the same arguments, or compute it."""
        with self._lock:
            if asked in self._kept:
                self._kept[asked] = self._kept.pop(asked)  # most recently used
                return self._kept[asked]
            mine = self._made.setdefault(asked, Lock())
        with mine:
            if asked in self._kept:
                return self._kept[asked]
            try:
                with _saying(self._words):
                    result = make()
            finally:
                with self._lock:
                    self._made.pop(asked, None)
            with self._lock:
                self._kept[asked] = result
                while len(self._kept) > self._entries:
                    del self._kept[next(iter(self._kept))]
            return result

    def forget(self) -> None:
        """Forget the cached results."""
        with self._lock:
            self._kept.clear()


def _saying(words: str | bool) -> AbstractContextManager[None]:
    """Show a message while the caller waits, if there is a page."""
    waits = words and get_script_run_ctx(suppress_warning=True) is not None
    return st.spinner(str(words)) if waits else nullcontext()


def forget() -> None:
    """Forget all results, for example when a test counts calls."""
    for results in _Results.every:
        results.forget()


_HASHED: dict[str | type[Any], Callable[[Any], str]] = {
    PriceBook: lambda book: f"{book.digest} {book.name}",
    View: lambda view: repr(table_key(view)),
    Snapshot: lambda data: f"{data.revision} {data.path}",
    **dict.fromkeys((Scope, Quality, Latency), repr),
}
_SAID: dict[str | type[Any], Callable[[Any], str]] = {
    **_HASHED,
    **dict.fromkeys((str, int, float, bool, type(None)), repr),
}
"""Functions, by an argument's name or type, that return a text identifying it completely."""


cache_by(lambda words, entries: cached(words, entries=entries))


@st.cache_resource(show_spinner=False)
def store() -> Store:
    """Return this server's store."""
    return Store.open()


def snapshot(revision: int | None) -> Snapshot:
    """Return the data as of a revision; None = the latest."""
    return store().read(revision)


def table_key(view: View) -> tuple[object, ...]:
    """Return a cache key of a workspace's stack table, from its sources."""
    book = (view.book.name, view.book.digest)
    return (str(view.snapshot.path), view.snapshot.revision, view.scope, view.quality, view.latency, *book)


class _Views:
    """The latest views, each with its derived results, within a byte limit.

    Views that differ in any input are separate.
    """

    def __init__(self, most: int = _MOST_BYTES) -> None:
        self._most = most
        self._held: dict[tuple[object, ...], tuple[View, int]] = {}
        self._lock = Lock()

    def of(self, view: View) -> View:
        """Return the earlier equal view, or else this one."""
        key, size = _asked(view), _LEAST_BYTES + _TIMES * view.table.estimated_size()
        with self._lock:
            held = self._held.pop(key, (view, int(size)))
            self._held[key] = held
            while len(self._held) > 1 and sum(size for _, size in self._held.values()) > self._most:
                del self._held[next(iter(self._held))]
        return held[0]


def _asked(view: View) -> tuple[object, ...]:
    """Return all inputs of a view, and its catalogue."""
    told, catalogue = view.compared, view.snapshot.catalogue.path
    chosen = (
        view.noise,
        view.rule,
        view.take,
        view.incumbent,
        view.terms,
        view.weak,
        view.seed,
        repr(view.constraints),
    )
    apart = tuple(told.apart.iter_rows())
    return (
        repr(table_key(view)),
        str(catalogue),
        *chosen,
        told.sentences,
        told.offers,
        apart,
        _runs(view.table),
    )


@remembered
def _runs(table: pl.DataFrame) -> tuple[str, ...]:
    return tuple(table["run_id"])


@st.cache_resource(show_spinner=False)
def _views() -> _Views:
    return _Views()


def shared(view: View) -> View:
    """Return the shared copy of a view, so that nothing about it is computed twice."""
    return _views().of(view)


def books() -> dict[str, PriceBook]:
    """Return shipped price books and the user's own, by name, list prices first; reread when edited."""
    folder = own_folder(store().path)
    return _books(folder, tuple((file.name, file.stat().st_mtime_ns) for file in own_files(folder)))


@st.cache_resource(show_spinner=False, max_entries=8)
def _books(folder: Path, files: tuple[tuple[str, int], ...]) -> dict[str, PriceBook]:
    del files  # part of the cache key
    books = load_books(PRICES, own=folder)
    return {name: books[name] for name in sorted(books, key=lambda name: (name != DEFAULT_BOOK, name))}


def stacks(
    snapshot: Snapshot, scope: Scope, quality: Quality, latency: Latency, book: PriceBook
) -> pl.DataFrame:
    """Return the stack table of a workspace; see `core.analysis.workspace.stacks.stack_table`."""
    table = _stacks(snapshot, scope, quality, replace(latency, machine=None), book)
    return table if latency.machine is None else _timed_on(table, snapshot, scope, quality, latency, book)


@cached(entries=16)
def _timed_on(
    _table: pl.DataFrame,
    snapshot: Snapshot,
    scope: Scope,
    quality: Quality,
    latency: Latency,
    book: PriceBook,
) -> pl.DataFrame:
    del snapshot, scope, quality, book  # stand in for the table, which isn't hashed itself
    return at_machine(_table, str(latency.machine))


_stacks = cached("Scoring the stacks of this workspace…", entries=64)(stack_table)
query_sets = cached(entries=64)(read_query_sets)
workspaces = cached(entries=64)(read_workspaces)
holds = cached(entries=64)(read_holds)
offered = cached(entries=64)(choices)
