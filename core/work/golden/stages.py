"""The stages of a build: search (S1–S3), judge (S4), select (S5); S6 is in `core.work.golden.run`.

Texts of a corpus are untrusted. They are between marks that they cannot foresee; an answer that isn't the
bare form requested, or that repeats a mark, is refused and requested again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any

import polars as pl

from core.errors import ProviderError
from core.golden.pool import Pool, RankedSource, fused, with_texts
from core.pipeline.evaluate.asking import Asker
from core.pipeline.evaluate.budget import paid
from core.pipeline.evaluate.build import Builder
from core.pipeline.evaluate.identity import identities
from core.pipeline.evaluate.measure import Measurer, in_order, words
from core.pipeline.evaluate.session import Session
from core.pipeline.evaluate.steps import graph
from core.pipeline.ranking import Hits
from core.providers.chat import Chat
from core.providers.chat.ask import ChatTask, ask, mark_for, marked
from core.providers.chat.reading import AnswerReading, object_schema, only, whole_number
from core.records import Stack
from core.stats.judges import put_together
from core.tables import TABLES
from core.work.golden.job import GoldenJob
from core.work.golden.prompts import PromptLanguage, prompt, prompt_hash

TRIES = 3  # Maximum number of tries until a judge's answer is usable; then it is counted
GRADE, ORDER = "grade_1_5", "order"
_ANSWER_TOKENS = 64
_GRADES = range(1, 6)
_PAIR = ("query_id", "passage_id")
ACTS = {name: dtype for name, dtype in TABLES["gradings"].items() if name != "golden_set_id"}
Enough = Callable[[Sequence[Mapping[str, Any]]], bool]


def grading(question: str, passage: str, language: PromptLanguage) -> ChatTask[int | None]:
    """Return the task of grading one passage."""
    mark = mark_for(question, passage)
    return ChatTask(
        prompt("grade", language),
        f"{marked('question', question, mark)}\n\n{marked('passage', passage, mark)}",
        lambda answer: read_grade(answer, mark),
        _ANSWER_TOKENS,
        object_schema({GRADE: {"type": "integer", "enum": list(_GRADES)}}),
    )


def ordering(question: str, passages: Sequence[str], language: PromptLanguage) -> ChatTask[list[int]]:
    """Return the task of ordering passages; positions in the answer count from 0, the best first."""
    mark = mark_for(question, *passages)
    shown = [marked("question", question, mark)]
    shown += [marked(f"passage {number}", text, mark) for number, text in enumerate(passages, 1)]
    items = {"type": "array", "items": {"type": "integer", "enum": list(range(1, len(passages) + 1))}}
    return ChatTask(
        prompt("order", language),
        "\n\n".join(shown),
        lambda answer: read_order(answer, len(passages), mark),
        _ANSWER_TOKENS,
        object_schema({ORDER: items}),
    )


def read_grade(answer: str, mark: str = "") -> AnswerReading[int | None]:
    """Return the grade in an answer; None, with the reason, if it is unusable."""
    return whole_number(answer, GRADE, _GRADES, mark)


def read_order(answer: str, count: int, mark: str = "") -> AnswerReading[list[int]]:
    """Return the order in an answer; [], with the reason, if it isn't a permutation."""
    value, problem = only(answer, ORDER, mark)
    given = value if isinstance(value, list) else []
    whole = all(type(number) is int for number in given)
    if not problem and not (whole and sorted(given) == list(range(1, count + 1))):
        problem = f'"{ORDER}" does not name each number from 1 to {count} exactly once'
    return AnswerReading([], problem, 0) if problem else AnswerReading([number - 1 for number in given])


def ranked_by(job: GoldenJob, stack: Stack, hits: Sequence[Hits]) -> RankedSource:
    """Return hits of every question as a source."""
    ids, depth = job.search.corpora[None].passage_ids, int(stack.spec["candidates"])
    parts = [
        pl.DataFrame({"passage_id": ids.gather(ranking.passages[:depth])}).select(
            query_id=pl.lit(query), passage_id="passage_id", rank=pl.int_range(1, pl.len() + 1)
        )
        for query, ranking in zip(job.search.queries["query_id"], hits, strict=True)
    ]
    return RankedSource(stack.label, stack.spec["mode"], pl.concat(parts))


