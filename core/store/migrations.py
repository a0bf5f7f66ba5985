"""The catalogue's schema, as an append-only list of steps. A released step is never edited.

A writer applies the missing steps, in one transaction, to its private copy of the catalogue: if a step fails,
the copy is thrown away and the store is unchanged.
"""

from __future__ import annotations

from typing import NamedTuple

import duckdb

from core.errors import StoreError, StoreVersionError


class Migration(NamedTuple):
    """One step: its number (consecutive from 1), a name, and SQL statements."""

    number: int
    name: str
    sql: str


MIGRATIONS: tuple[Migration, ...] = (
    Migration(
        1,
        "first light",
        """
        CREATE TABLE revisions (
            revision BIGINT PRIMARY KEY, made_at TIMESTAMP NOT NULL, action VARCHAR NOT NULL,
            note VARCHAR NOT NULL);
        CREATE TABLE collections (
            collection_id VARCHAR PRIMARY KEY, name VARCHAR NOT NULL, source VARCHAR NOT NULL,
            notes VARCHAR NOT NULL);
        CREATE TABLE golden_sets (
            golden_set_id VARCHAR PRIMARY KEY, collection_id VARCHAR NOT NULL, name VARCHAR NOT NULL,
            mapping VARCHAR NOT NULL, judge VARCHAR NOT NULL, notes VARCHAR NOT NULL);
        CREATE TABLE stacks (stack_id VARCHAR PRIMARY KEY, spec VARCHAR NOT NULL, label VARCHAR NOT NULL);
        CREATE TABLE runs (
            run_id VARCHAR PRIMARY KEY, collection_id VARCHAR NOT NULL, stack_id VARCHAR NOT NULL,
            label VARCHAR NOT NULL, origin VARCHAR NOT NULL, pool VARCHAR, environment VARCHAR NOT NULL,
            manifest VARCHAR NOT NULL, created_at TIMESTAMP NOT NULL);
        -- One Parquet file of one bulk table; path is relative to the store.
        CREATE TABLE parts (
            part_id BIGINT PRIMARY KEY, table_name VARCHAR NOT NULL, path VARCHAR NOT NULL,
            rows BIGINT NOT NULL, bytes BIGINT NOT NULL, checksum VARCHAR NOT NULL, revision BIGINT NOT NULL);
        -- Whose rows a part holds: id is a collection, golden set or run. All rows that one id has in one
        -- table are in one part. queries: distinct query ids, null for tables without them.
        CREATE TABLE part_keys (
            part_id BIGINT NOT NULL, id VARCHAR NOT NULL, rows BIGINT NOT NULL, queries BIGINT);
        -- Append-only: what became visible or invisible when. kind: collection, golden_set, run;
        -- event: added, removed, restored. seq orders events of one revision.
        CREATE TABLE events (
            seq BIGINT NOT NULL, kind VARCHAR NOT NULL, id VARCHAR NOT NULL, revision BIGINT NOT NULL,
            event VARCHAR NOT NULL);
        CREATE MACRO state(of_kind, pinned) AS TABLE
            SELECT id, min(revision) AS added_revision, arg_max(event, seq) AS event
            FROM events WHERE kind = of_kind AND revision <= pinned GROUP BY id;
        CREATE MACRO held(of_table, pinned) AS TABLE
            SELECT k.id, p.path, k.rows, k.queries
            FROM part_keys k JOIN parts p USING (part_id)
            WHERE p.table_name = of_table AND p.revision <= pinned;
        """,
    ),
    Migration(
        2,
        "chunkings",
        """
        ALTER TABLE collections ADD COLUMN part_of VARCHAR;
        ALTER TABLE golden_sets ADD COLUMN part_of VARCHAR;
        ALTER TABLE runs ADD COLUMN chunking VARCHAR;
        """,
    ),
    Migration(
        3,
        "rows that take the place of others",
        """
        -- From now on an id may have rows of one table in several parts: the last one counts.
        CREATE OR REPLACE MACRO held(of_table, pinned) AS TABLE
            SELECT k.id, arg_max(p.path, part_id) AS path, arg_max(k.rows, part_id) AS rows,
                arg_max(k.queries, part_id) AS queries
            FROM part_keys k JOIN parts p USING (part_id)
            WHERE p.table_name = of_table AND p.revision <= pinned GROUP BY k.id;
        """,
    ),
    Migration(
        4,
        "how golden sets were made",
        """
        -- parents: a JSON list of golden set ids; manifest: a JSON map.
        ALTER TABLE golden_sets ADD COLUMN parents VARCHAR DEFAULT '[]';
        ALTER TABLE golden_sets ADD COLUMN manifest VARCHAR DEFAULT '{}';
        """,
    ),
    Migration(
        5,
        "answers by reader",
        """
        -- Parts of answers written from now on have other columns: those of before stay as they are, and
        -- a release that knows these only must not open the store.
        COMMENT ON TABLE parts IS 'answers: by reader, prompt, temperature, mode, k and pass';
        """,
    ),
)


def version(cursor: duckdb.DuckDBPyConnection, where: str = "") -> int:
    """Return the number of the last step applied to the cursor's catalogue."""
    number = len(cursor.execute("SELECT number FROM migrations").fetchall())
    if number > MIGRATIONS[-1].number:
        raise StoreVersionError(
            f"The store has schema {number}; this release knows schemas up to {MIGRATIONS[-1].number}.",
            where=where,
            do="Update CLQ Explorer, or name another store.",
        )
    return number


def migrate(cursor: duckdb.DuckDBPyConnection, where: str = "", *, empty: bool) -> int:
    """Apply the missing steps inside the caller's transaction."""
    # For an empty catalogue, reading the version would be an error, which ends the transaction.
    missing = MIGRATIONS[0 if empty else version(cursor, where) :]
    if empty:
        cursor.execute("CREATE TABLE migrations (number BIGINT PRIMARY KEY, name VARCHAR NOT NULL)")
    for step in missing:
        try:
            cursor.execute(step.sql)
            cursor.execute("INSERT INTO migrations VALUES (?, ?)", [step.number, step.name])
        except duckdb.Error as error:
            raise StoreError(
                f"Step {step.number} ({step.name}) of the store's schema failed: {error}",
                where=where,
                do="The store is unchanged; report this.",
            ) from error
    return len(missing)
