"""Calls readers, and judges of their answers; each call is made once, and a paid one is not repeated."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple, get_args

from core.errors import ProviderError
from core.pipeline.evaluate.budget import paid
from core.pipeline.evaluate.measure import in_order
from core.pipeline.evaluate.session import Session
from core.pipeline.sweep.fields import IDEAL, JudgeScorer, Reader
from core.providers.chat import Chat
from core.providers.chat.ask import NOTICE, ChatTask, ask, mark_for, marked
from core.providers.chat.reading import bare, object_schema, whole_number
from core.work.readers.job import ReaderCall, ReaderJob, WantedScores
from core.work.readers.prompts import Prompt, user

TRIES = 3  # Maximum number of tries until a judge's answer is usable; then it is counted
SCALES: dict[JudgeScorer, range] = {
    scorer: range(2 if scorer == "precision" else 6) for scorer in get_args(JudgeScorer)
}
"""Possible answers of a judge."""
OF_PASSAGES = frozenset({"faithfulness", "precision", "hallucination", "specific_information_accuracy"})
"""Scorers that look at the passages."""
OF_QUESTION = frozenset({"answer_relevancy"})
"""Scorers that look at the question alone; all others look at gold answers."""
JUDGED_TOKENS = 64
_MARK_TOKENS, _SPARE_TOKENS = 24, 32  # tokens of the marks of a passage, and of a message besides its texts
_JUDGE = Path(__file__).parent / "prompts" / "judge"
ANSWER, JUDGE = "answer", "judge"


def fitted(passages: Sequence[str], most: int | None, count: Callable[[str], int]) -> tuple[list[str], bool]:
    """Return as many whole passages as fit, plus the beginning of the next; and whether something was cut."""
    kept: list[str] = []
    for text in passages:
        size = 0 if most is None else count(text)
        if most is not None and size > most:
            ends = range(1, len(text) + 1)
            end = bisect_right(ends, most, key=lambda end: count(text[:end]))
            begun = text[:end].rstrip()
            return [*kept, *([begun] if begun else [])], True
        kept.append(text)
        most = None if most is None else most - size
    return kept, False


@dataclass(frozen=True, slots=True)
class Message:
    """Messages to a reader."""

    system: str
    user: str
    max_tokens: int  # of the answer
    truncated: bool  # whether passages were cut to fit
    passages: int  # number of passages in it, in part or whole


def message(chat: Chat, prompt: Prompt, reader: Reader, question: str, passages: Sequence[str]) -> Message:
    """Write the message to a reader; only passages are cut, to the given limit and the model's context."""
    max_tokens, most = reader.max_tokens or prompt.max_tokens, reader.context_tokens
    if chat.context_tokens is not None:
        rest = chat.count_tokens(prompt.system(passages=True)) + chat.count_tokens(user(question, ()))
        own = chat.context_tokens - rest - max_tokens - _SPARE_TOKENS - len(passages) * _MARK_TOKENS
        most = max(0, own if most is None else min(own, most))
    texts, cut = fitted(passages, most, chat.count_tokens)
    return Message(prompt.system(passages=bool(texts)), user(question, texts), max_tokens, cut, len(texts))


def judging(
    scorer: JudgeScorer, question: str, answer: str, golds: Sequence[str], passages: Sequence[str]
) -> ChatTask[int | None]:
    """Return the task of judging an answer, or with "precision" a passage."""
    shown = passages if scorer in OF_PASSAGES else () if scorer in OF_QUESTION else golds
    label = "passage" if scorer in OF_PASSAGES else "reference"
    mark = mark_for(question, answer, *shown)
    texts = [marked("question", question, mark)]
    texts += [marked(f"{label} {number}", text, mark) for number, text in enumerate(shown, 1)]
    texts += [] if scorer == "precision" else [marked("answer", answer, mark)]
    key, among = "helps_0_1" if scorer == "precision" else "score_0_5", SCALES[scorer]
    return ChatTask(
        f"{judge_prompt(scorer)}\n\n{NOTICE}",
        "\n\n".join(texts),
        lambda said: whole_number(said, key, among, mark),
        JUDGED_TOKENS,
        object_schema({key: {"type": "integer", "enum": list(among)}}),
    )


def can_judge(scorer: JudgeScorer, golds: Sequence[str], passages: Sequence[object]) -> bool:
    """Return whether a scorer has the inputs it needs."""
    return scorer in OF_QUESTION or bool(passages if scorer in OF_PASSAGES else golds)


