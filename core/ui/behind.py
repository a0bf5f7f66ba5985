"""Precomputes data for other pages in the background, while nobody waits for a page."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import suppress
from threading import Lock, Thread

from core.analysis.workspace.choices import holds
from core.analysis.workspace.view import View
from core.errors import ClqError
from core.views.ask import Given
from core.views.blocks import Block, Fold, SideBySide, Tabs
from core.views.pages import PAGES

DEAR = ("confidence", "diagnostics", "curves", "what_if", "golden", "latency", "compare", "queries")
"""Pages whose first drawing in a process takes much of its processor, the dearest first."""
_MOST_VALUES = 100_000  # stacks × queries, above which a visitor who doesn't ask would pay too much
_REST_S, _BETWEEN_S = 1.0, 0.1  # idle seconds before the first step and before each other
_REMEMBERED = 64
Steps = Callable[[View], Iterator[object]]


class Behind:
    """Precomputes, in one thread and once for all who ask the same, results that are slow at first.

    It pauses between two steps while pages are drawn. Its results are in the bounded cache where pages look
    for them; a request in the meantime waits for them instead of computing them again.

    Args:
        rest: Waits until no page was drawn for this many seconds.
        steps: Computes a view's data, step by step.
    """

    def __init__(self, rest: Callable[[float], object], steps: Steps) -> None:
        self._rest, self._steps = rest, steps
        self._lock = Lock()
        self._known: dict[Hashable, None] = {}
        self._next: View | None = None
        self._begun = self._works = False

    def begin(self) -> Thread | None:
        """Start working; the most recently shown view goes first."""
        self._begun = True
        return self._start()

    def shown(self, view: View, key: Hashable) -> Thread | None:
        """Note that a page of a view was shown, keyed by the view's inputs; the newest goes first."""
        with self._lock:
            if key in self._known:
                return None
            self._known[key] = None
            while len(self._known) > _REMEMBERED:
                del self._known[next(iter(self._known))]
            self._next = view
        return self._start()

    def _start(self) -> Thread | None:
        with self._lock:
            if not self._begun or self._works or self._next is None:
                return None
            self._works = True
        thread = Thread(target=self._work, name="behind", daemon=True)
        thread.start()
        return thread

    def _work(self) -> None:
        while (view := self._taken()) is not None:
            self._rest(_REST_S)
            for _ in self._steps(view):
                self._rest(_BETWEEN_S)

    def _taken(self) -> View | None:
        with self._lock:
            view, self._next = self._next, None
            self._works = view is not None
        return view


def steps(view: View) -> Iterator[object]:
    """Draw a view's slow pages for nobody, block by block."""
    queries = view.table["n"].max()
    if not isinstance(queries, int) or view.table.height * queries > _MOST_VALUES:
        return
    has = holds(view.snapshot)[view.scope.collection_id]
    for page in map(PAGES.__getitem__, DEAR):
        if page.needs is None or page.needs in has:
            with suppress(ClqError):  # the page reports it when opened
                yield from _through(page.drawn()[0].draw(view, Given({})))


def _through(blocks: Iterable[Block]) -> Iterator[Block]:
    """Yield blocks, and the nested ones that a page draws at once."""
    for block in blocks:
        yield block
        match block:
            case SideBySide(left, right):
                yield from _through(left)
                yield from _through(right)
            case Tabs(folds):
                yield from _through(folds)
            case Fold(blocks=inside) if not block.waits:
                yield from _through(inside)
