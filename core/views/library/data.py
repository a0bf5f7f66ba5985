"""Data of page Library: the contents of a store, deletions and history; the papers' printed tables.

And the fields of a collection's passages, with those that say what an asker may see.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import polars as pl

from core.analysis.cache import cached
from core.analysis.export import batch_of
from core.errors import UnknownNameError
from core.exporters import FORMATS, WrittenExport, write
from core.filters import Kind, decoded, fields_of, kinds, parse
from core.paths import PUBLISHED
from core.records import BASES, Batch, Origin
from core.store import LedgerKind, Snapshot, Store
from core.tables import frame
from core.views import columns as cols
from core.views import text

FIELDS = cols.Rows(
    "fields",
    cols.text("field", width=200),
    cols.text("kind", "type", "That of most of its values, unless it is declared."),
    cols.count("passages", "passages that have it"),
    cols.count("queries", "questions that filter by it"),
    cols.text("permission", help="A stack that shows what it forbids is not shipped."),
)
YES = "permission"
_NOTE = 400
NAMES: dict[LedgerKind, str] = {"run": "run", "golden_set": "golden set", "collection": "collection"}
"""Kinds of things that can be deleted, in the words of a reader."""
ALL = "all collections"
SOURCES = {"CLQ": "CLQ paper", "RAGGED": "RAGGED", "thesis": "thesis on RAG methods"}
"""Readable names of the sources in the index; in full in data/published/README.md."""
HEADINGS: Mapping[str, str] = {
    "dim": "dimensions",
    "mode": "search, or what is sent",
    "ann": "index",
    "candidates_k": "K (candidates)",
    "k": "cutoff, or passages sent",
    "n_queries": "n (queries)",
    "pool": "pool convention",
    "threshold": "score threshold",
    "doc_match": "gold document among them (share)",
    "row": "printed row",
    "value": "value, in the metric's unit",
    "value_pct": "value (%)",
}
"""Labels of columns of the published files whose name isn't self-explanatory."""


@cached("Reading metadata…")
def fields(snapshot: Snapshot, collection_id: str) -> pl.DataFrame:
    """Return the fields of a collection's passages or documents, by name; without rows if it has none."""
    known = snapshot.passage_metadata(collection_id)["metadata"].to_list()
    declared = snapshot.fields(collection_id)
    said = dict(declared.select("field", "kind").drop_nulls().iter_rows())
    typed = fields_of(decoded(known), {name: Kind(kind) for name, kind in said.items()})
    marked = set(declared.filter("permission")["field"])
    texts = snapshot.query_filters(collection_id)["filter"].to_list()
    of_text = {each: parse(each).names for each in set(texts)}
    asked = Counter(name for each in texts for name in of_text[each])
    rows = [
        (name, kind.value, len(typed) - typed[name].null_count(), asked[name], YES if name in marked else "")
        for name, kind in kinds(typed).items()
    ]
    return FIELDS.frame(rows)


def mark(store: Store, collection_id: str, names: Sequence[str]) -> str:
    """Mark these fields as permissions, and no others, in one transaction; return what was done, in words.

    Earlier revisions keep the marks that they had.

    Raises:
        UnknownNameError: If one of the names is a field of no passage.
    """
    snapshot = store.read()
    known, before = fields(snapshot, collection_id), snapshot.fields(collection_id)
    for name in names:
        if name not in set(known["field"]):
            raise UnknownNameError("field of passages", name, known["field"])
    declared = dict(before.select("field", "kind").iter_rows())
    said = ", ".join(names) or "none"
    rows = [
        {
            "collection_id": collection_id,
            "field": name,
            "kind": declared.get(name),
            "permission": name in names,
        }
        for name in sorted({*declared, *names})
    ]
    if rows:
        with store.write("fields", f"{collection_id}: permissions {said}"[:400]) as writer:
            writer.add(Batch(frames={"fields": frame("fields", rows)}), replacing=[collection_id])
    return f"{text.count(len(names), 'permission')} of {collection_id}: {said}."


def golden_sets(snapshot: Snapshot, *, removed: bool = False) -> pl.DataFrame:
    """Return the existing golden sets, or the deleted ones."""
    columns = ("golden_set_id", "name", "collection_id", "judge", "mapping", "queries", "judgements", "spans")
    return snapshot.golden_sets(removed=removed).select(*columns, "notes")


