"""The stack that runs today: marked in the store, one per workspace, and kept until another is."""

from __future__ import annotations

import json
from collections.abc import Sequence

import polars as pl

from core.analysis.workspace.resolve import known_collection
from core.analysis.workspace.scope import Scope, called
from core.analysis.workspace.stacks import runs_in
from core.axes import is_called
from core.errors import InputError, UnknownNameError
from core.store import Snapshot, Store
from core.tables import schema


def mark(store: Store, collection: str | None, name: str) -> str:
    """Mark a stack as the one that runs today; return its run.

    Args:
        collection: The workspace; None = the one that has it.
        name: Its run, name or label.

    Raises:
        UnknownNameError: If there is no such workspace or stack.
        InputError: If several have this name.
    """
    run_id = _found(store.read(), collection, name)
    with store.write("mark", f"runs today: {name}") as writer:
        writer.mark(run_id)
    return run_id


def _found(snapshot: Snapshot, collection: str | None, name: str) -> str:
    if collection is not None:
        known_collection(snapshot, collection)
    runs = snapshot.runs(collection)
    shown = [runs_in(snapshot, Scope(space)) for space in runs["collection_id"].unique(maintain_order=True)]
    names = pl.concat([schema("run_id name").to_frame(), *(rows["run_id", "name"] for rows in shown)])
    for known, column in ((runs, "run_id"), (names, "name"), (runs, "label"), (runs, None)):
        found = known.filter(pl.col(column) == name)["run_id"].to_list() if column else called(known, name)
        if len(found) > 1:
            raise InputError(
                f"{len(found)} stacks are called {name!r}.", do="Name its workspace, or its run."
            )
        if found:
            return str(found[0])
    raise UnknownNameError("stack", name, names["name"])


def mark_named(store: Store, name: str | None, run_ids: Sequence[str]) -> None:
    """Mark the one of these runs whose label, or whose pipeline, has a name; None = mark nothing."""
    named = store.read().runs().filter(pl.col("run_id").is_in(list(run_ids))) if name else pl.DataFrame()
    for row in named.iter_rows(named=True):
        if is_called(name, row["label"], json.loads(row["spec"])):
            with store.write("mark", f"runs today: {name}") as writer:
                writer.mark(row["run_id"])


def unmark(store: Store, collection: str | None) -> None:
    """Say that no stack of a workspace is known to run today.

    Raises:
        InputError: If several workspaces have a marked stack and none of them is named.
    """
    snapshot = store.read()
    named = marked(snapshot, collection)["collection_id"].to_list()
    if len(named) > 1:
        raise InputError(
            f"{len(named)} workspaces have one: {', '.join(named)}.", do="Name one: --collection."
        )
    if named:
        with store.write("mark", f"{named[0]}: no stack is marked as running today") as writer:
            writer.unmark(named[0])


def marked(snapshot: Snapshot, collection: str | None = None) -> pl.DataFrame:
    """Return the stacks that are marked, of one workspace or of all: collection_id, run_id, label."""
    if collection is not None:
        known_collection(snapshot, collection)
    runs = snapshot.runs(collection)
    found = [snapshot.incumbent(name) for name in runs["collection_id"].unique(maintain_order=True)]
    return runs.filter(pl.col("run_id").is_in(found)).select("collection_id", "run_id", "label")
