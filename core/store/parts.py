"""Writing parts: bulk rows as immutable, sorted Parquet files."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb

from core.errors import StoreError, UnknownNameError
from core.files import sync
from core.store import rules
from core.store.engine import bounded
from core.store.layout import Layout, remove
from core.store.read import codes
from core.store.seals import Sealed, checksum, verify
from core.store.staging import stage
from core.tables import TABLES, Frame

ROW_GROUP = 20_480
"""Rows per row group. Ten runs of 100,000 ranks (2 cores, 2026-11): one run's rows or one query of it are
read in 4–5 ms with 20,480 and with 122,880, in 6–10 ms with 8,192; the smaller of the good ones prunes
better when a part holds many small runs."""

LARGE = 64 << 20
"""Bytes of a staged table from which on checking and sorting may spill to disk."""

_SELECT_OWNERS = "SELECT {owner}, count(*), {queries} FROM read_parquet(?) GROUP BY 1"
_OWNERS = "SELECT DISTINCT {owner} FROM read_parquet(?)"
_SORT = """
COPY (SELECT * FROM read_parquet($staged) WHERE {owner} IN (SELECT unnest($owners)) ORDER BY {order})
TO $target (FORMAT parquet, PARQUET_VERSION v2, COMPRESSION zstd, ROW_GROUP_SIZE {rows})
"""
# Of rows whose table grows, those that are there under the same key are left alone (what was unknown stays
# so); other ones are refused.
_ADDED = """
COPY (SELECT s.* FROM read_parquet($staged) s ANTI JOIN {rows} t ON {same}) TO $target
(FORMAT parquet, COMPRESSION lz4)
"""
_OTHER = """
SELECT s.{owner} FROM read_parquet($staged) s JOIN {rows} t ON {same}
WHERE {other} LIMIT 1
"""
# Order does not matter: equal counts, sums and XORs of 64-bit hashes mean equal rows.
_DIGEST = """
SELECT {owner}, count(*), sum(hash({columns})), bit_xor(hash({columns}))
FROM {rows} WHERE {owner} IN (SELECT unnest(?)) GROUP BY 1
"""


@dataclass(frozen=True, slots=True)
class Part:
    """One written file. `keys` maps an owner's id to its rows and distinct queries (None: no such column)."""

    table: str
    name: str
    rows: int
    size: int
    checksum: str
    keys: Mapping[str, tuple[int, int | None]]


@dataclass(frozen=True, slots=True)
class Known:
    """What a batch is checked against."""

    # Per kind (collection, golden_set, run) the ids that rows may belong to
    ids: Mapping[str, frozenset[str]]
    held: Mapping[str, Mapping[str, list[Sealed]]]  # per table and owner's id the files that hold its rows
    # Ids of collections and golden sets whose rows may give way to others
    replaced: frozenset[str] = frozenset()


def write_parts(
    cursor: duckdb.DuckDBPyConnection,
    layout: Layout,
    revision: int,
    frames: Mapping[str, Frame],
    known: Known,
    *,
    on_step: Callable[[str], None] = lambda _: None,
) -> tuple[Path, list[Part]]:
    """Validate frames and write their new rows as one part folder, a file per table and lot.

    Rows of an owner that has rows in that table already must equal those and are left out.
    """
    name = f"{revision:08d}-{secrets.token_hex(4)}"
    working = layout.parts / f".{name}"
    working.mkdir()
    try:
        parts = []
        for table, rows in frames.items():
            on_step(f"storing {table}")
            files = stage(table, rows, working)
            for number, staged in enumerate(files, 1):
                named = table if len(files) == 1 else f"{table}, {number} of {len(files)}"
                with _worker(cursor, staged) as worker:
                    on_step(f"checking {named}")
                    rules.check(worker, table, staged)
                    on_step(f"sorting {named}")
                    part = _write(worker, table, staged, staged.with_suffix(".parquet"), known)
                    staged.unlink()
                    if part is not None:
                        on_step(f"indexing {named}")
                        parts += [part, *_codes(worker, part, working)]
        if parts:
            sync(working)
            layout.note(layout.parts / name)
            working.rename(layout.parts / name)
    finally:
        remove(working)
    return layout.parts / name, parts


