"""What is there, what was deleted, and what a deletion takes along.

Only what a user deleted has a tombstone. Golden sets and runs of a deleted collection, and the parts of
anything deleted, are hidden as long as that is; so restoring it brings back exactly what its deletion hid,
and what was deleted before stays deleted.
"""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

STATE = """
SELECT kind, id, min(revision) AS added_revision, arg_max(event, seq) AS event
FROM events WHERE revision <= $revision GROUP BY kind, id
"""
WHOLES = """
SELECT 'collection' AS kind, collection_id AS id, collection_id, part_of FROM collections
UNION ALL SELECT 'golden_set', golden_set_id, collection_id, part_of FROM golden_sets
UNION ALL SELECT 'run', run_id, collection_id, NULL FROM runs
"""
THERE = (pl.col("event") != "removed") & pl.col("behind").is_null()
DELETED = (pl.col("event") == "removed") & pl.col("behind").is_null()
HIDDEN = (pl.col("event") != "removed") & pl.col("behind").is_not_null()


def standing(state: pl.DataFrame, wholes: Callable[[], pl.DataFrame]) -> pl.DataFrame:
    """Where every record stands."""
    gone = state.filter((pl.col("event") == "removed") & (pl.col("kind") != "run"))
    if gone.is_empty():
        return state.with_columns(behind=pl.lit(None, pl.String))
    named = pl.format("{} '{}'", pl.col("kind").str.replace("_", " "), "id")
    gone = gone.select("kind", "id", behind=named)
    collections = gone.filter(kind="collection").drop("kind")
    records = wholes()
    of_parts = _behind(records, gone, ["kind", "part_of"], ["kind", "id"])
    parts = of_parts.filter(kind="collection").select("id", "behind")
    of_collections = _behind(
        records.filter(pl.col("kind") != "collection"),
        pl.concat([collections, parts]),
        ["collection_id"],
        ["id"],
    )
    hidden = pl.concat([of_collections, of_parts]).unique(["kind", "id"], keep="first", maintain_order=True)
    return state.join(hidden, on=["kind", "id"], how="left", maintain_order="left")


def _behind(records: pl.DataFrame, gone: pl.DataFrame, left: list[str], right: list[str]) -> pl.DataFrame:
    """kind, id and behind of the records that name something that is gone."""
    return records.join(gone, left_on=left, right_on=right).select("kind", "id", "behind")
