"""Asks stacks some queries for quality, time and dollars; steps that stacks share are asked once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from core.arrays import Floats
from core.errors import InputError
from core.metrics import Measure, score_at
from core.pipeline.environment import threads
from core.pipeline.evaluate.asking import Asker, StepOutcome
from core.pipeline.evaluate.budget import FREE
from core.pipeline.evaluate.build import Builder, Models
from core.pipeline.evaluate.identity import identities
from core.pipeline.evaluate.job import Job
from core.pipeline.evaluate.measure import FIRST, in_order, name
from core.pipeline.evaluate.results import final
from core.pipeline.evaluate.steps import Graph, Route, Step, graph
from core.pipeline.index.scope import IndexScope, scopes_of
from core.pipeline.own.parts import DocumentShelf
from core.pipeline.query.perturb import perturbed
from core.pipeline.ranking import Hits
from core.providers.base import LOCAL_ITEM, Amount
from core.records import Basis, Stack

_Price = Callable[[Amount], float | None]
SearchAnswers = tuple[Floats, ...]
"""Results on the queries of a round: quality, milliseconds (NaN = not measured), dollars (NaN = unknown).

If harm has a limit, Harm and its upper bound follow.
"""


class AskedGrades:
    """Judges' grades of the passages of each chunking; `measure` is scored, and on demand harm too."""

    def __init__(self, job: Job, measure: Measure, *, harm: bool = False) -> None:
        if measure.k is None or measure.info.needs:
            raise InputError(
                f"A search cannot go by {measure}.", do="Name a measure of grades with its cutoff: RA-nWG@10."
            )
        self.measure, self._job = measure, job
        harms = [Measure(name, measure.k) for name in ("Harm", "HarmUpper")] if harm else []
        self._measures = [measure, *harms]
        frames = job.setup.frames
        if "judgements" not in frames:
            raise InputError("A search needs judgements, to tell which stacks are good.", where="golden_set")
        self._judged = frames["judgements"].lazy().collect()
        self._known: dict[str | None, tuple[list[dict[int, int]], NDArray[np.int32]]] = {}

    def score(self, chunking: str | None, queries: Sequence[int], ranked: Sequence[Hits]) -> list[Floats]:
        """Return the value of each measure per query [n]; NaN = not applicable."""
        grades, counts = self._of(chunking)
        depth = int(self.measure.k or 0)
        slots = np.full((len(queries), depth), -1, dtype=np.int8)
        for row, (query, hits) in enumerate(zip(queries, ranked, strict=True)):
            for rank, passage in enumerate(hits.passages[:depth]):
                slots[row, rank] = grades[query].get(int(passage), 0)
        own = counts[list(queries)]
        judged = own.any(axis=1)
        return [np.where(judged, score_at(measure, slots, own), np.nan) for measure in self._measures]

    def _scopes(self, chunking: str | None) -> list[IndexScope | None]:
        """Return what the asker of each query may see; judgements outside of it are set aside."""
        fields = self._job.corpora[chunking].fields
        if fields is None:
            return [None] * self._job.queries.height
        return scopes_of(fields, self._job.filters)

    def _of(self, chunking: str | None) -> tuple[list[dict[int, int]], NDArray[np.int32]]:
        """Return grades by query and position of the passage, and the number of each grade."""
        if chunking not in self._known:
            ids = self._job.queries["query_id"].to_list()
            query_at = {query: at for at, query in enumerate(ids)}
            passages = self._job.corpora[chunking].passage_ids.to_list()
            passage_at = {passage: at for at, passage in enumerate(passages)}
            collections = [collection.collection_id for collection in self._job.setup.collections]
            part = [
                collection
                for collection in collections
                if chunking is not None and collection.endswith(chunking)
            ]
            searched = part or [self._job.collection_id]
            sets = [
                golden_set.golden_set_id
                for golden_set in self._job.setup.golden_sets
                if golden_set.collection_id in searched
            ]
            rows = self._judged.filter(pl.col("golden_set_id").is_in(sets))
            grades: list[dict[int, int]] = [{} for _ in ids]
            counts = np.zeros((len(ids), 5), dtype=np.int32)
            scopes = self._scopes(chunking)
            for query, passage, grade in rows.select("query_id", "passage_id", "grade").iter_rows():
                if query in query_at and _may_see(scopes[query_at[query]], passage_at.get(passage)):
                    counts[query_at[query], grade - 1] += 1
                    grades[query_at[query]][passage_at.get(passage, -1)] = grade
            self._known[chunking] = grades, counts
        return self._known[chunking]


