"""The cost of a set of questions, and the smallest difference that so many questions show; spends nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from core.analysis.spread import Spread
from core.pipeline.sweep.plan import Bill, Line, asked_seconds, priced_lines
from core.pipeline.sweep.problems import Problem
from core.stats.significance import detectable, queries_needed, spread_limits
from core.work.questions.drafts import UNANSWERABLE
from core.work.questions.job import QuestionsJob
from core.work.questions.prompts import closed_book, paraphrase
from core.work.questions.writing import DRAFT, KNOWN, TWIN, wanted

FINE = 0.03  # The finer difference reported in addition
_SAMPLE = 60  # Number of calls counted; the sum is scaled
_ANSWER_TOKENS = 120  # For a question with its quote and answer
_USABLE = "every answer can be used"


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionsPlan(Bill):
    """The bill of a set of questions."""

    name: str  # Of the set
    method: str
    count: int  # Maximum number of questions made
    wanted: int  # Number of questions requested
    stretches: int  # Number of stretches that questions can be about
    sources: int  # Documents
    language: str
    seconds: float  # Duration of the calls, as far as known
    shows: float  # The smallest difference in RR@10 that so many show, at the usual power and level
    needed: tuple[int, int]  # How many show a difference of `FINE`: at the spread, and at its upper limit
    spread: Spread  # The basis of both


def plan(job: QuestionsJob, *, problems: Sequence[Problem] = ()) -> QuestionsPlan:
    """Estimate the cost of a set; this sends nothing and writes nothing."""
    lines = tuple(_lines(job)) if job.spec.model else ()
    chat = job.chat() if lines else None
    count = job.spec.count if job.most is None else min(job.spec.count, job.most)
    return QuestionsPlan(
        name=job.spec.name,
        method=job.spec.method,
        count=count,
        wanted=job.spec.count,
        stretches=len(job.material.items),
        sources=job.material.documents.height,
        language=job.material.language,
        lines=lines,
        limit=job.spec.budget_usd,
        seconds=sum(asked_seconds(line, chat) for line in lines) if chat else 0.0,
        problems=tuple(problems),
        shows=float(detectable(job.spread.sd, count)),
        needed=_needed(job.spread),
        spread=job.spread,
    )


def _needed(spread: Spread) -> tuple[int, int]:
    most = spread.sd if spread.questions < 2 else float(spread_limits(spread.sd, spread.questions)[1])
    return int(queries_needed(spread.sd, FINE)), int(queries_needed(most, FINE))


def _lines(job: QuestionsJob) -> Iterator[Line]:
    chat = job.chat()
    if chat.local:
        return
    every = wanted(job)
    some = every[:: max(1, len(every) // _SAMPLE)]
    asked = sum(one.task(job.material.language).tokens(chat) for one in some) * len(every) / len(some)
    sizes: Mapping[str, tuple[float, float, int]] = {
        DRAFT: (asked, _ANSWER_TOKENS * len(every), len(every)),
    }
    said = "Which of these is asked about when somebody asks for it in so many words?"
    language, count = job.material.language, job.spec.count
    if job.spec.closed_book:
        answerable = sum(one.kind != UNANSWERABLE for one in every)
        tokens = closed_book(said, language).tokens(chat) * answerable
        sizes = {**sizes, KNOWN: (tokens, 20 * answerable, answerable)}
    if job.spec.twins:
        tokens = paraphrase(said, language).tokens(chat) * count
        sizes = {**sizes, TWIN: (tokens, 40 * count, count)}
    for stage, (sent, back, calls) in sizes.items():
        of = (stage, job.spec.model, calls)
        yield from priced_lines(of, chat.expected(sent, back), job.book, exact=False, notes=[_USABLE])