@cache
def judge_prompt(scorer: JudgeScorer) -> str:
    """Return the instruction of a judge."""
    return (_JUDGE / f"{scorer}.txt").read_text(encoding="utf-8").strip()


class ReaderAnswer(NamedTuple):
    """A reader's answer, with its usage."""

    text: str | None  # None if the passages are too long for the model
    truncated: bool
    sent: int  # passages that fitted, in part or whole
    input_tokens: int | None = None
    output_tokens: int | None = None
    ms: float | None = None
    usd: float | None = None


class JudgeCall(NamedTuple):
    """A question to a judge, asked once."""

    judge: str
    scorer: JudgeScorer
    question: str
    answer: str
    golds: tuple[str, ...]
    passages: tuple[int, ...]


class AnsweringStage:
    """The answers of a job that one process has obtained in a session.

    Attributes:
        answers: The reader's answers.
        scores: The judge's scores; None if an answer of the judge was unusable.
    """

    def __init__(self, job: ReaderJob, session: Session) -> None:
        self._job, self._session = job, session
        self.answers: dict[ReaderCall, ReaderAnswer] = {}
        self.scores: dict[JudgeCall, int | None] = {}

    def read(self) -> None:
        """Call every reader."""
        for model in self._job.reader.models:
            calls, chat = self._job.calls(model), self._begun(ANSWER, model)
            answered = in_order(partial(self._one, chat), calls, chat.concurrency)
            for done, (call, answer) in enumerate(zip(calls, answered, strict=True), 1):
                self.answers[call] = answer
                self._session.tracker.within(done, len(calls), "answers")
            self._session.tracker.end()

    def judge(self) -> None:
        """Have the answers judged."""
        unused = 0
        for judge in self._job.reader.judges:
            every = (one for wanted in self._job.wanted for one in self.judgements(wanted, judge))
            asked, chat = list(dict.fromkeys(every)), self._begun(JUDGE, judge)
            scored = in_order(partial(self._score, chat), asked, chat.concurrency)
            for done, (one, value) in enumerate(zip(asked, scored, strict=True), 1):
                self.scores[one] = value
                unused += value is None
                self._session.tracker.within(done, len(asked), "judgements", facts={"unused": unused})
            self._session.tracker.end()

    def judgements(self, wanted: WantedScores, judge: str) -> Iterable[JudgeCall]:
        """List the questions to a judge about an answer; for "precision" one per passage."""
        call, told = wanted.call, self._job.reader.judge
        answer = self.answers.get(call)
        if told is None or answer is None or answer.text is None:
            return
        golds = self._job.golds.get(wanted.query_id, ())
        for scorer in told.scorers:
            right = self._ideal(wanted) if scorer in IDEAL else golds
            if not can_judge(scorer, right, call.passages):
                continue
            if scorer == "precision":
                yield from (
                    JudgeCall(judge, scorer, call.question, "", (), (place,)) for place in call.passages
                )
                continue
            seen = call.passages if scorer in OF_PASSAGES else ()
            golds = () if scorer in OF_PASSAGES | OF_QUESTION else right
            yield JudgeCall(judge, scorer, call.question, answer.text, golds, seen)

    def _ideal(self, wanted: WantedScores) -> tuple[str, ...]:
        """Return the same reader's answer from all gold passages; none for that answer itself."""
        call = self._job.ideals.get((wanted.block._replace(mode="gold", k=None), wanted.query_id))
        answer = None if call is None or wanted.block.mode == "gold" else self.answers.get(call)
        return () if answer is None or answer.text is None else (answer.text,)

    def _begun(self, kind: str, model: str) -> Chat:
        self._session.tracker.begin(kind, f"{kind}: {model}")
        self._session.budget.begin_stage(f"{kind} {model}")
        return self._session.models.chat(model)

    def _one(self, chat: Chat, call: ReaderCall) -> ReaderAnswer:
        self._session.watch.check()
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
            return ReaderAnswer(None, sent.truncated, sent.passages)
        used = paid(reply.usage, (lambda _: 0.0) if chat.local else self._session.budget.price)
        return ReaderAnswer(
            prompt.kept(bare(reply.value)), sent.truncated, sent.passages, **used, ms=reply.ms or None
        )

    def _score(self, chat: Chat, one: JudgeCall) -> int | None:
        self._session.watch.check()
        texts = [self._job.texts[place] for place in one.passages]
        task = judging(one.scorer, one.question, one.answer, one.golds, texts)
        return ask(chat, task, tries=TRIES).value.value
