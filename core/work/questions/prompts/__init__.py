"""Instructions, in our own words, for a model that writes questions, and the parsing of its answers.

Texts of a corpus are between marks that they cannot foresee; an answer that does not have the requested form,
or that repeats a mark, is refused and requested again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from core.providers.chat.ask import NOTICE, ChatTask, mark_for, marked
from core.providers.chat.reading import AnswerReading, object_schema, only
from core.records import JsonMap, short_hash
from core.work.questions.drafts import KINDS, DraftKind

ASKED, KNOWS, OTHER = "asked", "known", "query"
UNKNOWN = "unknown"  # The answer of a model that does not know
_MOST = 400  # Maximum characters of a question
_WRITTEN, _SHORT = 600, 120  # Maximum tokens of an answer
_FILES = ("ask", "known", "twin")
_KIND: Mapping[str, Mapping[DraftKind, str]] = {
    "en": {
        "fact": "one fact that one passage states, in a full sentence.",
        "typed": "one fact that one passage states, as somebody types it into a search field: a few words, "
        "no sentence, no capitals.",
        "several passages": "one that only two or more of the passages answer together; quote each of them.",
        "comparison": "one that compares what two of the passages say; quote both.",
        "unanswerable": "one on the subject of the passage that it does not answer, although a reader would "
        "expect it to; quotes is an empty list and answer an empty text.",
    },
    "fr": {
        "fact": "un fait que donne un seul passage, en une phrase complète.",
        "typed": "un fait que donne un seul passage, comme on le tape dans un champ de recherche : quelques "
        "mots, pas de phrase, pas de majuscules.",
        "several passages": "une question à laquelle seuls deux passages ou plus répondent ensemble ; "
        "cite chacun.",
        "comparison": "une question qui compare ce que disent deux des passages ; cite les deux.",
        "unanswerable": "une question sur le sujet du passage à laquelle il ne répond pas, alors qu'un "
        "lecteur s'y attendrait ; quotes est une liste vide et answer un texte vide.",
    },
}


class WrittenPrompt(NamedTuple):
    """A question written by a model."""

    question: str
    quotes: tuple[tuple[int, str], ...]  # number of the passage from 0, and its claimed quote
    answer: str


NOTHING = WrittenPrompt("", (), "")


def instructions(language: str) -> str:
    """Return the language of the instructions for texts in a language: "en" or "fr"."""
    return "fr" if language == "french" else "en"


@cache
def prompt(name: str, language: str, kind: DraftKind | None = None) -> str:
    """Return instructions by their name: ask, known, twin."""
    spoken = instructions(language)
    text = (Path(__file__).parent / f"{name}.{spoken}.txt").read_text(encoding="utf-8")
    text = text.replace("$NOTICE", NOTICE).replace("$KIND", "" if kind is None else _KIND[spoken][kind])
    return text.strip()


def prompt_hash(language: str, kind: DraftKind) -> str:
    """Return the hash of the instructions for a kind of question."""
    return short_hash(prompt("ask", language, kind))


def prompt_hashes(language: str) -> dict[str, str]:
    """Return the hashes of all instructions."""
    asking = {f"ask.{kind}": prompt_hash(language, kind) for kind in KINDS}
    return asking | {name: short_hash(prompt(name, language)) for name in _FILES[1:]}


def asking(kind: DraftKind, passages: Sequence[str], language: str) -> ChatTask[WrittenPrompt]:
    """Return the task of writing a question about passages."""
    mark = mark_for(kind, *passages)
    shown = [marked(f"passage {number}", text, mark) for number, text in enumerate(passages, 1)]
    quote = object_schema({"passage": {"type": "integer"}, "quote": {"type": "string"}})
    text: JsonMap = {"type": "string"}
    whole = object_schema({"question": text, "quotes": {"type": "array", "items": quote}, "answer": text})
    return ChatTask(
        prompt("ask", language, kind),
        "\n\n".join(shown),
        lambda answer: read_written(answer, len(passages), mark),
        _WRITTEN,
        object_schema({ASKED: whole}),
    )


def read_written(answer: str, passages: int, mark: str = "") -> AnswerReading[WrittenPrompt]:
    """Return the question in an answer; empty, with the reason, if it is unusable."""
    value, problem = only(answer, ASKED, mark)
    if problem:
        return AnswerReading(NOTHING, problem, 0)
    if not isinstance(value, Mapping) or set(value) != {"question", "quotes", "answer"}:
        return AnswerReading(NOTHING, f'"{ASKED}" does not hold question, quotes and answer alone', 0)
    question, quotes, right = value["question"], value["quotes"], value["answer"]
    if not (isinstance(question, str) and question.strip() and len(question) <= _MOST):
        return AnswerReading(NOTHING, f'"question" is not a text of 1 to {_MOST} characters', 0)
    if not isinstance(right, str) or not isinstance(quotes, list):
        return AnswerReading(NOTHING, '"answer" is not a text, or "quotes" not a list', 0)
    read = [_quoted(quote, passages) for quote in quotes]
    if None in read:
        return AnswerReading(NOTHING, "a quote does not hold the number of a passage and a text", 0)
    return AnswerReading(WrittenPrompt(question, tuple(quote for quote in read if quote is not None), right))


def _quoted(value: Any, passages: int) -> tuple[int, str] | None:  # noqa: ANN401 - what a model says
    if not isinstance(value, Mapping) or set(value) != {"passage", "quote"}:
        return None
    number, text = value["passage"], value["quote"]
    known = type(number) is int and 1 <= number <= passages and isinstance(text, str)
    return (number - 1, text) if known else None


def closed_book(question: str, language: str) -> ChatTask[str]:
    """Return the task of answering a question without a text."""
    return _said(question, "known", KNOWS, language)


def paraphrase(question: str, language: str) -> ChatTask[str]:
    """Return the task of paraphrasing a question."""
    return _said(question, "twin", OTHER, language)


def _said(question: str, name: str, key: str, language: str) -> ChatTask[str]:
    mark = mark_for(question)

    def read(answer: str) -> AnswerReading[str]:
        value, problem = only(answer, key, mark)
        if not problem and not (isinstance(value, str) and value.strip() and len(value) <= _MOST):
            problem = f'"{key}" is not a text of 1 to {_MOST} characters'
        return AnswerReading("", problem, 0) if problem else AnswerReading(str(value))

    user, schema = marked("question", question, mark), object_schema({key: {"type": "string"}})
    return ChatTask(prompt(name, language), user, read, _SHORT, schema)
