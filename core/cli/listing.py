"""``list runs|stacks|golden-sets|collections``: what the store holds.

``formats [NAME]``: what can be imported, or everything about one format.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import polars as pl
import typer

from core.cli.context import Context, Format, FormatOption, emit
from core.errors import UnknownNameError
from core.importers import FORMATS
from core.store import Snapshot
from core.views.add.imports import described, format_table


def formats(
    name: Annotated[
        str | None, typer.Argument(help="One format, as for import --as.", show_default=False)
    ] = None,
    form: FormatOption = Format.TABLE,
) -> None:
    """List the formats that can be imported, or say what is taken of one and what is left out."""
    if name is None:
        rows = format_table()
        emit(rows.select("as", "format", "brings") if form is Format.TABLE else rows, form)
        return
    known = [each.name for each in FORMATS]
    if name not in known:
        raise UnknownNameError("format", name, known)
    emit(pl.DataFrame(described(name), schema=["what", "how"], orient="row"), form)


class Kind(StrEnum):
    """What can be listed."""

    RUNS = "runs"
    STACKS = "stacks"
    GOLDEN_SETS = "golden-sets"
    COLLECTIONS = "collections"


_RUN_COLUMNS = (
    "run_id",
    "label",
    "collection_id",
    "origin",
    "pool",
    "stack_id",
    "created_at",
    "has_rankings",
)


def run(
    ctx: typer.Context,
    kind: Annotated[Kind, typer.Argument(help="What to list.", show_default=False)],
    collection: Annotated[str | None, typer.Option(help="Only of this collection.")] = None,
    removed: Annotated[bool, typer.Option("--removed", help="What was deleted instead.")] = False,
    form: FormatOption = Format.TABLE,
) -> None:
    """List runs, stacks, golden sets or collections."""
    context: Context = ctx.obj
    rows = _rows(context.store().read(), kind, collection, removed=removed)
    if kind is Kind.RUNS and form is Format.TABLE:
        rows = rows.select(_RUN_COLUMNS)
    emit(rows, form, empty=f"No {kind.value}.")


def _rows(snapshot: Snapshot, kind: Kind, collection: str | None, *, removed: bool) -> pl.DataFrame:
    if kind is Kind.RUNS:
        return snapshot.runs(collection, removed=removed)
    if kind is Kind.GOLDEN_SETS:
        return snapshot.golden_sets(collection, removed=removed)
    if kind is Kind.STACKS:
        if collection is None:
            return snapshot.stacks()
        return snapshot.stacks().join(snapshot.runs(collection), on="stack_id", how="semi")
    rows = snapshot.collections(removed=removed)
    return rows if collection is None else rows.filter(pl.col("collection_id") == collection)
