"""``list runs|stacks|golden-sets|collections``: what the store holds.

``delete RUN…`` hides runs, golden sets or collections with what is theirs; ``restore`` undoes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

import polars as pl
import typer

from core.cli.context import Context, Format, FormatOption, emit
from core.errors import UnknownNameError
from core.store import Kind, Snapshot
from core.views.library.inventory import NAMES, goes_along, listed
from core.views.workspace.scope import resolve_runs

Runs = Annotated[list[str] | None, typer.Argument(help="Run ids, or labels of one run.", show_default=False)]
GoldenSets = Annotated[list[str] | None, typer.Option("--golden-set", help="A golden set; may be repeated.")]
Collections = Annotated[
    list[str] | None,
    typer.Option("--collection", help="A collection with all that belongs to it; may be repeated."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what goes along; write nothing.")]
_SCHEMA = {"kind": pl.String, "id": pl.String, "name": pl.String, "along": pl.String, "status": pl.String}


def delete(
    ctx: typer.Context,
    runs: Runs = None,
    *,
    golden_set: GoldenSets = None,
    collection: Collections = None,
    dry_run: DryRun = False,
    form: FormatOption = Format.TABLE,
) -> None:
    """Delete runs, golden sets or collections; earlier revisions show them, and restore brings them back.

    A collection takes its runs, golden sets, queries and passages along; restoring it brings back just those.
    """
    _turn(ctx.obj, "delete", (runs, golden_set, collection), form, dry_run=dry_run)


def restore(
    ctx: typer.Context,
    runs: Runs = None,
    *,
    golden_set: GoldenSets = None,
    collection: Collections = None,
    dry_run: DryRun = False,
    form: FormatOption = Format.TABLE,
) -> None:
    """Restore deleted runs, golden sets or collections, with what their deletion hid."""
    _turn(ctx.obj, "restore", (runs, golden_set, collection), form, dry_run=dry_run)


def _turn(
    context: Context,
    event: Literal["delete", "restore"],
    asked: tuple[list[str] | None, list[str] | None, list[str] | None],
    form: Format,
    *,
    dry_run: bool,
) -> None:
    """Delete or restore runs, golden sets and collections in one transaction; print what goes along."""
    kinds: tuple[Kind, ...] = ("run", "golden_set", "collection")
    named: Mapping[Kind, list[str]] = {kind: names or [] for kind, names in zip(kinds, asked, strict=True)}
    if not any(named.values()):
        raise typer.BadParameter("Name runs, a --golden-set or a --collection.", param_hint="RUN")
    snapshot = context.store().read()
    removed = event == "restore"
    labels = _labels(snapshot, removed=removed)
    chosen = {kind: _ids(kind, labels[kind], names) for kind, names in named.items()}
    # A golden set of a collection that comes back with it, or that is to stay deleted when that comes back.
    steps = [(kind, chosen[kind]) for kind in (reversed(kinds) if removed else kinds) if chosen[kind]]
    if not dry_run:
        with context.write(event, "; ".join(listed(ids, kind) for kind, ids in steps)) as writer:
            for kind, ids in steps:
                (writer.restore if removed else writer.remove)(kind, ids)
    status = f"would {event}" if dry_run else f"{event}d"
    rows = [
        (NAMES[kind], each, labels[kind][each], goes_along(snapshot, kind, [each], removed=removed), status)
        for kind, ids in steps
        for each in ids
    ]
    emit(pl.DataFrame(rows, schema=_SCHEMA, orient="row"), form)


def _labels(snapshot: Snapshot, *, removed: bool) -> dict[Kind, dict[str, str]]:
    """By kind the names of what is there; removed: of what is not, whether it was deleted or is hidden."""
    seen = snapshot.with_deleted() if removed else snapshot
    tables: dict[Kind, tuple[pl.DataFrame, str]] = {
        "run": (seen.runs(), "label"),
        "golden_set": (seen.golden_sets(parts=True), "name"),
        "collection": (seen.collections(parts=True), "name"),
    }
    there = _labels(snapshot, removed=False) if removed else {}
    return {
        kind: {
            each: name
            for each, name in rows.select(f"{kind}_id", label).iter_rows()
            if each not in there.get(kind, ())
        }
        for kind, (rows, label) in tables.items()
    }


def _ids(kind: Kind, labels: dict[str, str], names: Sequence[str]) -> list[str]:
    if kind == "run":
        schema = {"run_id": pl.String, "label": pl.String}
        return resolve_runs(pl.DataFrame(list(labels.items()), schema=schema, orient="row"), names)
    for name in names:
        if name not in labels:
            raise UnknownNameError(NAMES[kind], name, labels)
    return list(dict.fromkeys(names))


Listed = Literal["runs", "stacks", "golden-sets", "collections"]


def list_(
    ctx: typer.Context,
    kind: Annotated[Listed, typer.Argument(help="What to list.", show_default=False)],
    collection: Annotated[str | None, typer.Option(help="Only of this collection.")] = None,
    removed: Annotated[bool, typer.Option("--removed", help="What was deleted instead.")] = False,
    form: FormatOption = Format.TABLE,
) -> None:
    """List runs, stacks, golden sets or collections."""
    context: Context = ctx.obj
    rows = _rows(context.store().read(), kind, collection, removed=removed)
    if kind == "runs" and form is Format.TABLE:
        rows = rows.select(
            "run_id", "label", "collection_id", "origin", "pool", "stack_id", "created_at", "has_rankings"
        )
    emit(rows, form, empty=f"No {kind}.")


def _rows(snapshot: Snapshot, kind: Listed, collection: str | None, *, removed: bool) -> pl.DataFrame:
    if kind == "runs":
        return snapshot.runs(collection, removed=removed)
    if kind == "golden-sets":
        return snapshot.golden_sets(collection, removed=removed)
    if kind == "stacks":
        if collection is None:
            return snapshot.stacks()
        return snapshot.stacks().join(snapshot.runs(collection), on="stack_id", how="semi")
    rows = snapshot.collections(removed=removed)
    return rows if collection is None else rows.filter(pl.col("collection_id") == collection)
