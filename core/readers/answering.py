"""Asks readers, and judges of their answers; every call once, and one that was paid for is not sent again."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import NamedTuple

from core.errors import ProviderError
from core.pipeline.evaluate.budget import paid
from core.pipeline.evaluate.measure import in_order
from core.pipeline.evaluate.turn import Turn
from core.pipeline.sweep.reader import JudgeScorer
from core.providers.chat import Chat
from core.providers.chat.ask import ask
from core.providers.chat.reading import bare
from core.readers.job import Call, ReaderJob, Wanted
from core.readers.messages import OF_PASSAGES, TRIES, judging, message

ANSWER, JUDGE = "answer", "judge"


class Answer(NamedTuple):
    """What a reader answered."""

    text: str | None  # None where the passages are too long for the model
    truncated: bool
    sent: int  # passages that fitted, in part or whole
    input_tokens: int | None = None
    output_tokens: int | None = None
    ms: float | None = None
    usd: float | None = None


class Judged(NamedTuple):
    """What a judge is asked once."""

    scorer: JudgeScorer
    question: str
    answer: str
    golds: tuple[str, ...]
    passages: tuple[int, ...]


class Answering:
    """One process's turn at the answers of a job.

    Attributes:
        answers: What was answered.
        scores: What was judged; None where an answer of the judge could not be used.
    """

    def __init__(self, job: ReaderJob, turn: Turn) -> None:
        self._job, self._turn = job, turn
        self.answers: dict[Call, Answer] = {}
        self.scores: dict[Judged, int | None] = {}

    def read(self) -> None:
        """Ask every reader."""
        for model in self._job.reader.models:
            calls, chat = self._job.calls(model), self._begun(ANSWER, model)
            answered = in_order(partial(self._one, chat), calls, chat.concurrency)
            for done, (call, answer) in enumerate(zip(calls, answered, strict=True), 1):
                self.answers[call] = answer
                self._turn.tracker.within(done, len(calls), "answers")
            self._turn.tracker.end()

    def judge(self) -> None:
        """Have what was answered judged."""
        judge = self._job.reader.judge
        if judge is None:
            return
        asked = list(dict.fromkeys(self._judged()))
        chat, unused = self._begun(JUDGE, judge.model), 0
        scored = in_order(partial(self._score, chat), asked, chat.concurrency)
        for done, (one, value) in enumerate(zip(asked, scored, strict=True), 1):
            self.scores[one] = value
            unused += value is None
            self._turn.tracker.within(done, len(asked), "judgements", facts={"unused": unused})
        self._turn.tracker.end()

    def judgements(self, wanted: Wanted) -> Iterable[Judged]:
        """What is asked of a judge about an answer; of "precision" once per passage."""
        call = wanted.call
        judge, answer = self._job.reader.judge, self.answers.get(call)
        if judge is None or answer is None or answer.text is None:
            return
        right = self._job.golds.get(wanted.query_id, ())
        for scorer in judge.scorers:
            if scorer == "precision":
                yield from (Judged(scorer, call.question, "", (), (place,)) for place in call.passages)
            elif scorer in OF_PASSAGES and call.passages:
                yield Judged(scorer, call.question, answer.text, (), call.passages)
            elif scorer not in OF_PASSAGES and right:
                yield Judged(scorer, call.question, answer.text, right, ())

    def _judged(self) -> Iterable[Judged]:
        for wanted in self._job.wanted:
            yield from self.judgements(wanted)

    def _begun(self, kind: str, model: str) -> Chat:
        self._turn.tracker.begin(kind, f"{kind}: {model}")
        self._turn.budget.begin_stage(f"{kind} {model}")
        return self._turn.models.chat(model)

    def _one(self, chat: Chat, call: Call) -> Answer:
        self._turn.watch.check()
        job, prompt = self._job, self._job.prompts[call.prompt]
        texts = [job.texts[place] for place in call.passages]
        sent = message(chat, prompt, job.reader, call.question, texts)
        try:
            reply = chat.complete(
                sent.system, sent.user, max_tokens=sent.max_tokens, temperature=call.temperature,
                extra=f"pass {call.turn}" if call.turn > 1 else "",
            )  # fmt: skip
        except ProviderError as error:
            if error.kind != "too large":
                raise
            return Answer(None, sent.truncated, sent.passages)
        used = paid(reply.usage, (lambda _: 0.0) if chat.local else self._turn.budget.price)
        return Answer(
            prompt.kept(bare(reply.value)), sent.truncated, sent.passages, **used, ms=reply.ms or None
        )

    def _score(self, chat: Chat, one: Judged) -> int | None:
        self._turn.watch.check()
        texts = [self._job.texts[place] for place in one.passages]
        return ask(
            chat, judging(one.scorer, one.question, one.answer, one.golds, texts), tries=TRIES
        ).value.value
