"""Seals of the book of judges: a mark in every row that reveals content nobody wrote.

SQLite does not notice a flipped bit in a grade, an id or a count: the file opens with altered content. So
each row carries a digest of itself, a queue also a digest of its number of cards, and strokes are numbered
without gaps.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from types import MappingProxyType

from core.errors import StoreDamagedError

COLUMNS: Mapping[str, Sequence[str]] = MappingProxyType({
    "queues": (
        "queue_id", "collection_id", "judge", "mode", "base", "other", "sampling", "seed", "created_at",
    ),
    "items": (
        "queue_id", "place", "query_id", "passage_id", "grade", "position", "note", "seconds", "at", "stroke",
    ),
    "strokes": ("stroke", "queue_id", "place", "act", "said", "seconds", "at"),
})  # fmt: skip
"""The columns of each table that its mark covers."""
RESTORE = "Restore a backup with `python -m core store restore BACKUP`; the file itself is left as it is."


def mark(*values: object) -> bytes:
    """Return a digest of a row's values."""
    return blake2b(repr(values).encode(), digest_size=8).digest()


def adopt(db: sqlite3.Connection) -> None:
    """Add marks, even to an unmarked file of an earlier release."""
    for table, columns in COLUMNS.items():
        if not _marked(db, table):
            db.execute(f"ALTER TABLE {table} ADD COLUMN mark BLOB")
        changed = f"UPDATE OF {', '.join(columns[1:])} ON {table}"
        db.execute(
            f"CREATE TRIGGER IF NOT EXISTS {table}_changed AFTER {changed} BEGIN "  # noqa: S608 - own words
            f"UPDATE {table} SET mark = NULL WHERE rowid = NEW.rowid; END"
        )
    seal(db)


def seal(db: sqlite3.Connection) -> None:
    """Mark the rows that were added or changed, in the transaction that changed them."""
    for table, columns in COLUMNS.items():
        asked = f"SELECT rowid, {', '.join(columns)} FROM {table} WHERE mark IS NULL"  # noqa: S608 - own words
        sealed = [(_of(db, table, row[1:]), row[0]) for row in db.execute(asked).fetchall()]
        db.executemany(f"UPDATE {table} SET mark = ? WHERE rowid = ?", sealed)  # noqa: S608


def _marked(db: sqlite3.Connection, table: str) -> bool:
    return "mark" in {row[1] for row in db.execute(f"PRAGMA table_info({table})")}


def require_sound(db: sqlite3.Connection, path: str) -> None:
    """Check every row against its mark.

    Raises:
        StoreDamagedError: If a row is not what was written, or is missing.
    """
    db.execute("BEGIN")  # one state of the file, even if others write meanwhile
    try:
        problems = list(_problems(db))
    finally:
        db.execute("COMMIT")
    if problems:
        more = f", and {len(problems) - 3} more" if len(problems) > 3 else ""
        raise StoreDamagedError(
            f"The file of judgements is damaged: {'; '.join(problems[:3])}{more}.", where=path, do=RESTORE
        )


def _problems(db: sqlite3.Connection) -> Iterator[str]:
    for (said,) in db.execute("PRAGMA integrity_check(3)"):
        if said != "ok":
            yield str(said).splitlines()[0][:120]
    for table, columns in COLUMNS.items():
        if not _marked(db, table):  # a file of an earlier release that is read-only
            return
        for *row, kept in db.execute(f"SELECT {', '.join(columns)}, mark FROM {table}"):  # noqa: S608
            if kept != _of(db, table, row):
                yield f"a row of {table} is not as written ({row[0]!r}, {row[1]!r})"[:120]
    last, strokes = db.execute("SELECT ifnull(max(stroke), 0), count(*) FROM strokes").fetchone()
    written = db.execute("SELECT ifnull(max(seq), 0) FROM sqlite_sequence WHERE name = 'strokes'").fetchone()[
        0
    ]
    if not last == strokes == written:
        yield f"{max(last, written) - strokes} strokes are missing"
    without = "SELECT count(*) FROM items LEFT JOIN queues USING (queue_id) WHERE queues.queue_id IS NULL"
    if lost := db.execute(without).fetchone()[0]:
        yield f"{lost} cards belong to no queue"


def _of(db: sqlite3.Connection, table: str, row: Sequence[object]) -> bytes:
    if table != "queues":
        return mark(*row)
    return mark(*row, *db.execute("SELECT count(*) FROM items WHERE queue_id = ?", (row[0],)).fetchone())