def pool_of(job: GoldenJob, searched: Sequence[RankedSource]) -> Pool:
    """Return the pool; without a source, what decides between two stacks or has grades, all with one rank."""
    if job.spec.golden.pool:
        return with_texts(_allowed(job, fused([*searched, *job.stored])), job.texts)
    held = job.grades.filter(pl.col("query_id").is_in(list(job.questions))).sort(_PAIR)
    pairs = held if job.drawn is None else job.drawn
    rows = pairs.select(*_PAIR, rank=pl.lit(0, pl.Int32), rrf=pl.lit(0.0), sources=pl.lit(0, pl.Int32))
    return with_texts(_allowed(job, rows), job.texts)


def _allowed(job: GoldenJob, pool: pl.DataFrame) -> pl.DataFrame:
    """Return a pool without what the askers may not see: grades of it would be set aside."""
    corpus, filters = job.search.corpora[None], job.search.filters
    if corpus.fields is None:
        return pool
    masks = {asked: asked.mask(corpus.fields) for asked in set(filters) if asked is not None}
    parts = []
    for query, asked in zip(job.search.queries["query_id"], filters, strict=True):
        own = pool.filter(query_id=query)
        seen = corpus.passage_ids if asked is None else corpus.passage_ids.filter(pl.Series(masks[asked]))
        parts.append(own.filter(pl.col("passage_id").is_in(seen.to_list())))
    return pl.concat(parts)


class SearchStage:
    """Searches the sources of a pool with the engines of an evaluation, without measuring."""

    def __init__(self, job: GoldenJob, builder: Builder, session: Session) -> None:
        self._job, self._builder, self._session = job, builder, session
        self._graph = graph(job.stacks, identities(job.search))
        self.rewrites: dict[str, str] = {}  # the searched text of each question, if it differs

    def __len__(self) -> int:
        return len(self._graph.builds) + len(self._graph.steps)

    def run(self) -> list[RankedSource]:
        """Build the indexes, and search them."""
        search, session = self._job.search, self._session
        measurer = Measurer(
            search.queries["text"].to_list(),
            search.protocol,
            Asker(self._graph, self._builder, session.models, search.corpora, filters=search.filters),
            kept=None,
            tracker=session.tracker,
            check=session.watch.check,
            stage=session.budget.begin_stage,
            pause=lambda: None,
        )

        def within(done: int, whole: int, unit: str) -> None:
            session.watch.check()
            session.tracker.within(done, whole, unit)

        for step in self._graph.builds:
            session.watch.check()
            session.tracker.begin("build", f"build: {words(step)}")
            self._builder.build(step, within)
            session.tracker.end()
        results = measurer.results
        for step in self._graph.steps:
            measurer.answer(step)
            if step.kind == "rewrite":
                self.rewrites = dict(zip(search.queries["query_id"], results[step].values, strict=True))
        return [ranked_by(self._job, route.stack, results[route.pool].values) for route in self._graph.routes]


class JudgingStage:
    """Has one model after another grade texts; calls are kept, so that none is paid for twice."""

    def __init__(self, job: GoldenJob, session: Session) -> None:
        self._job, self._session = job, session
        self._prompt = prompt_hash("grade", job.spec.golden.language)

    def run(self, wanted: pl.DataFrame, enough: Enough | None = None) -> pl.DataFrame:
        """Grade texts.

        Args:
            wanted: query_id, passage_id and text, one row per question and text.
            enough: Asked before each question whether the acts so far are enough; None = grade all.

        Returns:
            Columns of `ACTS`, one row per model and text.
        """
        rows: list[dict[str, Any]] = []
        ungraded = 0
        asked = wanted.select(*_PAIR, "text").rows()
        for name in self._job.spec.golden.judge.models if asked else ():
            chat = self._session.models.chat(name)
            self._session.tracker.begin("judge", f"judge: {name}")
            self._session.budget.begin_stage(f"judge {name}")
            parts = [asked] if enough is None else [list(part) for _, part in groupby(asked, itemgetter(0))]
            begun = len(rows)
            for part in parts:
                if enough is not None and enough(rows):
                    break
                for row in in_order(partial(self._one, chat), part, chat.concurrency):
                    rows.append({**row, "judge": name})
                    ungraded += row["grade"] is None
                    done, facts = len(rows) - begun, {"ungraded": ungraded}
                    self._session.tracker.within(done, len(asked), "passages", facts=facts)
            self._session.tracker.end()
        self._session.tracker.tell(facts={"ungraded": ungraded})
        return pl.DataFrame(rows, schema=ACTS, orient="row")

    def _one(self, chat: Chat, wanted: tuple[str, str, str]) -> dict[str, Any]:
        query_id, passage_id, text = wanted
        self._session.watch.check()
        task = grading(self._job.questions[query_id], text, self._job.spec.golden.language)
        about = {"query_id": query_id, "passage_id": passage_id, "prompt": self._prompt}
        try:
            reply = ask(chat, task, tries=TRIES)
        except ProviderError as error:
            if error.kind != "too large":
                raise
            return {**about, "grade": None, "note": "the passage is too long for the model"}
        reading = reply.value
        return {
            **about,
            "grade": reading.value,
            "at": reply.details.get("at"),
            "seconds": reply.ms / 1000,
            **paid(reply.usage, self._session.budget.price),
            "note": f"no grade in {TRIES} tries: {reading.problem}" if reading.problem else None,
        }


