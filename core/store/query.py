"""SQL of one's own over a store: a view per table on the live rows of the current revision, read-only.

The same views can be written as statements (`statements`), for DuckDB itself: a person with the database
alone finds `runs`, `rankings` or `judgements` without knowing how parts and revisions lie on the disk.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import duckdb
import polars as pl

from core.errors import InputError
from core.store.read.snapshot import Snapshot
from core.store.rules import RULES, names, rows_of
from core.store.store import Store
from core.tables import TABLES

SECONDS, MEMORY, ROWS = 30.0, "1GB", 10_000
RECORDS = ("runs", "collections", "golden_sets")
NAMED = {"answer_scores": "scores"}
"""Tables that have a shorter name besides their own."""
_ALLOWED = duckdb.StatementType.SELECT


def query(
    store: Store, sql: str, *, seconds: float = SECONDS, memory: str = MEMORY, rows: int | None = None
) -> pl.DataFrame:
    """Answer one SELECT over the views of a store's current revision.

    It is asked in a database of its own in memory, which may read the store's parts and nothing else, may
    fetch no extension, and is interrupted in the end.

    Args:
        sql: One statement that reads; `RECORDS`, the tables of `core.tables` and `NAMED` are there.
        seconds: How long it may take.
        memory: How much it may hold, as DuckDB writes sizes.
        rows: The most rows to return; None = all.

    Raises:
        InputError: If it is no single SELECT, names what is not there, takes too long or too much memory.
    """
    snapshot = store.read()
    with closing(duckdb.connect(":memory:", config={"memory_limit": memory, "threads": 2})) as db:
        for statement in _views(snapshot):
            db.execute(statement)
        for record in RECORDS:
            db.register(f"_{record}", _record(snapshot, record).to_arrow())
            db.execute(f"CREATE TABLE {record} AS FROM _{record}")
            db.unregister(f"_{record}")
        _lock(db, store.path)
        asked = _one_select(db, sql)
        timer = threading.Timer(seconds, db.interrupt)
        timer.start()
        try:
            found = db.sql(asked)
            answer: pl.DataFrame = (found if rows is None else found.limit(rows)).pl()
        except duckdb.InterruptException:
            raise InputError(
                f"The query took longer than {seconds:g} s.", do="Ask for less, or give it more --seconds."
            ) from None
        except duckdb.Error as error:
            said = str(error).strip().partition("\n\n")[0]
            raise InputError(
                f"The query cannot be answered: {said[:400]}", where="sql", do=_there()
            ) from None
        finally:
            timer.cancel()
    return answer


def statements(snapshot: Snapshot, root: Path) -> str:
    """Write the views as SQL for plain DuckDB, with the paths of the parts as they are now.

    Deleted runs are not in it; a later import makes another revision, and wants it written again.
    """
    head = f"-- Views over revision {snapshot.revision} of {root.name}, made by CLQ Explorer.\n"
    records = [
        f"CREATE OR REPLACE VIEW {record} AS {_values(_record(snapshot, record))};" for record in RECORDS
    ]
    return head + "\n".join([*(f"{each};" for each in _views(snapshot)), *records, ""])


def _record(snapshot: Snapshot, record: str) -> pl.DataFrame:
    found = snapshot.runs() if record == "runs" else getattr(snapshot, record)(parts=True)
    return found.drop("id", strict=False)


def _owners(snapshot: Snapshot, table: str) -> list[str]:
    kind = RULES[table].kind
    return _record(snapshot, f"{kind}s")[f"{kind}_id"].to_list()


def _views(snapshot: Snapshot) -> Iterator[str]:
    for table in TABLES:
        ids = _owners(snapshot, table)
        files = snapshot.files_of(table, ids) if ids else []
        columns = names(TABLES[table])
        if files:
            listed = ", ".join(_text(str(Path(file).absolute())) for file in files)
            owners = ", ".join(_text(owner) for owner in ids)
            body = (
                f"SELECT {columns} FROM {rows_of(table, f'[{listed}]')} "  # noqa: S608 - quoted
                f"WHERE {RULES[table].owner} IN ({owners})"
            )
        else:
            nothing = ", ".join(f'NULL AS "{column}"' for column in TABLES[table])
            body = f"SELECT {columns} FROM (SELECT {nothing}) WHERE false"  # noqa: S608 - own names
        for name in (table, *([NAMED[table]] if table in NAMED else [])):
            yield f"CREATE OR REPLACE VIEW {name} AS {body}"


def _values(rows: pl.DataFrame) -> str:
    """Rows of records as a query of their own: they are few."""
    if rows.is_empty():
        nothing = ", ".join(f'NULL AS "{column}"' for column in rows.columns)
        return f"SELECT * FROM (SELECT {nothing}) WHERE false"  # noqa: S608 - own names
    lines = ", ".join(f"({', '.join(map(_literal, row))})" for row in rows.iter_rows())
    return f"SELECT * FROM (VALUES {lines}) AS t({names(rows.columns)})"  # noqa: S608 - quoted


def _literal(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool | int | float):
        return str(value)
    return _text(json.dumps(value) if isinstance(value, list) else str(value))


def _text(value: str) -> str:
    """A literal of SQL."""
    return "'" + value.replace("'", "''") + "'"


def _lock(db: duckdb.DuckDBPyConnection, root: Path) -> None:
    """Leave nothing to be read but the store's parts, nothing to be fetched, and no way back."""
    db.execute("SET autoinstall_known_extensions = false")
    db.execute("SET autoload_known_extensions = false")
    db.execute(f"SET allowed_directories = [{_text(str(root.absolute() / 'parts') + os.sep)}]")
    db.execute("SET enable_external_access = false")
    db.execute("SET lock_configuration = true")


def _one_select(db: duckdb.DuckDBPyConnection, sql: str) -> str:
    try:
        found = db.extract_statements(sql)
    except duckdb.Error as error:
        said = str(error).strip().partition("\n\n")[0]
        raise InputError(f"This is no SQL: {said[:300]}", where="sql") from None
    if len(found) != 1 or found[0].type != _ALLOWED:
        raise InputError(
            "Only one statement that reads is answered: SELECT, or FROM, or WITH.",
            where="sql",
            do="Results are changed by import, run, delete and restore.",
        )
    return str(found[0].query)


def _there() -> str:
    return f"There are {', '.join(sorted((*RECORDS, *TABLES, *NAMED.values())))}."
