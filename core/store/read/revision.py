"""The records of one revision, and the files that hold their rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from pathlib import Path
from typing import Concatenate, ParamSpec, Self

import polars as pl

from core.errors import UnknownNameError
from core.store.engine import Catalogue
from core.store.ledger import DELETED, HIDDEN, INCUMBENT, STATE, THERE, WHOLES, standing
from core.store.read.codes import Filed, path_of
from core.store.rules import GROWING, RULES, readable
from core.store.seals import Sealed, verify

# Short statements, joined in Polars: planning one statement that joins them all takes longer than everything
# else that a page reads. Their answers are cached for as long as the catalogue is current, so each statement
# covers every kind or table at once.
_HELD = f"""
SELECT p.table_name, k.id, arg_max(p.path, part_id) AS path, arg_max(k.rows, part_id) AS rows,
    arg_max(k.queries, part_id) AS queries, arg_max(p.bytes, part_id) AS bytes,
    arg_max(p.checksum, part_id) AS checksum
FROM part_keys k JOIN parts p USING (part_id) WHERE p.revision <= $revision
GROUP BY p.table_name, k.id, CASE WHEN p.table_name IN {GROWING} THEN p.path END
"""  # noqa: S608 - own names
_CODES = "SELECT path, bytes, checksum FROM parts WHERE ends_with(table_name, '.codes')"
_REVISIONS = """
SELECT revision, made_at AS "at", action, note FROM revisions WHERE revision <= $revision ORDER BY revision
"""
# What each later revision added or hid: records by their events, rows by their owners.
_LATER = """
SELECT kind AS said, id, revision FROM events WHERE revision > $after AND revision <= $revision
UNION SELECT p.table_name, k.id, p.revision FROM part_keys k JOIN parts p USING (part_id)
WHERE p.revision > $after AND p.revision <= $revision
"""
RUNS = "SELECT * FROM runs"
_Asked = ParamSpec("_Asked")


def _once(
    method: Callable[Concatenate[Revision, _Asked], pl.DataFrame],
) -> Callable[Concatenate[Revision, _Asked], pl.DataFrame]:
    """Cache a method that reads a revision's records for as long as the catalogue is current."""

    @wraps(method)
    def kept(self: Revision, /, *args: _Asked.args, **options: _Asked.kwargs) -> pl.DataFrame:
        key = (method.__name__, *args, *options.items(), self.revision, self.everything)
        return self.catalogue.kept(key, lambda: method(self, *args, **options))

    return kept


