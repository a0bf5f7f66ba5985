"""Examine a store: is it whole, what does it hold, what is missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import duckdb

from core.store import lock, migrations
from core.store.engine import Catalogue
from core.store.layout import Layout
from core.store.ledger import KINDS
from core.store.parts import checksum, folders
from core.store.snapshot import Snapshot
from core.store.standing import DELETED, THERE
from core.store.store import Store
from core.tables import TABLES


class Level(StrEnum):
    """How much a finding matters."""

    DAMAGE = "damage"  # results cannot be trusted or read
    MISSING = "missing"  # whole, but something that a page could show is not there
    NOTE = "note"  # nothing to worry about


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing worth telling, in plain text."""

    level: Level
    found: str
    do: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """What an examination found.

    Attributes:
        path: The store's folder.
        revision: The revision examined.
        schema: Number of the catalogue's last migration.
        newest_schema: The number that this release writes.
        counts: Records by kind (apart: those that were removed, and those that a removed one hides) and rows
            by table.
        findings: Worst first.
    """

    path: Path
    revision: int
    schema: int
    newest_schema: int
    counts: Mapping[str, int]
    findings: tuple[Finding, ...]

    @property
    def sound(self) -> bool:
        """Whether nothing is damaged."""
        return all(finding.level is not Level.DAMAGE for finding in self.findings)


_STANDS = {"": THERE, " (removed)": DELETED, " (hidden)": ~THERE & ~DELETED}
_ROWS = """
SELECT table_name, sum(rows)::BIGINT FROM parts WHERE NOT ends_with(table_name, '.codes') GROUP BY 1
"""
_PARTS = "SELECT path, rows, bytes, checksum FROM parts ORDER BY path"
_FILE_ROWS = "SELECT num_rows FROM parquet_file_metadata(?)"
# A run's id, and whether it has rows in each table that a page would look for.
_RUNS = """
SELECT r.run_id, r.origin,
       bool_or(p.table_name = 'rankings') AS rankings, bool_or(p.table_name = 'timings') AS timings,
       bool_or(p.table_name = 'usage') AS usage, bool_or(p.table_name = 'aggregates') AS aggregates
FROM runs AS r
LEFT JOIN part_keys AS k ON k.id = r.run_id LEFT JOIN parts AS p ON p.part_id = k.part_id
WHERE r.run_id IN (SELECT unnest($ids)) GROUP BY r.run_id, r.origin ORDER BY r.run_id
"""
# A golden set, the collection of its passages, and that of its queries (the whole of a part).
_GOLDEN_SETS = """
SELECT g.golden_set_id, g.collection_id, coalesce(c.part_of, c.collection_id)
FROM golden_sets AS g JOIN collections AS c USING (collection_id)
WHERE g.golden_set_id IN (SELECT unnest($ids)) ORDER BY g.golden_set_id
"""
_FILES = "SELECT path FROM held($table, $revision) WHERE id = $id"
_STRAY_PASSAGES = """
SELECT count(*) FROM read_parquet($rows) AS j
ANTI JOIN (SELECT passage_id FROM read_parquet($known) WHERE collection_id = $collection) AS p
    ON p.passage_id = j.passage_id
WHERE j.golden_set_id = $golden_set
"""
_STRAY_QUERIES = """
SELECT count(DISTINCT j.query_id) FROM read_parquet($rows) AS j
ANTI JOIN (SELECT query_id FROM read_parquet($known) WHERE collection_id = $collection) AS q
    ON q.query_id = j.query_id
WHERE j.golden_set_id = $golden_set
"""
# Chunks are the passages of a part, queries those of a whole, whose documents need not be stored.
_NO_TEXT = """
SELECT c.collection_id FROM collections AS c WHERE c.collection_id IN (SELECT unnest($ids))
AND c.collection_id NOT IN (SELECT id FROM held($table, $revision)) AND CASE $table
    WHEN 'queries' THEN c.part_of IS NULL
    ELSE NOT EXISTS (FROM collections AS p WHERE p.part_of = c.collection_id) END
"""
_ORDER = list(Level)


def examine(store: Store) -> Report:
    """Examine the current revision. Reads every byte of the store, writes nothing.

    Args:
        store: The store; an absent one is sound and empty.

    Raises:
        StoreError: If not even the catalogue can be opened.
        StoreVersionError: If a newer release wrote it.
    """
    snapshot = store.read()
    catalogue = snapshot.catalogue
    counts = dict.fromkeys(("collections", "golden_sets", "runs", *TABLES), 0)
    counts |= _counts(snapshot)
    counts.update(catalogue.cursor().execute(_ROWS).fetchall())
    findings = list(_integrity(catalogue, store.path))
    if not findings:
        findings += [*_runs(snapshot), *_golden_sets(snapshot, store.path), *_texts(snapshot)]
    findings += _leftovers(catalogue, store.path)
    findings.sort(key=lambda finding: _ORDER.index(finding.level))
    newest = migrations.MIGRATIONS[-1].number
    return Report(store.path, snapshot.revision, catalogue.version, newest, counts, tuple(findings))


