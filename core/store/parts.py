"""Writing parts: bulk rows as immutable, sorted Parquet files.

Rows wait on disk first, with the declared types and cut into lots of whole owners.

A part is verified as a whole before any of its rows is read. So a large run has a separate part, and reading
it touches no other run's; small ones share a part, because a file each would cost more than it saves. Only
one lot is checked and sorted at a time: memory and time of an import do not grow faster than its rows.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from pathlib import Path

import duckdb
import polars as pl
import pyarrow.parquet as pq

from core.errors import InputError, StoreError, UnknownNameError, told
from core.files import sync
from core.store import rules
from core.store.engine import bounded
from core.store.layout import Layout, remove
from core.store.read import codes
from core.store.rules import RULES, conform
from core.store.seals import Sealed, checksum, verify
from core.tables import TABLES, Frame, Pieces

ALONE, TOGETHER = 1 << 18, 1 << 21
"""Rows from which on an owner has a part of its own; rows up to which smaller owners share a part."""
_AT_ONCE = 1 << 19
ROW_GROUP = 20_480
"""Rows per row group. Ten runs of 100,000 ranks (2 cores, 2026-11): one run's rows or one query of it are
read in 4–5 ms with 20,480 and with 122,880, in 6–10 ms with 8,192; the smaller of the good ones prunes
better when a part holds many small runs."""
LARGE = 64 << 20  # Bytes of a staged table from which on checking and sorting may spill to disk
_SELECT_OWNERS = "SELECT {owner}, count(*), {queries} FROM read_parquet(?) GROUP BY 1"
_OWNERS = "SELECT DISTINCT {owner} FROM read_parquet(?)"
_SORT = """
COPY (SELECT * FROM read_parquet($staged) WHERE {owner} IN (SELECT unnest($owners)) ORDER BY {order})
TO $target (FORMAT parquet, PARQUET_VERSION v2, COMPRESSION zstd, ROW_GROUP_SIZE {rows})
"""
# In a table that grows, rows that exist under the same key are left alone (what was unknown stays
# unknown); different ones are refused.
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


def stage(table: str, rows: Frame, folder: Path) -> list[Path]:
    """Write rows to a file per lot, named as the part will be; all rows of an owner are in one file."""
    whole = folder / f"{table}.staged"
    try:
        if isinstance(rows, Pieces):
            pieces = [conform(table, piece) for piece in rows.frames]
        else:
            conform(table, rows).sink_parquet(whole, compression="lz4")
            height = pq.read_metadata(whole).num_rows
            if height <= ALONE:
                return [whole]
            pieces = [pl.scan_parquet(whole).slice(at, _AT_ONCE) for at in range(0, height, _AT_ONCE)]
        owner = RULES[table].owner
        counts = pl.concat(pieces).group_by(owner).len().sort(owner, nulls_last=True).collect()
        lots = _lots(counts["len"].to_list())
        if whole.exists() and not any(lots):
            return [whole]
        files = _spread(table, pieces, dict(zip(counts[owner], lots, strict=True)), folder)
    except pl.exceptions.PolarsError as error:
        wrong = InputError(f"The rows cannot be used: {error}", where=table, do="Nothing was written.")
        raise told(error, wrong) from error
    whole.unlink(missing_ok=True)
    return files


def _lots(counts: Sequence[int]) -> list[int]:
    """Return the lot of each owner: a large owner has one to itself."""
    lots, lot, held = [], -1, TOGETHER
    for count in counts:
        if count >= ALONE or held + count > TOGETHER:
            lot, held = lot + 1, 0
        lots.append(lot)
        held = TOGETHER if count >= ALONE else held + count
    return lots


def _spread(
    table: str, pieces: Sequence[pl.LazyFrame], lots: Mapping[str | None, int], folder: Path
) -> list[Path]:
    """Write each piece to the files of its owners' lots, one after the other."""
    level, owner, several = pl.CompatLevel.oldest(), RULES[table].owner, max(lots.values(), default=0) > 0
    schema = pl.DataFrame(schema=TABLES[table]).to_arrow(compat_level=level).schema
    writers: dict[int, pq.ParquetWriter] = {}
    with ExitStack() as opened:
        for piece in pieces:
            taken = piece.collect().with_columns(
                lot=pl.col(owner).replace_strict(lots, return_dtype=pl.Int32)
            )
            alone = taken["lot"].n_unique() < 2  # nearly always, because most files hold one run
            parted = [taken] if alone else taken.partition_by("lot", maintain_order=False)
            of_lots = {int(rows["lot"][0]): rows.drop("lot") for rows in parted if rows.height}
            for number, rows in of_lots.items():
                if number not in writers:
                    path = folder / (f"{table}-{number:05d}.staged" if several else f"{table}.staged")
                    writers[number] = opened.enter_context(pq.ParquetWriter(path, schema, compression="lz4"))
                writers[number].write_table(rows.to_arrow(compat_level=level))
    return sorted(Path(writer.where) for writer in writers.values())


