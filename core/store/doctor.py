"""Examines a store: whether it is whole, what it holds and what is missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from core.errors import StoreError, StoreVersionError
from core.files import is_locked
from core.store import migrations, store, upkeep
from core.store.engine import Catalogue
from core.store.layout import REPAIR, RESTORE, Layout, entries, sealed
from core.store.ledger import DELETED, KINDS, THERE
from core.store.parts import folders
from core.store.read.snapshot import Snapshot
from core.store.seals import Sealed, advice
from core.store.store import Store
from core.store.writer import passed_over, unfinished, unused
from core.tables import TABLES

_STANDS = {"": THERE, " (removed)": DELETED, " (hidden)": ~THERE & ~DELETED}
_ROWS = """
SELECT table_name, sum(rows)::BIGINT FROM parts WHERE NOT ends_with(table_name, '.codes') GROUP BY 1
"""
_PARTS = "SELECT path, rows, bytes, checksum FROM parts ORDER BY path"
_FILE_ROWS = "SELECT num_rows FROM parquet_file_metadata(?)"
# A run's id, and whether it has rows in each table that a page would look for
_RUNS = """
SELECT r.run_id, r.origin,
       bool_or(p.table_name = 'rankings') AS rankings, bool_or(p.table_name = 'timings') AS timings,
       bool_or(p.table_name = 'usage') AS usage, bool_or(p.table_name = 'aggregates') AS aggregates
FROM runs AS r
LEFT JOIN part_keys AS k ON k.id = r.run_id LEFT JOIN parts AS p ON p.part_id = k.part_id
WHERE r.run_id IN (SELECT unnest($ids)) GROUP BY r.run_id, r.origin ORDER BY r.run_id
"""
# A golden set, its collection of passages, and its collection of queries (a part has that of its whole)
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
# Chunks are the passages of a part; queries belong to a whole, whose documents need not be stored.
_NO_TEXT = """
SELECT c.collection_id FROM collections AS c WHERE c.collection_id IN (SELECT unnest($ids))
AND c.collection_id NOT IN (SELECT id FROM held($table, $revision)) AND CASE $table
    WHEN 'queries' THEN c.part_of IS NULL
    ELSE NOT EXISTS (FROM collections AS p WHERE p.part_of = c.collection_id) END
