"""The global options and messages needed by every command, with few imports."""

from __future__ import annotations

from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from core.bidi import strip_bidi_controls
from core.errors import StoreDamagedError, UnknownNameError
from core.paths import PRICES

if TYPE_CHECKING:
    from core.prices import PriceBook
    from core.store import Snapshot, Store, Writer


JSON_VERSION: ContextVar[int] = ContextVar("JSON_VERSION", default=1)
"""Shape of tables as JSON: 1, a list of rows, until the next release; 2, an object that has them."""


def complain(message: str) -> None:
    """Print a message on standard error."""
    typer.echo(strip_bidi_controls(message), err=True)


@dataclass(frozen=True, slots=True)
class Context:
    """The global options."""

    path: Path | None  # folder of the store; None = the default place

    def store(self) -> Store:
        """Open the store."""
        from core.store import Store  # noqa: PLC0415 - with all here a second, which `ui` need not wait for

        return Store.open(self.path)

    def verify(self) -> None:
        """Refuse a damaged store entirely, before any of it is used."""
        from core.store.doctor import Level, examine  # noqa: PLC0415

        damage = [finding for finding in examine(self.store()).findings if finding.level is Level.DAMAGE]
        if damage:
            more = f" ({len(damage) - 1} more)" if damage[1:] else ""
            raise StoreDamagedError(damage[0].found + more, where=str(self.store().path), do=damage[0].do)

    def books(self) -> dict[str, PriceBook]:
        """Return the shipped price books and the user's own, by name."""
        from core.prices import load_books, own_folder  # noqa: PLC0415

        return load_books(PRICES, own=own_folder(self.store().path))

    def book(self, name: str) -> PriceBook:
        """Return one of the price books."""
        books = self.books()
        if name not in books:
            raise UnknownNameError("price book", name, books)
        return books[name]

    def write(self, action: str, note: str = "") -> AbstractContextManager[Writer]:
        """Return one transaction; report on standard error if it waits for another writer."""
        return self.store().write(action, note, on_wait=waiting)


def require_collection(snapshot: Snapshot, name: str | None) -> None:
    """Refuse a collection that a snapshot does not have; None is any of them."""
    known = snapshot.collections()["collection_id"].to_list()
    if name is not None and name not in known:
        raise UnknownNameError("collection", name, known)


def waiting(seconds: float) -> None:
    """Report on standard error that another process is writing."""
    complain(f"waiting for another process that writes to the store ({seconds:.0f} s)…")
