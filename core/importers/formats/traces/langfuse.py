"""Traces and observations of Langfuse, exported as JSON, JSON lines, CSV or Parquet, in either spelling."""

from __future__ import annotations

import re
from collections.abc import Iterator

from core.errors import InputError
from core.importers.account import TAKEN
from core.importers.formats.traces import TraceFormat, spans
from core.importers.read.jsons import Json

_KINDS: dict[str, spans.Kind] = {
    "RETRIEVER": "retriever", "GENERATION": "model", "EMBEDDING": "embedding", "RERANKER": "reranker",
}  # fmt: skip
_RETRIEVES = re.compile(r"retriev|vector_?store|vector_?search|similarity_?search", re.IGNORECASE)
_KEYS = (
    "id", "traceId", "type", "parentObservationId", "startTime", "endTime", "completionStartTime",
    "input", "output", "level",
    "name", "providedModelName", "model", "usageDetails", "usage", "promptTokens", "inputTokens",
    "completionTokens", "outputTokens", "timestamp", "scores",
)  # fmt: skip
_OBSERVED = {form for key in _KEYS for form in (key, key.lower(), re.sub(r"(?=[A-Z])", "_", key).lower())}
"""The keys in either spelling."""
_TRACE = frozenset({"timestamp", "input", "output"})


class Langfuse(TraceFormat):
    """Exported observations and traces."""

    name, title = "langfuse", "Langfuse traces and observations (JSON, CSV, Parquet)"
    takes = {**TraceFormat.takes, "answer_scores": "", "signals": "numeric scores of a trace"}
    recognised = "observations with trace id, type and parent, or traces with their observations"
    traps = (
        *TraceFormat.traps,
        "Token counts that are 0 throughout mean that nobody counted: they are missing.",
        "A span counts as a retriever where its type says so, or its name does and it returned documents.",
    )
    source = "Langfuse traces"
    keys = {
        **dict.fromkeys(_OBSERVED, TAKEN), **{f"observations.{key}": TAKEN for key in _OBSERVED},
        "scores.name": TAKEN, "scores.value": TAKEN,
    }  # fmt: skip

    def is_mine(self, paths: frozenset[str]) -> bool:
        keys = {path.replace("_", "").lower() for path in paths if "." not in path and "[" not in path}
        observed = {"traceid", "type", "starttime"} <= keys and "parentobservationid" in keys
        held = keys >= {*_TRACE, "id"} and bool({"observations", "sessionid", "bookmarked"} & keys)
        return observed or held

    def spans(self, row: Json, where: str) -> Iterator[spans.Span]:
        """An observation, or a trace with the observations within it."""
        if spans.first(row, "traceId") is not None:
            yield _observation(row, None, where)
            return
        trace = _trace(row, where)
        yield trace
        inner = row.get("observations")
        for observation in inner if isinstance(inner, list) else ():
            if isinstance(observation, dict):
                yield _observation(observation, trace.trace, where)


def _trace(row: Json, where: str) -> spans.Span:
    own = spans.name_of(row.get("id"))
    if own is None:
        raise InputError("The trace has no id.", where=where)
    return spans.Span(
        id=f"trace {own}",
        parent=None,
        trace=own,
        kind="other",
        where=where,
        start=spans.instant(row.get("timestamp")),
        question=spans.question_of(row.get("input")),
        answer=spans.answer_of(row.get("output")),
        failed=str(row.get("level") or "").upper() == "ERROR",
        scores=_scores(row.get("scores")),
    )


def _observation(row: Json, trace: str | None, where: str) -> spans.Span:
    own, whole = spans.name_of(row.get("id")), spans.name_of(spans.first(row, "traceId")) or trace
    if own is None or whole is None:
        raise InputError("The observation has no id, or that of its trace is missing.", where=where)
    output = row.get("output")
    kind = _KINDS.get(str(row.get("type")).upper(), "other")
    documents = spans.documents_of(output)
    if kind == "other" and documents is not None and _RETRIEVES.search(str(row.get("name"))):
        kind = "retriever"
    return spans.Span(
        id=own,
        parent=spans.name_of(spans.first(row, "parentObservationId")) or f"trace {whole}",
        trace=whole,
        kind=kind,
        where=where,
        start=spans.instant(spans.first(row, "startTime")),
        end=spans.instant(spans.first(row, "endTime")),
        first_token=spans.instant(spans.first(row, "completionStartTime")),
        question=spans.question_of(row.get("input")),
        answer=spans.answer_of(output),
        documents=documents if kind in ("retriever", "reranker") else None,
        tokens=_tokens(row) if kind == "model" else {},
        model=spans.name_of(spans.first(row, "providedModelName", "model")),
        failed=str(row.get("level") or "").upper() == "ERROR",
        settings={"retriever": spans.name_of(row.get("name")) or ""} if kind == "retriever" else {},
    )


def _tokens(row: Json) -> dict[str, float]:
    details = spans.first(row, "usageDetails", "usage")
    return spans.tokens(
        {
            "input_tokens": spans.first(details, "input", "promptTokens"),
            "output_tokens": spans.first(details, "output", "completionTokens"),
        },
        {
            "input_tokens": spans.first(row, "promptTokens", "inputTokens"),
            "output_tokens": spans.first(row, "completionTokens", "outputTokens"),
        },
    )


def _scores(value: object) -> dict[str, float]:
    scores: dict[str, float] = {}
    for entry in value if isinstance(value, list) else ():
        name, score = spans.name_of(spans.first(entry, "name")), spans.number_of(spans.first(entry, "value"))
        if name and score is not None:
            scores.setdefault(name, score)
    return scores