"""


class Level(StrEnum):
    """How serious a finding is."""

    DAMAGE = "damage"  # results cannot be trusted or read
    MISSING = "missing"  # the store is whole, but something that a page could show is not there
    NOTE = "note"  # nothing to worry about


@dataclass(frozen=True, slots=True)
class Complaint:
    """One thing worth telling, in plain text."""

    level: Level
    found: str
    do: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """Findings of an examination, with counts of the store."""

    path: Path  # the store's folder
    revision: int | None  # the revision examined; None if no catalogue can be read
    schema: int | None  # number of the catalogue's last migration; None if no catalogue can be read
    newest_schema: int  # the number that this release writes
    # Records by kind (counting deleted ones, and those hidden by a deletion, separately) and rows by table
    counts: Mapping[str, int]
    findings: tuple[Complaint, ...]  # worst first

    @property
    def sound(self) -> bool:
        """Whether nothing is damaged."""
        return all(finding.level is not Level.DAMAGE for finding in self.findings)


_ORDER = list(Level)


def examine(store: Store) -> Report:
    """Examine the current revision; this reads every byte of the store and writes nothing but an upgrade.

    Args:
        store: The store; an absent one is sound and empty.

    Raises:
        StoreVersionError: If a newer release wrote it.
    """
    newest = migrations.MIGRATIONS[-1].number
    try:
        snapshot = store.read()
        counts = dict.fromkeys(("collections", "golden_sets", "runs", *TABLES), 0)
        counts |= _counts(snapshot)
        counts.update(snapshot.catalogue.cursor().execute(_ROWS).fetchall())
        findings = tuple(
            sorted(_findings(snapshot, store.path), key=lambda finding: _ORDER.index(finding.level))
        )
        return Report(store.path, snapshot.revision, snapshot.catalogue.version, newest, counts, findings)
    except StoreVersionError:
        raise
    except StoreError as error:
        damage = Complaint(Level.DAMAGE, error.found, error.do)
    except Exception as error:
        damage = Complaint(Level.DAMAGE, f"The catalogue cannot be read: {type(error).__name__}.", REPAIR)
    return Report(store.path, None, None, newest, {}, (damage, *_older(Layout(store.path))))


def _findings(snapshot: Snapshot, root: Path) -> Iterator[Complaint]:
    catalogue, layout = snapshot.catalogue, Layout(root)
    if catalogue.path is not None:
        yield from _whole_catalogue(catalogue, catalogue.path)
    damage = list(_integrity(catalogue, root))
    yield from damage
    if all(finding.level is not Level.DAMAGE for finding in damage):
        yield from _runs(snapshot)
        yield from _golden_sets(snapshot, root)
        yield from _texts(snapshot)
    yield from _newer(layout)
    yield from _older(layout)
    yield from _leftovers(catalogue, layout)


def _whole_catalogue(catalogue: Catalogue, path: Path) -> Iterator[Complaint]:
    """Yield a finding if the current catalogue is not as it was written.

    A catalogue without a checksum is checked by reading every row.
    """
    seal = sealed(path)
    if seal is not None:
        if problem := seal.problem():
            yield Complaint(Level.DAMAGE, f"The catalogue {path.name} {problem}.", REPAIR)
        return
    catalogue.read_all()
    yield Complaint(
        Level.NOTE,
        "The catalogue has no checksum, for an earlier release wrote it.",
        "The next write makes one that has.",
    )


def _newer(layout: Layout) -> Iterator[Complaint]:
    """Yield a finding if there is a newer catalogue than the one that CURRENT names."""
    newer = passed_over(layout)
    if newer is None:
        return
    current = layout.current()
    now = 0 if current is None else layout.revision_of(current.name)
    found = f"CURRENT names revision {now}, and {newer.name}, revision {layout.revision_of(newer.name)}"
    if upkeep.takes(layout, newer):
        do = "Run `python -m core doctor --repair`; it makes that the current one and deletes nothing."
        yield Complaint(Level.DAMAGE, f"{found}, lies beside it.", do)
    else:
        yield Complaint(Level.MISSING, f"{found}, lies beside it and cannot be taken.", RESTORE)


def _older(layout: Layout) -> Iterator[Complaint]:
    """Yield a finding for catalogues that a repair could not fall back to."""
    with suppress(StoreError, OSError):
        current = None
        with suppress(StoreError):
            current = layout.current()
        for path in layout.published():
            seal = sealed(path)
            if path != current and seal is not None and (problem := seal.problem()):
                yield Complaint(
                    Level.MISSING,
                    f"The catalogue {path.name}, which is not the current one, {problem}.",
                    f"No page reads it. {REPAIR}",
                )


def _counts(snapshot: Snapshot) -> dict[str, int]:
    """Count records by kind: existing ones, and deleted ones if there are any."""
    counts = {}
    for kind in KINDS:
        stands = snapshot.standing(kind)
        for how, condition in _STANDS.items():
            number = stands.filter(condition).height
            if number or not how:
                counts[f"{kind}s{how}"] = number
    return counts


def _there(snapshot: Snapshot, kind: str) -> list[str]:
    return snapshot.standing(kind).filter(THERE)["id"].to_list()


def _integrity(catalogue: Catalogue, root: Path) -> Iterator[Complaint]:
    """Yield a finding for every part that is missing, or whose bytes or rows are not those written."""
    cursor = catalogue.cursor()
    for path, rows, size, digest in cursor.execute(_PARTS).fetchall():
        file = root / path
        problem = Sealed(str(file), size, digest).problem()
        if not problem and file.suffix == ".parquet":
            ((stored,),) = cursor.execute(_FILE_ROWS, [str(file)]).fetchall()
            problem = "" if stored == rows else f"has {stored} rows, not {rows}"
        if problem and file.suffix == ".parquet":
            yield Complaint(Level.DAMAGE, f"The file {path} {problem}.", advice(problem))
        elif problem:
            yield Complaint(
                Level.MISSING,
                f"The file {path} {problem}; it only says again what a part says.",
                "It is made anew when it is read, or by `python -m core doctor --repair`.",
            )


def _runs(snapshot: Snapshot) -> Iterator[Complaint]:
    runs = snapshot.catalogue.frame(_RUNS, {"ids": _there(snapshot, "run")}).rows(named=True)
    empty = [run["run_id"] for run in runs if not (run["rankings"] or run["aggregates"])]
    if empty:
        yield _missing(empty, "run", "neither rankings nor aggregates")
    ranked = [run for run in runs if run["rankings"]]
    for table, what in (("timings", "no timings"), ("usage", "no usage, so no cost")):
        without = [run["run_id"] for run in ranked if not (run[table] or run["aggregates"])]
        if without:
            yield _missing(without, "run", what)


def _golden_sets(snapshot: Snapshot, root: Path) -> Iterator[Complaint]:
    """Yield findings for judgements whose passage or query is missing from a collection that has any."""
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
            ("gradings", "passages", collection, _STRAY_PASSAGES, "gradings of passages"),
            ("spans", "queries", asking, _STRAY_QUERIES, "queries judged by spans"),
        ):
            judged, texts = files(rows, golden_set), files(table, of)
            if not (judged and texts):
                continue
            asked = {"rows": judged, "known": texts, "collection": of, "golden_set": golden_set}
            stray = catalogue.column(query, asked)[0]
            if stray:
                yield Complaint(
                    Level.MISSING,
                    f"The golden set {golden_set!r} has {stray} {what} that the collection {of!r} "
                    "does not hold.",
                    "They still count in the pool; judge the current texts again.",
                )


def _texts(snapshot: Snapshot) -> Iterator[Complaint]:
    asked = {"revision": snapshot.revision, "ids": _there(snapshot, "collection")}
    for table in ("queries", "passages"):
        without = snapshot.catalogue.column(_NO_TEXT, {"table": table, **asked})
        if without:
            yield _missing(sorted(without), "collection", f"no {table}, so their texts cannot be shown")


def _leftovers(catalogue: Catalogue, layout: Layout) -> Iterator[Complaint]:
    if is_locked(layout.lock):
        yield Complaint(Level.NOTE, f"A writer is active: {store.holder(layout.lock) or 'unnamed'}.")
        return
    listed = folders(catalogue.column("SELECT path FROM parts"))
    for leftovers, what, do in (
        (
            unfinished(layout, listed),
            "of writers that did not finish",
            "The next write moves them to trash/, which a later one empties after a day.",
        ),
        (unused(layout, listed), "that no revision in use refers to", "Nothing removes them."),
        (
            entries(layout.aside),
            "in aside/, which a repair or a restore took out of use",
            "Nothing removes them.",
        ),
    ):
        if leftovers:
            yield Complaint(Level.NOTE, f"{len(leftovers)} files or folders {what}.", do)


def _missing(ids: list[str], kind: str, what: str) -> Complaint:
    shown = ", ".join(repr(record_id) for record_id in ids[:3]) + (", …" if len(ids) > 3 else "")
    return Complaint(Level.MISSING, f"{len(ids)} {kind}{'s' if len(ids) > 1 else ''} with {what}: {shown}.")
