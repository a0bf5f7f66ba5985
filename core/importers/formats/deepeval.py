"""DeepEval: test runs, as ``deepeval test run`` writes them, and data sets (goldens) as JSON or CSV.

A retrieval context is a ranking, the context of a golden its relevant passages. Where a test case has no
retrieval context but a trace with one retriever in it, the list of that retriever is taken.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from core.errors import InputError
from core.importers.account import TAKEN
from core.importers.base import Format, Import, Options, counted
from core.importers.read.jsons import Json, amount, at, expect, number, optional, outline, read_json, texts
from core.importers.read.piece import Piece, Tree, pieces_of
from core.importers.read.tabular import columns, kind_of, read_table
from core.importers.read.text import place, quoted, shown
from core.importers.samples import Answered, Sample, answered, assemble
from core.importers.settings import axes_of, kept

_WRAPPER = "testRunData"
_BAR = "|"
_JUDGING = "the cost of judging, not the stack's"
_CASE = dict.fromkeys(
    ("input", "actualOutput", "actual_output", "retrievalContext", "retrieval_context", "context",
     "completionTime", "tokenCost", "metricsData.name", "metricsData.score", "metricsData.evaluationModel",
     "expectedOutput", "expected_output", "trace.status", "trace.startTime", "trace.endTime",
     "trace.llmSpans", "trace.retrieverSpans"), TAKEN,
) | {"metricsData.evaluationCost": _JUDGING}  # fmt: skip
_RUN = {
    **{f"testCases.{key}": why for key, why in _CASE.items()},
    **dict.fromkeys(("hyperparameters", "identifier"), TAKEN),
    "evaluationCost": _JUDGING,
    "conversationalTestCases": "they have no single question",
}
_HOTTEST = 100  # No temperature is that high
_FAILED = "ERRORED"
_SPANS = ("baseSpans", "agentSpans", "llmSpans", "retrieverSpans", "toolSpans")
_TOKENS = {"inputTokenCount": "input_tokens", "outputTokenCount": "output_tokens"}


class DeepEval(Format):
    """Test runs and goldens of DeepEval."""

    name, title = "deepeval", "DeepEval test run or goldens"
    names_collection = 1
    units = "completionTime (seconds) and times of traces to milliseconds"
    takes = {
        **dict.fromkeys(("queries", "passages"), ""),
        "judgements": "contexts of cases, where they are passages that were retrieved",
        "rankings": "retrieval contexts; without them what the only retriever of a trace returned",
        "timings": "completionTime; the duration of a trace and of its retriever",
        "usage": "tokens of the models in a trace",
        "aggregates": "means of the metrics, cost per 1,000 questions from tokenCost",
        "signals": "",
        "answers": "actual outputs, with the model and the temperature of the hyperparameters",
        "answer_scores": "every metric with its evaluation model; the grade is the one closest to "
        "correctness, or as mapped",
        "gold_answers": "expected outputs",
    }
    recognised = "testCases with inputs, or goldens with input and retrieval_context or expected_output"
    traps = (
        "Metrics that failed have no value; they are counted, not 0.",
        "evaluationCost is the cost of judging, not the stack's.",
        "Steps of a trace that ended with an error give neither times nor tokens.",
        "Conversational cases and cases with several retrievals are left out and counted.",
    )

    known = {
        "goldens": _CASE,
        "csv": _CASE,
        "run": {f"{place}{key}": why for place in ("", f"{_WRAPPER}.") for key, why in _RUN.items()},
    }

    @staticmethod
    def kind(piece: Piece) -> str | None:
        shape = outline(piece)
        if f"{_WRAPPER}.testCases[].input" in shape or "testCases[].input" in shape:
            return "run"
        contexts = ("retrieval_context", "retrievalContext", "expected_output", "expectedOutput")
        if "[].input" in shape and any(f"[].{name}" in shape for name in contexts):
            return "goldens"
        names = set(columns(piece)) if not shape and kind_of(piece) in (",", "\t", ";") else set()
        return "csv" if {"input", "expected_output", "retrieval_context"} <= names else None

    def read(self, trees: Sequence[Tree], options: Options) -> Import:
        """Every file is a run; cases of equal input are the same question."""
        runs = [_read(piece) for piece in pieces_of(trees)]
        return assemble(runs, options, importer=self.name, source="imported: DeepEval")


@dataclass
class _Cases:
    samples: list[Sample] = field(default_factory=list)
    usd: list[float] = field(default_factory=list)
    settings: Json = field(default_factory=dict)  # of the first retriever that says any
    traced: int = 0  # cases whose retrieval is that of their trace
    left: Counter[str] = field(default_factory=Counter)


def _read(piece: Piece) -> Answered:
    kind, run, cases = DeepEval.kind(piece), {}, _Cases()
    if kind == "csv" or (kind is None and kind_of(piece) not in (None, "jsonl")):
        _from_table(piece, cases)
    else:
        value = read_json(piece)
        run = value if isinstance(value, dict) else {}
        path = (_WRAPPER,) if _WRAPPER in run else ()
        run = expect(run, _WRAPPER, dict, piece.name) if path else run
        held = expect(run, "testCases", list, piece.name) if run else value
        keys = (*path, "testCases") if run else ()
        for index, case in enumerate(held if isinstance(held, list) else [held]):
            _take(case, at(piece.name, *keys, index), cases)
        talks = len(optional(run, "conversationalTestCases", list, piece.name) or ())
        cases.left["conversational test cases: they have no single question"] += talks
    if not cases.samples:
        raise InputError("It holds no test case with an input.", where=piece.name)
    return _finished(piece, run, cases)


def _from_table(piece: Piece, cases: _Cases) -> None:
    """Goldens in a table; lists are separated by bars."""
    table = read_table(piece, kind_of(piece) or ",")
    names = ("input", "actual_output", "expected_output", "retrieval_context", "context")
    rows = table.taking({name: name for name in names if name in table.rows.columns})
    for row in rows.iter_rows(named=True):
        case = {name: row.get(name) for name in names[:3]}
        case |= {name: row[name].split(_BAR) for name in names[3:] if row.get(name)}
        _take(case, place(piece.name, row["line"]), cases)


def _take(case: object, where: str, cases: _Cases) -> None:
    asked = _either(case, "input", "input", where)
    if not asked or not asked.strip():
        cases.left["cases without an input"] += 1
        return
    trace = _trace(case, where)
    candidates = (texts(case, name, where) for name in ("retrievalContext", "retrieval_context"))
    contexts = next((listed for listed in candidates if listed is not None), trace.contexts)
    total = amount(case, "completionTime", where)
    times = {"total": trace.total_ms if total is None else total * 1000, "retrieve": trace.retrieve_ms}
    usd = number(case, "tokenCost", where)
    cases.usd += [usd] if usd is not None else []
    cases.settings = cases.settings or trace.settings
    cases.traced += bool(trace.contexts)
    cases.left.update(trace.left)
    right = _either(case, "expectedOutput", "expected_output", where)
    values, judges = _measures(case, where, cases.left)
    cases.samples.append(
        Sample(
            text=asked,
            answer=_either(case, "actualOutput", "actual_output", where),
            contexts=contexts,
            references=texts(case, "context", where),
            scores=trace.scores or () if contexts == trace.contexts else (),
            right=[right] if right else None,
            values=values,
            judges=judges,
            times={stage: ms for stage, ms in times.items() if ms is not None},
            used=trace.tokens,
        )
    )


def _either(case: object, camel: str, snake: str, where: str) -> str | None:
    """A text under its name in a run or in goldens; None where it is a list (texts and images)."""
    for name in (camel, snake):
        if isinstance(case, dict) and isinstance(case.get(name), list):
            return None
        if (value := optional(case, name, str, where)) is not None:
            return value
    return None


def _measures(case: object, where: str, left: Counter[str]) -> tuple[dict[str, float | None], dict[str, str]]:
    values: dict[str, float | None] = {}
    judges: dict[str, str] = {}
    for index, entry in enumerate(optional(case, "metricsData", list, where) or ()):
        spot = f"{where}, metric {index}"
        name = expect(entry, "name", str, spot)
        if name in values:
            left["measures that a case holds twice: the first counts"] += 1
        else:
            values[name] = number(entry, "score", spot)
            if judge := optional(entry, "evaluationModel", str, spot):
                judges[shown(name, 80)] = shown(judge, 80)
    return values, judges


def _finished(piece: Piece, run: Json, cases: _Cases) -> Answered:
    hyper = run.get("hyperparameters")
    settings = hyper if isinstance(hyper, dict) else {}
    result = answered(piece, cases.samples)
    warm = settings.get("temperature")
    temperature = float(warm) if isinstance(warm, int | float) and 0 <= warm < _HOTTEST else None
    usd, fixed = cases.usd, {"measure": "usd_per_1k", "stage": "total", "source": "imported"}
    price = [{**fixed, "value": sum(usd) / len(usd) * 1000, "n": len(usd)}] if usd else []
    return replace(
        result,
        temperature=temperature,
        label=str(run.get("identifier") or ""),
        spec=axes_of(settings) | axes_of(cases.settings),
        decided={"hyperparameters": kept(settings), "retriever": kept(cases.settings)},
        figures=price,
        rest=Import(left_out=counted(cases.left, piece.name), notes=tuple(_notes(cases, piece))),
    )


def _notes(cases: _Cases, piece: Piece) -> Iterator[str]:
    again = len(cases.samples) - len({sample.text for sample in cases.samples})
    if again:
        yield f"{piece.name}: {again} cases repeat an input; each counts as a question of its own."
    if any("total" in sample.times for sample in cases.samples):
        yield f"{piece.name}: times of cases converted from seconds to milliseconds."
    if cases.usd:
        yield f"{piece.name}: `tokenCost` is taken as US dollars of a question: times 1,000 as usd_per_1k."
    named = {name for sample in cases.samples for name, value in sample.values.items() if value is None}
    if named:
        listed = ", ".join(map(quoted, sorted(named)[:5]))
        yield f"{piece.name}: measures that failed in some cases: {listed}."
    if cases.traced:
        yield f"{piece.name}: the retrievals of {cases.traced} cases are taken from their traces."


@dataclass
class _Trace:
    # what its only retriever returned, in order; None if there is none or several
    contexts: list[str] | None = None
    scores: list[float | None] | None = None
    retrieve_ms: float | None = None  # durations; None where they are unknown or the step failed
    total_ms: float | None = None
    tokens: dict[tuple[str, str, str], float] = field(default_factory=dict)  # (stage, model, unit) → amount
    settings: Json = field(default_factory=dict)  # what the retriever says of itself
    left: Counter[str] = field(default_factory=Counter)  # reason → how much was left out


def _trace(case: object, where: str) -> _Trace:
    result = _Trace()
    trace = optional(case, "trace", dict, where)
    if trace is None:
        return result
    where = f"{where}, trace"
    if optional(trace, "status", str, where) == _FAILED:
        result.left["traces that ended with an error: their total time"] += 1
    else:
        result.total_ms = _duration(trace, where)
    _retrieval(trace, result, where)
    spans = [span for kind in _SPANS for span in optional(trace, kind, list, where) or ()]
    measured = sum(len(optional(span, "metricsData", list, where) or ()) for span in (trace, *spans))
    result.left["measures of traces and their steps: those of the case count"] += measured
    for index, span in enumerate(optional(trace, "llmSpans", list, where) or ()):
        _model(span, result, f"{where}, llmSpans {index}")
    return result


def _retrieval(trace: Json, result: _Trace, where: str) -> None:
    spans = optional(trace, "retrieverSpans", list, where) or []
    if len(spans) > 1:
        result.left["retrievals of cases that retrieve more than once"] += len(spans)
    if len(spans) != 1:
        return
    span, where = spans[0], f"{where}, retrieverSpans 0"
    if optional(span, "status", str, where) == _FAILED:
        result.left["retrievals that ended with an error"] += 1
        return
    result.contexts = texts(span, "retrievalContext", where)
    result.retrieve_ms = _duration(span, where)
    result.settings = {
        key: span[key] for key in ("embedder", "topK", "chunkSize") if span.get(key) is not None
    }
    output = span.get("output")
    if result.contexts and isinstance(output, list) and len(output) == len(result.contexts):
        scored = [context for context in output if isinstance(context, dict) and "score" in context]
        if [context.get("text") for context in scored] == result.contexts:
            result.scores = [number(context, "score", where) for context in scored]


def _model(span: object, result: _Trace, where: str) -> None:
    if optional(span, "status", str, where) == _FAILED:
        result.left["calls of models that ended with an error: their tokens"] += 1
        return
    stage = shown(expect(span, "name", str, where), 60)
    item = shown(optional(span, "model", str, where) or "not named", 80)
    for key, unit in _TOKENS.items():
        if (count := amount(span, key, where)) is not None:
            result.tokens[stage, item, unit] = result.tokens.get((stage, item, unit), 0.0) + count


def _duration(span: object, where: str) -> float | None:
    """Milliseconds between a span's times; None where one is not given."""
    begins, ends = (optional(span, key, str, where) for key in ("startTime", "endTime"))
    if begins is None or ends is None:
        return None
    try:
        ms = (datetime.fromisoformat(ends) - datetime.fromisoformat(begins)).total_seconds() * 1000
    except (ValueError, TypeError, OverflowError) as error:
        raise InputError(f"{quoted(begins)} and {quoted(ends)} are no times.", where=where) from error
    if ms < 0:
        raise InputError("It ends before it begins.", where=where)
    return ms
