"""Nuggets by a chat model: it lists the facts of a question's best passages, then who supports which.

Calls are kept in the journal of the build, so that none is paid for twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TypeVar

import polars as pl

from core.errors import ProviderError
from core.golden.facts import together
from core.golden.pool import Pool
from core.pipeline.evaluate.measure import in_order
from core.pipeline.evaluate.session import Session
from core.providers.chat.ask import ChatTask, ask, mark_for, marked
from core.providers.chat.reading import AnswerReading, object_schema, only
from core.tables import frame
from core.work.golden.job import GoldenJob
from core.work.golden.prompts import PromptLanguage, prompt

Fact = tuple[str, bool]  # its text, and whether it is vital
MOST = 20  # Maximum number of facts to ask for per question (ours)
LEAST = 3  # Grade from which on a passage is checked for supported facts (ours)
LIST_TOKENS, SUPPORT_TOKENS = 1_500, 128  # Maximum tokens of the two answers
_TRIES = 3
V = TypeVar("V")
_LISTED, _SUPPORTED = "nuggets", "supported"
_VITAL = {"vital": True, "okay": False}


def listing(question: str, passages: Sequence[str], language: PromptLanguage) -> ChatTask[list[Fact]]:
    """Return the task of listing the facts in passages."""
    mark = mark_for(question, *passages)
    shown = [marked("question", question, mark)]
    shown += [marked(f"passage {number}", text, mark) for number, text in enumerate(passages, 1)]
    parts = {"text": {"type": "string"}, "importance": {"type": "string", "enum": list(_VITAL)}}
    return ChatTask(
        prompt("nuggets", language),
        "\n\n".join(shown),
        lambda answer: read_facts(answer, mark),
        LIST_TOKENS,
        object_schema({_LISTED: {"type": "array", "items": object_schema(parts)}}),
    )


def supporting(
    question: str, passage: str, facts: Sequence[str], language: PromptLanguage
) -> ChatTask[list[int]]:
    """Return the task of naming the facts that a passage supports; positions count from 0."""
    mark = mark_for(question, passage, *facts)
    shown = [marked("question", question, mark), marked("passage", passage, mark)]
    shown += [marked(f"fact {number}", text, mark) for number, text in enumerate(facts, 1)]
    items = {"type": "array", "items": {"type": "integer", "enum": list(range(1, len(facts) + 1))}}
    return ChatTask(
        prompt("support", language),
        "\n\n".join(shown),
        lambda answer: read_supported(answer, len(facts), mark),
        SUPPORT_TOKENS,
        object_schema({_SUPPORTED: items}),
    )


def read_facts(answer: str, mark: str = "") -> AnswerReading[list[Fact]]:
    """Return the distinct facts in an answer; none, with the reason, if it is unusable."""
    value, problem = only(answer, _LISTED, mark)
    given = value if isinstance(value, list) else None
    if not problem and (given is None or not all(map(_is_fact, given))):
        problem = f'"{_LISTED}" is not a list of text and importance (vital or okay)'
    if problem or given is None:
        return AnswerReading([], problem, 0)
    facts: dict[str, bool] = {}
    for each in given[:MOST]:
        facts.setdefault(" ".join(each["text"].split()), _VITAL[each["importance"]])
    return AnswerReading(list(facts.items()))


def _is_fact(each: object) -> bool:
    if not isinstance(each, dict) or each.keys() != {"text", "importance"}:
        return False
    text, importance = each["text"], each["importance"]
    return isinstance(text, str) and bool(text.strip()) and importance in (*_VITAL,)


def read_supported(answer: str, count: int, mark: str = "") -> AnswerReading[list[int]]:
    """Return the positions of supported facts, from 0; none, with the reason, if the answer is unusable."""
    value, problem = only(answer, _SUPPORTED, mark)
    given = value if isinstance(value, list) else None
    numbers = range(1, count + 1)
    if not problem and (given is None or not all(type(each) is int and each in numbers for each in given)):
        problem = f'"{_SUPPORTED}" is not a list of numbers from 1 to {count}'
    return (
        AnswerReading([], problem, 0)
        if problem or given is None
        else AnswerReading([n - 1 for n in dict.fromkeys(given)])
    )


class NuggetFinding:
    """Finds the nuggets of every question, and the passages that support them, with one model."""

    def __init__(self, job: GoldenJob, session: Session) -> None:
        self._job, self._session, self._asked = job, session, job.spec.golden.nuggets
        self._chat = session.models.chat(self._asked.model or "")
        self.problems: list[str] = []  # of unusable answers

    def run(self, pool: Pool, graded: pl.DataFrame) -> pl.DataFrame:
        """Find the nuggets.

        Args:
            graded: query_id, passage_id and grade.

        Returns:
            Rows of "nuggets"; none for a question without a passage of grade 3 or more.
        """
        tracker = self._session.tracker
        tracker.begin("nuggets", f"nuggets: {self._asked.model}")
        self._session.budget.begin_stage(f"nuggets {self._asked.model}")
        good = pool.distinct.join(
            graded.select("query_id", "passage_id", "grade"), on=["query_id", "passage_id"]
        )
        good = good.filter(pl.col("grade") >= LEAST).sort(
            "grade", "rank", "passage_id", descending=[True, False, False]
        )
        parts = good.partition_by("query_id", as_dict=True)
        asked = [(query, parts[query,]) for query in self._job.questions if (query,) in parts]
        found: list[pl.DataFrame] = [frame("nuggets", [])]
        for done, rows in enumerate(in_order(partial(self._one, pool), asked, self._chat.concurrency), 1):
            found.append(rows)
            tracker.within(done, len(asked), "questions")
        tracker.end()
        tracker.tell(facts={**tracker.status.facts, "unusable": len(self.problems)})
        return together(found, self._job.golden_set_id)

    def _one(self, pool: Pool, asked: tuple[str, pl.DataFrame]) -> pl.DataFrame:
        query, good = asked
        question, language = self._job.questions[query], self._job.spec.golden.language
        best = good["text"].head(self._asked.passages).to_list()
        facts = self._ask(listing(question, best, language))
        rows: list[dict[str, object]] = [{"text": text, "vital": vital} for text, vital in facts]
        texts = [text for text, _ in facts]
        for passage, text in good.select("passage_id", "text").iter_rows() if facts else ():
            places = self._ask(supporting(question, text, texts, language))
            copies = pool.rows.filter(query_id=query, first=passage)["passage_id"]
            rows += [
                {"text": facts[at][0], "vital": facts[at][1], "passage_id": copy, "support": 1.0}
                for at in places
                for copy in copies
            ]
        about = {"query_id": query, "judge": self._asked.model}
        return frame("nuggets", [{**row, **about} for row in rows])

    def _ask(self, task: ChatTask[list[V]]) -> list[V]:
        self._session.watch.check()
        try:
            reading = ask(self._chat, task, tries=_TRIES).value
        except ProviderError as error:
            if error.kind != "too large":
                raise
            reading = AnswerReading([], "too long for the model", 0)
        if reading.problem:
            self.problems.append(reading.problem)
        return reading.value
