"""Spans of traces, whichever tool recorded them, and what can be read out of their inputs and outputs."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Literal

from core.errors import InputError
from core.importers.read.jsons import Json, parsed

Kind = Literal["retriever", "reranker", "model", "embedding", "other"]
_LISTS = (
    *("documents", "docs", "source_documents", "nodes", "chunks", "results", "contexts"),
    *("output", "outputs"),
)
_CONTENT = ("page_content", "pageContent", "content", "text", "chunk", "document", "body")
_IDS = ("id", "id_", "doc_id", "document_id", "chunk_id", "passage_id", "docid", "_id", "node_id")
_SCORES = ("score", "relevance_score", "similarity", "_score", "similarity_score")
_QUESTION = (
    *("query", "question", "input", "query_str", "user_query", "prompt", "messages"),
    *("input_value", "text"),
)
_ANSWER = ("answer", "output", "response", "result", "text", "content", "generations", "choices", "message",
           "messages", "output_value", "completion")  # fmt: skip
_DEEPEST = 12
_MOST_TEXT = 16_000_000  # Longest text that is looked into for JSON
_UNITS = ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3))
"""From this number on, an instant is in so many parts of a second."""
_YEARS = (0.0, 4102444800.0)


@dataclass(frozen=True, slots=True)
class Document:
    """A passage that a retriever returned; what is not known is None."""

    id: str | None
    text: str | None
    score: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One step of a trace."""

    id: str
    parent: str | None  # the step it is part of; None = the whole
    trace: str
    kind: Kind  # what it does
    where: str  # file and place, for messages
    project: str = ""  # name of the project or session it belongs to
    start: float | None = None  # seconds since 1970; None = not known
    end: float | None = None
    first_token: float | None = None  # when a model had said its first
    question: str | None = None  # texts in its input and output, if there are any
    answer: str | None = None
    # what a retriever or reranker returned, in order; None if that cannot be told
    documents: tuple[Document, ...] | None = None
    tokens: Mapping[str, float] = field(default_factory=dict)  # unit → amount
    model: str | None = None  # what was called
    failed: bool = False  # whether it ended with an error
    settings: Json = field(default_factory=dict)  # what it says of its configuration
    # measure → value, where somebody graded the trace
    scores: Mapping[str, float] = field(default_factory=dict)

    @property
    def ms(self) -> float | None:
        """How long it took, in milliseconds; None where that is not known."""
        return _ms_between(self.start, self.end)

    @property
    def first_token_ms(self) -> float | None:
        """How long a model took to its first token, in milliseconds; None where that is not known."""
        return _ms_between(self.start, self.first_token)


def _ms_between(start: float | None, end: float | None) -> float | None:
    return None if start is None or end is None or end < start else (end - start) * 1000.0


def first(holder: object, *names: str) -> object:
    """The first value that is there of some keys; capitals and underscores do not count."""
    if not isinstance(holder, dict):
        return None
    for name in names:
        if (value := holder.get(name)) is not None:
            return value
    bare = {str(key).replace("_", "").lower(): value for key, value in holder.items() if value is not None}
    return next((bare[key] for name in names if (key := name.replace("_", "").lower()) in bare), None)


