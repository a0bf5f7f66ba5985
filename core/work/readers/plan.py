"""Plan the cost of readers: calls, tokens and dollars. It spends nothing."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TypeVar

from core.pipeline.evaluate import Job
from core.pipeline.sweep.fields import IDEAL, Reader
from core.pipeline.sweep.plan import Bill, Line, Plan, asked_seconds, priced_lines
from core.pipeline.sweep.problems import Problem, Severity, SpecError
from core.providers.chat import Chat, chat_config, make_chat
from core.providers.chat.ask import ChatTask
from core.providers.tokens import counter
from core.readers.scoring import ABSTAINING, SCORERS
from core.tables import frame
from core.work.readers.answering import ANSWER, JUDGE, can_judge, judging, message
from core.work.readers.job import Material, ReaderCall, ReaderJob, ReaderReplay, require_models

_T = TypeVar("_T")
SAMPLE = 500  # If there are more calls, this many are counted, evenly spread, and the sum is scaled
_MOST = "answers as long as they may be"
_GOLD = "a right answer of the length that short ones have"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderPlan(Bill):
    """The bill of readers."""

    name: str  # Of the job
    runs: int  # Number of runs to read
    questions: int  # Number of questions
    answers: int  # Number of answers
    held: int  # How many of them exist already
    asked: int  # Number of distinct calls for them
    seconds: float  # Duration of the calls, as far as known


def plan(job: ReaderJob, *, problems: Sequence[Problem] = (), known: bool = True) -> ReaderPlan:
    """Estimate the cost of readers; this sends nothing and writes nothing.

    Args:
        known: Whether the rankings exist; otherwise their passages are placeholders.
    """
    calls = {model: job.calls(model) for model in job.reader.models}
    chats = {name: make_chat(name, models=job.models, ready=False) for name in job.reader.asked}
    answering = [_answering(job, model, chats[model], some, known=known) for model, some in calls.items()]
    judging_of = [_judging(job, name, chats[name]) for name in job.reader.judges]
    lines = [*chain(*answering), *chain(*judging_of)]
    return ReaderPlan(
        name=job.name,
        runs=len(job.material.replays),
        questions=len({wanted.query_id for wanted in job.wanted}),
        answers=len(job.wanted),
        held=sum(wanted.key in job.material.held for wanted in job.wanted),
        asked=sum(map(len, calls.values())),
        lines=tuple(lines),
        limit=job.budget_usd,
        seconds=sum(asked_seconds(line, chats[line.model]) for line in lines),
        problems=(*problems, *_warned(job, known=known)),
    )


def with_readers(made: Plan, job: Job) -> Plan:
    """Return the plan of an evaluation with its readers' lines, whose passages are not known yet."""
    reader = reader_of(job)
    if reader is None:
        return made
    missing = require_models(reader, job.models, to_run=False)
    asked = plan(ReaderJob(name=job.name, reader=reader, material=_typical(job, reader), models=job.models,
                           book=job.book), known=False)  # fmt: skip
    seconds = {**made.resources.seconds, ANSWER: asked.seconds}
    return replace(
        made,
        lines=(*made.lines, *asked.lines),
        problems=(*made.problems, *missing, *asked.problems),
        resources=replace(made.resources, seconds=seconds),
    )


def reader_of(job: Job) -> Reader | None:
    """Return the readers of an evaluation, if it has any."""
    declared = job.spec.get("reader")
    reader = None if declared is None else Reader.model_validate(declared)
    if reader is not None and reader.runs:
        problem = "The readers of an evaluation read its own runs."
        raise SpecError([Problem("reader.runs", problem, "Leave it out, or use `readers run`.")])
    return reader


