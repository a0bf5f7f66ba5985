"""Diagnoses in the store, and one of names as the page asks for it: specification, button, how it ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING

import polars as pl

from core.number_format import count, usd
from core.records import Batch
from core.store import Snapshot, Store, Writer
from core.toml_text import toml_text
from core.work.paid import closing, fact, listed, press, without_price

if TYPE_CHECKING:  # the engines take a second to load
    from core.diagnostics.names.job import NamesPlan
    from core.pipeline.evaluate import Status


def land(store: Store, batch: Batch) -> None:
    """Write figures; those of the same embedder, dimension and language take the place of earlier ones."""
    names = ", ".join(collection.collection_id for collection in batch.collections)
    with store.write("diagnose", names[:500]) as writer:
        add(writer, store.read(), batch)


def add(writer: Writer, snapshot: Snapshot, batch: Batch) -> None:
    """Add figures to a transaction; what was deleted comes back with these, earlier figures make way."""
    known, deleted = (set(snapshot.collections(removed=gone)["collection_id"]) for gone in (False, True))
    names = [collection.collection_id for collection in batch.collections]
    writer.restore("collection", [name for name in names if name in deleted])
    writer.add(batch, replacing=[name for name in names if name in known | deleted])


def diagnosed(snapshot: Snapshot, diagnosis: str) -> pl.DataFrame:
    """Return the figures of all diagnoses of a kind ("names", "noise")."""
    there = set(snapshot.collections()["collection_id"])
    rows = snapshot.diagnostics([name for name in snapshot.sizes("diagnostics")["id"] if name in there])
    return rows.filter(diagnosis=diagnosis)


SHIPPED = "shipped authors"
NO_EMBEDDER = "Choose an embedder; wordllama runs here without a key."


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """Values of the form's fields."""

    embedders: Sequence[str]
    dims: Sequence[str] = ()  # none = the embedder's own
    languages: Sequence[str] = ("en",)
    source: str = SHIPPED  # or a stored collection, whose sources are names and titles topics
    runs: int = 15
    queries: int = 100
    budget: float | None = None


def sources(snapshot: Snapshot) -> list[str]:
    """Return where names can come from: the shipped list, and collections with passages."""
    held = snapshot.collections().filter(pl.col("passages") > 0)["collection_id"].to_list()
    return [SHIPPED, *held]


def specification(form: Form) -> str:
    """Return the form as the text of a specification (TOML)."""
    dims = [int(dim) for dim in form.dims if dim.isdecimal()]
    head = {
        "name": f"names, {' and '.join(form.embedders)}",
        "language": list(form.languages),
        "collection": None if form.source == SHIPPED else form.source,
        "runs": form.runs,
        "queries": form.queries,
        "budget_usd": form.budget,
    }
    embedders = (("[embedder]", {"name": name, "dim": dims or None}) for name in form.embedders)
    return toml_text(("", head), *embedders)


def size_of(plan: NamesPlan) -> str:
    """Say how many texts are embedded, and what that costs."""
    if not plan.lines:
        return f"{count(plan.texts, 'text')} to embed; nothing is paid for."
    least = "unknown, at least " if plan.usd is None else ""
    limit = f"; the budget of {usd(plan.limit)} ends it before" if plan.over_budget else ""
    return f"{count(plan.texts, 'text')} to embed: {least}{usd(plan.usd_known)}{limit}.{without_price(plan)}"


def button(plan: NamesPlan) -> str:
    """Say what the button does: ``Embed 16,100 texts · $0.02 · about 2 min``."""
    return press(f"Embed {count(plan.texts, 'text')}", plan)


def ended(status: Status) -> str:
    """Say how one ended."""
    return closing(status, "its figures are in the store" if status.runs_done else "", ())


def table(known: Sequence[tuple[str, Status]]) -> pl.DataFrame:
    """Return all of them, newest first: name, state, stage, runs, usd, began (UTC), message."""
    return listed(known, {"stage": attrgetter("stage"), "runs": fact("runs")}, runs=pl.Int64())
