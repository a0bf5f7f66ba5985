"""Asks one step about one query, and measures how long it takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from time import perf_counter_ns, process_time_ns
from types import MappingProxyType
from typing import Any, NamedTuple, cast

import numpy as np
import polars as pl

from core.filters import Filter
from core.pipeline.evaluate.build import Builder, Models
from core.pipeline.evaluate.job import Corpus
from core.pipeline.evaluate.steps import Graph, Step
from core.pipeline.index import DatabaseIndex, DenseIndex, ways
from core.pipeline.index.bm25 import Bm25Index
from core.pipeline.index.partitioned import Partitioned
from core.pipeline.index.scope import FilterWay, IndexScope, scopes_of
from core.pipeline.own.config import OWN, OwnStack
from core.pipeline.own.model import OwnQuestion, OwnRetriever
from core.pipeline.own.parts import shelf_of
from core.pipeline.own.passages import PassageShelf
from core.pipeline.ranking import Hits
from core.pipeline.ranking.cut import keep
from core.pipeline.ranking.pool import DEDUPS, FUSIONS, fusion_options, kept
from core.providers.base import Amount, Model, Reply
from core.providers.rerank import Reranked, Scores
from core.records import Basis


class StepOutcome(NamedTuple):
    """One step's result for one query, with its times, usage and details."""

    value: Any  # A text, a vector, hits, scores of a pool, or how many to keep
    ms: float  # milliseconds of the step itself
    cpu_ms: float | None  # milliseconds of processor time here; None if a vendor does the work
    waited_ms: float = 0.0  # milliseconds of waiting around it
    usage: tuple[Amount, ...] = ()  # what it used, beside processor time
    details: Mapping[str, Any] = MappingProxyType({})  # facts reported by a model


_Ask = Callable[[str, Sequence[Any], str], StepOutcome]
"""Runs a step, given the text asked, its inputs' results, and a mark that tells repeated calls apart."""


class Node(NamedTuple):
    """A step that can be asked."""

    step: Step  # what it is
    ask: _Ask  # does it
    model: str | None = None  # the remote model that it calls; None if it runs here
    expect: Callable[[Sequence[OwnQuestion]], None] | None = None  # notes which queries a pass will ask

    def workers(self, concurrency: int) -> int:
        """Return how many queries may be asked at once.

        It is one for a custom pipeline, so that nothing disturbs it.
        """
        return 1 if self.model is None or self.step.kind == OWN else concurrency


def clipped(hits: Hits, depth: int) -> Hits:
    """Return the first hits."""
    return Hits(hits.passages[:depth], hits.scores[:depth])


def reranked(pool: Hits, reranking: Reranked, depth: int) -> Hits:
    """Return the first `depth` hits of a pool in the reranker's order, without those that it discarded.

    A passage without a score has NaN.
    """
    order = reranking.order[reranking.order < min(depth, len(pool.passages))]
    return Hits(pool.passages[order], reranking.scores[order])


