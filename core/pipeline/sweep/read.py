"""From a specification to an evaluation: reads what it names, checks it, and spends and writes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import polars as pl

from core.errors import InputError
from core.pipeline.chunk import Chunked, chunk, is_late
from core.pipeline.evaluate import Corpus, Job, Protocol, corpus_of
from core.pipeline.evaluate.job import Late
from core.pipeline.sweep.check import check, require
from core.pipeline.sweep.expand import expand
from core.pipeline.sweep.grades import Graded, graded, of_asked
from core.pipeline.sweep.known import Known
from core.pipeline.sweep.model import GoldenSource, Latency, SweepSpec
from core.pipeline.sweep.problems import Problem
from core.pipeline.sweep.sources import (
    Shelf,
    chosen,
    documents_of,
    on_shelf,
    read_collection,
    read_golden_set,
    read_queries,
)
from core.prices import PriceBook, load_books
from core.records import Batch, JsonMap, Stack, canonical_json, short_hash


def read_job(
    spec: SweepSpec,
    *,
    shelf: Shelf | None = None,
    known: Known | None = None,
    books: Mapping[str, PriceBook] | None = None,
    to_run: bool = True,
) -> tuple[Job, list[Problem]]:
    """Read everything that a specification names and make an evaluation of it.

    Args:
        spec: The specification.
        shelf: Where stored collections and golden sets are.
        known: What it can name; None = looked up.
        books: Price books by name; None = those that come with the product.
        to_run: Whether keys and packages must be there; not for a plan.

    Returns:
        The evaluation, and what its owner should know.

    Raises:
        SpecError: With everything that cannot work.
        InputError: If something it names cannot be read.
    """
    known = known or Known.of(spec)
    books = load_books() if books is None else books
    stacks = expand(spec, known)
    require(check(spec, known=known, stacks=stacks, books=books), to_run=to_run)
    whole = read_collection(spec.collection, spec.golden_set, shelf)
    material = _Material(spec, stacks, whole)
    corpora = material.corpora()
    largest = max(len(corpus) for corpus in corpora.values())
    problems = require(check(spec, known=known, stacks=stacks, books=books, passages=largest), to_run=to_run)
    found = _golden(spec, material, shelf)
    queries = _queries(spec, whole, found, material.collection.collection_id)
    golden = _graded(spec, material, of_asked(found, queries))
    job = Job(
        name=spec.name,
        collection_id=material.collection.collection_id,
        corpora=corpora,
        queries=queries,
        stacks=stacks,
        setup=material.setup(golden.batch, queries),
        chunkings={canonical_json(each.chunker): each.name or "" for each in material.cut},
        models=spec.models,
        protocol=protocol(spec.latency),
        budget_usd=spec.budget.usd,
        book=books[spec.budget.prices],
        spec=spec.model_dump(mode="json"),
        hashes=_hashes(golden.batch),
    )
    return job, [*problems, *golden.problems]


def protocol(latency: Latency) -> Protocol:
    """How time is measured, for the runner."""
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


class _Material:
    """What is searched, as it is and as each chunker cuts it."""

    def __init__(self, spec: SweepSpec, stacks: Sequence[Stack], whole: Batch) -> None:
        self._spec, self._stacks, self._whole = spec, stacks, whole
        (self.collection,) = whole.collections[:1]
        chunkers = {canonical_json(each): each for each in (s.spec.get("chunker") for s in stacks) if each}
        self.cut = [self._cut(each) for each in chunkers.values()]

    @cached_property
    def documents(self) -> pl.DataFrame:
        """The documents, read once."""
        return documents_of(self._spec.collection, self._whole)

    @property
    def searches_uncut(self) -> bool:
        """Whether some stacks search the collection's own passages."""
        return any(not stack.spec.get("chunker") for stack in self._stacks)

    @cached_property
    def whole(self) -> Chunked:
        """The documents as passages, with their places."""
        return self._cut({"method": "none"})

    @property
    def own_golden(self) -> Batch:
        """The golden set that comes with the collection."""
        kept = {name: rows for name, rows in self._whole.frames.items() if name in {"judgements", "spans"}}
        return Batch(golden_sets=self._whole.golden_sets, frames=kept)

    def corpora(self) -> dict[str | None, Corpus]:
        """What is searched, by chunking."""
        made: dict[str | None, Corpus] = {
            each.name: corpus_of(each.passages, each.name, late=self._late(each)) for each in self.cut
        }
        if self.searches_uncut:
            made[None] = corpus_of(_frame(self._whole, "passages"))
        return made

    def setup(self, golden: Batch, queries: pl.DataFrame) -> Batch:
        """What has to be in the store before the results; stored collections are there."""
        stored = self._spec.collection.stored is not None
        frames = {
            "passages": [each.passages for each in self.cut],
            "chunks": [each.chunks for each in self.cut],
        }
        if not stored:
            frames["passages"].insert(0, _frame(self._whole, "passages"))
            frames["queries"] = [_all_queries(self._whole, queries)]
        collections = tuple(each.collection for each in self.cut)
        return Batch(
            collections=collections if stored else (self.collection, *collections),
            golden_sets=golden.golden_sets,
            frames={**{name: pl.concat(parts) for name, parts in frames.items() if parts}, **golden.frames},
        )

    def _late(self, cut: Chunked) -> Late | None:
        return Late(self.documents, cut.chunks) if is_late(cut.chunker) else None

    def _cut(self, chunker: JsonMap) -> Chunked:
        return chunk(self.documents, chunker, collection=self.collection)


def _golden(spec: SweepSpec, material: _Material, shelf: Shelf | None) -> Batch:
    """The golden set: the one that is named, or the one that comes with the collection."""
    named = spec.golden_set
    if named is not None and named.path is not None:
        return read_golden_set(named, lambda: material.documents, material.collection.collection_id)
    if named is not None and named.stored is not None:
        return on_shelf(shelf, named.stored).golden_set(named.stored)
    return material.own_golden


def _graded(spec: SweepSpec, material: _Material, found: Batch) -> Graded:
    named = spec.golden_set
    coverage = named.coverage if named is not None else GoldenSource().coverage
    anchored = "spans" in found.frames or material.cut
    whole = material.whole if anchored else None
    return graded(found, material.cut, whole, coverage=coverage, uncut=material.searches_uncut)


def _queries(spec: SweepSpec, whole: Batch, golden: Batch, collection_id: str) -> pl.DataFrame:
    source = spec.queries
    if source.path is not None:
        queries = read_queries(source.path, collection_id, source.columns)
    elif "queries" in whole.frames:
        queries = _frame(whole, "queries")
    else:
        raise InputError(
            "There are no questions.", where="queries", do='Name them: queries = "questions.jsonl".'
        )
    judged = [
        _frame(golden, name).select("query_id") for name in ("judgements", "spans") if name in golden.frames
    ]
    return chosen(queries, pl.concat(judged) if judged else None, source.limit, source.seed)


def _all_queries(whole: Batch, asked: pl.DataFrame) -> pl.DataFrame:
    """Every question of the collection, also those that a draw left out."""
    known = _frame(whole, "queries") if "queries" in whole.frames else asked.clear()
    return pl.concat([known, asked.join(known, on="query_id", how="anti").select(known.columns)])


def _hashes(golden: Batch) -> dict[str, str]:
    rows = [_frame(golden, name) for name in sorted(golden.frames)]
    told = [row for each in rows for row in each.sort(each.columns).write_csv().splitlines()]
    return {"golden_set": short_hash(*told)} if told else {}


def _frame(batch: Batch, name: str) -> pl.DataFrame:
    return batch.frames[name].lazy().collect()