def _warned(job: ReaderJob, *, known: bool) -> Iterator[Problem]:
    reader, questions = job.reader, set(job.material.questions)
    for name in reader.judges:
        if name not in reader.models:
            continue
        problem = f"{name} judges its own answers."
        yield Problem("reader.judge", problem, "Let another model judge.", Severity.WARNING)
    lacking = [scorer for scorer in reader.scorers if scorer in SCORERS]
    judged = [scorer for scorer in reader.scorers if scorer in ABSTAINING]
    if known and judged and False not in job.material.answerable.values():
        problem = (
            f"No question is known to have no answer: {', '.join(judged)} cannot tell who refuses rightly."
        )
        do = "Tag such questions unanswerable, or name a golden set that judges them."
        yield Problem("reader.scorers", problem, do, Severity.WARNING)
    if known and lacking and questions.isdisjoint(job.material.golds["query_id"]):
        problem = f"No question has a gold answer, without which there is no {', '.join(lacking)}."
        yield Problem(
            "reader.scorers", problem, "Import gold answers, or let a judge score.", Severity.WARNING
        )


def _typical(job: Job, reader: Reader) -> Material:
    """Return placeholder passages for those that stacks will find, and right answers for the stored ones."""
    corpus = next(iter(job.corpora.values()))
    most, deep = len(corpus), min(len(corpus), reader.depth)
    names = list(map(str, range(most)))
    questions = dict(job.queries.select("query_id", "text").iter_rows())
    replays = tuple(
        ReaderReplay(stack.stack_id, "", {
            query: tuple(names[(at * 7919 + of * 104_729 + rank) % most] for rank in range(deep))
            for of, query in enumerate(questions)
        })
        for at, stack in enumerate(job.stacks)
    )  # fmt: skip
    golds = frame("gold_answers", {"query_id": list(questions), "answer": [_GOLD] * len(questions)})
    texts = {"": dict(zip(names, corpus.texts, strict=True))}
    return Material(job.collection_id, questions, texts, replays, golds)


def _answering(
    job: ReaderJob, model: str, chat: Chat, calls: Sequence[ReaderCall], *, known: bool
) -> Iterator[Line]:
    if chat.local or not calls:
        return
    asked = said = 0
    some = _some(calls)
    for call in some:
        texts = [job.texts[place] for place in call.passages]
        sent = message(chat, job.prompts[call.prompt], job.reader, call.question, texts)
        asked += chat.count_tokens(sent.system) + chat.count_tokens(sent.user)
        said += sent.max_tokens
    scale = len(calls) / len(some)
    exact = known and len(some) == len(calls) and counter(chat_config(model, job.models).tokenizer).exact
    used, notes = chat.expected(asked * scale, said * scale), () if exact else (_MOST,)
    yield from priced_lines((ANSWER, model, len(calls)), used, job.book, exact=exact, notes=notes)


def _judging(job: ReaderJob, judge: str, chat: Chat) -> Iterator[Line]:
    """Yield the tokens for judging answers of maximum length, with the gold answers of their questions."""
    answers = list(dict.fromkeys((wanted.call, job.golds.get(wanted.query_id, ())) for wanted in job.wanted))
    if chat.local or not answers:
        return
    some = _some(answers)
    tasks = [task for call, golds in some for task in _tasks(job, call, golds)]
    sizes = sum(task.tokens(chat) for task in tasks)
    scale = len(answers) / len(some)
    number = round(len(tasks) * scale)
    said = number * chat.count_tokens('{"score_0_5": 3}')
    used = chat.expected(sizes * scale, said)
    yield from priced_lines((JUDGE, judge, number), used, job.book, exact=False, notes=[_MOST])


def _tasks(job: ReaderJob, call: ReaderCall, golds: Sequence[str]) -> Iterator[ChatTask[int | None]]:
    """List the judge's tasks for an answer of maximum length."""
    answer = "word " * (job.reader.max_tokens or job.prompts[call.prompt].max_tokens)
    texts = [job.texts[place] for place in call.passages]
    for scorer in job.reader.judge.scorers if job.reader.judge else ():
        batches = [[text] for text in texts] if scorer == "precision" else [texts]
        right = [answer] if scorer in IDEAL else golds  # The ideal answer has the same maximum length
        if can_judge(scorer, right, texts):
            yield from (judging(scorer, call.question, answer, right, shown) for shown in batches)


def _some(calls: Sequence[_T]) -> Sequence[_T]:
    return calls if len(calls) <= SAMPLE else calls[:: math.ceil(len(calls) / SAMPLE)]