def name_of(value: object) -> str | None:
    """An id or a name: a text that is not empty, or an integer."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    return str(value).strip() or None


def amount(value: object) -> float | None:
    """A finite number that is not negative, also from text; None otherwise."""
    number = number_of(value)
    return number if number is not None and number >= 0 else None


def tokens(*sources: Mapping[str, object]) -> dict[str, float]:
    """Tokens by unit, of the first that counts any; zeros throughout mean that nobody counted."""
    for pairs in sources:
        counts = {unit: amount(value) for unit, value in pairs.items()}
        if any(counts.values()):
            return {unit: count for unit, count in counts.items() if count is not None}
    return {}


def instant(value: object) -> float | None:
    """Seconds since 1970 of a date and time (UTC where no zone is given) or of a number, else None."""
    if isinstance(value, str) and not re.fullmatch(r"\s*\d+(\.\d+)?\s*", value):
        try:
            value = datetime.fromisoformat(value.strip().removesuffix(" UTC"))
        except ValueError:
            return None
    if isinstance(value, datetime):
        aware = value if value.tzinfo else value.replace(tzinfo=UTC)
        try:
            return aware.timestamp()
        except (OverflowError, ValueError):
            return None
    number = amount(value)
    if number is None:
        return None
    scale = next((parts for least, parts in _UNITS if number >= least), 1.0)
    return number / scale if _YEARS[0] < number / scale < _YEARS[1] else None


def unpacked(value: object) -> object:
    """Return the JSON object or list that a text holds; anything else as it is."""
    if not isinstance(value, str) or value[:1] not in ("{", "[") or len(value) > _MOST_TEXT:
        return value
    try:
        content = parsed(value, "text")
    except InputError:
        return value
    return content if isinstance(content, dict | list) else value


def documents_of(value: object) -> tuple[Document, ...] | None:
    """The documents in an output: a list of them, or an object that holds one; None if there is none."""
    value = unpacked(value)
    for _ in range(_DEEPEST):
        if isinstance(value, list):
            break
        if not isinstance(value, dict):
            return None
        value = next((value[key] for key in _LISTS if isinstance(value.get(key), list | dict)), None)
    if not isinstance(value, list):
        return None
    documents = [_document(document) for document in value]
    return tuple(document for document in documents if document) if all(documents) else None


def _document(value: object) -> Document | None:
    """One document; None if it has neither an id nor a text."""
    if isinstance(value, list) and len(value) == 2:  # (document, score)
        paired = _document(value[0])
        return paired and replace(paired, score=number_of(value[1]))
    if isinstance(value, str):
        return Document(None, value, None) if value.strip() else None
    if not isinstance(value, dict):
        return None
    kwargs = value.get("kwargs") if value.get("type") == "constructor" else None
    held: Json = kwargs if isinstance(kwargs, dict) else value
    nested = (held[key] for key in ("node", "document") if isinstance(held.get(key), dict))
    inner: Json = next(nested, held)
    about = (holder["metadata"] for holder in (inner, held) if isinstance(holder.get("metadata"), dict))
    meta: Json = next(about, {})
    holders = (inner, held, meta)
    texts = (holder[key] for holder in holders[:2] for key in _CONTENT if isinstance(holder.get(key), str))
    text = next(texts, None) or None
    own = next((name for holder in holders for key in _IDS if (name := name_of(holder.get(key)))), None)
    scores = (number_of(holder.get(key)) for holder in (held, inner, meta) for key in _SCORES)
    score = next((number for number in scores if number is not None), None)
    return Document(own, text, score) if own or text else None


def number_of(value: object) -> float | None:
    """A finite number, also from text; None otherwise."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def question_of(value: object) -> str | None:
    """The question in an input: the last thing a user said, or the text under a usual name."""
    return _text(value, _QUESTION, ("human", "user"))


def answer_of(value: object) -> str | None:
    """The answer in an output: the last thing a model said, or the text under a usual name."""
    return _text(value, _ANSWER, ("ai", "assistant", "model"))


def _text(value: object, names: Sequence[str], roles: Sequence[str]) -> str | None:
    for _ in range(_DEEPEST):
        if isinstance(value, str):
            inner = unpacked(value)
            held = None if isinstance(inner, str) else _text(inner, names, roles)
            return held or (value if value.strip() else None)
        if isinstance(value, list):
            value = _last_message(value, roles)
        elif isinstance(value, dict):
            value = _under(value, names)
        else:
            return None
    return None


def _under(value: Json, names: Sequence[str]) -> object:
    inner = next((value[name] for name in ("kwargs", "data") if isinstance(value.get(name), dict)), None)
    content = next((value[name] for name in names if value.get(name)), None)
    if content is None and inner is None:
        content = value.get("content")
    if content is None and inner is None and len(value) == 1:
        content = next(iter(value.values()))
    return inner if content is None else content


def _last_message(messages: list[object], roles: Sequence[str]) -> object:
    """The last message of a role; the last of a list where none says its role."""
    for message in reversed(messages):
        if isinstance(message, dict):
            role = str(first(message, "role", "type") or "").lower()
            named = str(message.get("id") or "").lower() if role == "constructor" else role
            if any(word in named for word in roles):
                return message
    plain = [
        message
        for message in messages
        if not (isinstance(message, dict) and first(message, "role") is not None)
    ]
    return plain[-1] if plain else None
