"""DeepEval: test runs, in the form of ``deepeval test run``, and data sets (goldens) as JSON or CSV.

A retrieval context is a ranking, the context of a golden its relevant passages. If a test case has no
retrieval context but a trace with a single retriever, that retriever's list is taken.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from core.errors import InputError
from core.importers.base import Format, Import, Options, counted
from core.importers.read.jsons import (
    Json,
    amount,
    at,
    expect,
    items,
    mapping,
    number,
    outline,
    parsed,
    read_json,
    text,
    texts,
    words,
)
from core.importers.read.member import Archive, Member, members_of
from core.importers.read.paths import Fields, PathRow, keys_of, spellings
from core.importers.read.tabular import columns, kind_of, read_table
from core.importers.read.text import place, quoted, shown
from core.importers.report import TAKEN
from core.importers.samples import UNNAMED, AnsweredSamples, FormatSample, answered, assemble
from core.importers.settings import axes_of, kept

_WRAPPER = "testRunData"
_CACHE, _CACHED = "test_cases_lookup_map", "cached_metrics_data"
_BAR = "|"
_JUDGING = "the cost of judging, not the stack's"
_METRIC: Fields = {"name": ("name!", text), "score": ("score", number), "judge": ("evaluationModel", text)}
_CASE: Fields = {
    "text": ("input", words), "answer": ("actualOutput", words), "right": ("expectedOutput", words),
    "contexts": ("retrievalContext", texts), "references": ("context", texts),
    "seconds": ("completionTime", amount), "usd": ("tokenCost", number), "metrics": ("metricsData", _METRIC),
}  # fmt: skip
_TIMED: Fields = {"status": ("status", text), "begins": ("startTime", text), "ends": ("endTime", text)}
_TRACE: Fields = {**_TIMED, "models": ("llmSpans", items), "retrievers": ("retrieverSpans", items)}
_RETRIEVER: Fields = {**_TIMED, "contexts": ("retrievalContext", texts)}
_MODEL: Fields = {
    "status": ("status", text), "stage": ("name!", text), "item": ("model", text),
    "input_tokens": ("inputTokenCount", amount), "output_tokens": ("outputTokenCount", amount),
}  # fmt: skip
_SETTINGS = ("embedder", "topK", "chunkSize")
_LISTS, _TEXTS = ("contexts", "references"), ("text", "answer", "right")
_PARTS = {
    **dict.fromkeys((*keys_of(_CASE), *keys_of(_TRACE, "trace.")), TAKEN),
    "metricsData.evaluationCost": _JUDGING,
}
_RUN = {
    **{f"testCases.{key}": why for key, why in _PARTS.items()},
    **dict.fromkeys(("hyperparameters", "identifier"), TAKEN),
    "evaluationCost": _JUDGING,
    "conversationalTestCases": "they have no single question",
}
_HOTTEST = 100  # Upper bound that no temperature reaches
_FAILED = "ERRORED"
_SPANS = ("baseSpans", "agentSpans", "llmSpans", "retrieverSpans", "toolSpans")
_UNITS = ("input_tokens", "output_tokens")


class DeepEval(Format):
    """Test runs and goldens of DeepEval."""

    name, title = "deepeval", "DeepEval test run, cache or goldens"
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
    untried = "its cache: built from how others read it, no cache that DeepEval wrote was tried"
    traps = (
        "Metrics that failed have no value; they are counted, not 0.",
        "evaluationCost is the cost of judging, not the stack's.",
        "Steps of a trace that ended with an error give neither times nor tokens.",
        "Conversational cases and cases with several retrievals are left out and counted.",
    )

    known = {
        "goldens": _PARTS,
        "csv": _PARTS,
        "cache": {
            **{
                f"{_CACHE}.*.{_CACHED}.metric_data.{key}": why
                for key, why in {
                    **dict.fromkeys(keys_of(_METRIC), TAKEN),
                    "evaluationCost": _JUDGING,
                    "*": "of judging",
                }.items()
            },
            f"{_CACHE}.*.{_CACHED}.metric_configuration": "of judging",
            f"{_CACHE}.*.hyperparameters": "they stand in the case, and differ between cases",
        },
        "run": {f"{place}{key}": why for place in ("", f"{_WRAPPER}.") for key, why in _RUN.items()},
    }

    @staticmethod
    def kind(member: Member) -> str | None:
        shape = outline(member)
        if f"{_WRAPPER}.testCases[].input" in shape or "testCases[].input" in shape:
            return "run"
        if _CACHE in shape:
            return "cache"
        contexts = ("retrieval_context", "retrievalContext", "expected_output", "expectedOutput")
        if "[].input" in shape and any(f"[].{name}" in shape for name in contexts):
            return "goldens"
        names = set(columns(member)) if not shape and kind_of(member) in (",", "\t", ";") else set()
        return "csv" if {"input", "expected_output", "retrieval_context"} <= names else None

    def read(self, archives: Sequence[Archive], options: Options) -> Import:
        """Read every file as a run; cases with equal inputs are the same question."""
        runs = [_read(member) for member in members_of(archives)]
        return assemble(runs, options, importer=self.name, source="imported: DeepEval")


@dataclass
class _Cases:
    samples: list[FormatSample] = field(default_factory=list)
    usd: list[float] = field(default_factory=list)
    settings: Json = field(default_factory=dict)  # those of the first retriever that states any
    traced: int = 0  # cases whose retrieval was taken from their trace
    left: Counter[str] = field(default_factory=Counter)


def _read(member: Member) -> AnsweredSamples:
    kind, run, cases = DeepEval.kind(member), {}, _Cases()
    if kind == "csv" or (kind is None and kind_of(member) not in (None, "jsonl")):
        _from_table(member, cases)
    elif kind == "cache":
        _from_cache(member, cases)
    else:
        value = read_json(member)
        run = value if isinstance(value, dict) else {}
        path = (_WRAPPER,) if _WRAPPER in run else ()
        run = expect(run, _WRAPPER, dict, member.name) if path else run
        held = expect(run, "testCases", list, member.name) if run else value
        keys = (*path, "testCases") if run else ()
        for index, case in enumerate(held if isinstance(held, list) else [held]):
            _take(case, at(member.name, *keys, index), cases)
        talks = len(items(run, "conversationalTestCases", member.name) or ())
        cases.left["conversational test cases: they have no single question"] += talks
    if not cases.samples:
        raise InputError("It holds no test case with an input.", where=member.name)
    return _finished(member, run, cases)


def _from_cache(member: Member, cases: _Cases) -> None:
    """Read the cases of a cache, where each is stored with itself as the key, and their metrics."""
    for index, (key, kept_) in enumerate(expect(read_json(member), _CACHE, dict, member.name).items()):
        where = at(member.name, _CACHE, index)
        case = parsed(key, where)
        if not isinstance(case, dict):
            raise InputError("The key is not a test case.", where=where)
        metrics = [mapping(entry, "metric_data", where) for entry in items(kept_, _CACHED, where) or ()]
        _take({**case, "metricsData": metrics}, where, cases)


def _from_table(member: Member, cases: _Cases) -> None:
    """Read goldens in a table; lists are separated by bars."""
    table = read_table(member, kind_of(member) or ",")
    named = {role: spellings(_CASE[role][0])[-1] for role in (*_TEXTS, *_LISTS)}
    columns = {role: name for role, name in named.items() if name in table.rows.columns}
    for row in table.taking(columns).iter_rows(named=True):
        cells = {
            role: row[role].split(_BAR) if role in _LISTS else row[role] for role in columns if row[role]
        }
        case = {_CASE[role][0]: cell for role, cell in cells.items()}
        _take(case, place(member.name, row["line"]), cases)


def _take(case: object, where: str, cases: _Cases) -> None:
    row = PathRow(case, _CASE, where)
    asked = row["text"]
    if not asked or not asked.strip():
        cases.left["cases without an input"] += 1
        return
    trace = _trace(case, where)
    contexts, seconds, usd, right = (row[name] for name in ("contexts", "seconds", "usd", "right"))
    contexts = trace.contexts if contexts is None else contexts
    times = {"total": trace.total_ms if seconds is None else seconds * 1000, "retrieve": trace.retrieve_ms}
    cases.usd += [usd] if usd is not None else []
    cases.settings = cases.settings or trace.settings
    cases.traced += bool(trace.contexts)
    cases.left.update(trace.left)
    values, judges = _measures(row["metrics"] or (), cases.left)
    cases.samples.append(
        FormatSample(
            text=asked,
            answer=row["answer"],
            contexts=contexts,
            references=row["references"],
            scores=trace.scores or () if contexts == trace.contexts else (),
            right=[right] if right else None,
            values=values,
            judges=judges,
            times={stage: ms for stage, ms in times.items() if ms is not None},
            used=trace.tokens,
        )
    )


def _measures(
    metrics: Sequence[PathRow], left: Counter[str]
) -> tuple[dict[str, float | None], dict[str, str]]:
    values: dict[str, float | None] = {}
    judges: dict[str, str] = {}
    for metric in metrics:
        if (name := metric["name"]) in values:
            left["measures that a case holds twice: the first counts"] += 1
        else:
            values[name] = metric["score"]
            if judge := metric["judge"]:
                judges[shown(name, 80)] = shown(judge, 80)
    return values, judges


def _finished(member: Member, run: Json, cases: _Cases) -> AnsweredSamples:
    hyper = run.get("hyperparameters")
    settings = hyper if isinstance(hyper, dict) else {}
    result = answered(member, cases.samples)
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
        rest=Import(left_out=counted(cases.left, member.name), notes=tuple(_notes(cases, member))),
    )


def _notes(cases: _Cases, member: Member) -> Iterator[str]:
    again = len(cases.samples) - len({sample.text for sample in cases.samples})
    if again:
        yield f"{member.name}: {again} cases repeat an input; each counts as a question of its own."
    if any("total" in sample.times for sample in cases.samples):
        yield f"{member.name}: times of cases converted from seconds to milliseconds."
    if cases.usd:
        yield f"{member.name}: `tokenCost` is taken as US dollars of a question: times 1,000 as usd_per_1k."
    named = {name for sample in cases.samples for name, value in sample.values.items() if value is None}
    if named:
        listed = ", ".join(map(quoted, sorted(named)[:5]))
        yield f"{member.name}: measures that failed in some cases: {listed}."
    if cases.traced:
        yield f"{member.name}: the retrievals of {cases.traced} cases are taken from their traces."


@dataclass
class _Trace:
    # what its only retriever returned, in order; None if there is none or several
    contexts: list[str] | None = None
    scores: list[float | None] | None = None
    retrieve_ms: float | None = None  # durations; None if they are unknown or the step failed
    total_ms: float | None = None
    tokens: dict[tuple[str, str, str], float] = field(default_factory=dict)  # (stage, model, unit) → amount
    settings: Json = field(default_factory=dict)  # the retriever's own statements
    left: Counter[str] = field(default_factory=Counter)  # reason → how much was left out


def _trace(case: object, where: str) -> _Trace:
    result = _Trace()
    if (held := mapping(case, "trace", where)) is None:
        return result
    trace = PathRow(held, _TRACE, f"{where}, trace")
    if trace["status"] == _FAILED:
        result.left["traces that ended with an error: their total time"] += 1
    else:
        result.total_ms = _duration(trace)
    _retrieval(trace["retrievers"] or [], result, trace.where)
    spans = [span for kind in _SPANS for span in items(held, kind, trace.where) or ()]
    measured = sum(len(items(span, "metricsData", trace.where) or ()) for span in (held, *spans))
    result.left["measures of traces and their steps: those of the case count"] += measured
    for index, span in enumerate(trace["models"] or ()):
        _model(PathRow(span, _MODEL, f"{trace.where}, llmSpans {index}"), result)
    return result


def _retrieval(spans: Sequence[Json], result: _Trace, where: str) -> None:
    if len(spans) > 1:
        result.left["retrievals of cases that retrieve more than once"] += len(spans)
    if len(spans) != 1:
        return
    span = PathRow(spans[0], _RETRIEVER, f"{where}, retrieverSpans 0")
    if span["status"] == _FAILED:
        result.left["retrievals that ended with an error"] += 1
        return
    result.contexts = span["contexts"]
    result.retrieve_ms = _duration(span)
    result.settings = {key: value for key in _SETTINGS if (value := spans[0].get(key)) is not None}
    output = spans[0].get("output")
    if result.contexts and isinstance(output, list) and len(output) == len(result.contexts):
        scored = [context for context in output if isinstance(context, dict) and "score" in context]
        if [context.get("text") for context in scored] == result.contexts:
            result.scores = [number(context, "score", span.where) for context in scored]


def _model(call: PathRow, result: _Trace) -> None:
    if call["status"] == _FAILED:
        result.left["calls of models that ended with an error: their tokens"] += 1
        return
    of = shown(call["stage"], 60), shown(call["item"] or UNNAMED, 80)
    for unit in _UNITS:
        if (count := call[unit]) is not None:
            result.tokens[*of, unit] = result.tokens.get((*of, unit), 0.0) + count


def _duration(span: PathRow) -> float | None:
    """Return the milliseconds between a span's times, or None if one of them is not given."""
    begins, ends = span["begins"], span["ends"]
    if begins is None or ends is None:
        return None
    try:
        ms = (datetime.fromisoformat(ends) - datetime.fromisoformat(begins)).total_seconds() * 1000
    except (ValueError, TypeError, OverflowError) as error:
        problem = f"{quoted(begins)} and {quoted(ends)} are not times."
        raise InputError(problem, where=span.where) from error
    if ms < 0:
        raise InputError("It ends before it begins.", where=span.where)
    return ms
