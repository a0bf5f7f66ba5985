"""Spans of traces, whichever tool recorded them, and what can be read from their inputs and outputs."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal

from core.errors import InputError
from core.importers.read.jsons import Json, parsed
from core.importers.read.paths import value as at

SpanKind = Literal["retriever", "reranker", "model", "embedding", "other"]
KINDS: Mapping[str, SpanKind] = {
    "RETRIEVER": "retriever", "RERANKER": "reranker", "EMBEDDING": "embedding",
    "LLM": "model", "CHAT_MODEL": "model", "GENERATION": "model",
}  # fmt: skip
_LISTS = ("documents", "docs", "source_documents", "nodes", "chunks", "results", "contexts", "output",
          "outputs")  # fmt: skip
_CONTENT = ("page_content", "pageContent", "content", "text", "chunk", "document", "body")
_IDS = ("id", "id_", "doc_id", "document_id", "chunk_id", "passage_id", "docid", "_id", "node_id")
_SCORES = ("score", "relevance_score", "similarity", "_score", "similarity_score")
_QUESTION = ("query", "question", "input", "query_str", "user_query", "prompt", "messages", "input_value",
             "text")  # fmt: skip
_ANSWER = ("answer", "output", "response", "result", "text", "content", "generations", "choices", "message",
           "messages", "output_value", "completion")  # fmt: skip
_DEEPEST = 12
_MOST_TEXT = 16_000_000  # Longest text that is searched for JSON
_UNITS = ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3))
"""Numbers from which on an instant is in smaller parts of a second, and how many parts."""
_YEARS = (0.0, 4102444800.0)


@dataclass(frozen=True, slots=True)
class Document:
    """A passage that a retriever returned; unknown fields are None."""

    id: str | None
    text: str | None
    score: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceSpan:
    """One step of a trace; unknown fields are None."""

    id: str
    parent: str | None  # the step that it is part of; None = the whole
    trace: str
    kind: SpanKind  # what it does
    where: str  # file and place, for messages
    project: str | None = None  # name of the project or session it belongs to
    start: float | None = None  # seconds since 1970
    end: float | None = None
    first_token: float | None = None  # when a model produced its first token
    question: str | None = None  # texts in its input and output
    answer: str | None = None
    documents: tuple[Document, ...] | None = None  # what a retriever or reranker returned, in order
    tokens: Mapping[str, float] = field(default_factory=dict)  # unit → amount
    model: str | None = None  # the model that was called
    failed: bool | None = None  # whether it ended with an error
    settings: Json = field(default_factory=dict)  # its configuration
    scores: Mapping[str, float] | None = None  # measure → value, if somebody graded the trace

    @property
    def ms(self) -> float | None:
        """Duration in milliseconds."""
        return _ms_between(self.start, self.end)

    @property
    def first_token_ms(self) -> float | None:
        """Time to a model's first token, in milliseconds."""
        return _ms_between(self.start, self.first_token)


def _ms_between(start: float | None, end: float | None) -> float | None:
    return None if start is None or end is None or end < start else (end - start) * 1000.0