class Revision:
    """The records of one immutable revision of a store.

    Attributes:
        catalogue: The catalogue with its records; for use within this package.
        everything: Whether deleted records are shown as if they existed.
    """

    def __init__(self, catalogue: Catalogue, root: Path, revision: int, *, everything: bool = False) -> None:
        self.catalogue = catalogue
        self._root = root
        self.revision = revision
        self.everything = everything

    @property
    def path(self) -> Path:
        """The folder of the store."""
        return self._root

    def with_deleted(self) -> Self:
        """Return the same revision with deleted records shown as if they existed."""
        return type(self)(self.catalogue, self._root, self.revision, everything=True)

    @_once
    def collections(
        self, *, parts: bool = False, removed: bool = False, hidden: bool = False
    ) -> pl.DataFrame:
        """Return collections, oldest first.

        Args:
            parts: Whether to include those that hold the chunks of another one.
            removed: Whether to return the deleted ones instead of the existing ones.
            hidden: Whether to return the parts hidden by a deletion instead.

        Returns:
            collection_id, name, source, notes, part_of, queries and passages (counts).
        """
        records = self._records("collection", "SELECT * FROM collections", removed=removed, hidden=hidden)
        records = _whole(records, parts)
        for table in ("queries", "passages"):
            counts = self._held(table).select("id", pl.col("rows").alias(table))
            records = records.join(counts, how="left", left_on="collection_id", right_on="id")
        shown = ("collection_id", "name", "source", "notes", "part_of")
        return records.select(*shown, pl.col("queries", "passages").fill_null(0))

    @_once
    def golden_sets(
        self,
        collection_id: str | None = None,
        *,
        parts: bool = False,
        removed: bool = False,
        hidden: bool = False,
    ) -> pl.DataFrame:
        """Return golden sets, of one collection or of all, oldest first.

        Args:
            parts: Whether to include those derived from another one's spans for one chunker.
            removed: Whether to return the deleted ones instead of the existing ones.
            hidden: Whether to return those hidden by the deletion of a collection or golden set instead.

        Returns:
            golden_set_id, collection_id, name, mapping, judge, notes, part_of, parents (list of ids),
            manifest (JSON), queries (judged ones, or those with spans if there are no judgements),
            judgements and spans (counts).
        """
        records = self._records("golden_set", "SELECT * FROM golden_sets", removed=removed, hidden=hidden)
        records = _of(_whole(records, parts), collection_id)
        for table in ("judgements", "spans"):
            counts = self._held(table).select(
                "id", pl.col("rows").alias(table), pl.col("queries").alias(table[0])
            )
            records = records.join(counts, how="left", left_on="golden_set_id", right_on="id")
        shown = ("golden_set_id", "collection_id", "name", "mapping", "judge", "notes", "part_of")
        parents = pl.col("parents").str.json_decode(pl.List(pl.String))
        queries = pl.coalesce("j", "s", pl.lit(0)).alias("queries")
        others = (parents, "manifest", queries)
        return records.select(*shown, *others, pl.col("judgements", "spans").fill_null(0))

    @_once
    def runs(
        self, collection_id: str | None = None, *, removed: bool = False, hidden: bool = False
    ) -> pl.DataFrame:
        """Return runs, of one collection or of all, oldest first.

        Args:
            removed: Whether to return the deleted runs instead of the existing ones.
            hidden: Whether to return the runs hidden by the deletion of their collection instead.

        Returns:
            run_id, collection_id, stack_id, spec (JSON), label, origin, pool, environment (JSON), manifest
            (JSON), chunking, created_at (UTC), added_revision, has_rankings.
        """
        stacks = self.catalogue.records("SELECT stack_id, spec FROM stacks")
        records = _of(self._records("run", RUNS, removed=removed, hidden=hidden), collection_id)
        records = records.join(stacks, on="stack_id")
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
        return records.select(
            *shown,
            pl.col("created_at").dt.replace_time_zone("UTC"),
            "added_revision",
            pl.col("run_id").is_in(ranked).alias("has_rankings"),
        ).sort("created_at", "run_id")

    def incumbent(self, collection_id: str) -> str | None:
        """Return the run whose stack is marked as running today; None if none is, or if it is deleted."""
        state = self.catalogue.records(STATE, {"revision": self.revision})
        marked = state.filter(kind=INCUMBENT, event="added")["id"].implode()
        runs = self.runs(collection_id).filter(pl.col("run_id").is_in(marked))["run_id"]
        return None if runs.is_empty() else str(runs[0])

    def stacks(self) -> pl.DataFrame:
        """Return stacks that have runs: stack_id, spec (JSON), label, runs (count)."""
        counts = self._records("run", RUNS).group_by("stack_id").agg(runs=pl.len().cast(pl.Int64))
        return (
            self.catalogue.records("SELECT stack_id, spec, label FROM stacks")
            .join(counts, on="stack_id")
            .sort("stack_id")
        )

    def sizes(self, table: str) -> pl.DataFrame:
        """Return the size of every collection, golden set and run in a table, removed runs included.

        Args:
            table: A key of `TABLES`.

        Returns:
            id, rows, queries (distinct ones, at least; null if the table has no queries).
        """
        held = self._held(table).select("id", "rows", "queries")
        grown = pl.col("rows").sum(), pl.col("queries").max()
        return held.group_by("id", maintain_order=True).agg(grown) if table in GROWING else held

    def revisions(self) -> pl.DataFrame:
        """Return the action behind each revision: revision, at (UTC), action, note."""
        records = self.catalogue.records(_REVISIONS, {"revision": self.revision})
        return records.with_columns(pl.col("at").dt.replace_time_zone("UTC"))

    @_once
    def changes_of(self, collection_id: str, after: int) -> pl.DataFrame:
        """Return those `revisions` after a given one that changed a collection, deleted or not.

        Changes of its records, golden sets, runs and chunkings count, and of all their rows.
        """
        wholes = self.catalogue.records(WHOLES)
        parts = pl.col("id").is_in([collection_id]) | pl.col("part_of").is_in([collection_id])
        own = wholes.filter(parts, kind="collection")["id"].implode()
        theirs = wholes.filter(pl.col("collection_id").is_in(own)).select("kind", "id")
        kinds = {table: rules.kind for table, rules in RULES.items()} | {INCUMBENT: "run"}
        later = self.catalogue.records(_LATER, {"after": after, "revision": self.revision})
        later = later.with_columns(kind=pl.col("said").replace(kinds))
        return self.revisions().join(later.join(theirs, on=["kind", "id"]), on="revision", how="semi")

    def lots(self, table: str, ids: Sequence[str]) -> list[tuple[list[str], list[str]]]:
        """Return owners and the files to read their rows from, for a statement each (`rules.readable`).

        Every file is verified once per process.
        """
        verify(self._sealed(table, ids))
        held = self._held(table).filter(pl.col("id").is_in(list(ids))).sort("path", "id")
        return readable(
            table, ((owner, f"{self._root}/{path}") for owner, path in held.select("id", "path").iter_rows())
        )

    def _files(self, table: str, ids: Sequence[str]) -> list[str]:
        """Return the files with rows of some owners; each is verified once per process."""
        files = self._sealed(table, ids)
        verify(files)
        return [file.path for file in files]

    def _filed(self, table: str, ids: Sequence[str]) -> tuple[Filed, ...]:
        """Return the files with rows of some owners and their codes, which are verified when read."""
        codes = self.catalogue.records(_CODES).rows_by_key("path", unique=True)
        root, paired = str(self._root), []
        for part in self._sealed(table, ids):
            path = str(path_of(Path(part.path)))
            seal = codes.get(path[len(root) + 1 :])
            paired.append(Filed(part, None if seal is None else Sealed(path, *seal)))
        return tuple(paired)

    def _sealed(self, table: str, ids: Sequence[str]) -> list[Sealed]:
        held = self._held(table).filter(pl.col("id").is_in(list(ids)))
        files = held.select("path", "bytes", "checksum").unique().sort("path")
        return [Sealed(f"{self._root}/{path}", size, digest) for path, size, digest in files.iter_rows()]

    def _known(self, kind: str, ids: Iterable[str]) -> None:
        known = frozenset(self.standing(kind).filter(THERE)["id"])
        for record_id in ids:
            if record_id not in known:
                raise UnknownNameError(kind.replace("_", " "), record_id, known)

    @_once
    def standing(self, kind: str) -> pl.DataFrame:
        """Return added_revision, last event and what hides it, per id; for use within this package."""
        state = self.catalogue.records(STATE, {"revision": self.revision})
        if self.everything:
            there = state.with_columns(event=pl.lit("added"), behind=pl.lit(None, pl.String))
            return there.filter(kind=kind)
        return standing(state, lambda: self.catalogue.records(WHOLES)).filter(kind=kind)

    @_once
    def _held(self, table: str) -> pl.DataFrame:
        """Return path, rows and queries of each file with an owner's rows in a table."""
        return self.catalogue.records(_HELD, {"revision": self.revision}).filter(table_name=table)

    @_once
    def _records(self, kind: str, sql: str, *, removed: bool = False, hidden: bool = False) -> pl.DataFrame:
        """Return records of a kind that exist (or are deleted, or hidden) at this revision, oldest first."""
        where = DELETED if removed else HIDDEN if hidden else THERE
        records, state = self.catalogue.records(sql), self.standing(kind).filter(where)
        return records.join(state, left_on=f"{kind}_id", right_on="id").sort("added_revision", f"{kind}_id")


def _of(frame: pl.DataFrame, collection_id: str | None) -> pl.DataFrame:
    return frame if collection_id is None else frame.filter(pl.col("collection_id") == collection_id)


def _whole(frame: pl.DataFrame, parts: bool) -> pl.DataFrame:
    return frame if parts else frame.filter(pl.col("part_of").is_null())
