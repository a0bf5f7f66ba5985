"""Spans of OpenInference, as Phoenix exports them: a table of spans, or objects with their attributes.

Attributes are named by dots (``attributes.retrieval.documents.0.document.id``); a value may hold what lies
below it as a list or a map. Both are one thing here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from core.errors import InputError
from core.importers.account import TAKEN
from core.importers.formats.traces import TraceFormat, spans
from core.importers.read.jsons import Json

_KINDS: dict[str, spans.Kind] = {
    "RETRIEVER": "retriever", "RERANKER": "reranker", "LLM": "model", "EMBEDDING": "embedding",
}  # fmt: skip
_TOKENS = {"input_tokens": "llm.token_count.prompt", "output_tokens": "llm.token_count.completion"}
_KIND = "openinference.span.kind"
_ATTRIBUTES = (
    _KIND, "input.value", "output.value", "llm.model_name", "reranker.model_name", "embedding.model_name",
    *_TOKENS.values(), "reranker.query", "retrieval.documents",
    "retrieval.documents.*", "reranker.output_documents", "reranker.output_documents.*",
)  # fmt: skip
_KEYS = (
    "context.trace_id", "context.span_id", "trace_id", "span_id", "parent_id", "parent_span_id", "span_kind",
    "name", "project_name", "start_time", "end_time", "status_code", "status.code", "output", *_ATTRIBUTES,
)  # fmt: skip
_MOST_VALUES = 200_000
_MOST_DOCUMENTS = 100_000
_AT = re.compile(r"(?P<place>\d{1,6})(?:\.(?:document\.)?(?P<field>.+))?")


class OpenInference(TraceFormat):
    """Exported spans with those of retrievers among them."""

    name, title = "openinference", "Phoenix / OpenInference spans (JSON, CSV, Parquet)"
    recognised = "spans with context.trace_id and the kind or attributes of OpenInference"
    source = "OpenInference spans"
    keys = dict.fromkeys((*_KEYS, *(f"attributes.{key}" for key in _ATTRIBUTES)), TAKEN)

    def is_mine(self, paths: frozenset[str]) -> bool:
        return "context.trace_id" in paths and any(
            path == "span_kind" or path.removeprefix("attributes.").startswith("openinference")
            for path in paths
        )

    def spans(self, row: Json, where: str) -> Iterator[spans.Span]:
        yield _span(row, where)


def _flat(row: Json, where: str) -> dict[str, object]:
    """Every value by the dots down to it, "attributes." left away; lists by their places."""
    flat: dict[str, object] = {}
    waiting: list[tuple[str, object]] = [("", row)]
    for count, (path, value) in enumerate(waiting):  # grows while it is read
        if count > _MOST_VALUES:
            raise InputError(f"The span holds more than {_MOST_VALUES:,} values.", where=where)
        if isinstance(value, dict):
            waiting += [(f"{path}.{key}" if path else str(key), inner) for key, inner in value.items()]
        elif isinstance(value, list) and "documents" in path:
            waiting += [(f"{path}.{place}", inner or "") for place, inner in enumerate(value)]
        elif value is not None:
            flat.setdefault(path.removeprefix("attributes."), value)
    return flat


def _span(row: Json, where: str) -> spans.Span:
    flat = _flat(row, where)
    trace, own = (
        spans.name_of(flat.get(f"context.{key}")) or spans.name_of(flat.get(key))
        for key in ("trace_id", "span_id")
    )
    if trace is None or own is None:
        raise InputError("The span has no id, or that of its trace is missing.", where=where)
    kind = _KINDS.get(str(flat.get(_KIND) or flat.get("span_kind")).upper(), "other")
    documents = _documents(flat, "reranker.output_documents" if kind == "reranker" else "retrieval.documents")
    if documents is None and kind in ("retriever", "reranker"):
        documents = spans.documents_of(row.get("output"))
    names = (spans.name_of(flat.get(f"{part}.model_name")) for part in ("llm", "reranker", "embedding"))
    reranked = flat.get("reranker.query") if kind == "reranker" else None
    counts = {unit: spans.amount(flat.get(key)) for unit, key in _TOKENS.items() if kind == "model"}
    return spans.Span(
        id=own,
        parent=spans.name_of(flat.get("parent_id")) or spans.name_of(flat.get("parent_span_id")),
        trace=trace,
        kind=kind,
        where=where,
        project=spans.name_of(flat.get("project_name")) or "",
        start=spans.instant(flat.get("start_time")),
        end=spans.instant(flat.get("end_time")),
        question=spans.question_of(reranked or flat.get("input.value")),
        answer=spans.answer_of(flat.get("output.value")),
        documents=documents if kind in ("retriever", "reranker") else None,
        tokens={unit: count for unit, count in counts.items() if count is not None},
        model=next(filter(None, names), None),
        failed="ERROR" in str(flat.get("status_code") or flat.get("status.code") or "").upper(),
        settings={"retriever": spans.name_of(flat.get("name")) or ""} if kind == "retriever" else {},
    )


def _documents(flat: dict[str, object], path: str) -> tuple[spans.Document, ...] | None:
    """The documents of a span in the order of their numbers."""
    by_place: dict[int, Json] = {}
    for key, value in flat.items():
        matched = _AT.fullmatch(key.removeprefix(f"{path}.")) if key.startswith(f"{path}.") else None
        if matched and len(by_place) < _MOST_DOCUMENTS:
            held = by_place.setdefault(int(matched["place"]), {"metadata": {}})
            name = matched["field"] or ""  # "" = no object: the list cannot be told
            within = held["metadata"] if name.startswith("metadata.") else held
            within[name.removeprefix("metadata.")] = value
    if not by_place:
        return None
    return spans.documents_of([by_place[place] for place in sorted(by_place)])
