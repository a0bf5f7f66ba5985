"""Untrusted SQLite databases.

A database is opened read-only and immutable, from a copy unless it is a plain file on this disk. Nothing that
it defines may run, and the time of a query is bounded.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path

from core.errors import InputError
from core.importers.read.member import Member
from core.importers.read.text import shown

MAGIC = b"SQLite format 3\0"
_MOST_STEPS = 2_000
_STEP = 1_000_000  # Instructions of the database's machine between two checks of a query's running time


@contextmanager
def database(member: Member) -> Iterator[tuple[sqlite3.Connection, tuple[str, ...]]]:
    """Open the file, or a copy of its unpacked content, read-only; yield it with notes on this."""
    with tempfile.TemporaryDirectory(prefix="clq-") as folder:
        path = member.path
        notes: tuple[str, ...] = ()
        with member.opener() as stored:
            plain = path is not None and stored.read(len(MAGIC)) == MAGIC
        if path is None or not plain:
            path = Path(folder) / "storage.db"
            with member.stream() as packed, path.open("wb") as copy:
                shutil.copyfileobj(packed, copy)
        elif path.with_name(f"{path.name}-wal").exists():
            notes = (f"{member.name}: a -wal file lies beside it; what only stands there is not read.",)
        address = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
        try:
            with closing(sqlite3.connect(address, uri=True)) as connection:
                _guard(connection, member)
                yield connection, notes
        except (sqlite3.Error, OverflowError, UnicodeError) as error:
            problem = f"The database cannot be read: {shown(error, 200)}."
            raise InputError(problem, where=member.name) from error


def _guard(connection: sqlite3.Connection, member: Member) -> None:
    """Prevent anything that the file defines from running, and any query from running for ever."""
    steps = count(1)
    connection.set_progress_handler(lambda: int(next(steps) > _MOST_STEPS), _STEP)
    connection.text_factory = lambda data: data.decode("utf-8", "replace")
    limit = min(member.limits.cell_bytes, 1 << 30)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, limit)
    for pragma in ("trusted_schema=OFF", "query_only=ON", "cell_size_check=ON", "mmap_size=0"):
        connection.execute(f"PRAGMA {pragma}")


def columns_of(connection: sqlite3.Connection) -> list[str]:
    """Return the columns of plain tables, as ``table.column``."""
    tables = connection.execute("SELECT name, type, sql FROM sqlite_master LIMIT 10000").fetchall()
    plain = {
        name
        for name, kind, sql in tables
        if kind == "table" and not str(sql).lstrip().upper().startswith("CREATE VIRTUAL")
    }
    return [
        f"{table}.{row[1]}"
        for table in sorted(plain)
        for row in connection.execute("SELECT * FROM pragma_table_info(?)", (table,))
    ]