def collections(snapshot: Snapshot, *, removed: bool = False) -> pl.DataFrame:
    """Return the existing collections, or the deleted ones."""
    whole = pl.coalesce("part_of", "collection_id")
    chunks = (
        snapshot.collections(parts=True, hidden=removed)
        .filter(pl.col("part_of").is_not_null())
        .group_by(collection_id=whole)
        .agg(chunks=pl.col("passages").sum())
    )
    listed = snapshot.collections(removed=removed).join(chunks, on="collection_id", how="left")
    for name, rows in (
        ("runs", snapshot.runs(hidden=removed)),
        ("golden_sets", snapshot.golden_sets(hidden=removed)),
    ):
        counts = rows.group_by("collection_id").agg(pl.len().cast(pl.Int64).alias(name))
        listed = listed.join(counts, on="collection_id", how="left", maintain_order="left")
    return listed.with_columns(
        pl.col("passages") + pl.col("chunks").fill_null(0), pl.col("runs", "golden_sets").fill_null(0)
    ).select("collection_id", "name", "source", "runs", "golden_sets", "queries", "passages", "notes")


def gone(snapshot: Snapshot) -> dict[str, list[str]]:
    """Return deleted workspaces and golden sets that an old URL may still name, keyed by URL setting."""
    sets = pl.concat([snapshot.golden_sets(removed=True), snapshot.golden_sets(hidden=True)])
    return {
        "ws": snapshot.collections(removed=True)["collection_id"].to_list(),
        "gs": sets["golden_set_id"].to_list(),
    }


def goes_along(snapshot: Snapshot, kind: LedgerKind, ids: Sequence[str], *, removed: bool = False) -> str:
    """Say what disappears with the things deleted, or comes back with those restored.

    Returns:
        Counts such as ``3 runs, 1 golden set, 5 queries, 40 passages``, or "" if nothing does.
    """
    if kind == "run":
        return ""
    if kind == "golden_set":
        known = snapshot.golden_sets(parts=True, removed=removed)
        hidden = snapshot.golden_sets(parts=True, hidden=True)
        rows = pl.concat([known, hidden]).filter(pl.coalesce("part_of", "golden_set_id").is_in(list(ids)))
        words = {"judgements": "judgement", "spans": "anchored grade"}
    else:
        rows = collections(snapshot, removed=removed).filter(pl.col("collection_id").is_in(list(ids)))
        words = {"runs": "run", "golden_sets": "golden set", "queries": "query", "passages": "passage"}
    counts = {column: int(rows[column].sum()) for column in words}
    return ", ".join(text.count(number, words[column]) for column, number in counts.items() if number)


def delete(store: Store, ids: Sequence[str], kind: LedgerKind = "run") -> str:
    """Hide runs, golden sets or collections, in one transaction.

    Returns:
        What happened, in words.

    Raises:
        InputError: If one is part of another.
        StoreError: If the store cannot be written, or the collection of one is deleted.
        UnknownNameError: If one does not exist.
    """
    said = _change(store, "delete", ids, kind)
    return f"{said} Links to earlier revisions keep showing them; restore brings them back."


def restore(store: Store, ids: Sequence[str], kind: LedgerKind = "run") -> str:
    """Bring back deleted things, in one transaction; returns and raises like `delete`."""
    return _change(store, "restore", ids, kind)


def _change(store: Store, event: Literal["delete", "restore"], ids: Sequence[str], kind: LedgerKind) -> str:
    along = goes_along(store.read(), kind, ids, removed=event == "restore")
    with store.write(event, listed(ids, kind)) as writer:
        (writer.remove if event == "delete" else writer.restore)(kind, ids)
        revision = writer.revision
    what = f"{text.count(len(ids), NAMES[kind])}{f' (with {along})' if along else ''}"
    return f"{what} {event}d in one transaction (revision {revision})."


def listed(ids: Sequence[str], kind: LedgerKind) -> str:
    """Return ids in the form of the list of revisions: unless they are of runs, with their kind in front."""
    what = "" if kind == "run" else f"{NAMES[kind]} "
    return text.shorten(what + ", ".join(ids), _NOTE)


def runs(snapshot: Snapshot, *, removed: bool = False) -> pl.DataFrame:
    """Return the runs of a store, newest first."""
    listed = snapshot.runs(removed=removed)
    ranked = snapshot.sizes("rankings").select("id", "rows", "queries")
    without = listed.filter(~pl.col("has_rankings"))["run_id"].to_list() if not removed else []
    averaged = (
        snapshot.aggregates(without).group_by("run_id").agg(pl.col("n").max().cast(pl.Int64).alias("told"))
    )
    return (
        listed.join(ranked, left_on="run_id", right_on="id", how="left")
        .join(averaged, on="run_id", how="left")
        .sort("created_at", "run_id", descending=[True, False])
        .select(
            "run_id",
            "label",
            "collection_id",
            pl.col("origin").replace(BASES),
            "pool",
            pl.coalesce(pl.col("queries").cast(pl.Int64), "told").alias("n"),
            pl.col("rows").alias("passages"),
            "created_at",
            "added_revision",
        )
    )


