"""Turns a specification into an evaluation: reads and checks what it names, spends and writes nothing.

One golden set gives the grades for every chunking of a sweep; it is refused if that cannot be fair.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import polars as pl

from core.errors import InputError
from core.filters import decoded, fields_of, kinds
from core.importers.read.text import shown
from core.pipeline.anchors import Derived, anchor, judged
from core.pipeline.chunk import Chunked, as_stored, chunk
from core.pipeline.chunk.methods import chunking_name, is_late
from core.pipeline.documents import Documents, from_passages
from core.pipeline.evaluate import Corpus, Job, Protocol, corpus_of
from core.pipeline.evaluate.job import TASKS, Late, Share, named_corpus
from core.pipeline.own.endpoint import filled
from core.pipeline.query.entities import Names, named
from core.pipeline.query.perturb import NAMES
from core.pipeline.sweep.check import check, require
from core.pipeline.sweep.expand import expand
from core.pipeline.sweep.fields import TaskShare
from core.pipeline.sweep.filters import Filters, filters_of, marked, own_problems, way_problems, with_ways
from core.pipeline.sweep.known import KnownNames
from core.pipeline.sweep.model import GoldenSource, Latency, SweepSpec
from core.pipeline.sweep.problems import Problem, Severity
from core.pipeline.sweep.sources import (
    FILTERED,
    Shelf,
    chosen,
    holds_documents,
    on_shelf,
    read_collection,
    read_filters,
    read_golden_set,
    read_queries,
    read_source_documents,
)
from core.prices import PriceBook, load_books
from core.records import Batch, GoldenSet, JsonMap, Stack, canonical_json, part_id, short_hash
from core.tables import frame

_GRADED = ("judgements", "spans")
NO_QUESTIONS = "There are no questions."
_LISTED = 5  # Questions named in a message


def read_job(
    spec: SweepSpec,
    *,
    shelf: Shelf | None = None,
    known: KnownNames | None = None,
    books: Mapping[str, PriceBook] | None = None,
    to_run: bool = True,
    judged: bool = True,
) -> tuple[Job, list[Problem]]:
    """Read everything that a specification names and make an evaluation of it.

    Args:
        books: Price books by name; None = those that come with the product.
        to_run: Whether keys and packages must be there; not for a plan.
        judged: Whether judgements are wanted; those that come with the collection are left out if not.

    Returns:
        The evaluation, and what its owner should know.

    Raises:
        SpecError: With everything that cannot work.
        InputError: If something it names cannot be read.
    """
    known = known or KnownNames(spec.models)
    books = load_books() if books is None else books
    stacks = expand(spec, known)
    require(check(spec, known=known, stacks=stacks, books=books), to_run=to_run)
    source = spec.golden_set if judged else GoldenSource(split="all")
    whole, documents = read_collection(spec.collection, source, shelf)
    if spec.collection.stored is not None and holds_documents(whole):
        stacks = expand(spec, known, whole=True)
    material = _Material(spec, stacks, whole, documents, shelf)
    given = material.golden(shelf) if judged else Batch()
    corpora = material.corpora(given)
    largest = max(len(corpus) for corpus in corpora.values())
    problems = require(check(spec, known=known, stacks=stacks, books=books, passages=largest), to_run=to_run)
    queries = material.queries(given)
    filters = material.filters(queries)
    stacks = with_ways(stacks, filters)
    if filters is not None:
        corpora = material.filtered(corpora, filters)
        found = [*way_problems(stacks, filters, corpora), *own_problems(spec.own)]
        problems += require(found, to_run=to_run)
    golden, lost = material.graded(of_asked(given, queries))
    job = Job(
        name=spec.name,
        collection_id=material.collection.collection_id,
        corpora=corpora,
        queries=queries,
        stacks=stacks,
        setup=material.setup(golden, queries),
        chunkings={canonical_json(chunked.chunker): chunked.name or "" for chunked in material.cut},
        models=spec.models,
        own={own.name: filled(own) for own in spec.own},
        protocol=protocol(spec.latency),
        budget_usd=spec.budget.usd,
        book=books[spec.budget.prices],
        spec=spec.model_dump(mode="json"),
        hashes=_hashes(golden),
        names=material.names(queries),
        filters=() if filters is None else filters.asked,
        resources={task: _share(getattr(spec.resources, task) or spec.resources) for task in TASKS},
    )
    notes = documents.notes if documents is not None else ()
    if filters is not None and documents is not None and documents.metadata.height:
        said = kinds(fields_of(decoded(documents.metadata["metadata"])))
        listed = ", ".join(f"{shown(name, 40)} ({kind.value})" for name, kind in said.items())
        notes += (f"Fields of documents: {listed}.",)
    return job, [*problems, *(Problem("collection", note, "", Severity.WARNING) for note in notes), *lost]


def _same_filters(stored: pl.DataFrame | None, given: pl.DataFrame) -> None:
    if stored is None or stored.is_empty():
        return
    both = given.join(stored, on="query_id", suffix="_stored").filter(
        pl.col("filter") != pl.col("filter_stored")
    )
    if both.height:
        query, own, other = both.select("query_id", "filter", "filter_stored").row(0)
        found = f"{shown(query, 40)} has the filter {shown(other, 60)} in the store, not {shown(own, 60)}."
        raise InputError(
            found, where="filters", do="Keep the stored filters, or name the files of the collection."
        )


def _not_stored(stored: pl.DataFrame | None, given: pl.DataFrame) -> pl.DataFrame:
    """Return the filters to store: all where the store has none, and none where it has them already.

    Raises:
        InputError: If only some are stored; the filters of a collection are stored at once, as they say who
            may see what.
    """
    if stored is None or stored.is_empty():
        return given
    new = given.join(stored, on="query_id", how="anti")
    if new.height:
        some = f"{new.height:,} of {given.height:,} questions, such as {shown(new['query_id'][0], 40)},"
        raise InputError(
            f"{some} have a filter here, but not in the store, which has those of other questions.",
            where="filters",
            do="Ask stored questions only, or import questions and filters as a new collection.",
        )
    return given.clear()


def protocol(latency: Latency) -> Protocol:
    """Return the measurement protocol, for the runner."""
    return Protocol(
        repeats=latency.repeats,
        rounds=latency.rounds,
        pause_s=60 * latency.pause_minutes,
        warm_up=latency.warm_up,
        shuffled=latency.order == "shuffled",
        seed=latency.seed,
        concurrency=latency.concurrency,
        deepest=latency.rerank == "deepest",
    )


def _share(share: TaskShare) -> Share:
    return Share(share.cpus, share.gpus, share.memory_gb)


class _Material:
    """The collection of a specification, as it is and as each chunker cuts it, and its queries."""

    def __init__(
        self,
        spec: SweepSpec,
        stacks: Sequence[Stack],
        whole: Batch,
        documents: Documents | None,
        shelf: Shelf | None,
    ) -> None:
        self._shelf = shelf
        self._spec, self._stacks, self._whole, self._frames = spec, stacks, whole, _frames(whole)
        self._read = documents
        self._given: dict[str, pl.DataFrame] = {}  # filters and permissions of this specification
        (self.collection,) = whole.collections[:1]
        chunkers = [stack.spec.get("chunker") for stack in stacks]
        self._uncut = not all(chunkers)  # whether some stacks search the collection's own passages
        self.cut = [
            self._cut(chunker)
            for chunker in {canonical_json(chunker): chunker for chunker in chunkers if chunker}.values()
        ]

    @cached_property
    def _documents(self) -> pl.DataFrame:
        if self._read is not None:
            return self._read.frame
        if self._spec.collection.path is not None:
            return read_source_documents(self._spec.collection).frame
        return from_passages(self._frames["passages"])

    def _cut(self, chunker: JsonMap) -> Chunked:
        """Cut the documents; those in the store that were cut so before keep their chunks."""
        name = chunking_name(chunker)
        if self._spec.collection.stored is not None and name is not None:
            kept = on_shelf(self._shelf, self._spec.collection.stored).part(
                self.collection.collection_id, name
            )
            if (rows := _frames(kept))["passages"].height:
                return as_stored(chunker, rows["passages"], rows["chunks"], whole=self.collection)
        return chunk(self._documents, chunker, collection=self.collection)

    def corpora(self, golden: Batch) -> dict[str | None, Corpus]:
        """Return the corpora that are searched, by chunking; spans of a golden set are those of documents."""
        corpora: dict[str | None, Corpus] = {}
        for chunked in self.cut:
            late = Late(self._documents, chunked.chunks) if is_late(chunked.chunker) else None
            corpora[chunked.name] = corpus_of(chunked.passages, chunked.name, late=late)
        if not self._uncut:
            return corpora
        whole = self._frames["passages"]
        own = named_corpus(whole, self._places(golden)) if self._spec.own else corpus_of(whole)
        return {**corpora, None: own}

    def _places(self, golden: Batch) -> pl.DataFrame | None:
        """Return the places of passages cut from documents, or None if the collection has none."""
        chunks = [chunked.chunks for chunked in self.cut]
        chunks += [self._frames["chunks"]] if "chunks" in self._frames else []
        if not chunks and self._read is None and "spans" not in golden.frames:
            return None
        return pl.concat([frame("chunks", []), *chunks])

    def filters(self, queries: pl.DataFrame) -> Filters | None:
        """Return the filters of the questions, or None if they have none.

        Raises:
            InputError: If a column is named and the questions are in no file.
            UnknownNameError: If a permission is a field of no passage.
        """
        asked = self._spec.filters
        if asked.column and self._spec.queries.path is None:
            found = "Filters are made of columns of a file of questions, and none is named."
            do = 'Name it: queries = "questions.csv", or import the filters of the questions.'
            raise InputError(found, where="filters", do=do)
        if asked.permission:
            own = marked(self._frames, asked.permission, self.collection.collection_id)
            self._frames["fields"] = self._given["fields"] = own
        return filters_of(self._frames, queries)

    def filtered(self, corpora: Mapping[str | None, Corpus], filters: Filters) -> dict[str | None, Corpus]:
        """Return the corpora with the fields of their passages that filters ask about."""
        passages = {chunked.name: chunked.passages for chunked in self.cut} | {None: self._frames["passages"]}
        return {
            chunking: filters.apply(corpus, _sources(corpus, passages[chunking]))
            for chunking, corpus in corpora.items()
        }

    def names(self, queries: pl.DataFrame) -> Names:
        """Return the names in the questions, if stacks are asked with other names."""
        if not any(NAMES in stack.spec.get("perturb", {}) for stack in self._stacks):
            return {}
        return named(queries, self._frames.get("passages"))

    def setup(self, golden: Batch, queries: pl.DataFrame) -> Batch:
        """Return the records to store before the results; of a stored collection those that are new."""
        collections = [chunked.collection for chunked in self.cut]
        parts = {
            "passages": [chunked.passages for chunked in self.cut],
            "chunks": [chunked.chunks for chunked in self.cut],
        }
        if self._spec.collection.stored is None:
            collections.insert(0, self.collection)
            parts["passages"].insert(0, self._frames["passages"])
            known = self._frames.get("queries", queries.clear())  # also those that a draw left out
            parts["queries"] = [known, queries.join(known, on="query_id", how="anti").select(known.columns)]
            parts |= {name: [self._frames[name]] for name in FILTERED if name in self._frames}
        else:
            parts |= {name: [rows] for name, rows in self._given.items()}
        frames = {name: pl.concat(tables) for name, tables in parts.items() if tables}
        return Batch(
            collections=tuple(collections), golden_sets=golden.golden_sets, frames={**frames, **golden.frames}
        )

    def golden(self, shelf: Shelf | None) -> Batch:
        """Return the golden set: the one that is named, or the one that comes with the collection."""
        source = self._spec.golden_set
        if source is not None and source.path is not None:
            return read_golden_set(source, lambda: self._documents, self.collection.collection_id)
        if source is not None and source.stored is not None:
            return on_shelf(shelf, source.stored).golden_set(source.stored)
        frames = {name: self._frames[name] for name in _GRADED if name in self._frames}
        return Batch(golden_sets=self._whole.golden_sets, frames=frames)

    def queries(self, golden: Batch) -> pl.DataFrame:
        """Return the questions that are asked."""
        source = self._spec.queries
        if source.path is not None:
            where = (source.path, self.collection.collection_id, source.columns)
            queries = read_queries(*where)
            filters = read_filters(*where, equal=self._spec.filters.column)
            if filters is not None:
                _same_filters(self._frames.get("query_filters"), filters)
                if self._spec.collection.stored is not None:
                    self._given["query_filters"] = _not_stored(self._frames.get("query_filters"), filters)
                self._frames["query_filters"] = filters
        elif (known := self._frames.get("queries")) is not None and known.height:
            queries = known
        else:
            raise InputError(NO_QUESTIONS, where="queries", do='Name them: queries = "questions.jsonl".')
        judged = [rows.select("query_id") for name, rows in _frames(golden).items() if name in _GRADED]
        return chosen(queries, pl.concat(judged) if judged else None, source.limit, source.seed)

    def graded(self, golden: Batch) -> tuple[Batch, list[Problem]]:
        """Work out a golden set's grades for each chunking, with remarks for its owner.

        Grades anchored to spans hold for any chunker; those of whole documents are spans, too. Grades of
        chunks judge the chunker that made them, and no other.
        """
        spans, judgements = (_frames(golden).get(name, pl.DataFrame()) for name in ("spans", "judgements"))
        if not golden.golden_sets or (spans.is_empty() and (judgements.is_empty() or not self.cut)):
            return golden, []
        record, coverage = golden.golden_sets[0], (self._spec.golden_set or GoldenSource()).coverage
        whole = self._cut({"method": "none"})
        if spans.height:
            chunkings = [*self.cut, *([whole] if judgements.is_empty() else [])]
            parts = [judged(record, spans, chunking, coverage) for chunking in chunkings]
            return _derived(golden, parts), [lost for part in parts if (lost := _losses(part)) is not None]
        placed, unplaced = anchor(judgements, whole.chunks)
        if placed.height and unplaced.is_empty():
            return _derived(golden, [judged(record, placed, chunked, coverage) for chunked in self.cut]), []
        if self._uncut or len(self.cut) > 1:
            own = ["the collection's own passages"] if self._uncut else []
            names = ", ".join([*own, *sorted(chunked.name or "" for chunked in self.cut)])
            raise InputError(
                f"The stacks search differently cut passages ({names}), and the grades of {record.name} are "
                "tied to passages: they can judge one of these sets only, and all others would look bad.",
                where="golden_set",
                do="Anchor the grades to characters of the documents (spans), or compare stacks of one "
                "chunker.",
            )
        return _tied(golden, record, judgements, self.cut[0]), []


def _sources(corpus: Corpus, passages: pl.DataFrame) -> pl.Series:
    searched = corpus.passage_ids.alias("passage_id").to_frame()
    placed = searched.join(
        passages.select("passage_id", "source"), on="passage_id", how="left", maintain_order="left"
    )
    return placed["source"]


def _frames(batch: Batch) -> dict[str, pl.DataFrame]:
    return {name: rows.lazy().collect() for name, rows in batch.frames.items()}


def _hashes(golden: Batch) -> dict[str, str]:
    rows = [table for _, table in sorted(_frames(golden).items())]
    lines = [row for table in rows for row in table.sort(table.columns).write_csv().splitlines()]
    return {"golden_set": short_hash(*lines)} if lines else {}


def of_asked(golden: Batch, queries: pl.DataFrame) -> Batch:
    """Return the part of a golden set that judges these queries, or itself if it judges no others.

    A judged question that a run does not answer counts as 0, so that questions which nobody asked would pull
    every mean down.
    """
    frames = {name: rows for name, rows in _frames(golden).items() if name in _GRADED and rows.height}
    asked = queries.select("query_id")
    if not any(frame.join(asked, on="query_id", how="anti").height for frame in frames.values()):
        return golden
    (record,) = golden.golden_sets
    kept = {name: table.join(asked, on="query_id", how="semi") for name, table in frames.items()}
    ids = sorted({query for table in kept.values() for query in table["query_id"]})
    if not ids:
        return Batch()
    part = replace(
        record,
        golden_set_id=f"{record.golden_set_id}-{len(ids)}q-{short_hash(*ids)[:4]}",
        name=f"{record.name}, {len(ids)} questions",
        notes=f"{record.notes} Only the grades of the questions that are asked.".strip(),
    )
    own = pl.lit(part.golden_set_id).alias("golden_set_id")
    return Batch(golden_sets=(part,), frames={name: table.with_columns(own) for name, table in kept.items()})


def _derived(golden: Batch, parts: Sequence[Derived]) -> Batch:
    sets = {
        golden_set.golden_set_id: golden_set
        for golden_set in (*golden.golden_sets, *(part.golden_set for part in parts))
    }
    own = [rows.lazy().collect() for name, rows in golden.frames.items() if name == "judgements"]
    judgements = pl.concat([*own, *(part.judgements for part in parts)])
    return Batch(golden_sets=tuple(sets.values()), frames={**golden.frames, "judgements": judgements})


def _losses(part: Derived) -> Problem | None:
    """Return a warning about evidence that a chunker splits, which would otherwise make it look better."""
    if not part.lost.height:
        return None
    reason = f"{part.lost.height} spans lie in no chunk that covers enough of them."
    if part.unasked:
        shown = ", ".join(part.unasked[:_LISTED])
        reason += f" {len(part.unasked)} questions lose all of theirs and drop out ({shown})."
    do = "Lower golden_set.coverage, or use larger chunks."
    return Problem(f"golden set {part.golden_set.golden_set_id}", reason, do, Severity.WARNING)


def _tied(golden: Batch, record: GoldenSet, judgements: pl.DataFrame, chunked: Chunked) -> Batch:
    own = part_id(record.golden_set_id, chunked.name or "")
    part = replace(
        record,
        golden_set_id=own,
        collection_id=chunked.collection.collection_id,
        name=f"{record.name}, {chunked.name}",
        part_of=record.golden_set_id,
    )
    rows = judgements.with_columns(golden_set_id=pl.lit(own))
    return Batch(golden_sets=(*golden.golden_sets, part), frames={**golden.frames, "judgements": rows})
