"""Reading: everything as it was at one revision."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import polars as pl

from core.errors import UnknownNameError
from core.store import chunkings, graded, sources
from core.store.engine import Catalogue, Params
from core.store.graded import Graded
from core.store.lists import Judges
from core.store.rules import RULES
from core.store.sources import Sourced
from core.tables import TABLES

# Short statements joined in Polars: planning one statement that joins them all takes longer than everything
# else that a page reads, and what they answer is kept for as long as the catalogue is current.
_STATE = "SELECT * FROM state($kind, $revision)"
_HELD = "SELECT * FROM held($table, $revision)"
_REVISIONS = """
SELECT revision, made_at AS "at", action, note FROM revisions WHERE revision <= $revision ORDER BY revision
"""


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

    def collections(self, *, parts: bool = False) -> pl.DataFrame:
        """Collections, oldest first.

        Args:
            parts: Also those that hold the chunks of another one.

        Returns:
            collection_id, name, source, notes, part_of, queries and passages (counts).
        """
        found = _whole(self._records("collection", "SELECT * FROM collections"), parts)
        for table in ("queries", "passages"):
            counts = self._held(table).select("id", pl.col("rows").alias(table))
            found = found.join(counts, how="left", left_on="collection_id", right_on="id")
        shown = ("collection_id", "name", "source", "notes", "part_of")
        return found.select(*shown, pl.col("queries", "passages").fill_null(0))

    def golden_sets(self, collection_id: str | None = None, *, parts: bool = False) -> pl.DataFrame:
        """Golden sets, of one collection or of all, oldest first.

        Args:
            collection_id: Only those of this collection.
            parts: Also those that hold what follows from another one's spans for one chunker.

        Returns:
            golden_set_id, collection_id, name, mapping, judge, notes, part_of, queries (judged ones; where
            there are no judgements, those with spans), judgements and spans (counts).
        """
        found = _whole(self._records("golden_set", "SELECT * FROM golden_sets"), parts)
        for table in ("judgements", "spans"):
            counts = self._held(table).select(
                "id", pl.col("rows").alias(table), pl.col("queries").alias(table[0])
            )
            found = found.join(counts, how="left", left_on="golden_set_id", right_on="id")
        shown = ("golden_set_id", "collection_id", "name", "mapping", "judge", "notes", "part_of")
        queries = pl.coalesce("j", "s", pl.lit(0)).alias("queries")
        return _of(found, collection_id).select(*shown, queries, pl.col("judgements", "spans").fill_null(0))

    def runs(self, collection_id: str | None = None, *, removed: bool = False) -> pl.DataFrame:
        """Runs, of one collection or of all, oldest first.

        Args:
            collection_id: Only runs on this collection.
            removed: The removed runs instead of those that are there.

        Returns:
            run_id, collection_id, stack_id, spec (JSON), label, origin, pool, environment (JSON), manifest
            (JSON), chunking, created_at (UTC), added_revision, has_rankings.
        """
        stacks = self.catalogue.records("SELECT stack_id, spec FROM stacks")
        found = self._records("run", "SELECT * FROM runs", removed=removed).join(stacks, on="stack_id")
        ranked = self._held("rankings")["id"].implode()
        shown = (
            "run_id",
            "collection_id",
            "stack_id",
            "spec",
            "label",
            "origin",
            "pool",
            "environment",
            "manifest",
            "chunking",
        )
        return (
            _of(found, collection_id)
            .select(
                *shown,
                pl.col("created_at").dt.replace_time_zone("UTC"),
                "added_revision",
                pl.col("run_id").is_in(ranked).alias("has_rankings"),
            )
            .sort("created_at", "run_id")
        )

    def stacks(self) -> pl.DataFrame:
        """Stacks that have runs: stack_id, spec (JSON), label, runs (count)."""
        counts = (
            self._records("run", "SELECT * FROM runs").group_by("stack_id").agg(runs=pl.len().cast(pl.Int64))
        )
        return (
            self.catalogue.records("SELECT stack_id, spec, label FROM stacks")
            .join(counts, on="stack_id")
            .sort("stack_id")
        )

    def revisions(self) -> pl.DataFrame:
        """What made each revision: revision, at (UTC), action, note."""
        found = self.catalogue.records(_REVISIONS, {"revision": self.revision})
        return found.with_columns(pl.col("at").dt.replace_time_zone("UTC"))

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

    def signals(self, run_ids: Sequence[str]) -> pl.DataFrame:
        """Figures of single queries that are neither time nor usage, such as score margins.

        Raises:
            UnknownNameError: If a run does not exist.
        """
        return self._rows("signals", run_ids)

    def answers(self, run_ids: Sequence[str]) -> pl.DataFrame:
        """Generated answers with their grades.

        Raises:
            UnknownNameError: If a run does not exist.
        """
        return self._rows("answers", run_ids)

    def chunks(self, collection_id: str) -> pl.DataFrame:
        """Where the chunks of a collection lie in their source documents.

        Raises:
            UnknownNameError: If the collection does not exist.
        """
        return self._rows("chunks", [collection_id])

    def spans(self, golden_set_id: str) -> pl.DataFrame:
        """Grades of a golden set that are anchored to characters of source documents.

        Raises:
            UnknownNameError: If the golden set does not exist.
        """
        return self._rows("spans", [golden_set_id])

    def graded(
        self, run_ids: Sequence[str], golden_set_id: str, *, stage: str = "final", depth: int | None = None
    ) -> Graded:
        """Rankings joined with grades, as arrays ready for the measures.

        A run that searched the chunks of a chunker is judged by the part of the golden set for it, if there
        is one (`judging`).

        Args:
            run_ids: The runs; one named twice counts once.
            golden_set_id: Whose grades.
            stage: "final" or "pool".
            depth: Ranks to keep; None keeps all.

        Raises:
            UnknownNameError: If a run or the golden set does not exist.
        """
        asked, groups = self._judges(run_ids, golden_set_id)
        return graded.join(groups, run_ids=asked, stage=stage, depth=depth)

    def sources(
        self, run_ids: Sequence[str], golden_set_id: str, *, stage: str = "final", depth: int
    ) -> Sourced:
        """The sources of the passages that `graded` grades; arguments and errors as there."""
        asked, groups = self._judges(run_ids, golden_set_id, apart=True)
        searched = self.searched(asked)
        collections = [searched[group.run_ids[0]] if group.run_ids else "" for group in groups]
        passages = [(name, tuple(self._files("passages", [name]))) for name in collections]
        return sources.join(groups, passages, run_ids=asked, stage=stage, depth=depth)

    def has_sources(self, collection_id: str) -> bool:
        """Whether any passage of a collection (or of a part with chunks) says what it was cut from."""
        return sources.any_source(collection_id, tuple(self._files("passages", [collection_id])))

    def _judges(
        self, run_ids: Sequence[str], golden_set_id: str, *, apart: bool = False
    ) -> tuple[list[str], list[Judges]]:
        """The runs, and which golden set judges which of them; apart: those that searched one collection."""
        asked = list(dict.fromkeys(run_ids))
        searched = self.searched(asked) if apart else {}
        together: dict[tuple[str, str], list[str]] = {}
        for run_id, name in self.judging(asked, golden_set_id).items():
            together.setdefault((name, searched.get(run_id, "")), []).append(run_id)
        groups = [
            Judges(
                name,
                tuple(runs),
                tuple(self._files("rankings", runs)),
                tuple(self._files("judgements", [name])),
            )
            for (name, _), runs in (together or {(golden_set_id, ""): []}).items()
        ]
        return asked, groups

    def searched(self, run_ids: Sequence[str]) -> dict[str, str]:
        """Per run the collection whose passages it ranks: the run's own, or the part with its chunks.

        Raises:
            UnknownNameError: If a run does not exist.
        """
        rows = self._chunked(run_ids).iter_rows()
        return {run_id: chunkings.searched(collection, chunking) for run_id, collection, chunking in rows}

    def judging(self, run_ids: Sequence[str], golden_set_id: str) -> dict[str, str]:
        """Per run the golden set with the grades of its passages: the one named, or its part.

        Raises:
            UnknownNameError: If a run or the golden set does not exist.
        """
        self._known("golden_set", [golden_set_id])
        runs = self._chunked(run_ids)
        parts = self._records("golden_set", "SELECT * FROM golden_sets").filter(part_of=golden_set_id)
        return chunkings.judging(runs, golden_set_id, set(parts["golden_set_id"]))

    def _chunked(self, run_ids: Sequence[str]) -> pl.DataFrame:
        """run_id, collection_id and chunking of some runs."""
        self._known("run", run_ids)
        runs = self.catalogue.records("SELECT run_id, collection_id, chunking FROM runs")
        asked = pl.DataFrame({"run_id": list(dict.fromkeys(run_ids))}, schema={"run_id": pl.String})
        return asked.join(runs, on="run_id", how="left", maintain_order="left")

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
        held = self._held(table)
        files = held.filter(pl.col("id").is_in(list(ids)))["path"].unique().sort()
        return [str(self._root / path) for path in files]

    def _known(self, kind: str, ids: Iterable[str]) -> None:
        known = frozenset(self._state(kind).filter(pl.col("event") != "removed")["id"])
        for record_id in ids:
            if record_id not in known:
                raise UnknownNameError(kind.replace("_", " "), record_id, known)

    def _state(self, kind: str) -> pl.DataFrame:
        """Per id: added_revision, and the last event."""
        return self.catalogue.records(_STATE, {"kind": kind, "revision": self.revision})

    def _held(self, table: str) -> pl.DataFrame:
        """Per owner's id: path of the file with its rows in a table, rows, queries."""
        return self.catalogue.records(_HELD, {"table": table, "revision": self.revision})

    def _records(self, kind: str, sql: str, *, removed: bool = False) -> pl.DataFrame:
        """Records of a kind that are there (or removed) at this revision, oldest first."""
        state = self._state(kind).filter((pl.col("event") == "removed") == removed)
        key = f"{kind}_id"
        return self.catalogue.records(sql).join(state, left_on=key, right_on="id").sort("added_revision", key)


def _of(frame: pl.DataFrame, collection_id: str | None) -> pl.DataFrame:
    return frame if collection_id is None else frame.filter(pl.col("collection_id") == collection_id)


def _whole(frame: pl.DataFrame, parts: bool) -> pl.DataFrame:
    return frame if parts else frame.filter(pl.col("part_of").is_null())
