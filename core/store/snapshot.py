"""Reading: everything as it was at one revision."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import polars as pl

from core.errors import UnknownNameError
from core.records import TABLES
from core.store import graded
from core.store.engine import Catalogue, Params
from core.store.graded import Graded
from core.store.rules import RULES

_COLLECTIONS = """
SELECT c.collection_id, c.name, c.source, c.notes,
       coalesce(q.rows, 0) AS queries, coalesce(p.rows, 0) AS passages
FROM state('collection', $revision) AS s
JOIN collections AS c ON c.collection_id = s.id
LEFT JOIN held('queries', $revision) AS q ON q.id = s.id
LEFT JOIN held('passages', $revision) AS p ON p.id = s.id
ORDER BY s.added_revision, c.collection_id
"""
_GOLDEN_SETS = """
SELECT g.golden_set_id, g.collection_id, g.name, g.mapping, g.judge, g.notes,
       coalesce(j.queries, 0) AS queries, coalesce(j.rows, 0) AS judgements
FROM state('golden_set', $revision) AS s
JOIN golden_sets AS g ON g.golden_set_id = s.id
LEFT JOIN held('judgements', $revision) AS j ON j.id = s.id
WHERE $collection::VARCHAR IS NULL OR g.collection_id = $collection
ORDER BY s.added_revision, g.golden_set_id
"""
_RUNS = """
SELECT r.run_id, r.collection_id, r.stack_id, k.spec, r.label, r.origin, r.pool, r.environment, r.manifest,
       r.created_at, s.added_revision, h.id IS NOT NULL AS has_rankings
