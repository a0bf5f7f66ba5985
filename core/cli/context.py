"""What commands share: the store, writing that says when it waits, names of runs, and options said once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from core.cli.output import complain
from core.errors import InputError, StoreDamagedError, UnknownNameError
from core.paths import PRICES
from core.prices import PriceBook, load_books, own_folder
from core.store import Snapshot, Store, Writer
from core.store.upkeep.doctor import Level, examine
from core.views.workspace.scope import audits

SpecArgument = Annotated[
    Path, typer.Argument(help="A specification: .toml, .yaml or .json.", show_default=False)
]
MaybeSpec = Annotated[
    Path | None, typer.Argument(help="A specification: .toml, .yaml or .json.", show_default=False)
]
BudgetOption = Annotated[
    float | None, typer.Option(min=0, help="The most dollars in all, instead of the specification's.")
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Say what it takes; spend and write nothing.")]
YesOption = Annotated[bool, typer.Option("--yes", help="Do not ask at the terminal before it costs.")]
RunsOption = Annotated[
    list[str] | None, typer.Option("--run", help="A run by id or label; may be repeated. Default: all.")
]
CollectionOption = Annotated[str | None, typer.Option(help="Only runs of this collection.")]


@dataclass(frozen=True, slots=True)
class Context:
    """The global options."""

    path: Path | None  # folder of the store; None for the default place

    def store(self) -> Store:
        """Open the store."""
        return Store.open(self.path)

    def verify(self) -> None:
        """Refuse a damaged store, all of it, before any of it is used."""
        damage = [each for each in examine(self.store()).findings if each.level is Level.DAMAGE]
        if damage:
            more = f" ({len(damage) - 1} more)" if damage[1:] else ""
            raise StoreDamagedError(damage[0].found + more, where=str(self.store().path), do=damage[0].do)

    def books(self) -> dict[str, PriceBook]:
        """The shipped price books and the user's own, by name."""
        return load_books(PRICES, own=own_folder(self.store().path))

    @contextmanager
    def write(self, action: str, note: str = "") -> Iterator[Writer]:
        """One transaction; says on standard error that it waits for another writer."""
        with self.store().write(action, note, on_wait=waiting) as writer:
            yield writer


def waiting(seconds: float) -> None:
    """Say on standard error that another process writes."""
    complain(f"waiting for another process that writes to the store ({seconds:.0f} s)…")


def golden_set_of(snapshot: Snapshot, collection: str, asked: str | None) -> str | None:
    """The golden set to score a collection with: the one asked for, or else its only one beside audits."""
    known = snapshot.golden_sets(collection)["golden_set_id"].to_list()
    if asked is None:
        audited = audits(snapshot, collection)
        whole = [name for name in known if name not in audited]
        if len(whole) > 1:
            raise InputError(
                f"{collection} has {len(whole)} golden sets: {', '.join(whole)}.",
                do="Choose one with --golden-set.",
            )
        return str(whole[0]) if whole else None
    if asked in known:
        return asked
    everywhere = snapshot.golden_sets()["golden_set_id"].to_list()
    if asked not in everywhere:
        raise UnknownNameError("golden set", asked, everywhere)
    return None
