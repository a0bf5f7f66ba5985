"""Custom SQL over a store: a read-only view per table on the live rows of the current revision.

The same views can be written as statements (`statements`) for DuckDB itself: with the database alone, a
person finds `runs`, `rankings` or `judgements` without knowing how parts and revisions lie on the disk.
"""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import polars as pl

from core.errors import InputError
from core.sandbox import out_of_memory, run_bounded
from core.store.read.snapshot import Snapshot
from core.store.rules import RULES, names, rows_of
from core.store.store import Store
from core.tables import TABLES

SECONDS, MEMORY, ROWS = 30.0, "1GB", 10_000
BYTES = 1 << 28
"""The largest answer, in bytes of memory."""
RECORDS = ("runs", "collections", "golden_sets")
NAMED = {"answer_scores": "scores"}
"""Tables that have a shorter name besides their own."""
_ASKED = Path(__file__).with_name("asked.py")
_OVERHEAD = 3 << 29  # Address space that the process takes before it has read a row
_SPARE_S = 20.0  # Time to start, and to write the answer
_SIZE = re.compile(r"(?P<n>[0-9]{1,9}(\.[0-9]{1,6})?) ?(?P<unit>[MG])I?B")
_UNITS, _LEAST = {"M": 1 << 20, "G": 1 << 30}, 16 << 20
_WRONG: Mapping[str, tuple[str, str]] = {
    "time": ("The query took longer than {seconds:g} s.", "Ask for less, or give it more --seconds."),
    "memory": ("The query takes more memory than {memory}.", "Ask for less, or give it more --memory."),
    "size": (f"The answer is larger than {BYTES >> 20} MiB.", "Ask for less, or add a LIMIT."),
    "type": ("The type of column {said} cannot be shown.", "Write it as text: CAST(… AS VARCHAR)."),
    "syntax": ("This is not SQL: {said}", ""),
    "statement": (
        "Only one statement that reads is answered: SELECT, or FROM, or WITH.",
        "Results are changed by import, run, delete and restore.",
    ),
    "query": ("The query cannot be answered: {said}", "{there}"),
}
"""The problem and its remedy, by the kind that `core.store.asked` reports, and more."""


def query(
    store: Store, sql: str, *, seconds: float = SECONDS, memory: str = MEMORY, rows: int | None = None
) -> pl.DataFrame:
    """Answer one SELECT over the views of a store's current revision.

    It runs in another process, in a separate database in memory, which may read the store's parts and
    nothing else, may fetch no extension, and is killed after the time limit.

    Args:
        sql: One statement that reads; it may use `RECORDS`, the tables of `core.tables` and `NAMED`.
        seconds: The time limit.
        memory: The memory limit, as "500MB" or "4GB".
        rows: The most rows to return; None = all, up to `BYTES`.

    Raises:
        InputError: If it isn't a single SELECT, names unknown things, takes too long or too much memory.
    """
    snapshot, most = store.read(), _bytes(memory)
    given = {
        "views": list(_views(snapshot)), "records": RECORDS, "parts": str(store.path.absolute() / "parts"),
        "sql": sql, "seconds": seconds, "memory": f"{most}B", "rows": rows, "bytes": BYTES,
    }  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="clq-sql-") as scratch:
        folder = Path(scratch)
        for record in RECORDS:
            _record(snapshot, record).write_parquet(folder / f"{record}.parquet")
        try:
            ended = run_bounded(
                _ASKED, scratch, memory=most + _OVERHEAD, seconds=seconds + _SPARE_S,
                given=json.dumps(given).encode(),
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise _refused("time", "", seconds, memory) from None
        if (folder / "error.json").exists():
            failed = json.loads((folder / "error.json").read_bytes())
            raise _refused(failed["kind"], failed["said"], seconds, memory)
        if ended.returncode:
            kind = "memory" if out_of_memory(ended) else "query"
            raise _refused(kind, ended.stderr.decode("utf-8", "replace")[-300:].strip(), seconds, memory)
        return pl.read_ipc((folder / "answer.arrow").read_bytes())


def _bytes(memory: str) -> int:
    read = _SIZE.fullmatch(memory.strip().upper())
    if read is None or (most := int(float(read["n"]) * _UNITS[read["unit"]])) < _LEAST:
        raise InputError(
            f"{memory[:40]!r} is not an amount of memory.", where="memory", do="Write 500MB, 4GB."
        )
    return most


def _refused(kind: str, said: str, seconds: float, memory: str) -> InputError:
    problem, do = _WRONG[kind]
    there = f"There are {', '.join(sorted((*RECORDS, *TABLES, *NAMED.values())))}."
    values = {"said": said, "seconds": seconds, "memory": memory, "there": there}
    return InputError(problem.format(**values), where="sql", do=do.format(**values))


def statements(snapshot: Snapshot, root: Path) -> str:
    """Return the views as SQL for plain DuckDB, with the present paths of the parts.

    Deleted runs are excluded; a later import makes another revision, for which this must be written again.
    """
    head = f"-- Views over revision {snapshot.revision} of {root.name}, made by CLQ Explorer.\n"
    records = [
        f"CREATE OR REPLACE VIEW {record} AS {_values(_record(snapshot, record))};" for record in RECORDS
    ]
    return head + "\n".join([*(f"{view};" for view in _views(snapshot)), *records, ""])


def _record(snapshot: Snapshot, record: str) -> pl.DataFrame:
    rows = snapshot.runs() if record == "runs" else getattr(snapshot, record)(parts=True)
    return rows.drop("id", strict=False)


def _owners(snapshot: Snapshot, table: str) -> list[str]:
    kind = RULES[table].kind
    return _record(snapshot, f"{kind}s")[f"{kind}_id"].to_list()


def _views(snapshot: Snapshot) -> Iterator[str]:
    for table in TABLES:
        columns = names(TABLES[table])
        nothing = ", ".join(f'NULL AS "{column}"' for column in TABLES[table])
        lots = [
            f"SELECT {columns} FROM {rows_of(table, f'[{_listed(files)}]')} "  # noqa: S608 - quoted
            f"WHERE {RULES[table].owner} IN ({_listed(owners)})"
            for owners, files in snapshot.lots(table, _owners(snapshot, table))
        ] or [f"SELECT {columns} FROM (SELECT {nothing}) WHERE false"]  # noqa: S608 - own names
        for name in (table, *([NAMED[table]] if table in NAMED else [])):
            yield f"CREATE OR REPLACE VIEW {name} AS {' UNION ALL '.join(lots)}"


def _listed(texts: Sequence[str]) -> str:
    return ", ".join(map(_text, texts))


def _values(rows: pl.DataFrame) -> str:
    """Return the few rows of some records as a separate query."""
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
    return "'" + value.replace("'", "''") + "'"