class Asker:
    """Makes nodes of steps, and opens the indexes that they search."""

    def __init__(
        self,
        graph: Graph,
        builder: Builder,
        models: Models,
        corpora: Mapping[str | None, Corpus],
        pipelines: Mapping[str, OwnStack] = MappingProxyType({}),
        *,
        filters: Sequence[Filter | None] = (),
    ) -> None:
        self.graph, self._depths = graph, graph.depths
        self._builder, self._models, self._pipelines = builder, models, pipelines
        self._corpora = {
            step: corpora[route.chunking]
            for route in graph.routes
            for step in (route.pool, route.rerank)
            if step is not None
        }
        self._filters = filters
        self._scopes: dict[str, Sequence[IndexScope | None]] = {}  # of each query, by the hash of a corpus
        self._marks: dict[Step, dict[int, Any]] = {}
        self._shelves: dict[str, PassageShelf] = {}
        self.own: dict[Step, OwnRetriever] = {}  # custom pipelines that were asked

    def scopes(self, step: Step) -> Sequence[IndexScope | None]:
        """Return what the asker of each query may see of what a step searches; None = all of it."""
        corpus = self._builder.corpus(step.built)
        if corpus.hash not in self._scopes:
            fields = pl.DataFrame() if corpus.fields is None else corpus.fields
            self._scopes[corpus.hash] = scopes_of(fields, self._filters)
        return self._scopes[corpus.hash]

    def inputs(self, step: Step, query: int, results: Iterable[Any]) -> list[Any]:
        """Return what a step is given for a query: its inputs' results, and its scope if it filters.

        A custom pipeline is given the filter as JSON, "" if the query has none.
        """
        if step.way is not None:
            return [*results, self.scopes(step)[query]]
        if step.kind != OWN or not self._filters:
            return list(results)
        asked = self._filters[query]
        return [*results, "" if asked is None else asked.text]

    def node(self, step: Step) -> Node:
        """Return a step that can be asked."""
        node: Node = getattr(self, f"_{step.kind}")(step)
        return node

    def _rewrite(self, step: Step) -> Node:
        rewrite = self._models.rewrite(step.params["model"]["name"])

        return _of_model(step, rewrite, lambda text, _, again: rewrite.rewrite(text, extra=again))

    def _variant(self, step: Step) -> Node:
        number = step.params["number"]

        def pick(_: str, inputs: Sequence[Any]) -> str:
            """Return the query with that number, or the first (as typed) if the model wrote fewer."""
            queries = inputs[0].split("\n")
            return str(queries[number if number < len(queries) else 0])

        return Node(step, _timed(pick))

    def _embed(self, step: Step) -> Node:
        embedder = self._models.for_queries(step.params["model"]["name"], step.params["dim"])

        return _of_model(step, embedder, lambda text, _, again: embedder.embed_query(text, extra=again))

    def _search(self, step: Step) -> Node:
        index, depth = self._builder.search(step), self._depths[step]
        if step.way is not None:
            return self._filtered(step, index, step.way)
        if isinstance(index, DatabaseIndex):
            return Node(step, _of_database(index, lambda text, inputs: index.search(inputs[0], depth, text)))
        find = cast(DenseIndex, index).search  # only filters make others
        return Node(step, _timed(lambda _, inputs: find(inputs[0], depth)))

    def _sparse(self, step: Step) -> Node:
        index, depth = self._builder.bm25(step.built), self._depths[step]
        if step.way is not None:
            return self._filtered(step, index, step.way)
        find = cast(Bm25Index, index).search
        return Node(step, _timed(lambda text, _: find(text, depth)))

    def _filtered(self, step: Step, index: ways.Searched, way: FilterWay) -> Node:
        """Return a search that honours filters; the last of its inputs is what the asker may see."""
        depth = self._depths[step]

        def find(text: str, inputs: Sequence[Any]) -> Hits:
            return ways.search(index, ways.SearchedFor(inputs[0], text), depth, scope=inputs[-1], way=way)

        if isinstance(index, DatabaseIndex) or (isinstance(index, Partitioned) and index.in_database):
            return Node(step, _of_database(index, find))
        return Node(step, _timed(find))

    def _rerank(self, step: Step) -> Node:
        reranker = self._models.reranker(step.params["model"]["name"])
        texts, depth = self._corpora[step].texts, step.params["depth"]

        def ask(text: str, inputs: Sequence[Any], again: str) -> Reply[Reranked]:
            passages = texts.gather(inputs[0].passages[:depth]).to_list()
            return reranker.rerank(text, passages, extra=again)

        return _of_model(step, reranker, ask)

    def _fuse(self, step: Step) -> Node:
        options, depth = fusion_options(step.params["fusion"]), self._depths[step]
        fuse = FUSIONS[options["method"]].fuse
        return Node(step, _timed(lambda _, legs: fuse(legs, depth, options)))

    def _dedup(self, step: Step) -> Node:
        dedup, depth = step.params["dedup"], self._depths[step]
        way, look = DEDUPS[dedup["method"]], depth * int(dedup["look"])
        mark_of = self._marker(step)

        def ask(_: str, inputs: Sequence[Any], __: str) -> StepOutcome:
            pool = clipped(inputs[0], look)
            start = perf_counter_ns()
            marks = [mark_of(int(passage)) for passage in pool.passages]
            places = kept(way.alike(marks, dedup), depth) if marks else np.arange(0)
            ms = (perf_counter_ns() - start) / 1e6
            seen = len(marks) if len(places) < depth else int(places[-1]) + 1
            value = Hits(pool.passages[places], pool.scores[places])
            return StepOutcome(value, ms, ms, details={"dropped": seen - len(places)})

        return Node(step, ask)

    def _marker(self, step: Step) -> Callable[[int], object]:
        """Return how a step keys a passage for comparison; each text is keyed once, as if indexed."""
        dedup = step.params["dedup"]
        mark = DEDUPS[dedup["method"]].mark
        if mark is None:
            vectors = self._builder.vectors(step.built)
            return vectors.__getitem__
        texts, marks = self._corpora[step].texts, self._marks.setdefault(step, {})

        def find(passage: int) -> object:
            if passage not in marks:
                marks[passage] = mark(texts[passage], dedup)
            return marks[passage]

        return find

    def _own(self, step: Step) -> Node:
        """Return a custom pipeline; its processor time comes from its own process."""
        corpus, name = self._corpora[step], step.params["model"]["name"]
        shelf = self._shelves.setdefault(corpus.hash, shelf_of(corpus))
        retriever = self.own[step] = self._models.own(self._pipelines[name], step, shelf)

        def ask(text: str, inputs: Sequence[Any], again: str) -> StepOutcome:
            reply = retriever.retrieve(text, only=inputs[-1] if inputs else "", extra=again)
            cpu_ms = reply.details["cpu_ms"]
            return StepOutcome(reply.value, reply.ms, cpu_ms, reply.waited_ms, reply.usage, reply.details)

        return Node(step, ask, name, retriever.expect)

    def _cut(self, step: Step) -> Node:
        cut, depth = step.params["cut"], step.params["depth"]
        return Node(step, _timed(lambda _, inputs: keep(cut, ordered(inputs[0], depth))))