_LISTS: Mapping[LedgerKind, Callable[..., pl.DataFrame]] = {
    "run": runs,
    "collection": collections,
    "golden_set": golden_sets,
}


def rows_of(snapshot: Snapshot, kind: LedgerKind, *, removed: bool = False) -> pl.DataFrame:
    """Return the existing things of a kind, or the deleted ones."""
    return _LISTS[kind](snapshot, removed=removed)


def chosen(rows: pl.DataFrame, collection: str, words: str) -> pl.DataFrame:
    """Return the runs of a collection (or `ALL`) whose label or id contains some words, ignoring case."""
    if collection != ALL:
        rows = rows.filter(pl.col("collection_id") == collection)
    wanted = words.strip().lower()
    if not wanted:
        return rows
    named = pl.concat_str("label", "run_id", separator=" ").str.to_lowercase()
    return rows.filter(named.str.contains(wanted, literal=True))


def answer(snapshot: Snapshot) -> tuple[str, str]:
    """Return the store's contents; then its origin, its revision, and what could be restored."""
    held = snapshot.runs()
    by_origin = held.group_by("origin").len().sort("len", "origin", descending=[True, False])
    said = {**BASES, Origin.PUBLISHED.value: "from papers"}
    origins = [f"{count:,} {said.get(origin, origin)}" for origin, count in by_origin.iter_rows()]
    where = held["collection_id"].n_unique()
    kinds = (
        text.count(snapshot.golden_sets().height, "golden set"),
        text.count(snapshot.collections().height, "collection"),
    )
    deleted = {kind: getattr(snapshot, f"{kind}s")(removed=True).height for kind in NAMES}
    gone = " and ".join(text.count(number, NAMES[kind]) for kind, number in deleted.items() if number)
    restored = f"{gone} deleted, to be restored" if gone else ""
    return (
        f"The store holds {text.count(held.height, 'run')} in {text.count(where, 'workspace')}"
        f"{': ' if origins else ''}{', '.join(origins)}.",
        f"{'; '.join(filter(None, (*kinds, f'revision {snapshot.revision}', restored)))}.",
    )


@dataclass(frozen=True)
class Packed:
    """An export as one file."""

    content: bytes  # the zip
    written: WrittenExport  # its contents


def packed(snapshot: Snapshot, name: str, collection_id: str | None = None) -> Packed:
    """Export a store, or part of it, as a zip.

    Args:
        name: One of `core.exporters.FORMATS`.
        collection_id: Only this collection; None = all.

    Raises:
        InputError: If the format cannot hold it.
        UnknownNameError: If the format or the collection does not exist.
    """
    batch = batch_of(snapshot, collection_id=collection_id)
    with tempfile.TemporaryDirectory(prefix="clq-export-") as folder:
        path = Path(folder) / "export.zip"
        written = write(batch, path, name)
        return Packed(path.read_bytes(), written)


def packed_words(packed: Packed) -> str:
    """State the contents and size of an export."""
    counts = ", ".join(f"{number:,} {what}" for what, number in packed.written.counts.items())
    return f"{counts}; {text.format_bytes(len(packed.content))}."


def formats() -> dict[str, str]:
    """Return the downloadable formats, by title."""
    return {form.title: name for name, form in FORMATS.items()}


def printed_tables() -> pl.DataFrame:
    """Return the published tables.

    Returns:
        name ("CLQ paper, Table 12: …", unique), file, table (null = the whole file), source; in the papers'
        order.
    """
    index = pl.read_csv(PUBLISHED / "index.csv", infer_schema=False)
    source = pl.col("source").replace_strict(SOURCES)
    number = pl.coalesce(pl.format(", Table {}", "table"), pl.lit(""))
    name = pl.format("{}{}: {}", source, number, "title").alias("name")
    return index.select(name, "file", "table", "source")


def printed(file: str, table: str | None) -> pl.DataFrame:
    """Return the figures of one published table.

    Args:
        table: Its number in the paper; None = the whole file.

    Returns:
        One row per printed number with the file's columns that the table uses, numbers as numbers.
    """
    rows = pl.read_csv(PUBLISHED / file, infer_schema_length=None, schema_overrides={"table": pl.String})
    if table is not None:
        rows = rows.filter(pl.col("table") == table).drop("table")
    return rows.select(column for column in rows if column.null_count() < rows.height)