@contextmanager
def _worker(cursor: duckdb.DuckDBPyConnection, staged: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """The connection to work on a staged file with: one whose memory is bounded where the file is large."""
    if staged.stat().st_size <= LARGE:
        yield cursor
    else:
        with bounded() as private:
            yield private


def _codes(cursor: duckdb.DuckDBPyConnection, part: Part, folder: Path) -> list[Part]:
    """Write the integers beside a part whose rows are joined by passage; they hold no rows of their own."""
    if part.table not in codes.CODED:
        return []
    file = codes.write(folder / part.name, cursor)
    sync(file)
    return [Part(f"{part.table}.codes", file.name, part.rows, file.stat().st_size, checksum(file), {})]


def _write(
    cursor: duckdb.DuckDBPyConnection, table: str, staged: Path, target: Path, known: Known
) -> Part | None:
    rule = rules.RULES[table]
    if rule.grows:
        _leave_out(cursor, table, staged, known.held[table])
    queries = "count(DISTINCT query_id)" if "query_id" in TABLES[table] else "NULL"
    owners = {
        owner: (rows, distinct)
        for owner, rows, distinct in cursor.execute(
            _SELECT_OWNERS.format(owner=rule.owner, queries=queries), [str(staged)]
        ).fetchall()
    }
    for owner in owners:
        if owner not in known.ids[rule.kind]:
            raise UnknownNameError(rule.kind.replace("_", " "), owner, known.ids[rule.kind], where=table)
    held = known.held[table] if not rule.grows else {}
    present = {owner: held[owner] for owner in owners if owner in held}
    other = _differing(cursor, table, staged, present)
    _refuse_other(table, other - known.replaced if rule.kind != "run" else other)
    new = {owner: counts for owner, counts in owners.items() if owner not in held or owner in other}
    if not new:
        return None
    cursor.execute(
        _SORT.format(owner=rule.owner, order=rules.names(rule.order), rows=ROW_GROUP),
        {"staged": str(staged), "owners": list(new), "target": str(target)},
    )
    sync(target)
    rows = sum(count for count, _ in new.values())
    return Part(table, target.name, rows, target.stat().st_size, checksum(target), new)


def _differing(
    cursor: duckdb.DuckDBPyConnection, table: str, staged: Path, held: Mapping[str, list[Sealed]]
) -> set[str]:
    """The owners whose rows are not those that the store has."""
    if not held:
        return set()
    rule = rules.RULES[table]
    columns, rows = rules.names(TABLES[table]), rules.rows_of(table, "?")
    digest = _DIGEST.format(owner=rule.owner, columns=columns, rows=rows)
    stored = _verified(held)
    offered, present = (
        {owner: counts for owner, *counts in cursor.execute(digest, [files, list(held)]).fetchall()}
        for files in ([str(staged)], stored)
    )
    return {owner for owner, counts in offered.items() if counts != present[owner]}


def _leave_out(
    cursor: duckdb.DuckDBPyConnection, table: str, staged: Path, held: Mapping[str, list[Sealed]]
) -> None:
    """Leave out of the staged rows those that are there; others under the same key are refused."""
    rule = rules.RULES[table]
    owners = cursor.execute(_OWNERS.format(owner=rule.owner), [str(staged)]).fetchall()
    stored = _verified({owner: held[owner] for (owner,) in owners if owner in held})
    if not stored:
        return
    same = " AND ".join(f's."{name}" IS NOT DISTINCT FROM t."{name}"' for name in rule.unique[0])
    told = (f't."{name}" IS NOT NULL AND s."{name}" IS DISTINCT FROM t."{name}"' for name in TABLES[table])
    rows, files = rules.rows_of(table, "$stored"), {"staged": str(staged), "stored": stored}
    other = _OTHER.format(owner=rule.owner, rows=rows, same=same, other=" OR ".join(told))
    _refuse_other(table, {owner for (owner,) in cursor.execute(other, files).fetchall()})
    target = staged.with_suffix(".added")
    cursor.execute(_ADDED.format(rows=rows, same=same), {**files, "target": str(target)})
    target.replace(staged)


def _verified(held: Mapping[str, list[Sealed]]) -> list[str]:
    """The files that hold rows, each once."""
    files = [file for each in held.values() for file in each]
    verify(files)
    return sorted({file.path for file in files})


def _refuse_other(table: str, owners: set[str]) -> None:
    for owner in sorted(owners):
        kind = rules.RULES[table].kind.replace("_", " ")
        raise StoreError(
            f"The {kind} {owner!r} has other {table} in the store already.",
            where=table,
            do=f"Give the new one another id, or hand over all {table} of a {kind} in one batch.",
        )


def folders(paths: Iterable[str]) -> set[str]:
    """Names of the part folders that files named relative to the store are in."""
    return {Path(path).parent.name for path in paths}
