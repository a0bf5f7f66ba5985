"""A diagnosis of names as it is asked for on the page: its specification, its button, how it ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING

import polars as pl

from core.pipeline.sweep.known import Known
from core.store import Snapshot
from core.views.diagnostics.names import plan_words as size_of
from core.views.run.paid import closing, fact, listed, press
from core.views.text import count
from core.written import toml

if TYPE_CHECKING:  # the engines take a second to load
    from core.diagnostics.names.job import NamesPlan
    from core.pipeline.evaluate import Status

__all__ = ["Form", "button", "ended", "offered", "size_of", "sources", "specification", "table"]

SHIPPED = "shipped authors"
NO_EMBEDDER = "Choose an embedder; wordllama runs here without a key."


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """What the fields of the form hold."""

    embedders: Sequence[str]
    dims: Sequence[str] = ()  # none = the embedder's own
    languages: Sequence[str] = ("en",)
    source: str = SHIPPED  # or a stored collection, whose sources are names and titles topics
    runs: int = 15
    queries: int = 100
    budget: float | None = None


def offered() -> list[str]:
    """Return the embedders that are known by name, the one that needs nothing first."""
    return sorted(Known().names["embedder"], key=lambda name: (name != "wordllama", name))


def sources(snapshot: Snapshot) -> list[str]:
    """Return where names can come from: the shipped list, and collections with passages."""
    held = snapshot.collections().filter(pl.col("passages") > 0)["collection_id"].to_list()
    return [SHIPPED, *held]


def specification(form: Form) -> str:
    """Return the form as the text of a specification (TOML)."""
    dims = f", dim = [{', '.join(each for each in form.dims if each.isdecimal())}]" if form.dims else ""
    embedders = (f"{{ name = {toml(name)}{dims} }}" for name in form.embedders)
    return "\n".join(
        [
            f"name = {toml('names, ' + ' and '.join(form.embedders))}",
            f"embedder = [{', '.join(embedders)}]",
            f"language = {toml(list(form.languages))}",
            *([] if form.source == SHIPPED else [f"collection = {toml(form.source)}"]),
            f"runs = {form.runs}",
            f"queries = {form.queries}",
            *([] if form.budget is None else [f"budget_usd = {form.budget:g}"]),
        ]
    )


def button(made: NamesPlan) -> str:
    """Say what the button does: ``Embed 16,100 texts · $0.02 · about 2 min``."""
    return press(f"Embed {count(made.texts, 'text')}", made)


def ended(status: Status) -> str:
    """Say how one ended."""
    return closing(status, "its figures are in the store" if status.runs_done else "", ())


def table(known: Sequence[tuple[str, Status]]) -> pl.DataFrame:
    """Return all of them, newest first: name, state, stage, runs, usd, began (UTC), message."""
    return listed(known, {"stage": attrgetter("stage"), "runs": fact("runs")}, runs=pl.Int64())
