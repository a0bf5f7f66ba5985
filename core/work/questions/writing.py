"""Questions written by a model: about which stretches, one call each, and what it knows without any text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from math import ceil
from typing import Any, TypeVar

from core.errors import ProviderError
from core.pipeline.evaluate.budget import paid
from core.pipeline.evaluate.measure import in_order
from core.pipeline.evaluate.session import Session
from core.providers.chat import Chat
from core.providers.chat.ask import ChatTask, ask
from core.records import short_hash
from core.work.questions.drafts import Draft, DraftKind, Quote, sampled
from core.work.questions.job import QuestionsJob
from core.work.questions.prompts import UNKNOWN, WrittenPrompt, asking, closed_book, paraphrase, prompt_hash
from core.work.questions.rules import located

TRIES = 3  # Maximum number of tries until the model's answer is usable
SPARE = 1.25  # Number written for each requested one, because some are dropped
DRAFT, KNOWN, TWIN = "write questions", "closed book", "twins"
_SHOWN: dict[DraftKind, int] = {
    "several passages": 3,
    "comparison": 2,
}  # Stretches in one call; otherwise one
_WORDS = re.compile(r"\w+")
_HELD = 0.8  # Share of the right answer's words from which on an answer contains it (ours)
T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class WantedQuestions:
    """A question to write."""

    kind: DraftKind
    shown: tuple[Quote, ...]  # The stretches shown to the model

    def task(self, language: str) -> ChatTask[WrittenPrompt]:
        """Return the task of writing it."""
        return asking(self.kind, [quote.text for quote in self.shown], language)


def wanted(job: QuestionsJob) -> list[WantedQuestions]:
    """Return the questions to write: kinds in turn, stretches evenly over topics and sources."""
    items, topics = job.material.items, job.topics
    order = [at for at, _ in sampled(items, job.spec.seed, topics)]
    number = ceil(job.spec.count * SPARE)
    found = []
    for turn in range(number):
        kind = job.spec.kinds[turn % len(job.spec.kinds)]
        first = order[turn % len(order)]
        near = [at for at in order if topics[at] == topics[first] and at != first]
        elsewhere = [at for at in near if items[at].source != items[first].source]
        start = int(short_hash(job.spec.seed, str(turn)), 16)
        more = elsewhere if kind == "comparison" and elsewhere else near
        others = [more[(start + step) % len(more)] for step in range(min(len(more), _SHOWN.get(kind, 1) - 1))]
        found.append(WantedQuestions(kind, tuple(items[at] for at in (first, *dict.fromkeys(others)))))
    return found


class Writing:
    """Has one model write, answer and paraphrase; calls are kept, so that none is paid for twice."""

    def __init__(self, job: QuestionsJob, session: Session) -> None:
        self._job, self._session = job, session
        self._chat: Chat = session.models.chat(job.spec.model)
        self._language = job.material.language

    def drafts(self) -> list[Draft]:
        """Return the model's drafts; an unusable answer gives a draft without words."""
        return list(self._each(DRAFT, wanted(self._job), self._written))

    def known(self, drafts: Sequence[Draft]) -> list[bool]:
        """Return which questions the model answers without the text."""
        return list(self._each(KNOWN, drafts, self._knows))

    def twins(self, drafts: Sequence[tuple[str, Draft]]) -> list[Draft]:
        """Return the paraphrased questions, without those whose answers were unusable."""
        said = self._each(TWIN, drafts, self._other)
        return [twin for twin in said if twin is not None]

    def _each(self, stage: str, items: Sequence[T], work: Callable[[T], R]) -> Iterator[R]:
        tracker = self._session.tracker
        tracker.begin(stage, f"{stage}: {self._job.spec.model}")
        self._session.budget.begin_stage(stage)
        for done, made in enumerate(in_order(partial(self._one, work), items, self._chat.concurrency), 1):
            yield made
            tracker.within(done, len(items), "questions")
        tracker.end()

    def _one(self, work: Callable[[T], R], item: T) -> R:
        self._session.watch.check()
        return work(item)

    def _written(self, one: WantedQuestions) -> Draft:
        empty = Draft(text="", kind=one.kind)
        told = self._ask(one.task(self._language))
        if told is None:
            return empty
        written, about = told
        about = {"model": self._job.spec.model, "prompt": prompt_hash(self._language, one.kind), **about}
        places = [located(text, one.shown[number]) for number, text in written.quotes]
        held = tuple(place for place in places if place is not None)
        whole = len(held) == len(places) and len({*held}) >= (2 if one.kind in _SHOWN else 1)
        quotes = held if whole else ()
        return Draft(text=written.question, kind=one.kind, quotes=quotes, answer=written.answer, **about)

    def _knows(self, draft: Draft) -> bool:
        if not draft.answer.strip() or not draft.quotes:
            return False
        told = self._ask(closed_book(draft.text, self._language))
        return told is not None and holds(told[0], draft.answer)

    def _other(self, asked: tuple[str, Draft]) -> Draft | None:
        query_id, draft = asked
        told = self._ask(paraphrase(draft.text, self._language))
        return None if told is None else replace(draft, text=told[0], twin_of=query_id)

    def _ask(self, task: ChatTask[T]) -> tuple[T, dict[str, Any]] | None:
        """Return the usable part of the answer, with its cost; None if there is none."""
        try:
            reply = ask(self._chat, task, tries=TRIES)
        except ProviderError as error:
            if error.kind != "too large":
                raise
            return None
        if reply.value.problem:
            return None
        return reply.value.value, {"usd": paid(reply.usage, self._session.budget.price)["usd"]}


def holds(given: str, right: str) -> bool:
    """Return whether an answer contains nearly all words of the right one."""
    said, wanted_words = (set(_WORDS.findall(text.casefold())) for text in (given, right))
    if not wanted_words or given.strip().casefold() == UNKNOWN:
        return False
    return len(said & wanted_words) / len(wanted_words) >= _HELD


def of_each_kind(drafts: Sequence[Draft], count: int) -> tuple[list[Draft], list[Draft]]:
    """Split drafts into the requested ones, of each kind in turn, and the spare ones."""
    by_kind: dict[str, Iterator[Draft]] = {}
    for kind in dict.fromkeys(draft.kind for draft in drafts):
        by_kind[kind] = iter([draft for draft in drafts if draft.kind == kind])
    turns = [drafts_of for _ in drafts for drafts_of in by_kind.values()]
    taken = list(islice((draft for turn in turns if (draft := next(turn, None)) is not None), count))
    chosen = set(map(id, taken))
    return taken, [draft for draft in drafts if id(draft) not in chosen]
