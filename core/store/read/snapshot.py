"""Everything in the store as it was at one revision."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from core.answers import EARLIER, KEY, parted
from core.answers import graded as graded_answers
from core.errors import UnknownNameError
from core.metrics.access import ALLOWED, UNFILTERED
from core.records import part_id
from core.store.engine import EXAMINE, SqlParams, as_store_error
from core.store.read import graded
from core.store.read.access import Access, Filtered, HeldPassages, access
from core.store.read.graded import Graded, Sourced
from core.store.read.lists import Judges
from core.store.read.memory import Memory
from core.store.read.revision import RUNS, Revision
from core.store.rules import RULES, names, rows_of
from core.tables import TABLES

# Only the columns that identify answers: they show which answers have no grade.
_NAMED = (
    f"SELECT {names(KEY)} FROM {rows_of('answers', '$files')} "  # noqa: S608 - own names
    "WHERE run_id IN (SELECT unnest($ids))"
)
_FIRST = f"""
SELECT run_id, passage_id FROM {rows_of("rankings", "$files")}
WHERE run_id IN (SELECT unnest($ids)) AND stage = 'final' AND rank = 1
QUALIFY row_number() OVER (PARTITION BY run_id ORDER BY query_id) <= $most
"""  # noqa: S608 - own names
# An id that is its own source is a document that is searched whole.
_CUT = {
    table: f"SELECT DISTINCT source FROM {rows_of(table, '$files')} "  # noqa: S608 - own names
    f"WHERE {RULES[table].owner} IN (SELECT unnest($ids)) AND source IN (SELECT unnest($asked)){finer}"
    for table, finer in (
        ("passages", " AND source <> passage_id"), ("chunks", " AND source <> passage_id"), ("spans", "")
    )
}  # fmt: skip
_GRADED = Memory(64 << 20)  # Answers with their grades, which several parts of a page read in turn
_EARLIER_GRADES = (
    f"SELECT {names((*KEY, *EARLIER))} FROM {rows_of('answers', '$files')} "  # noqa: S608 - own names
    "WHERE grade IS NOT NULL AND run_id IN (SELECT unnest($ids))"
)


def _select(table: str, *conditions: str) -> str:
    """Return a query over parts; its text comes from declarations in this package, values are parameters."""
    rule = RULES[table]
    where = " AND ".join((f"{rule.owner} IN (SELECT unnest($ids))", *conditions))
    columns, order = names(TABLES[table]), names(rule.order)
    return f"SELECT {columns} FROM {rows_of(table, '$files')} WHERE {where} ORDER BY {order}"  # noqa: S608


class Snapshot(Revision):
    """One immutable revision of a store with its rows. Cheap to make; safe to use from several threads.

    Every method raises `UnknownNameError` for a record, table or column that does not exist.
    """

    def queries(self, collection_id: str) -> pl.DataFrame:
        """Return queries of a collection, sorted by id."""
        return self._rows("queries", [collection_id])

    def passages(self, collection_id: str, passage_ids: Sequence[str] | None = None) -> pl.DataFrame:
        """Return passages of a collection, all or the named ones (unknown ids are left out), sorted by id."""
        if passage_ids is None:
            return self._rows("passages", [collection_id])
        return self._rows(
            "passages",
            [collection_id],
            ["passage_id IN (SELECT unnest($passages))"],
            {"passages": list(passage_ids)},
        )

    def existing(
        self,
        table: str,
        owners: Sequence[str],
        column: str,
        asked: Sequence[str] | None = None,
        *,
        most: int = 0,
    ) -> list[str]:
        """Return the distinct values of a column of ids; only that column is read.

        Args:
            table: A key of `TABLES`.
            owners: Collections, golden sets or runs whose rows count.
            asked: Values to look for, of which the existing ones are returned; None for any.
            most: The most values to return; 0 for all.
        """
        if column not in TABLES[table]:
            raise UnknownNameError("column", column, TABLES[table], where=table)
        self._known(RULES[table].kind, owners)
        wanted = "" if asked is None else f' AND "{column}" IN (SELECT unnest($asked))'
        bound = f" LIMIT {int(most)}" if most else ""
        sql = (
            f'SELECT DISTINCT "{column}" FROM {rows_of(table, "$files")} '  # noqa: S608 - own names
            f"WHERE {RULES[table].owner} IN (SELECT unnest($ids)){wanted}{bound}"
        )
        found = self._column(table, owners, sql, {} if asked is None else {"asked": list(asked)})
        return list(dict.fromkeys(found))[: most or None]

    def judgements(self, golden_set_id: str) -> pl.DataFrame:
        """Return judgements of a golden set, sorted by query and passage."""
        return self._rows("judgements", [golden_set_id])

    def within(self, golden_set_id: str) -> pl.DataFrame:
        """Return the judgements of a golden set that count: of passages that the askers may see."""
        rows, filtered = self.judgements(golden_set_id), self._filtered_for(golden_set_id)
        if filtered is None:
            return rows
        states = pl.Series(access(filtered).states(rows["query_id"], rows["passage_id"]))
        return rows.filter(states.is_in([ALLOWED, UNFILTERED]))

    def rankings(
        self, run_ids: Sequence[str], *, stage: str | None = None, query_id: str | None = None
    ) -> pl.DataFrame:
        """Return rankings of runs, sorted by run, stage, query and rank.

        Args:
            stage: Only "final" or "pool".
        """
        given = {"stage": stage, "query_id": query_id}
        asked = {name: value for name, value in given.items() if value is not None}
        return self._rows("rankings", run_ids, [f"{name} = ${name}" for name in asked], asked)

    def firsts(self, run_ids: Sequence[str], most: int) -> pl.DataFrame:
        """Return the passages that runs rank first, for at most this many queries: run_id, passage_id."""
        self._known("run", run_ids)
        if not (files := self._files("rankings", run_ids)):
            return pl.DataFrame(schema={"run_id": pl.String, "passage_id": pl.String})
        return self.catalogue.frame(_FIRST, {"files": files, "ids": list(run_ids), "most": most})

    def cut_up(self, collection_id: str, asked: Sequence[str]) -> set[str]:
        """Return which ids are documents of a collection, with passages, chunks or judged spans as parts.

        Args:
            collection_id: The collection; its chunkings and golden sets count.
            asked: The ids.
        """
        parts = self.collections(parts=True).filter(part_of=collection_id)["collection_id"]
        owners = {
            "collection": [collection_id, *parts],
            "golden_set": self.golden_sets(collection_id)["golden_set_id"].to_list(),
        }
        found: set[str] = set()
        for table, sql in _CUT.items():
            found |= set(self._column(table, owners[RULES[table].kind], sql, {"asked": list(asked)}))
        return found

    def timings(self, run_ids: Sequence[str]) -> pl.DataFrame:
        """Return timings of runs, in milliseconds."""
        return self._rows("timings", run_ids)

    def usage(self, run_ids: Sequence[str]) -> pl.DataFrame:
        """Return the usage of runs (tokens, requests, processor time…)."""
        return self._rows("usage", run_ids)

    def aggregates(self, run_ids: Sequence[str]) -> pl.DataFrame:
        """Return results of runs that were reported without per-query data."""
        return self._rows("aggregates", run_ids)

    def signals(self, run_ids: Sequence[str], *, signal: str | None = None) -> pl.DataFrame:
        """Return per-query figures other than time and usage (score margins…), or only one of them."""
        asked = {} if signal is None else {"signal": signal}
        return self._rows("signals", run_ids, [f"{name} = ${name}" for name in asked], asked)

    def criteria(self, run_ids: Sequence[str]) -> pl.DataFrame:
        """Return the criteria beyond relevance on which rerankers rated passages, with their weights."""
        return self._rows("criteria", run_ids)

    def ratings(self, run_ids: Sequence[str], *, query_id: str | None = None) -> pl.DataFrame:
        """Return rerankers' ratings of the candidates, by index of the criterion; 0 = relevance."""
        asked = {} if query_id is None else {"query_id": query_id}
        return self._rows("ratings", run_ids, [f"{name} = ${name}" for name in asked], asked)

    def answers(self, run_ids: Sequence[str]) -> pl.DataFrame:
        """Return the answers of readers, for every reader, prompt, temperature, mode, k and pass."""
        return self._rows("answers", run_ids)

    def answer_scores(self, run_ids: Sequence[str]) -> pl.DataFrame:
        """Return answer quality by scorer and judge; grades of an earlier release are scores too."""
        scores = self._rows("answer_scores", run_ids)
        if not (files := self._files("answers", run_ids)):
            return scores
        rows = self.catalogue.frame(_EARLIER_GRADES, {"files": files, "ids": list(run_ids)})
        earlier = parted(rows).get("answer_scores")
        if earlier is None:
            return scores
        others = earlier.join(scores, on=[*KEY, "source"], how="anti", nulls_equal=True)
        return pl.concat([scores, others]).sort(RULES["answer_scores"].order, nulls_last=True)

    def graded_answers(
        self,
        run_ids: Sequence[str],
        *,
        scorer: str | None = None,
        judge: str | None = None,
        reader: str | None = None,
    ) -> pl.DataFrame:
        """Return the answers of one reader per run, each with one grade; see `core.answers.graded`."""
        self._known("run", run_ids)
        files = self._files("answers", run_ids)
        asked = (scorer, judge, reader)
        key = (*files, *self._files("answer_scores", run_ids), *run_ids, *asked)

        def graded_rows() -> pl.DataFrame:
            held = {"files": files, "ids": list(run_ids)}
            said = self.catalogue.frame(_NAMED, held) if files else pl.DataFrame(schema=TABLES["answers"])
            scores = self.answer_scores(run_ids)
            return graded_answers(said, scores, scorer=scorer, judge=judge, reader=reader)

        return _GRADED.once(key, graded_rows, lambda rows: int(rows.estimated_size()))

    def gold_answers(self, collection_id: str) -> pl.DataFrame:
        """Return the reference answers to the queries of a collection, sorted by query."""
        return self._rows("gold_answers", [collection_id])

    def nuggets(self, golden_set_id: str) -> pl.DataFrame:
        """Return the nuggets of a golden set with the passages that support them, sorted by query."""
        return self._rows("nuggets", [golden_set_id])

    def clusters(self, collection_id: str) -> pl.DataFrame:
        """Return the groups that the queries of a collection belong to, sorted by query."""
        return self._rows("clusters", [collection_id])

    def passage_metadata(self, collection_id: str) -> pl.DataFrame:
        """Return what is known of the passages of a collection beside their texts, as JSON."""
        return self._rows("passage_metadata", [collection_id])

    def query_filters(self, collection_id: str) -> pl.DataFrame:
        """Return the filters of the questions of a collection, as canonical JSON."""
        return self._rows("query_filters", [collection_id])

    def fields(self, collection_id: str) -> pl.DataFrame:
        """Return what is declared about fields of the metadata of a collection."""
        return self._rows("fields", [collection_id])

    def access(self, collection_id: str) -> Access | None:
        """Return what askers may see of a collection, or of its part with chunks; None without filters."""
        filtered = self._filtered(collection_id)
        with as_store_error("reading", self._root, EXAMINE):
            return None if filtered is None else access(filtered)

    def _filtered(self, collection_id: str) -> Filtered | None:
        """Return where the filters of a collection's questions are; None if they have none."""
        if self._held("query_filters").is_empty():
            return None
        parts = self.collections(parts=True).filter(collection_id=collection_id)["part_of"].drop_nulls()
        whole = str(parts[0]) if parts.len() else collection_id

        def held(table: str, name: str) -> HeldPassages:
            return HeldPassages(name, tuple(self._files(table, [name])))

        filters = held("query_filters", whole)
        if not filters.files:
            return None
        known = tuple(held("passage_metadata", name) for name in dict.fromkeys((collection_id, whole)))
        return Filtered(filters, held("fields", whole), known, held("passages", collection_id))

    def diagnostics(self, collection_ids: Sequence[str]) -> pl.DataFrame:
        """Return figures of diagnoses of embedders, sorted by collection, embedder and run."""
        return self._rows("diagnostics", collection_ids)

    def chunks(self, collection_id: str) -> pl.DataFrame:
        """Return where the chunks of a collection lie in their source documents."""
        return self._rows("chunks", [collection_id])

    def spans(self, golden_set_id: str) -> pl.DataFrame:
        """Return grades of a golden set that are anchored to characters of source documents."""
        return self._rows("spans", [golden_set_id])

    def gradings(self, golden_set_id: str) -> pl.DataFrame:
        """Return the acts of judging behind a golden set, sorted by query, passage, judge and time."""
        return self._rows("gradings", [golden_set_id])

    def orders(self, golden_set_id: str) -> pl.DataFrame:
        """Return the refined order of a golden set's best passages, sorted by query and rank."""
        return self._rows("orders", [golden_set_id])

    def graded(
        self, run_ids: Sequence[str], golden_set_id: str, *, stage: str = "final", depth: int | None = None
    ) -> Graded:
        """Return rankings joined with grades, as arrays ready for the measures.

        A run that searched the chunks of a chunker is judged by the golden set's part for these chunks, if
        there is one (`judging`).

        Args:
            run_ids: The runs; duplicates count once.
            stage: "final" or "pool".
            depth: Ranks to keep; None keeps all.
        """
        asked, groups = self._judges(run_ids, golden_set_id)
        with as_store_error("reading", self._root, EXAMINE):
            return graded.join(groups, asked, stage, depth)

    def sources(
        self, run_ids: Sequence[str], golden_set_id: str, *, stage: str = "final", depth: int
    ) -> Sourced:
        """Return the sources of the passages that `graded` grades; arguments and errors as in `graded`."""
        asked, groups = self._judges(run_ids, golden_set_id, apart=True)
        searched = self.searched(asked)
        collections = [searched[group.run_ids[0]] if group.run_ids else "" for group in groups]
        passages = [(name, tuple(self._files("passages", [name]))) for name in collections]
        with as_store_error("reading", self._root, EXAMINE):
            return graded.join_sources(groups, passages, asked, stage, depth)

    def has_sources(self, collection_id: str) -> bool:
        """Return whether any passage of a collection (or of a part with chunks) has a source."""
        files = tuple(self._files("passages", [collection_id]))
        with as_store_error("reading", self._root, EXAMINE):
            return graded.any_source(collection_id, files)

    def _judges(
        self, run_ids: Sequence[str], golden_set_id: str, *, apart: bool = False
    ) -> tuple[list[str], list[Judges]]:
        """Return the runs, and the golden set that judges each; split by searched collection if `apart`."""
        asked = list(dict.fromkeys(run_ids))
        searched = self.searched(asked) if apart else {}
        together: dict[tuple[str, str], list[str]] = {}
        for run_id, name in self.judging(asked, golden_set_id).items():
            together.setdefault((name, searched.get(run_id, "")), []).append(run_id)
        groups = [
            Judges(
                name,
                tuple(runs),
                self._filed("rankings", runs),
                self._filed("judgements", [name]),
                self._filtered_for(name),
            )
            for (name, _), runs in (together or {(golden_set_id, ""): []}).items()
        ]
        return asked, groups

    def _filtered_for(self, golden_set_id: str) -> Filtered | None:
        """Return where the filters of the questions of a golden set are."""
        if self._held("query_filters").is_empty():
            return None
        own = self.golden_sets(parts=True).filter(golden_set_id=golden_set_id)["collection_id"]
        return self._filtered(str(own[0])) if own.len() else None

    def searched(self, run_ids: Sequence[str]) -> dict[str, str]:
        """Return each run's collection of ranked passages: its own, or the part with its chunks."""
        rows = self._chunked(run_ids).iter_rows()
        return {run_id: part_id(collection, chunking or None) for run_id, collection, chunking in rows}

    def judging(self, run_ids: Sequence[str], golden_set_id: str) -> dict[str, str]:
        """Return for each run the golden set that grades its passages: the named one, or its part."""
        self._known("golden_set", [golden_set_id])
        parts = self._records("golden_set", "SELECT * FROM golden_sets").filter(part_of=golden_set_id)
        known, rows = set(parts["golden_set_id"]), self._chunked(run_ids).iter_rows()
        own = {run_id: part_id(golden_set_id, chunking or None) for run_id, _, chunking in rows}
        return {run_id: name if name in known else golden_set_id for run_id, name in own.items()}

    def _chunked(self, run_ids: Sequence[str]) -> pl.DataFrame:
        """Return run_id, collection_id and chunking of some runs."""
        self._known("run", run_ids)
        runs = self.catalogue.records(RUNS).select("run_id", "collection_id", "chunking")
        asked = pl.DataFrame({"run_id": list(dict.fromkeys(run_ids))}, schema={"run_id": pl.String})
        return asked.join(runs, on="run_id", how="left", maintain_order="left")

    def _rows(
        self, table: str, ids: Sequence[str], conditions: Sequence[str] = (), asked: SqlParams | None = None
    ) -> pl.DataFrame:
        self._known(RULES[table].kind, ids)
        sql, given = _select(table, *conditions), asked or {}
        rows = [
            self.catalogue.frame(sql, {"files": files, "ids": owners, **given})
            for owners, files in self.lots(table, ids)
        ]
        if len(rows) < 2:
            return rows[0] if rows else pl.DataFrame(schema=TABLES[table])
        return pl.concat(rows).sort(RULES[table].order, nulls_last=True)

    def _column(self, table: str, ids: Sequence[str], sql: str, asked: SqlParams) -> list[str]:
        """Return the only column of a statement about some owners' rows."""
        return [
            value
            for owners, files in self.lots(table, ids)
            for value in self.catalogue.column(sql, {"files": files, "ids": owners, **asked})
        ]