FROM state('run', $revision) AS s
JOIN runs AS r ON r.run_id = s.id
JOIN stacks AS k ON k.stack_id = r.stack_id
LEFT JOIN held('rankings', $revision) AS h ON h.id = s.id
WHERE (s.event = 'removed') = $removed AND ($collection::VARCHAR IS NULL OR r.collection_id = $collection)
ORDER BY r.created_at, r.run_id
"""
_STACKS = """
SELECT k.stack_id, k.spec, k.label, count(*) AS runs
FROM state('run', $revision) AS s
JOIN runs AS r ON r.run_id = s.id
JOIN stacks AS k ON k.stack_id = r.stack_id
WHERE s.event <> 'removed'
GROUP BY k.stack_id, k.spec, k.label ORDER BY k.stack_id
"""
_REVISIONS = (
    'SELECT revision, made_at AS "at", action, note FROM revisions WHERE revision <= $revision ORDER BY 1'
)
_IDS = "SELECT id FROM state($kind, $revision) WHERE event <> 'removed'"
_FILES = "SELECT DISTINCT path FROM held($table, $revision) WHERE id IN (SELECT unnest($ids)) ORDER BY path"


def _select(table: str, *conditions: str) -> str:
    """A query over parts; all of it comes from declarations in this package, values are parameters."""
    rule = RULES[table]
    where = " AND ".join((f"{rule.owner} IN (SELECT unnest($ids))", *conditions))
    columns, order = ", ".join(TABLES[table]), ", ".join(rule.order)
    return f"SELECT {columns} FROM read_parquet($files) WHERE {where} ORDER BY {order}"  # noqa: S608


class Snapshot:
    """One immutable revision of a store. Cheap to make; safe to use from several threads.

    Attributes:
        revision: What it shows.
        catalogue: Where its records are; for use within this package.
    """

    def __init__(self, catalogue: Catalogue, root: Path, revision: int) -> None:
        self.catalogue = catalogue
        self._root = root
        self.revision = revision

    def collections(self) -> pl.DataFrame:
        """Collections: collection_id, name, source, notes, queries and passages (counts)."""
        return self.catalogue.frame(_COLLECTIONS, {"revision": self.revision})

    def golden_sets(self, collection_id: str | None = None) -> pl.DataFrame:
        """Golden sets, of one collection or of all.

        Returns:
            golden_set_id, collection_id, name, mapping, judge, notes, queries (judged ones) and judgements
            (counts).
        """
        return self.catalogue.frame(_GOLDEN_SETS, {"revision": self.revision, "collection": collection_id})

    def runs(self, collection_id: str | None = None, *, removed: bool = False) -> pl.DataFrame:
        """Runs, of one collection or of all, oldest first.

        Args:
            collection_id: Only runs on this collection.
            removed: The removed runs instead of those that are there.

        Returns:
            run_id, collection_id, stack_id, spec (JSON), label, origin, pool, environment (JSON), manifest
            (JSON), created_at (UTC), added_revision, has_rankings.
        """
        asked = {"revision": self.revision, "collection": collection_id, "removed": removed}
        return _zoned(self.catalogue.frame(_RUNS, asked), "created_at")

    def stacks(self) -> pl.DataFrame:
        """Stacks that have runs: stack_id, spec (JSON), label, runs (count)."""
        return self.catalogue.frame(_STACKS, {"revision": self.revision})

    def revisions(self) -> pl.DataFrame:
        """What made each revision: revision, at (UTC), action, note."""
        return _zoned(self.catalogue.frame(_REVISIONS, {"revision": self.revision}), "at")

    def queries(self, collection_id: str) -> pl.DataFrame:
        """Queries of a collection, sorted by id.

        Raises:
            UnknownNameError: If the collection does not exist.
        """
        return self._rows("queries", [collection_id])

    def passages(self, collection_id: str, passage_ids: Sequence[str] | None = None) -> pl.DataFrame:
        """Passages of a collection, all or those named (unknown ids are left out), sorted by id.

        Raises:
            UnknownNameError: If the collection does not exist.
        """
        if passage_ids is None:
            return self._rows("passages", [collection_id])
        return self._rows(
            "passages",
            [collection_id],
            ["passage_id IN (SELECT unnest($passages))"],
            {"passages": list(passage_ids)},
        )

    def judgements(self, golden_set_id: str) -> pl.DataFrame:
        """Judgements of a golden set, sorted by query and passage.

        Raises:
            UnknownNameError: If the golden set does not exist.
        """
        return self._rows("judgements", [golden_set_id])

    def rankings(
        self, run_ids: Sequence[str], *, stage: str | None = None, query_id: str | None = None
    ) -> pl.DataFrame:
        """Rankings of runs, sorted by run, stage, query and rank.

        Args:
            run_ids: The runs.
            stage: Only "final" or "pool".
            query_id: Only this query.

        Raises:
            UnknownNameError: If a run does not exist.
        """
        given = {"stage": stage, "query_id": query_id}
        asked = {name: value for name, value in given.items() if value is not None}
        return self._rows("rankings", run_ids, [f"{name} = ${name}" for name in asked], asked)

    def timings(self, run_ids: Sequence[str]) -> pl.DataFrame:
        """Timings of runs, in milliseconds.

        Raises:
            UnknownNameError: If a run does not exist.
        """
        return self._rows("timings", run_ids)

    def usage(self, run_ids: Sequence[str]) -> pl.DataFrame:
        """What runs used (tokens, requests, processor time…).

        Raises:
            UnknownNameError: If a run does not exist.
        """
        return self._rows("usage", run_ids)

    def aggregates(self, run_ids: Sequence[str]) -> pl.DataFrame:
        """Results of runs that come without per-query data.

        Raises:
            UnknownNameError: If a run does not exist.
        """
        return self._rows("aggregates", run_ids)

    def graded(
        self, run_ids: Sequence[str], golden_set_id: str, *, stage: str = "final", depth: int | None = None
    ) -> Graded:
        """Rankings joined with grades, as arrays ready for the measures.

        Args:
            run_ids: The runs; one named twice counts once.
            golden_set_id: Whose grades.
            stage: "final" or "pool".
            depth: Ranks to keep; None keeps all.

        Raises:
            UnknownNameError: If a run or the golden set does not exist.
        """
        asked = list(dict.fromkeys(run_ids))
        self._known("run", asked)
        self._known("golden_set", [golden_set_id])
        return graded.join(
            self.catalogue.cursor(),
            run_ids=asked,
            golden_set_id=golden_set_id,
            rankings=self._files("rankings", asked),
            judgements=self._files("judgements", [golden_set_id]),
            stage=stage,
            depth=depth,
        )

    def _rows(
        self, table: str, ids: Sequence[str], conditions: Sequence[str] = (), asked: Params | None = None
    ) -> pl.DataFrame:
        self._known(RULES[table].kind, ids)
        files = self._files(table, ids)
        if not files:
            return pl.DataFrame(schema=TABLES[table])
        params = {"files": files, "ids": list(ids), **(asked or {})}
        return self.catalogue.frame(_select(table, *conditions), params)

    def _files(self, table: str, ids: Sequence[str]) -> list[str]:
        asked = {"table": table, "revision": self.revision, "ids": list(ids)}
        return [str(self._root / path) for path in self.catalogue.column(_FILES, asked)]

    def _known(self, kind: str, ids: Iterable[str]) -> None:
        known = set(self.catalogue.column(_IDS, {"kind": kind, "revision": self.revision}))
        for record_id in ids:
            if record_id not in known:
                raise UnknownNameError(kind.replace("_", " "), record_id, known)


def _zoned(frame: pl.DataFrame, column: str) -> pl.DataFrame:
    return frame.with_columns(pl.col(column).dt.replace_time_zone("UTC"))
