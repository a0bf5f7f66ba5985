"""From a specification to an evaluation: reads what it names, checks it, and spends and writes nothing.

One golden set gives the grades for every chunking of a sweep; it is refused where that cannot be fair.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import polars as pl

from core.errors import InputError
from core.pipeline.anchors import Derived, anchor, judged, require_comparable
from core.pipeline.chunk import Chunked, chunk, is_late
from core.pipeline.evaluate import Corpus, Job, Protocol, corpus_of
from core.pipeline.evaluate.job import TASKS, Late, Share
from core.pipeline.query.entities import Names, named
from core.pipeline.query.perturb import NAMES
from core.pipeline.sweep.check import check, require
from core.pipeline.sweep.expand import expand
from core.pipeline.sweep.fields import Resources
from core.pipeline.sweep.known import Known
from core.pipeline.sweep.model import GoldenSource, Latency, SweepSpec
from core.pipeline.sweep.problems import Problem, Severity
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
from core.records import Batch, GoldenSet, JsonMap, Stack, canonical_json, part_id, short_hash


def read_job(
    spec: SweepSpec,
    *,
    shelf: Shelf | None = None,
    known: Known | None = None,
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
    known = known or Known(spec.models)
    books = load_books() if books is None else books
    stacks = expand(spec, known)
    require(check(spec, known=known, stacks=stacks, books=books), to_run=to_run)
    named = spec.golden_set if judged else GoldenSource(split="all")
    whole = read_collection(spec.collection, named, shelf)
    material = _Material(spec, stacks, whole)
    corpora = material.corpora()
    largest = max(len(corpus) for corpus in corpora.values())
    problems = require(check(spec, known=known, stacks=stacks, books=books, passages=largest), to_run=to_run)
    found = _golden(spec, material, shelf) if judged else Batch()
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
        names=material.names(queries),
        resources=shares(spec.resources),
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


def shares(told: Resources) -> dict[str, Share]:
    """What each kind of task gets of a machine."""
    given = {task: getattr(told, task) or told for task in TASKS}
    return {task: Share(each.cpus, each.gpus, each.memory_gb) for task, each in given.items()}


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

    def names(self, queries: pl.DataFrame) -> Names:
        """What the questions name, where stacks are asked other names."""
        if not any(NAMES in stack.spec.get("perturb", {}) for stack in self._stacks):
            return {}
        return named(queries, _frame(self._whole, "passages") if "passages" in self._whole.frames else None)

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


_LISTED = 5


@dataclass(frozen=True, slots=True)
class Graded:
    """The golden set of a sweep."""

    batch: Batch  # the golden set and its parts, with judgements, and spans where it has them
    problems: tuple[Problem, ...] = ()  # what its owner should know


def of_asked(golden: Batch, queries: pl.DataFrame) -> Batch:
    """The part of a golden set that judges the questions that are asked; itself if it judges no others.

    A judged question that a run does not answer counts as 0, so that questions which nobody asked would pull
    every mean down.
    """
    rows = {name: _rows(golden, name) for name in ("judgements", "spans")}
    frames = {name: each for name, each in rows.items() if each is not None}
    asked = queries.select("query_id")
    if not any(each.join(asked, on="query_id", how="anti").height for each in frames.values()):
        return golden
    (record,) = golden.golden_sets
    kept = {name: each.join(asked, on="query_id", how="semi") for name, each in frames.items()}
    ids = sorted({query for each in kept.values() for query in each["query_id"]})
    if not ids:
        return Batch()
    part = replace(
        record,
        golden_set_id=f"{record.golden_set_id}-{len(ids)}q-{short_hash(*ids)[:4]}",
        name=f"{record.name}, {len(ids)} questions",
        notes=f"{record.notes} Only the grades of the questions that are asked.".strip(),
    )
    own = pl.lit(part.golden_set_id).alias("golden_set_id")
    return Batch(golden_sets=(part,), frames={name: each.with_columns(own) for name, each in kept.items()})


def graded(
    golden: Batch, cut: Sequence[Chunked], whole: Chunked | None, *, coverage: float, uncut: bool
) -> Graded:
    """Work out what a golden set says about each chunking.

    Grades anchored to spans hold for any chunker; those of whole documents are spans, too. Grades of chunks
    judge the chunker that made them, and no other.
    """
    if not golden.golden_sets:
        return Graded(golden)
    record = golden.golden_sets[0]
    spans, judgements = _rows(golden, "spans"), _rows(golden, "judgements")
    if spans is not None:
        chunkings = [*cut, *([whole] if whole is not None and judgements is None else [])]
        return _derived(golden, [judged(record, spans, each, coverage) for each in chunkings])
    if judgements is None or not cut:
        return Graded(golden)
    if whole is not None:
        anchored = anchor(judgements, whole.chunks)
        if anchored.spans.height and not anchored.unplaced.height:
            parts = [judged(record, anchored.spans, each, coverage) for each in cut]
            return _derived(golden, parts, told=False)
    searched = [*(each.name for each in cut), *([None] if uncut else [])]
    require_comparable(searched, record.name, anchored=False)
    return Graded(_tied(golden, record, judgements, cut[0]))


def _derived(golden: Batch, parts: Sequence[Derived], *, told: bool = True) -> Graded:
    own = {each.golden_set.golden_set_id: each.golden_set for each in parts}
    known = {each.golden_set_id: each for each in golden.golden_sets}
    judgements = [each.judgements for each in parts]
    if "judgements" in golden.frames:
        judgements.insert(0, golden.frames["judgements"].lazy().collect())
    frames = {**golden.frames, "judgements": pl.concat(judgements)} if judgements else dict(golden.frames)
    batch = Batch(golden_sets=tuple({**known, **own}.values()), frames=frames)
    return Graded(batch, tuple(filter(None, map(_losses, parts))) if told else ())


def _losses(part: Derived) -> Problem | None:
    """Evidence that a chunker tears apart; without a word it would look better than it is."""
    if not part.lost.height:
        return None
    found = f"{part.lost.height} spans lie in no chunk that covers enough of them."
    if part.unasked:
        shown = ", ".join(part.unasked[:_LISTED])
        found += f" {len(part.unasked)} questions lose all of theirs and drop out ({shown})."
    do = "Lower golden_set.coverage, or use larger chunks."
    return Problem(f"golden set {part.golden_set.golden_set_id}", found, do, Severity.WARNING)


def _tied(golden: Batch, record: GoldenSet, judgements: pl.DataFrame, chunked: Chunked) -> Batch:
    """Grades of chunks, as those of the one chunking that is searched."""
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


def _rows(golden: Batch, name: str) -> pl.DataFrame | None:
    if name not in golden.frames:
        return None
    rows = golden.frames[name].lazy().collect()
    return rows if rows.height else None