def _may_see(scope: IndexScope | None, position: int | None) -> bool:
    """Return whether an asker may see a judged passage; what is not searched is unknown."""
    return scope is None or (position is not None and bool(scope.allowed[position]))


class Course:
    """Runs the queries on the stacks of a space in one order, round by round."""

    def __init__(
        self,
        job: Job,
        order: Sequence[int],
        grades: AskedGrades,
        *,
        builder: Builder,
        models: Models,
        price: _Price,
        check: Callable[[], None] = lambda: None,
        stage: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._job, self._order, self._grades = job, order, grades
        self._builder, self._models, self._price, self._check = builder, models, price, check
        self._stage = stage
        self._names = identities(job)
        self._kept: dict[tuple[Step, int], dict[int, StepOutcome]] = {}
        self._texts = job.queries["text"].to_list()
        self._deepest = max(int(stack.spec["candidates"]) for stack in job.stacks)

    def ask(self, stacks: Sequence[Stack], first: int, last: int) -> list[SearchAnswers]:
        """Ask stacks the queries from first to last of the order."""
        queries = list(self._order[first:last])
        twins = [Stack({**stack.spec, "candidates": self._deepest}) for stack in stacks]
        every = graph([*stacks, *(twin for twin in twins if twin not in stacks)], self._names)
        asker = Asker(
            every, self._builder, self._models, self._job.corpora, self._job.own, filters=self._job.filters
        )
        with threads(1):
            return [self._run(route, every, asker, queries) for route in every.routes[: len(stacks)]]

    def _run(self, route: Route, every: Graph, asker: Asker, queries: Sequence[int]) -> SearchAnswers:
        for step in route.steps:
            self._answer(step, every, asker, queries)
        own = asker.own.get(route.pool)
        if own is not None and isinstance(own.shelf, DocumentShelf) and own.shelf.parts:
            raise InputError(
                f"{own.name} returns passages that it cut itself: they are graded when it has answered all.",
                where="method",
                do='Try all of its parameters (method = "grid"), or return ids of the collection.',
            )
        outcomes = {step: self._kept[step, every.depths.get(step, 0)] for step in route.steps}
        ranked = [
            final(route, {step: by_query[query].value for step, by_query in outcomes.items()})
            for query in queries
        ]
        ms = np.array([sum(by_query[query].ms for by_query in outcomes.values()) for query in queries])
        paid = [
            self._dollars(
                [
                    used
                    for by_query in outcomes.values()
                    for used in by_query[query].usage
                    if used.unit not in FREE
                ]
            )
            for query in queries
        ]
        here = [sum(by_query[query].cpu_ms or 0.0 for by_query in outcomes.values()) for query in queries]
        machine = self._dollars([Amount(LOCAL_ITEM, "cpu_ms", float(np.median(here)), Basis.MEASURED)])
        measured = self._job.protocol.repeats > 0
        quality, *harm = self._grades.score(route.chunking, queries, ranked)
        return (
            quality,
            ms if measured else np.full(len(queries), np.nan),
            np.array(paid) + machine,  # other load on the machine at a query isn't part of its cost
            *harm,
        )

    def _answer(self, step: Step, every: Graph, asker: Asker, queries: Sequence[int]) -> None:
        kept = self._kept.setdefault((step, every.depths.get(step, 0)), {})
        missing = [query for query in queries if query not in kept]
        if not missing:
            return
        node = asker.node(step)
        inputs = [self._kept[need, every.depths.get(need, 0)] for need in step.inputs]
        rewrite = step.rewrite
        again = f"pass {name(FIRST)}" if node.model is not None and self._job.protocol.repeats else ""
        self._stage(step.stage)

        def ask(query: int) -> StepOutcome:
            self._check()
            text = self._texts[query]
            text = perturbed(text, step.typed) if step.typed else text
            if rewrite is not None and rewrite is not step:
                text = self._kept[rewrite, every.depths.get(rewrite, 0)][query].value
            given = asker.inputs(step, query, (results[query].value for results in inputs))
            return node.ask(text, given, again)

        if node.model is None:
            ask(missing[0])  # opens files and warms caches
        workers = node.workers(self._job.protocol.concurrency)
        kept.update(zip(missing, in_order(ask, missing, workers), strict=True))

    def _dollars(self, used: Sequence[Amount]) -> float:
        prices = [self._price(amount) for amount in used]
        return float("nan") if None in prices else sum(price or 0.0 for price in prices)
