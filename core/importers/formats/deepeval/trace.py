"""The trace of a DeepEval test case: what one retriever returned, times, and tokens of language models."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime

from core.errors import InputError
from core.importers.read.jsons import Json, amount, expect, number, optional, texts
from core.importers.read.text import quoted, shown

_FAILED = "ERRORED"
_SPANS = ("baseSpans", "agentSpans", "llmSpans", "retrieverSpans", "toolSpans")
_TOKENS = {"inputTokenCount": "input_tokens", "outputTokenCount": "output_tokens"}


@dataclass
class Trace:
    """What a trace tells of a question."""

    # what its only retriever returned, in order; None if there is none or several
    contexts: list[str] | None = None
    scores: list[float | None] | None = None
    retrieve_ms: float | None = None  # durations; None where they are unknown or the step failed
    total_ms: float | None = None
    tokens: dict[tuple[str, str, str], float] = field(default_factory=dict)  # (stage, model, unit) → amount
    settings: Json = field(default_factory=dict)  # what the retriever says of itself
    left: Counter[str] = field(default_factory=Counter)  # reason → how much was left out


def trace_of(case: object, where: str) -> Trace:
    """Read the trace of a test case, if it has one."""
    made = Trace()
    trace = optional(case, "trace", dict, where)
    if trace is None:
        return made
    where = f"{where}, trace"
    if optional(trace, "status", str, where) == _FAILED:
        made.left["traces that ended with an error: their total time"] += 1
    else:
        made.total_ms = _duration(trace, where)
    _retrieval(trace, made, where)
    spans = [span for kind in _SPANS for span in optional(trace, kind, list, where) or ()]
    measured = sum(len(optional(span, "metricsData", list, where) or ()) for span in (trace, *spans))
    made.left["measures of traces and their steps: those of the case count"] += measured
    for index, span in enumerate(optional(trace, "llmSpans", list, where) or ()):
        _model(span, made, f"{where}, llmSpans {index}")
    return made


def _retrieval(trace: Json, made: Trace, where: str) -> None:
    spans = optional(trace, "retrieverSpans", list, where) or []
    if len(spans) > 1:
        made.left["retrievals of cases that retrieve more than once"] += len(spans)
    if len(spans) != 1:
        return
    span, where = spans[0], f"{where}, retrieverSpans 0"
    if optional(span, "status", str, where) == _FAILED:
        made.left["retrievals that ended with an error"] += 1
        return
    made.contexts = texts(span, "retrievalContext", where)
    made.retrieve_ms = _duration(span, where)
    made.settings = {key: span[key] for key in ("embedder", "topK", "chunkSize") if span.get(key) is not None}
    output = span.get("output")
    if made.contexts and isinstance(output, list) and len(output) == len(made.contexts):
        scored = [each for each in output if isinstance(each, dict) and "score" in each]
        if [each.get("text") for each in scored] == made.contexts:
            made.scores = [number(each, "score", where) for each in scored]


def _model(span: object, made: Trace, where: str) -> None:
    if optional(span, "status", str, where) == _FAILED:
        made.left["calls of models that ended with an error: their tokens"] += 1
        return
    stage = shown(expect(span, "name", str, where), 60)
    item = shown(optional(span, "model", str, where) or "not named", 80)
    for key, unit in _TOKENS.items():
        count = amount(span, key, where)
        if count is None:
            continue
        made.tokens[stage, item, unit] = made.tokens.get((stage, item, unit), 0.0) + count


def _duration(span: object, where: str) -> float | None:
    """Milliseconds between a span's times; None where one is not given."""
    ends = [optional(span, key, str, where) for key in ("startTime", "endTime")]
    if None in ends:
        return None
    try:
        start, end = (datetime.fromisoformat(each or "") for each in ends)
        ms = (end - start).total_seconds() * 1000
    except (ValueError, TypeError, OverflowError) as error:
        raise InputError(f"{quoted(ends[0])} and {quoted(ends[1])} are no times.", where=where) from error
    if ms < 0:
        raise InputError("It ends before it begins.", where=where)
    return ms