def missing(job: GoldenJob, pool: Pool) -> pl.DataFrame:
    """Return the ungraded texts: one grade is enough for a question's copies of a text."""
    graded = job.grades.select(*_PAIR).with_columns(graded=pl.lit(True))
    rows = pool.rows.join(graded, on=_PAIR, how="left", maintain_order="left")
    known = pl.col("graded").fill_null(False).any().over("query_id", "first")
    order = {query: at for at, query in enumerate(job.turns)}
    left = rows.filter(~known & (pl.col("first") == pl.col("passage_id")))
    at = pl.col("query_id").replace_strict(order, return_dtype=pl.Int64)
    return left.sort(at, "rank", "passage_id").select(*_PAIR, "text")


def judgements(job: GoldenJob, pool: Pool, acts: pl.DataFrame) -> pl.DataFrame:
    """Return one grade per question and passage.

    They are the reused ones, then the new ones, copies included.
    """
    given = put_together(acts, job.spec.golden.judge.policy)
    held = pool.rows.select(*_PAIR, "rank", "first").join(job.grades, on=_PAIR)
    of_copies = held.sort("rank").group_by("query_id", "first", maintain_order=True).first()
    texts = pl.concat(
        [
            of_copies.select("query_id", "first", "grade", "judge"),
            given.select("query_id", pl.col("passage_id").alias("first"), "grade", "judge"),
        ]
    )
    pooled = pool.rows.join(texts, on=("query_id", "first")).select(*_PAIR, "grade", "judge")
    new = pooled.join(job.grades, on=_PAIR, how="anti")
    whole = pl.concat([job.grades.select(*_PAIR, "grade", "judge"), new])
    return whole.with_columns(raw=pl.col("grade").cast(pl.Int16)).sort(_PAIR)


def pruned(pool: Pool, graded: pl.DataFrame, keep: int) -> pl.DataFrame:
    """Return the passages to refine (S5): whole grades from 5 down until a question has `keep` texts."""
    rows = pool.distinct.join(graded.select(*_PAIR, "grade"), on=_PAIR)
    sizes = rows.group_by("query_id", "grade").len().sort("query_id", "grade", descending=[False, True])
    before = sizes.with_columns(above=(pl.col("len").cum_sum() - pl.col("len")).over("query_id"))
    kept = before.filter(pl.col("above") < keep).select("query_id", "grade")
    return (
        rows.join(kept, on=("query_id", "grade"), how="semi")
        .select(*_PAIR, "text", "grade", "rank")
        .sort("query_id", "grade", "rank", "passage_id", descending=[False, True, False, False])
    )


def label_mix(graded: pl.DataFrame) -> Mapping[str, float]:
    """Return median and mean per question of n5, n4 and n4+5, and the median share of grades 4 and 5."""
    good = pl.col("grade") >= 4
    counts = graded.group_by("query_id").agg(
        n5=(pl.col("grade") == 5).sum(), n4=(pl.col("grade") == 4).sum(), n45=good.sum(), share=good.mean()
    )
    mix: dict[str, float] = {}
    for name in ("n5", "n4", "n45", "share"):
        values = counts[name].cast(pl.Float64)
        mix |= {f"{name}_median": float(values.median() or 0.0), f"{name}_mean": float(values.mean() or 0.0)}  # type: ignore[arg-type]
    return mix
