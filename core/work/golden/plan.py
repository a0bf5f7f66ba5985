"""Plan a golden set: texts, calls, tokens, dollars and time. It spends nothing."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from core.golden.pool import Pool, RankedSource
from core.golden.refine.base import METHODS
from core.golden.refine.predict import World, affordable, usd_per_call, ways_of
from core.pipeline.evaluate.identity import identities
from core.pipeline.sweep.known import KnownNames
from core.pipeline.sweep.plan import Bill, Line, asked_seconds, priced_lines
from core.pipeline.sweep.plan import plan as plan_search
from core.pipeline.sweep.pools import Pools
from core.pipeline.sweep.problems import Problem
from core.providers.chat import chat_config
from core.providers.tokens import counter
from core.records import JsonMap
from core.work.golden.job import GoldenJob
from core.work.golden.nuggets import LEAST, LIST_TOKENS, MOST, SUPPORT_TOKENS, listing, supporting
from core.work.golden.stages import GRADE, ORDER, grading, missing, ordering, pool_of, ranked_by

SAMPLE = 2_000  # If there are more texts, this many are counted, evenly spread, and the sum is scaled
DISTINCT = 0.75
"""Share of distinct passages among the candidates of several sources, if pools are unknown."""
ASSUMED_NOISE = 1.0
"""Assumed noise of the judge who orders, in grades, until repeated judgements have measured it."""
_SIMULATED = 20  # Number of simulated queries for each method of refining
JUDGE, REFINE, NUGGETS = "judge", "refine", "nuggets"
_AT_MOST = f"at most: {MOST} facts a question, every passage of grade {LEAST} or more"
_USABLE = "every answer can be used"
_SUPPOSED = (f"at an assumed noise of {ASSUMED_NOISE:g} grade",)


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldenPlan(Bill):
    """The bill of a golden set."""

    name: str  # Of the golden set
    questions: int  # Number of questions
    pool: int  # Passages in the pools, counting copies of a text
    to_judge: int  # Texts that every judge grades
    pools_known: bool  # Whether the pools were computed; otherwise their size is an estimate
    grades_taken: int  # Grades reused from another golden set
    seconds: float  # Duration of the calls, as far as known
    # Predicted gain and cost of refining at `ASSUMED_NOISE`, by method: method, tau (Kendall's, to the true
    # order) with low and high, turns (calls a question), usd, recommended; () if nothing is refined
    ways: tuple[JsonMap, ...] = ()


def plan(job: GoldenJob, pool: Pool | None, *, problems: Sequence[Problem] = ()) -> GoldenPlan:
    """Estimate the cost of a build; this sends nothing and writes nothing.

    Args:
        pool: Its `candidates`.

    Returns:
        The plan. Dollars assume that every answer is usable at once.
    """
    judges = job.spec.golden.judge.models
    texts = missing(job, pool) if pool is not None else _typical(job)
    if not judges:
        texts = texts.clear()
    search = plan_search(job.search) if job.stacks else None
    asked = [line for name in judges for line in _judging(job, name, texts, known=pool is not None)]
    spent = sum(line.usd or 0.0 for line in (*(search.lines if search else ()), *asked))
    lines, ways = _refining(job, pool, texts, spent) if job.refiner else ((), ())
    asked += [*lines, *_listing(job, texts)]
    chats = {name: job.chat(name) for name in job.models}
    seconds = sum(asked_seconds(line, chats[line.model]) for line in asked)
    return GoldenPlan(
        name=job.spec.name,
        questions=len(job.questions),
        pool=pool.rows.height if pool is not None else texts.height,
        to_judge=texts.height,
        pools_known=pool is not None,
        grades_taken=job.grades.height,
        lines=(*(search.lines if search else ()), *asked),
        limit=job.search.budget_usd,
        seconds=seconds + (search.resources.total_s if search else 0.0),
        problems=tuple(problems),
        ways=ways,
    )


def candidates(job: GoldenJob) -> Pool | None:
    """Return the pool of a build if computing it is free, otherwise None."""
    ranked: list[RankedSource] = []
    search = job.search
    if job.stacks:
        texts = search.queries["text"].to_list()
        pools = Pools(search.corpora, texts, KnownNames(search.models), identities(search).chunking)
        for stack in job.stacks:
            hits = pools.hits(stack.spec, int(stack.spec["candidates"]))
            if hits is None:
                return None
            ranked.append(ranked_by(job, stack, hits))
    return pool_of(job, ranked)


def _typical(job: GoldenJob) -> pl.DataFrame:
    """Return texts of about the expected number and length, for an unknown pool."""
    deep = [int(stack.spec["candidates"]) for stack in job.stacks]
    deep += [source.depth for source in job.spec.golden.pool if source.runs]
    most = job.texts.height
    count = min(most, round(sum(deep) * (DISTINCT if len(deep) > 1 else 1.0)))
    step = max(1, most // max(1, count))
    some = job.texts.gather_every(step).head(count)
    asked = pl.DataFrame({"query_id": list(job.questions)}, schema={"query_id": pl.String})
    return asked.join(some, how="cross").select("query_id", "passage_id", "text")


def _judging(job: GoldenJob, name: str, texts: pl.DataFrame, *, known: bool) -> Iterator[Line]:
    """Yield the tokens for grading every text once."""
    chat = job.chat(name)
    if chat.local or texts.is_empty():
        return
    language = job.spec.golden.language
    some = texts if texts.height <= SAMPLE else texts.gather_every(math.ceil(texts.height / SAMPLE))
    rows = some.select("query_id", "text").rows()
    tasks = (grading(job.questions[query], text, language) for query, text in rows)
    asked = sum(task.tokens(chat) for task in tasks) * texts.height / some.height
    said = texts.height * chat.count_tokens(f'{{"{GRADE}": 3}}')
    counts = counter(chat_config(name, job.spec.models).tokenizer)
    exact = known and some.height == texts.height and counts.exact
    of, used, notes = (JUDGE, name, texts.height), chat.expected(asked, said), () if exact else (_USABLE,)
    yield from priced_lines(of, used, job.search.book, exact=exact, notes=notes)


def _listing(job: GoldenJob, texts: pl.DataFrame) -> Iterator[Line]:
    """Yield the maximum tokens for nuggets: every judged text is checked for supported facts."""
    nuggets, language, texts = job.spec.golden.nuggets, job.spec.golden.language, _or_taken(job, texts)
    if not nuggets.model or job.chat(nuggets.model).local or texts.is_empty():
        return
    chat, question = job.chat(nuggets.model), next(iter(job.questions.values()))
    some = texts["text"].gather_every(max(1, texts.height // 50)).to_list()
    shown = [some[at % len(some)] for at in range(nuggets.passages)]
    facts = [question] * MOST
    each = sum(supporting(question, text, facts, language).tokens(chat) for text in some) / len(some)
    asked = len(job.questions) * listing(question, shown, language).tokens(chat) + texts.height * each
    said = len(job.questions) * LIST_TOKENS + texts.height * SUPPORT_TOKENS
    of = (NUGGETS, nuggets.model, len(job.questions) + texts.height)
    used = chat.expected(asked, said)
    yield from priced_lines(of, used, job.search.book, exact=False, notes=[_USABLE, _AT_MOST])


def _or_taken(job: GoldenJob, texts: pl.DataFrame) -> pl.DataFrame:
    """Return texts, including those with reused grades."""
    taken = job.grades.join(job.texts, on="passage_id").select(texts.columns)
    return pl.concat([texts, taken.filter(pl.col("query_id").is_in(list(job.questions)))])


def _refining(
    job: GoldenJob, pool: Pool | None, texts: pl.DataFrame, spent: float
) -> tuple[Sequence[Line], tuple[JsonMap, ...]]:
    """Return the tokens for ordering passages of the pool's usual length, and each method's predicted gain.

    The number of turns is how many simulated questions take to be stable, within the rest of the budget.
    """
    chat, refine, book = job.chat(job.refiner), job.spec.golden.refine, job.search.book
    rows = pool.distinct if pool is not None else texts
    if rows.is_empty():
        return (), ()
    settings = refine.settings(refine.method)
    some = rows["text"].gather_every(max(1, rows.height // 50)).to_list()
    five = [some[at % len(some)] for at in range(settings.batch)]
    task = ordering(next(iter(job.questions.values())), five, job.spec.golden.language)
    mean = sum(map(chat.count_tokens, some)) / len(some)
    asked = task.tokens(chat) - sum(map(chat.count_tokens, five)) + settings.batch * mean
    said = chat.count_tokens(f'{{"{ORDER}": {list(range(1, settings.batch + 1))}}}')
    usd = 0.0 if chat.local else usd_per_call(book, chat.item, asked, said)
    left = None if job.search.budget_usd is None else max(0.0, job.search.budget_usd - spent)
    queries = len(job.questions)
    world = World(noise=ASSUMED_NOISE, items=max(2, job.spec.golden.prune.keep))
    by_method = ways_of(affordable(settings, usd, queries, left), world, usd, queries, runs=_SIMULATED)
    ways = tuple(by_method.drop("worst", "grades").to_dicts())
    wanted = pl.col("method") == refine.method if refine.method in METHODS else pl.col("recommended")
    turns = round(by_method.filter(wanted)["turns"][0] * queries)
    if chat.local or not turns:
        return (), ways
    used, of = chat.expected(turns * asked, turns * said), (REFINE, job.refiner, turns)
    return tuple(priced_lines(of, used, book, exact=False, notes=[_USABLE, *_SUPPOSED])), ways