def _counts(snapshot: Snapshot) -> dict[str, int]:
    """Records by kind: those that are there, and if there are such those that are not."""
    found = {}
    for kind in KINDS:
        stands = snapshot.standing(kind)
        for how, condition in _STANDS.items():
            number = stands.filter(condition).height
            if number or not how:
                found[f"{kind}s{how}"] = number
    return found


def _there(snapshot: Snapshot, kind: str) -> list[str]:
    return snapshot.standing(kind).filter(THERE)["id"].to_list()


def _integrity(catalogue: Catalogue, root: Path) -> Iterator[Finding]:
    """Every part is there, with the bytes and the rows that were written."""
    cursor = catalogue.cursor()
    for path, rows, size, digest in cursor.execute(_PARTS).fetchall():
        file = root / path
        if not file.is_file():
            problem = "is missing"
        elif file.stat().st_size != size:
            problem = f"has {file.stat().st_size} bytes, not {size}"
        elif checksum(file) != digest:
            problem = "has other bytes than were written"
        elif file.suffix == ".parquet" and (found := _rows_of(cursor, file)) != rows:
            problem = f"has {found} rows, not {rows}"
        else:
            continue
        yield Finding(Level.DAMAGE, f"The file {path} {problem}.", "Restore it from a backup.")


def _rows_of(cursor: duckdb.DuckDBPyConnection, file: Path) -> int:
    return int(cursor.execute(_FILE_ROWS, [str(file)]).fetchall()[0][0])


def _runs(snapshot: Snapshot) -> Iterator[Finding]:
    runs = snapshot.catalogue.frame(_RUNS, {"ids": _there(snapshot, "run")}).rows(named=True)
    empty = [run["run_id"] for run in runs if not (run["rankings"] or run["aggregates"])]
    if empty:
        yield _missing(empty, "run", "neither rankings nor aggregates")
    ranked = [run for run in runs if run["rankings"]]
    for table, what in (("timings", "no timings"), ("usage", "no usage, so no cost")):
        without = [run["run_id"] for run in ranked if not (run[table] or run["aggregates"])]
        if without:
            yield _missing(without, "run", what)


def _golden_sets(snapshot: Snapshot, root: Path) -> Iterator[Finding]:
    """Judgements whose passage or query the collection does not hold (where it holds any)."""
    catalogue, revision = snapshot.catalogue, snapshot.revision
    known = {"ids": _there(snapshot, "golden_set")}
    for golden_set, collection, asking in catalogue.cursor().execute(_GOLDEN_SETS, known).fetchall():

        def files(table: str, of: str) -> list[str]:
            asked = {"table": table, "revision": revision, "id": of}
            return [str(root / path) for path in catalogue.column(_FILES, asked)]

        if not (files("judgements", golden_set) or files("spans", golden_set)):
            yield _missing([golden_set], "golden set", "no judgements")
        for rows, table, of, query, what in (
            ("judgements", "passages", collection, _STRAY_PASSAGES, "judgements of passages"),
            ("judgements", "queries", asking, _STRAY_QUERIES, "judged queries"),
            ("spans", "queries", asking, _STRAY_QUERIES, "queries judged by spans"),
        ):
            judged, texts = files(rows, golden_set), files(table, of)
            if not (judged and texts):
                continue
            asked = {"rows": judged, "known": texts, "collection": of, "golden_set": golden_set}
            stray = catalogue.column(query, asked)[0]
            if stray:
                yield Finding(
                    Level.MISSING,
                    f"The golden set {golden_set!r} has {stray} {what} that the collection {of!r} "
                    "does not hold.",
                    "They still count in the pool; judge the current texts again.",
                )


def _texts(snapshot: Snapshot) -> Iterator[Finding]:
    asked = {"revision": snapshot.revision, "ids": _there(snapshot, "collection")}
    for table in ("queries", "passages"):
        without = snapshot.catalogue.column(_NO_TEXT, {"table": table, **asked})
        if without:
            yield _missing(sorted(without), "collection", f"no {table}, so their texts cannot be shown")


def _leftovers(catalogue: Catalogue, root: Path) -> Iterator[Finding]:
    layout = Layout(root)
    if lock.held(layout.lock):
        yield Finding(Level.NOTE, f"A writer is active: {lock.holder(layout.lock) or 'unnamed'}.")
        return
    orphans = layout.orphans(folders(catalogue.column("SELECT path FROM parts")))
    if orphans:
        yield Finding(
            Level.NOTE,
            f"{len(orphans)} files or folders of writers that did not finish.",
            "The next write removes them.",
        )


def _missing(ids: list[str], kind: str, what: str) -> Finding:
    shown = ", ".join(repr(record_id) for record_id in ids[:3]) + (", …" if len(ids) > 3 else "")
    return Finding(Level.MISSING, f"{len(ids)} {kind}{'s' if len(ids) > 1 else ''} with {what}: {shown}.")