def ordered(ranking: Hits | Reranked, depth: int) -> Scores:
    """Return the scores of the first `depth` of a pool in their final order, without unscored passages."""
    if isinstance(ranking, Hits):
        return ranking.scores[:depth]
    scores = ranking.scores[ranking.order[ranking.order < depth]]
    return scores[np.isfinite(scores)]


def _timed(work: Callable[[str, Sequence[Any]], Any]) -> _Ask:
    """Ask something that runs here on one thread and never waits, so its time is its processor time."""

    def ask(text: str, inputs: Sequence[Any], _: str) -> StepOutcome:
        start = perf_counter_ns()
        value = work(text, inputs)
        ms = (perf_counter_ns() - start) / 1e6
        return StepOutcome(value, ms, ms)

    return ask


def _of_database(index: DatabaseIndex | Partitioned[Any], find: Callable[[str, Sequence[Any]], Hits]) -> _Ask:
    """Ask a database: a remote one answers a request, one in a folder takes processor time here."""

    def ask(text: str, inputs: Sequence[Any], _: str) -> StepOutcome:
        start, cpu = perf_counter_ns(), process_time_ns()
        value = find(text, inputs)
        ms, cpu_ms = (perf_counter_ns() - start) / 1e6, (process_time_ns() - cpu) / 1e6
        if not index.remote:
            return StepOutcome(value, ms, cpu_ms)
        number = len(index.asked(inputs[-1])) if isinstance(index, Partitioned) else 1
        request = Amount(index.name, "requests", float(number), Basis.MEASURED)
        return StepOutcome(value, ms, None, usage=(request,))

    return ask


def _of_model(step: Step, model: Model, ask: Callable[[str, Sequence[Any], str], Reply[Any]]) -> Node:
    def outcome(text: str, inputs: Sequence[Any], again: str) -> StepOutcome:
        reply = ask(text, inputs, again)
        if not model.local:
            return StepOutcome(reply.value, reply.ms, None, reply.waited_ms, reply.usage, reply.details)
        cpu_ms = sum(amount.amount or 0.0 for amount in reply.usage if amount.unit == "cpu_ms")
        return StepOutcome(reply.value, reply.ms, cpu_ms, details=reply.details)

    return Node(step, outcome, None if model.local else model.name)
