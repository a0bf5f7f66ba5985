"""The form of a diagnosis of names, and its specification."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from core.store import Snapshot
from core.toml_text import toml_text

SHIPPED = "shipped authors"


@dataclass(frozen=True, slots=True, kw_only=True)
class NamesForm:
    """Values of the form's fields."""

    embedders: Sequence[str]
    dims: Sequence[str] = ()  # none = the embedder's default
    languages: Sequence[str] = ("en",)
    source: str = SHIPPED  # or a stored collection, whose sources serve as names and titles as topics
    runs: int = 15
    queries: int = 100
    budget: float | None = None


def sources(snapshot: Snapshot) -> list[str]:
    """Return the possible sources of names: the shipped list, and collections with passages."""
    held = snapshot.collections().filter(pl.col("passages") > 0)["collection_id"].to_list()
    return [SHIPPED, *held]


def specification(form: NamesForm) -> str:
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