def name_of(value: object) -> str | None:
    """Read an id or a name: a text that is not empty, or an integer; otherwise None."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    return str(value).strip() or None


def amount(value: object) -> float | None:
    """Read a finite number that is not negative, also from text; otherwise None."""
    number = number_of(value)
    return number if number is not None and number >= 0 else None


def scores_of(value: object) -> dict[str, float]:
    """Read measure → value from a list of named values or a map of averages; the first of a name counts."""
    pairs: list[tuple[str | None, object]] = []
    if isinstance(value, dict):
        pairs = [(str(name), at(stats, "avg")) for name, stats in value.items()]
    elif isinstance(value, list):
        pairs = [(name_of(at(score, "name")), at(score, "value")) for score in value]
    numbers: dict[str, float] = {}
    for name, score in pairs:
        number = number_of(score)
        if name is not None and number is not None:
            numbers.setdefault(name, number)
    return numbers


def parent_in_order(value: object) -> str | None:
    """Return the second-to-last step in an order of steps (``<time>Z<id>.<time>Z<id>``)."""
    parts = value.split(".") if isinstance(value, str) else []
    return parts[-2].rpartition("Z")[2] or None if len(parts) > 1 else None


def instant(value: object) -> float | None:
    """Read seconds since 1970 from a date and time (UTC if no zone is given) or a number; otherwise None."""
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
    if (number := amount(value)) is None:
        return None
    seconds = number / next((parts for least, parts in _UNITS if number >= least), 1.0)
    return seconds if _YEARS[0] < seconds < _YEARS[1] else None


def _unpacked(value: object) -> object:
    """Parse a text that holds a JSON object or list; return anything else unchanged."""
    if not isinstance(value, str) or value[:1] not in ("{", "[") or len(value) > _MOST_TEXT:
        return value
    try:
        inner = parsed(value, "text")
    except InputError:
        return value
    return inner if isinstance(inner, dict | list) else value


def documents_of(value: object) -> tuple[Document, ...] | None:
    """Return the documents in an output, a list or an object that holds one, or None if there are none."""
    value = _unpacked(value)
    for _ in range(_DEEPEST):
        if isinstance(value, list):
            break
        if not isinstance(value, dict):
            return None
        value = next((value[key] for key in _LISTS if isinstance(value.get(key), list | dict)), None)
    if not isinstance(value, list):
        return None
    documents = [_document(entry) for entry in value]
    return tuple(document for document in documents if document) if all(documents) else None


def _document(value: object) -> Document | None:
    """Return one document, or None if it has neither an id nor a text."""
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
    holders: tuple[Json, ...] = (inner, held, next(about, {}))
    texts = (holder[key] for holder in holders[:2] for key in _CONTENT if isinstance(holder.get(key), str))
    text = next(texts, None) or None
    own = next((name for holder in holders for key in _IDS if (name := name_of(holder.get(key)))), None)
    scores = (number_of(holder.get(key)) for holder in (held, inner, holders[2]) for key in _SCORES)
    score = next((number for number in scores if number is not None), None)
    return Document(own, text, score) if own or text else None


def number_of(value: object) -> float | None:
    """Read a finite number, also from text; otherwise None."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def question_of(value: object) -> str | None:
    """Return the question in an input: the last thing a user said, or the text under a usual name."""
    return _text(value, _QUESTION, ("human", "user"))


def answer_of(value: object) -> str | None:
    """Return the answer in an output: the last thing a model said, or the text under a usual name."""
    return _text(value, _ANSWER, ("ai", "assistant", "model"))


def _text(value: object, names: Sequence[str], roles: Sequence[str]) -> str | None:
    for _ in range(_DEEPEST):
        if isinstance(value, str):
            inner = _unpacked(value)
            held = None if isinstance(inner, str) else _text(inner, names, roles)
            return held or (value if value.strip() else None)
        if isinstance(value, list):
            value = _said(value, roles)
        elif isinstance(value, dict):
            value = _under(value, names)
        else:
            return None
    return None


def _under(value: Json, names: Sequence[str]) -> object:
    inner = next((value[name] for name in ("kwargs", "data") if isinstance(value.get(name), dict)), None)
    held = next((value[name] for name in names if value.get(name)), inner)
    if held is None:
        held = value.get("content")
    return next(iter(value.values())) if held is None and len(value) == 1 else held


def _said(messages: list[object], roles: Sequence[str]) -> object:
    """Return the last message of a role, or the last of a list if no message states its role."""
    for message in reversed(messages):
        if isinstance(message, dict):
            role = str(at(message, "role/type") or "").lower()
            named = str(message.get("id") or "").lower() if role == "constructor" else role
            if any(word in named for word in roles):
                return message
    plain = [message for message in messages if at(message, "role") is None]
    return plain[-1] if plain else None


READERS: Mapping[str, Callable[[object], Any]] = {
    **dict.fromkeys(("id", "parent", "trace", "project", "kind", "model"), name_of),
    **dict.fromkeys(("start", "end", "first_token"), instant),
    "order": parent_in_order, "question": question_of, "answer": answer_of, "documents": documents_of,
    "scores": scores_of, "failed": lambda value: bool(value) or None,
}  # fmt: skip
"""Field of a span → the function that reads it from a value, or returns None if it cannot."""
