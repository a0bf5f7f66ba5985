"""A deterministic chat model without a model, for tests and for trying the product; never for results.

It answers the product's own prompts by counting shared words, in the requested form, or from a script.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from core.providers.base import Reply
from core.providers.chat.ask import Chat, find_marked
from core.records import JsonMap

_CRITERIA = (
    {"name": "Examples", "meaning": "5: shows several; 0: shows none.", "weight": 1.0},
    {"name": "Age", "meaning": "5: of today; 0: of long ago.", "weight": 0.25},
)
_WORDS = re.compile(r"\w+")
_ENDS = re.compile(r"(?<=[.!?])\s+|\n+")


class FakeChat(Chat):
    """A chat model that answers at once, and free of charge."""

    name = provider = "fake"
    item = "fake-chat"
    local = True

    def __init__(self, script: Sequence[str] = ()) -> None:
        self.asked: list[tuple[str, str]] = []
        self._script = list(script)
        self._lock = threading.Lock()

    def complete(
        self,
        system: str,
        user: str,
        *,
        max_tokens: int,
        temperature: float = 0.0,  # noqa: ARG002
        json_schema: JsonMap | None = None,
        extra: str = "",  # noqa: ARG002
    ) -> Reply[str]:
        """Return the next answer of the script, or else one made from the prompt; see `Chat.complete`."""
        with self._lock:
            self.asked.append((system, user))
            scripted = self._script.pop(0) if self._script else None
        text = made_answer(user, json_schema, cites="[1]" in system) if scripted is None else scripted
        text = text if json_schema or scripted is not None else self._cut(text, max_tokens)
        usage = self.expected(self.count_tokens(system + user), self.count_tokens(text))
        return Reply(text, usage, details={"characters": len(text), "chars_per_second": None})

    def _cut(self, text: str, most: int) -> str:
        """Return as many of a text's first words as an answer may have tokens."""
        words = text.split(" ")
        while len(words) > 1 and self.count_tokens(" ".join(words)) > most:
            words.pop()
        return " ".join(words)


def made_answer(user: str, schema: JsonMap | None, *, cites: bool = False) -> str:
    """Return a fake answer that matches the schema.

    It holds ratings, a grade, an order, criteria, a query, a passage or queries.

    Without a schema it is the sentence of the passages with the most words in common with the question,
    followed by the number of its passage if readers must cite.
    """
    texts = dict(find_marked(user))
    asked = texts.get("question", "")
    question = texts.get("answer", asked)
    passages = [text for label, text in texts.items() if label.startswith(("passage", "reference"))]
    if passages and not schema:
        return _sentence(question, passages, cites=cites)
    properties = schema["properties"] if schema else {}
    passages = passages or [asked]
    for key, answer in _ANSWERS.items():
        if key in properties:
            made = {key: answer(question, passages, properties[key])}
            if "reasons" in properties:
                made["reasons"] = [[at, f"has {len(text)} characters"] for at, text in enumerate(passages, 1)]
            return json.dumps(made)
    return " ".join(question.split()) or "nothing to say"


def _sentence(question: str, passages: list[str], *, cites: bool) -> str:
    sentences = [(at, part.strip()) for at, text in enumerate(passages, 1) for part in _ENDS.split(text)]
    at, best = max(sentences, key=lambda pair: share(question, pair[1]))
    return f"{best} [{at}]" if cites else best


def _ratings(question: str, passages: list[str], asked: JsonMap) -> list[list[Any]]:
    columns = asked["items"]["maxItems"] - 1
    return [[at, *_rated(question, text, columns)] for at, text in enumerate(passages, 1)]


def _order(question: str, passages: list[str], _: JsonMap) -> list[int]:
    best = sorted(range(len(passages)), key=lambda at: -share(question, passages[at]))
    return [at + 1 for at in best]


def _variants(question: str, _: list[str], __: JsonMap) -> list[str]:
    words = question.split()
    return [" ".join(words[start:]) for start in range(1, 4)]


def share(question: str, passage: str) -> float:
    """Compute the share of the question's words that the passage contains."""
    asked = set(_WORDS.findall(question.lower()))
    return len(asked & set(_WORDS.findall(passage.lower()))) / len(asked) if asked else 0.0


def _rated(question: str, passage: str, columns: int) -> list[Any]:
    length = min(5, len(passage.split()) // 20)
    return [round(10 * share(question, passage)), *([length] * (columns - 1))]


_ANSWERS: Mapping[str, Callable[[str, list[str], JsonMap], Any]] = {
    "ratings": _ratings,
    "grade_1_5": lambda question, passages, _: 1 + round(4 * share(question, passages[0])),
    "score_0_5": lambda answer, texts, _: round(5 * max(share(answer, text) for text in texts)),
    "helps_0_1": lambda question, passages, _: round(share(question, passages[0])),
    "order": _order,
    "criteria": lambda _, __, asked: [
        {key: each[key] for key in asked["items"]["properties"]} for each in _CRITERIA
    ],
    "query": lambda question, _, __: " ".join(question.split()),
    "passage": lambda question, _, __: f"This passage is about {' '.join(question.split())}.",
    "queries": _variants,
    "nuggets": lambda _, passages, __: [
        {"text": _ENDS.split(text)[0], "importance": "vital"} for text in passages
    ],
    "supported": lambda question, passages, _: [1] if share(question, passages[0]) else [],
}
"""Key of an answer → the function that makes its value from question, passages and the key's schema."""
