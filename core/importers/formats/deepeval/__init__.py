"""DeepEval: test runs, as ``deepeval test run`` writes them, and data sets (goldens) as JSON or CSV.

A retrieval context is a ranking, the context of a golden its relevant passages. Where a test case has no
retrieval context but a trace with one retriever in it, the list of that retriever is taken.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import polars as pl

from core.errors import InputError
from core.importers.account import TAKEN, Parts
from core.importers.base import SURE, Format, Import, LeftOut, Options, merged
from core.importers.formats.deepeval.trace import Trace, trace_of
from core.importers.read.jsons import Json, at, expect, number, optional, read_json, texts
from core.importers.read.outline import outline
from core.importers.read.piece import Piece, Tree
from core.importers.read.tabular import header, kind_of, read_table
from core.importers.read.text import place, quoted
from core.importers.samples import SAMPLE, VALUE, Answered, assemble, with_ids
from core.importers.settings import axes_of, kept
from core.records import Basis

_WRAPPER = "testRunData"
_BAR = "|"
_CASE = (
    "input", "actualOutput", "actual_output", "retrievalContext", "retrieval_context", "context",
    "completionTime", "tokenCost", "metricsData.name", "metricsData.score", "trace.status", "trace.startTime",
    "trace.endTime", "trace.llmSpans", "trace.retrieverSpans",
)  # fmt: skip
_REFERENCES = ("expectedOutput", "expected_output")
_NO_PLACE = "a reference answer: there is no place for it"
_JUDGING = "the cost of judging, not the stack's"


class DeepEval(Format):
    """Test runs and goldens of DeepEval."""

    name, title = "deepeval", "DeepEval test run or goldens"
    brings = ("queries", "passages", "judgements", "rankings", "timings", "usage", "aggregates", "signals",
              "answers")  # fmt: skip
    names_collection = 1
    units = "completionTime (seconds) and times of traces to milliseconds"
    takes = {  # noqa: RUF012
        "rankings": "retrieval contexts; without them what the only retriever of a trace returned",
        "judgements": "contexts of cases, where they are passages that were retrieved",
        "timings": "completionTime; the duration of a trace and of its retriever",
        "usage": "tokens of the models in a trace",
        "aggregates": "means of the metrics, cost per 1,000 questions from tokenCost",
        "answers": "actual outputs, graded by the metric closest to correctness or by the one that is mapped",
    }
    recognised = "testCases with inputs, or goldens with input and retrieval_context or expected_output"
    traps = (
        "Metrics that failed have no value; they are counted, not 0.",
        "evaluationCost is the cost of judging, not the stack's.",
        "Steps of a trace that ended with an error give neither times nor tokens.",
        "Conversational cases and cases with several retrievals are left out and counted.",
    )

    def sniff(self, probe: Tree) -> float:
        """Test cases, or goldens with their contexts and expected outputs."""
        return SURE if probe.pieces and all(map(_kind, probe.pieces)) else 0.0

    def parts(self, piece: Piece, options: Options) -> Parts | str:  # noqa: ARG002
        """What is read of a case and kept of its run."""
        case: dict[str, str] = dict.fromkeys(_CASE, TAKEN) | dict.fromkeys(_REFERENCES, _NO_PLACE)
        case |= {"metricsData.evaluationCost": _JUDGING}
        if _kind(piece) != "run":
            return case
        run = {f"testCases.{key}": why for key, why in case.items()}
        run |= dict.fromkeys(("hyperparameters", "identifier"), TAKEN)
        run |= {"evaluationCost": _JUDGING, "conversationalTestCases": "they have no single question"}
        return run | {f"{_WRAPPER}.{key}": why for key, why in run.items()}

    def read(self, trees: Sequence[Tree], options: Options) -> Import:
        """Every file is a run; cases of equal input are the same question."""
        found = [_read(piece) for tree in trees for piece in tree.pieces]
        made = assemble([each for each, _ in found], options, importer=self.name, source="imported: DeepEval")
        return merged((made, *(rest for _, rest in found)))


def _kind(piece: Piece) -> str | None:
    shape = outline(piece)
    if f"{_WRAPPER}.testCases[].input" in shape or "testCases[].input" in shape:
        return "run"
    contexts = ("retrieval_context", "retrievalContext", "expected_output", "expectedOutput")
    if "[].input" in shape and any(f"[].{name}" in shape for name in contexts):
        return "goldens"
    kind = None if shape else kind_of(piece)
    if kind not in (",", "\t", ";"):
        return None
    try:
        names = set(header(piece, kind))
    except InputError:
        return None
    return "csv" if {"input", "expected_output"} <= names and names & set(contexts[:1]) else None


@dataclass
class _Cases:
    """Rows of samples while they are collected."""

    rows: list[Json] = field(default_factory=list)
    values: list[list[tuple[str, float | None]]] = field(default_factory=list)
    traces: list[Trace] = field(default_factory=list)
    ms: list[float | None] = field(default_factory=list)
    usd: list[float | None] = field(default_factory=list)
    left: Counter[str] = field(default_factory=Counter)


def _read(piece: Piece) -> tuple[Answered, Import]:
    kind, run, cases = _kind(piece), {}, _Cases()
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
        _count_others(run, cases, piece)
    if not cases.rows:
        raise InputError("It holds no test case with an input.", where=piece.name)
    return _finished(piece, run, cases)


def _count_others(run: Json, cases: _Cases, piece: Piece) -> None:
    talks = len(optional(run, "conversationalTestCases", list, piece.name) or ())
    cases.left["conversational test cases: they have no single question"] += talks


def _from_table(piece: Piece, cases: _Cases) -> None:
    """Goldens in a table; lists are separated by bars."""
    table = read_table(piece, kind_of(piece) or ",")
    names = ("input", "actual_output", "retrieval_context", "context")
    rows = table.taking({name: name for name in names if name in table.rows.columns})
    for row in rows.iter_rows(named=True):
        lists = {name: row[name].split(_BAR) for name in ("retrieval_context", "context") if row.get(name)}
        case = {"input": row.get("input"), "actual_output": row.get("actual_output"), **lists}
        _take(case, place(piece.name, row["line"]), cases)


def _take(case: object, where: str, cases: _Cases) -> None:
    """Add one test case or golden."""
    asked = _either(case, "input", "input", where)
    if not asked or not asked.strip():
        cases.left["cases without an input"] += 1
        return
    trace = trace_of(case, where)
    contexts = _list(case, "retrievalContext", "retrieval_context", where)
    if contexts is None and trace.contexts is not None:
        contexts = trace.contexts
    cases.left.update(trace.left)
    cases.rows.append(
        {
            "text": asked,
            "answer": _either(case, "actualOutput", "actual_output", where),
            "contexts": contexts,
            "references": _list(case, "context", "context", where),
        }
    )
    cases.values.append(list(_measures(case, where, cases)))
    cases.traces.append(trace)
    seconds = number(case, "completionTime", where)
    if seconds is not None and seconds < 0:
        raise InputError("'completionTime' is negative.", where=where)
    cases.ms.append(trace.total_ms if seconds is None else seconds * 1000)
    cases.usd.append(number(case, "tokenCost", where))


def _either(case: object, camel: str, snake: str, where: str) -> str | None:
    """A text under its name in a run or in goldens; None where it is a list (texts and images)."""
    for name in (camel, snake):
        if isinstance(case, dict) and isinstance(case.get(name), list):
            return None
        if (value := optional(case, name, str, where)) is not None:
            return value
    return None


def _list(case: object, camel: str, snake: str, where: str) -> list[str] | None:
    found = texts(case, camel, where)
    return texts(case, snake, where) if found is None and snake != camel else found


def _measures(case: object, where: str, cases: _Cases) -> Iterator[tuple[str, float | None]]:
    seen: set[str] = set()
    for index, entry in enumerate(optional(case, "metricsData", list, where) or ()):
        spot = f"{where}, metric {index}"
        name = expect(entry, "name", str, spot)
        if name in seen:
            cases.left["measures that a case holds twice: the first counts"] += 1
            continue
        seen.add(name)
        yield name, number(entry, "score", spot)


def _finished(piece: Piece, run: Json, cases: _Cases) -> tuple[Answered, Import]:
    lists = {"contexts": pl.List(pl.String), "references": pl.List(pl.String)}
    given = pl.DataFrame(
        cases.rows, schema={"text": pl.String(), "answer": pl.String(), **lists}, orient="row"
    )
    rows = with_ids(
        given.with_columns(
            pl.lit(None, dtype).alias(name) for name, dtype in SAMPLE.items() if name not in given.columns
        )
    )
    ids = rows["query_id"].to_list()
    values = [
        (query, name, value)
        for query, measures in zip(ids, cases.values, strict=True)
        for name, value in measures
    ]
    hyper = run.get("hyperparameters")
    settings = hyper if isinstance(hyper, dict) else {}
    spans = next((trace.settings for trace in cases.traces if trace.settings), {})
    answered = Answered(
        label=str(run.get("identifier") or ""),
        name=piece.name,
        stem=piece.stem,
        digest=piece.digest,
        rows=rows.select(list(SAMPLE)),
        values=pl.DataFrame(values, schema=VALUE, orient="row"),
        spec=axes_of(settings) | axes_of(spans),
        decided={"hyperparameters": kept(settings), "retriever": kept(spans)},
        frames=_frames(ids, cases),
        scores=_scores(ids, cases),
        figures=_price(cases),
    )
    left = tuple(LeftOut(count, why, piece.name) for why, count in cases.left.items() if count)
    return answered, Import(left_out=left, notes=tuple(_notes(rows, cases, piece)))


def _frames(ids: Sequence[str], cases: _Cases) -> dict[str, pl.DataFrame]:
    """Timings and usage of each question."""
    times = [(query, "total", ms) for query, ms in zip(ids, cases.ms, strict=True) if ms is not None]
    times += [
        (query, "retrieve", trace.retrieve_ms)
        for query, trace in zip(ids, cases.traces, strict=True)
        if trace.retrieve_ms is not None
    ]
    used = [
        (query, stage, item, unit, amount)
        for query, trace in zip(ids, cases.traces, strict=True)
        for (stage, item, unit), amount in trace.tokens.items()
    ]
    timings = pl.DataFrame(
        times, schema={"query_id": pl.String, "stage": pl.String, "ms": pl.Float64}, orient="row"
    )
    names = dict.fromkeys(("query_id", "stage", "item", "unit"), pl.String)
    usage = pl.DataFrame(used, schema={**names, "amount": pl.Float64}, orient="row")
    found = {
        "timings": timings.with_columns(repeat=pl.lit(1)),
        "usage": usage.with_columns(basis=pl.lit(Basis.IMPORTED.value)),
    }
    return {table: rows for table, rows in found.items() if rows.height}


def _scores(ids: Sequence[str], cases: _Cases) -> pl.DataFrame | None:
    found = [
        (query, rank, score)
        for query, row, trace in zip(ids, cases.rows, cases.traces, strict=True)
        if trace.scores and row["contexts"] == trace.contexts
        for rank, score in enumerate(trace.scores, 1)
    ]
    schema = {"query_id": pl.String(), "rank": pl.Int64(), "score": pl.Float64()}
    return pl.DataFrame(found, schema=schema, orient="row") if found else None


def _price(cases: _Cases) -> list[dict[str, object]]:
    known = [usd for usd in cases.usd if usd is not None]
    if not known:
        return []
    mean = sum(known) / len(known)
    return [
        {"measure": "usd_per_1k", "stage": "total", "value": mean * 1000, "n": len(known),
         "source": "imported"}
    ]  # fmt: skip


def _notes(rows: pl.DataFrame, cases: _Cases, piece: Piece) -> Iterator[str]:
    again = rows.height - rows["text"].n_unique()
    if again:
        yield f"{piece.name}: {again} cases repeat an input; each counts as a question of its own."
    if any(ms is not None for ms in cases.ms):
        yield f"{piece.name}: times of cases converted from seconds to milliseconds."
    if any(usd is not None for usd in cases.usd):
        yield f"{piece.name}: `tokenCost` is taken as US dollars of a question: times 1,000 as usd_per_1k."
    named = Counter(name for measures in cases.values for name, value in measures if value is None)
    if named:
        listed = ", ".join(map(quoted, sorted(named)[:5]))
        yield f"{piece.name}: measures that failed in some cases: {listed}."
    traced = sum(bool(trace.contexts) for trace in cases.traces)
    if traced:
        yield f"{piece.name}: the retrievals of {traced} cases are taken from their traces."
