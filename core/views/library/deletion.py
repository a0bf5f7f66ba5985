"""Deleting and restoring by tombstone: what can be, what goes along, and the deed in one transaction."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from core.store import Kind, Snapshot, Store
from core.views import text

_NOTE = 400
NAMES: dict[Kind, str] = {"run": "run", "golden_set": "golden set", "collection": "collection"}
"""Kinds of things that can be deleted, in the words of a reader."""


def golden_sets(snapshot: Snapshot, *, removed: bool = False) -> pl.DataFrame:
    """Golden sets that are there, or the deleted ones."""
    columns = ("golden_set_id", "name", "collection_id", "judge", "mapping", "queries", "judgements", "spans")
    return snapshot.golden_sets(removed=removed).select(*columns, "notes")


def collections(snapshot: Snapshot, *, removed: bool = False) -> pl.DataFrame:
    """Collections that are there, or the deleted ones."""
    whole = pl.coalesce("part_of", "collection_id")
    chunks = (
        snapshot.collections(parts=True, hidden=removed)
        .filter(pl.col("part_of").is_not_null())
        .group_by(collection_id=whole)
        .agg(chunks=pl.col("passages").sum())
    )
    found = snapshot.collections(removed=removed).join(chunks, on="collection_id", how="left")
    for name, rows in (
        ("runs", snapshot.runs(hidden=removed)),
        ("golden_sets", snapshot.golden_sets(hidden=removed)),
    ):
        counts = rows.group_by("collection_id").agg(pl.len().cast(pl.Int64).alias(name))
        found = found.join(counts, on="collection_id", how="left", maintain_order="left")
    return found.with_columns(
        pl.col("passages") + pl.col("chunks").fill_null(0),
        pl.col("runs", "golden_sets").fill_null(0),
    ).select("collection_id", "name", "source", "runs", "golden_sets", "queries", "passages", "notes")


def gone(snapshot: Snapshot) -> dict[str, list[str]]:
    """Workspaces and golden sets that an older address may name, by its settings, and that were deleted."""
    sets = pl.concat([snapshot.golden_sets(removed=True), snapshot.golden_sets(hidden=True)])
    return {
        "ws": snapshot.collections(removed=True)["collection_id"].to_list(),
        "gs": sets["golden_set_id"].to_list(),
    }


def goes_along(snapshot: Snapshot, kind: Kind, ids: Sequence[str], *, removed: bool = False) -> str:
    """What disappears with things that are deleted, or comes back with those restored, in words.

    Returns:
        Counts such as ``3 runs, 1 golden set, 5 queries, 40 passages``; empty where nothing does.
    """
    if kind == "run":
        return ""
    words: dict[str, tuple[str, ...]]
    if kind == "golden_set":
        known = snapshot.golden_sets(parts=True, removed=removed)
        hidden = snapshot.golden_sets(parts=True, hidden=True)
        found = pl.concat([known, hidden]).filter(pl.coalesce("part_of", "golden_set_id").is_in(list(ids)))
        words = {"judgements": ("judgement",), "spans": ("anchored grade",)}
    else:
        found = collections(snapshot, removed=removed).filter(pl.col("collection_id").is_in(list(ids)))
        words = {
            "runs": ("run",),
            "golden_sets": ("golden set",),
            "queries": ("query", "queries"),
            "passages": ("passage",),
        }
    counts = {column: int(found[column].sum()) for column in words}
    return ", ".join(text.count(number, *words[column]) for column, number in counts.items() if number)


def delete(store: Store, ids: Sequence[str], kind: Kind = "run") -> str:
    """Hide runs, golden sets or collections, in one transaction.

    Returns:
        What happened, in words.

    Raises:
        InputError: If one is a part of another.
        StoreError: If the store cannot be written, or the collection of one is deleted.
        UnknownNameError: If one does not exist.
    """
    along = goes_along(store.read(), kind, ids)
    with store.write("delete", listed(ids, kind)) as writer:
        writer.remove(kind, ids)
        revision = writer.revision
    return (
        f"{_done(ids, kind, along, 'deleted')} in one transaction (revision {revision}). Links to "
        "earlier revisions keep showing them; restore brings them back."
    )


def restore(store: Store, ids: Sequence[str], kind: Kind = "run") -> str:
    """Bring back what was deleted, in one transaction; returns and raises as `delete`."""
    along = goes_along(store.read(), kind, ids, removed=True)
    with store.write("restore", listed(ids, kind)) as writer:
        writer.restore(kind, ids)
        revision = writer.revision
    return f"{_done(ids, kind, along, 'restored')} in one transaction (revision {revision})."


def listed(ids: Sequence[str], kind: Kind) -> str:
    """Names for the list of revisions; of runs just those."""
    what = "" if kind == "run" else f"{NAMES[kind]} "
    return text.shorten(what + ", ".join(ids), _NOTE)


def _done(ids: Sequence[str], kind: Kind, along: str, what: str) -> str:
    return f"{text.count(len(ids), NAMES[kind])}{f' (with {along})' if along else ''} {what}"
