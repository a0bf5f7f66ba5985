"""What readers and judges of answers are sent: messages with the texts of others between marks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from core.pipeline.sweep.reader import JudgeScorer, Reader
from core.providers.chat import Chat
from core.providers.chat.ask import NOTICE, Task, mark_for, marked
from core.providers.chat.reading import object_schema, whole_number
from core.readers.prompts import Prompt, user

TRIES = 3
"""How often a judge is asked at most until its answer can be used; then it is counted."""
SCALES: dict[JudgeScorer, range] = {
    "correctness": range(6), "similarity": range(6), "faithfulness": range(6), "precision": range(2),
}  # fmt: skip
"""What a judge may say."""
OF_PASSAGES = frozenset({"faithfulness", "precision"})
"""Scorers that look at the passages; the others at gold answers."""
JUDGED_TOKENS = 64
_MARK_TOKENS, _SPARE_TOKENS = 24, 32  # what the marks of a passage take, and a message beside its texts
_JUDGE = Path(__file__).parent / "prompts" / "judge"


def fitted(passages: Sequence[str], most: int | None, count: Callable[[str], int]) -> tuple[list[str], bool]:
    """As many whole passages as fit, and the beginning of the next; whether something was cut."""
    if most is None:
        return list(passages), False
    kept: list[str] = []
    left = most
    for text in passages:
        size = count(text)
        if size > left:
            begun = _beginning(text, left, count)
            return [*kept, *([begun] if begun else [])], True
        kept.append(text)
        left -= size
    return kept, False


def _beginning(text: str, most: int, count: Callable[[str], int]) -> str:
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if count(text[:middle]) <= most else (low, middle - 1)
    return text[:low].rstrip()


@dataclass(frozen=True, slots=True)
class Message:
    """What a reader is sent."""

    system: str
    user: str
    max_tokens: int  # of the answer
    truncated: bool  # whether passages were cut to fit
    passages: int  # how many stand in it, in part or whole


def message(chat: Chat, prompt: Prompt, reader: Reader, question: str, passages: Sequence[str]) -> Message:
    """The message to a reader; only passages are cut, to what is stated and to what the model can read."""
    max_tokens, most = reader.max_tokens or prompt.max_tokens, reader.context_tokens
    if chat.context_tokens is not None:
        rest = chat.count_tokens(prompt.system(passages=True)) + chat.count_tokens(user(question, ()))
        own = chat.context_tokens - rest - max_tokens - _SPARE_TOKENS - len(passages) * _MARK_TOKENS
        most = max(0, own if most is None else min(own, most))
    texts, cut = fitted(passages, most, chat.count_tokens)
    return Message(prompt.system(passages=bool(texts)), user(question, texts), max_tokens, cut, len(texts))


def judging(
    scorer: JudgeScorer, question: str, answer: str, golds: Sequence[str], passages: Sequence[str]
) -> Task[int | None]:
    """The task of judging an answer, or with "precision" a passage."""
    shown = passages if scorer in OF_PASSAGES else golds
    label = "passage" if scorer in OF_PASSAGES else "reference"
    mark = mark_for(question, answer, *shown)
    texts = [marked("question", question, mark)]
    texts += [marked(f"{label} {number}", text, mark) for number, text in enumerate(shown, 1)]
    texts += [] if scorer == "precision" else [marked("answer", answer, mark)]
    key, among = "helps_0_1" if scorer == "precision" else "score_0_5", SCALES[scorer]
    return Task(
        f"{judge_prompt(scorer)}\n\n{NOTICE}",
        "\n\n".join(texts),
        lambda said: whole_number(said, key, among, mark),
        JUDGED_TOKENS,
        object_schema({key: {"type": "integer", "enum": list(among)}}),
    )


@cache
def judge_prompt(scorer: JudgeScorer) -> str:
    """What a judge is told."""
    return (_JUDGE / f"{scorer}.txt").read_text(encoding="utf-8").strip()
