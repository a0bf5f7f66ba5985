"""What a store holds, what was deleted and what happened; the tables that papers print."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from core.exporters import FORMATS, Written, write
from core.paths import PUBLISHED
from core.store import Kind, Snapshot
from core.views import text
from core.views.library.deletion import NAMES, collections, golden_sets
from core.views.library.export import batch_of

ALL = "all collections"
_ORIGINS = {"run": "measured here", "import": "imported", "published": "published"}


def runs(snapshot: Snapshot, *, removed: bool = False) -> pl.DataFrame:
    """The runs of a store, newest first."""
    found = snapshot.runs(removed=removed)
    ranked = snapshot.sizes("rankings").select("id", "rows", "queries")
    told = found.filter(~pl.col("has_rankings"))["run_id"].to_list() if not removed else []
    averaged = (
        snapshot.aggregates(told).group_by("run_id").agg(pl.col("n").max().cast(pl.Int64).alias("told"))
    )
    return (
        found.join(ranked, left_on="run_id", right_on="id", how="left")
        .join(averaged, on="run_id", how="left")
        .sort("created_at", "run_id", descending=[True, False])
        .select(
            "run_id",
            "label",
            "collection_id",
            pl.col("origin").replace(_ORIGINS),
            "pool",
            pl.coalesce(pl.col("queries").cast(pl.Int64), "told").alias("n"),
            pl.col("rows").alias("passages"),
            "created_at",
            "added_revision",
        )
    )


LISTS: Mapping[Kind, Callable[..., pl.DataFrame]] = {
    "run": runs,
    "collection": collections,
    "golden_set": golden_sets,
}
"""Kind → the table of what there is of it, or with `removed` of what was deleted."""


def chosen(rows: pl.DataFrame, collection: str, words: str) -> pl.DataFrame:
    """The runs of a collection (or `ALL`) whose label or id holds some words, letter case aside."""
    if collection != ALL:
        rows = rows.filter(pl.col("collection_id") == collection)
    wanted = words.strip().lower()
    if not wanted:
        return rows
    named = pl.concat_str("label", "run_id", separator=" ").str.to_lowercase()
    return rows.filter(named.str.contains(wanted, literal=True))


def history(snapshot: Snapshot) -> pl.DataFrame:
    """What made each revision, newest first: revision, at (UTC), action, note."""
    return snapshot.revisions().sort("revision", descending=True)


def answer(snapshot: Snapshot) -> str:
    """What the store holds, and what could be restored, in a sentence."""
    held = snapshot.runs()
    by_origin = held.group_by("origin").len().sort("len", "origin", descending=[True, False])
    kinds = ", ".join(f"{count:,} {_ORIGINS.get(origin, origin)}" for origin, count in by_origin.iter_rows())
    return (
        f"The store holds {text.count(held.height, 'run')}{f' ({kinds})' if kinds else ''} on "
        f"{text.count(snapshot.collections().height, 'collection')} with "
        f"{text.count(snapshot.golden_sets().height, 'golden set')}, as of revision {snapshot.revision}"
        f"{_deleted(snapshot)}."
    )


def _deleted(snapshot: Snapshot) -> str:
    """What could be restored, in words; empty where nothing is deleted."""
    gone: dict[Kind, int] = {
        "run": snapshot.runs(removed=True).height,
        "golden_set": snapshot.golden_sets(removed=True).height,
        "collection": snapshot.collections(removed=True).height,
    }
    named = [text.count(number, NAMES[kind]) for kind, number in gone.items() if number]
    if not named:
        return ""
    return (
        f"; {' and '.join(named)} {'was' if sum(gone.values()) == 1 else 'were'} deleted and can be restored"
    )


@dataclass(frozen=True)
class Packed:
    """An export as one file."""

    content: bytes  # the zip
    written: Written  # what it holds


def packed(
    snapshot: Snapshot, name: str, *, collection_id: str | None, run_ids: Sequence[str] | None
) -> Packed:
    """Export a store, or a part of it, as a zip.

    Args:
        name: One of `core.exporters.FORMATS`.
        collection_id: Only this collection; None for all.
        run_ids: Only these runs; None for all.

    Raises:
        InputError: If the format cannot hold it.
        UnknownNameError: If the format, the collection or a run does not exist.
    """
    batch = batch_of(snapshot, run_ids=run_ids, collection_id=collection_id)
    with tempfile.TemporaryDirectory(prefix="clq-export-") as folder:
        path = Path(folder) / "export.zip"
        written = write(batch, path, name)
        return Packed(path.read_bytes(), written)


def packed_words(made: Packed) -> str:
    """What an export holds, and its size, in a sentence."""
    counts = ", ".join(f"{number:,} {what}" for what, number in made.written.counts.items())
    return f"{counts}; {text.weight(len(made.content))}."


def formats() -> dict[str, str]:
    """The formats that can be downloaded, by title."""
    return {each.title: name for name, each in FORMATS.items()}


SOURCES = {"CLQ": "CLQ paper", "RAGGED": "RAGGED", "thesis": "thesis on RAG methods"}
"""Sources by their word in the index, as people read them; in full in data/published/README.md."""


def printed_tables() -> pl.DataFrame:
    """The published tables.

    Returns:
        name ("CLQ paper, Table 12: …", unique), file, table (null = the whole file), source; in the papers'
        order.
    """
    index = pl.read_csv(PUBLISHED / "index.csv", infer_schema=False)
    source = pl.col("source").replace_strict(SOURCES)
    number = (
        pl.when(pl.col("table").is_not_null()).then(pl.format(", Table {}", "table")).otherwise(pl.lit(""))
    )
    return index.select(
        pl.format("{}{}: {}", source, number, "title").alias("name"), "file", "table", "source"
    )


def printed(file: str, table: str | None) -> pl.DataFrame:
    """The figures of one published table.

    Args:
        table: Its number in the paper; None = the whole file.

    Returns:
        One row per printed number with the columns of the file that the table uses, numbers as numbers.
    """
    rows = pl.read_csv(PUBLISHED / file, infer_schema_length=None, schema_overrides={"table": pl.String})
    if table is not None:
        rows = rows.filter(pl.col("table") == table).drop("table")
    return rows.select(column for column in rows if column.null_count() < rows.height)