@dataclass(frozen=True, slots=True)
class PartFile:
    """One written file. `keys` maps an owner's id to its rows and distinct queries (None: no such column)."""

    table: str
    name: str
    rows: int
    size: int
    checksum: str
    keys: Mapping[str, tuple[int, int | None]]


@dataclass(frozen=True, slots=True)
class StoredRows:
    """Ids and rows of the store that a batch is checked against."""

    # Ids that rows may belong to, by kind (collection, golden_set, run)
    ids: Mapping[str, frozenset[str]]
    held: Mapping[str, Mapping[str, list[Sealed]]]  # the files with an owner's rows, by table and owner's id
    # Ids of collections and golden sets whose rows may be replaced
    replaced: frozenset[str] = frozenset()


def write_parts(
    cursor: duckdb.DuckDBPyConnection,
    layout: Layout,
    revision: int,
    frames: Mapping[str, Frame],
    known: StoredRows,
    *,
    on_step: Callable[[str], None] = lambda _: None,
) -> tuple[Path, list[PartFile]]:
    """Validate frames and write their new rows as one part folder, a file per table and lot.

    If an owner already has rows in that table, the new ones must be equal, and are left out.
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
                with bounded() if staged.stat().st_size > LARGE else nullcontext(cursor) as worker:
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


def _codes(cursor: duckdb.DuckDBPyConnection, part: PartFile, folder: Path) -> list[PartFile]:
    """Write the codes of a part whose rows are joined by passage; they hold no rows of their own."""
    if part.table not in codes.CODED:
        return []
    file = codes.write(folder / part.name, cursor)
    sync(file)
    return [PartFile(f"{part.table}.codes", file.name, part.rows, file.stat().st_size, checksum(file), {})]


def _write(
    cursor: duckdb.DuckDBPyConnection, table: str, staged: Path, target: Path, known: StoredRows
) -> PartFile | None:
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
    return PartFile(table, target.name, rows, target.stat().st_size, checksum(target), new)


def _differing(
    cursor: duckdb.DuckDBPyConnection, table: str, staged: Path, held: Mapping[str, list[Sealed]]
) -> set[str]:
    """Return the owners whose rows differ from those in the store."""
    rule = rules.RULES[table]
    columns, rows = rules.names(TABLES[table]), rules.rows_of(table, "?")
    digest = _DIGEST.format(owner=rule.owner, columns=columns, rows=rows)

    def digests(owners: list[str], files: list[str]) -> dict[str, list[int]]:
        return {owner: counts for owner, *counts in cursor.execute(digest, [files, owners]).fetchall()}

    verify([file for files in held.values() for file in files])
    places = ((owner, file.path) for owner, files in held.items() for file in files)
    differing: set[str] = set()
    for owners, files in rules.readable(table, places):
        offered, stored = digests(owners, [str(staged)]), digests(owners, files)
        differing |= {owner for owner, counts in offered.items() if counts != stored[owner]}
    return differing


def _leave_out(
    cursor: duckdb.DuckDBPyConnection, table: str, staged: Path, held: Mapping[str, list[Sealed]]
) -> None:
    """Drop the staged rows that exist already; refuse different ones under the same key."""
    rule = rules.RULES[table]
    owners = cursor.execute(_OWNERS.format(owner=rule.owner), [str(staged)]).fetchall()
    stored = _verified({owner: held[owner] for (owner,) in owners if owner in held})
    if not stored:
        return
    same = " AND ".join(f's."{name}" IS NOT DISTINCT FROM t."{name}"' for name in rule.unique[0])
    differing = (
        f't."{name}" IS NOT NULL AND s."{name}" IS DISTINCT FROM t."{name}"' for name in TABLES[table]
    )
    rows, files = rules.rows_of(table, "$stored"), {"staged": str(staged), "stored": stored}
    other = _OTHER.format(owner=rule.owner, rows=rows, same=same, other=" OR ".join(differing))
    _refuse_other(table, {owner for (owner,) in cursor.execute(other, files).fetchall()})
    target = staged.with_suffix(".added")
    cursor.execute(_ADDED.format(rows=rows, same=same), {**files, "target": str(target)})
    target.replace(staged)


def _verified(held: Mapping[str, list[Sealed]]) -> list[str]:
    """Return the files that hold rows, each once, after verifying them."""
    files = [file for of_owner in held.values() for file in of_owner]
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
    """Return the names of the part folders of files, whose paths are relative to the store."""
    return {Path(path).parent.name for path in paths}
