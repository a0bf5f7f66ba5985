"""Runs user-supplied SQL in a separate process: DuckDB limits its buffers, not its total memory.

It runs as a script with a folder as argument, and JSON on standard input: statements that make the views, the
folder of the parts, the SQL and its limits. It writes the answer to ``answer.arrow``, or what is wrong with
the SQL to ``error.json``. It imports nothing of this project, so that it starts at once.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

BATCH_ROWS = 2048


class RefusedError(Exception):
    """The SQL was refused, with the kind of problem and DuckDB's message."""


def prepared(folder: Path, given: dict[str, Any]) -> duckdb.DuckDBPyConnection:
    """Open an in-memory database with the views of a store that can reach its parts and nothing else."""
    config = {"memory_limit": given["memory"], "threads": 2, "temp_directory": ""}
    db = duckdb.connect(":memory:", config=config)
    for statement in given["views"]:
        db.execute(statement)
    for record in given["records"]:
        db.execute(f"CREATE TABLE {record} AS FROM read_parquet(?)", [str(folder / f"{record}.parquet")])
    db.execute("SET autoinstall_known_extensions = false")
    db.execute("SET autoload_known_extensions = false")
    parts = given["parts"].replace("'", "''")
    db.execute(f"SET allowed_directories = ['{parts}{os.sep}']")
    db.execute("SET enable_external_access = false")
    db.execute("SET lock_configuration = true")
    return db


def only_select(db: duckdb.DuckDBPyConnection, sql: str) -> str:
    """Return the single statement of the SQL, which must be one that reads."""
    try:
        statements = db.extract_statements(sql)
    except duckdb.Error as error:
        raise RefusedError("syntax", _first(error)) from None
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise RefusedError("statement", "")
    return str(statements[0].query)


def answer(db: duckdb.DuckDBPyConnection, given: dict[str, Any], target: Path) -> None:
    """Write the answer batch by batch, up to the requested rows and the allowed bytes."""
    sql = only_select(db, given["sql"])
    timer = threading.Timer(given["seconds"], db.interrupt)
    timer.start()
    try:
        asked = db.sql(sql)
        rows = asked if given["rows"] is None else asked.limit(given["rows"])
        batches = rows.to_arrow_reader(BATCH_ROWS)
        for column in batches.schema:
            if not _readable(column.type):
                raise RefusedError("type", column.name[:80])
        with pa.OSFile(str(target), "wb") as sink, pa.ipc.new_file(sink, batches.schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
                if sink.tell() > given["bytes"]:
                    raise RefusedError("size", "")
    except duckdb.InterruptException:
        raise RefusedError("time", "") from None
    except MemoryError:  # Arrow's is one, too
        raise RefusedError("memory", "") from None
    except (duckdb.Error, pa.ArrowException, OSError) as error:  # Arrow passes DuckDB's errors on as its own
        kind = "memory" if "Out of Memory" in str(error) else "query"
        raise RefusedError(kind, _first(error)) from None
    finally:
        timer.cancel()


def _readable(kind: pa.DataType) -> bool:
    """Return whether a table here can have a column of this type, including nested types."""
    if pa.types.is_union(kind) or pa.types.is_interval(kind):
        return False
    return all(_readable(kind.field(at).type) for at in range(kind.num_fields))


def _first(error: Exception) -> str:
    """Return DuckDB's message without the query that it repeats."""
    return str(error).strip().partition("\n\n")[0][:400]


def main(folder: str) -> None:
    """Answer the request on standard input."""
    given, into = json.load(sys.stdin), Path(folder)
    try:
        answer(prepared(into, given), given, into / "answer.arrow")
    except RefusedError as error:
        kind, said = error.args
        (into / "error.json").write_text(json.dumps({"kind": kind, "said": said}), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
