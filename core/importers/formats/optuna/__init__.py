"""Trials of an Optuna study, however stored, as runs: figures recorded by syftr, or else the objectives.

syftr stores per trial: accuracy and F1 of the answers, the mean cost of model calls (USD per
question), the median and the 80th percentile of the time per question (seconds), and its flow as JSON text.

The dashboard's tables have Number, State, the objectives, ``Param x`` and ``UserAttribute x``; those of
``trials_dataframe`` have number, value or ``values_x``, ``params_x``, ``user_attrs_x`` and state.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite

from core.errors import InputError
from core.importers.base import SURE, Format, Import, LeftOut, Options, merged, summed
from core.importers.read.jsons import Json, amount, number
from core.importers.read.member import Archive, Member, members_of
from core.importers.read.rows import numbers
from core.importers.read.tabular import columns, header, kind_of, read_table
from core.importers.read.text import place, shown
from core.importers.report import TAKEN, ReportParts
from core.importers.runs import ONE_ANSWER, Figure, Reported, reported_runs
from core.importers.settings import axes_of, kept
from core.records import WHOLE_FLOW

TAKES = {"aggregates": "accuracy, F1, p50 and p80 latency, cost per 1,000 questions, or the objectives"}
UNITS = "times from seconds to milliseconds, cost per question to cost per 1,000"
COMPLETE = "COMPLETE"
_SHARES = {
    "metric_accuracy": "Answer-Accuracy",
    "metric_f1_score": "Answer-F1",
    "metric_retriever_recall": "Context-Recall",
}
_THOUSANDTHS = {
    "metric_median_time": "latency_p50",
    "metric_p80_time": "latency_p80",
    "metric_llm_cost_mean": "usd_per_1k",
}
"""Figures in seconds, and in dollars per question."""
_SYFTR = _SHARES.keys() | _THOUSANDTHS.keys()
_MOST_QUERIES = 2**31
_AXES: Mapping[str, str] = {
    "rag_embedding_model": "embedder", "embedding_model": "embedder", "embedder": "embedder",
    "rag_top_k": "candidates", "rag_method": "mode", "reranker_llm_name": "reranker",
    "splitter_method": "chunker", "response_synthesizer_llm": "generator",
}  # fmt: skip
"""Parameter of the search space → axis of our stacks."""
_NOTES = (
    "Times converted from seconds to milliseconds; they are of the whole flow, answering included.",
    "Costs are the mean of the calls of models per question, times 1,000; other costs are not in them.",
    "Measures of answers stand at the cutoff 1: one answer is looked at for each question.",
)
_OBJECTIVES = (
    "Of trials without figures of syftr the values of the objectives are taken; those known to be "
    "maximised stand at the cutoff 1 and can be chosen as quality, the others are kept."
)
_VALUE, _VALUES = "value", "values_"  # The single objective of a frame, or the prefix of several
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d{1,4})?")
_WHOLE = re.compile(r"[-+]?\d{1,18}")


@dataclass(frozen=True, slots=True, kw_only=True)
class OptunaTrial:
    """One trial, as stored."""

    study: str  # name of its study
    number: int  # its number in the study
    state: str  # COMPLETE, PRUNED, FAIL, RUNNING or WAITING
    values: Mapping[str, float] = field(default_factory=dict)  # objective → value, if finite
    maximised: frozenset[str] = frozenset()  # the objectives for which larger is better
    params: Mapping[str, object] = field(default_factory=dict)  # parameter → value as suggested
    attributes: Mapping[str, object] = field(default_factory=dict)  # user attribute → value
    where: str = ""  # file and place, for messages


def trial_runs(trials: Sequence[OptunaTrial], digest: str, options: Options, importer: str) -> Import:
    """Make runs of the trials that were completed."""
    reports, left = [], []
    for trial in trials:
        reported = None if (reason := _why_not(trial)) else _reported(trial, digest)
        if reported and reported.figures:
            reports.append(reported)
        else:
            reason = reason or "completed trials without a figure"
            left.append(LeftOut(1, reason, f"trial {trial.number} of {shown(trial.study)}"))
    if not reports:
        problem = f"None of the {len(trials)} trials is complete with figures."
        raise InputError(problem, where=trials[0].where)
    syftr = [bool(report.environment) for report in reports]
    runs = reported_runs(reports, options, importer=importer, source="Optuna study")
    notes = (*(_NOTES if any(syftr) else ()), *(() if all(syftr) else (_OBJECTIVES,)))
    notes += tuple(
        f"trial {trial.number} of {shown(trial.study)}: {failed} of {asked} answers failed; its figures are "
        "of the others."
        for trial in trials
        if _why_not(trial) is None
        for asked, failed in [_asked(trial)]
        if failed
    )
    return merged((runs, Import(left_out=summed(left), notes=notes)))


def _why_not(trial: OptunaTrial) -> str | None:
    if trial.state != COMPLETE:
        return f"trials in the state {shown(trial.state, 20)}"
    if _true(trial.attributes.get("metric_is_pruned")):
        return "trials that were pruned"
    if _true(trial.attributes.get("metric_failed")):
        return "trials that failed"
    return None


def _true(value: object) -> bool:
    return value is True or (isinstance(value, str) and value.lower() == "true")


def _reported(trial: OptunaTrial, digest: str) -> Reported:
    return Reported(
        label=f"trial {trial.number}",
        stem=str(trial.number),
        digest=digest,
        decided={"study": shown(trial.study, 200), "trial": trial.number},
        spec=_spec(trial.params, f"trial {trial.number}"),
        figures=tuple(_figures(trial)),
        collection=trial.study,
        manifest={
            "params": kept(dict(trial.params)),
            "attributes": kept(dict(trial.attributes)),
            "objectives": kept(dict(trial.values)),
        },
        environment={"reported": WHOLE_FLOW} if _SYFTR & trial.attributes.keys() else {},
    )


def _asked(trial: OptunaTrial) -> tuple[int | None, int]:
    """Return how many questions a trial had, including unanswered ones, and how many were unanswered."""
    names = ("metric_num_total", "metric_num_success", "metric_num_errors")
    total, right, wrong = (number(dict(trial.attributes), name, trial.where) for name in names)
    known = [count for count in (total, None if right is None else right + (wrong or 0)) if count is not None]
    return (int(max(known)) if known else None), int(wrong or 0)


def _figures(trial: OptunaTrial) -> Iterator[Figure]:
    attributes: Json = dict(trial.attributes)
    if not _SYFTR & attributes.keys():
        for name, objective in trial.values.items():
            yield Figure(measure=name, value=objective, k=ONE_ANSWER if name in trial.maximised else None)
        return
    asked, _ = _asked(trial)
    n = asked if asked is not None and 0 <= asked < _MOST_QUERIES else None
    for key, name in _SHARES.items():
        if (value := number(attributes, key, trial.where)) is not None:
            yield Figure(measure=name, value=value, k=ONE_ANSWER, n=n)
    for key, name in _THOUSANDTHS.items():
        if (value := amount(attributes, key, trial.where)) is not None:
            yield Figure(measure=name, value=value * 1000.0, stage="total", n=n)


def _spec(params: Mapping[str, object], name: str) -> Json:
    """Return the axes of the stack, and every other parameter under "params"."""
    spec: Json = {}
    rest: Json = {}
    for key, given in params.items():
        axis = _AXES.get(key)
        value = given
        if axis == "candidates" and isinstance(given, float) and given.is_integer():
            value = int(given)  # in a frame a column of integers with gaps holds floats
        if axis is None or axis in spec or not isinstance(value, str | int) or value == "":
            rest[key] = value
        elif axis == "chunker":
            spec[axis] = {"method": str(value)}
        elif axis == "candidates":
            spec |= {axis: value} if type(value) is int and value > 0 else {}
        else:
            spec[axis] = str(value)
    if spec.get("mode") not in ("sparse", "dense", "hybrid"):
        rest |= {"rag_method": spec.pop("mode")} if "mode" in spec else {}
    elif spec["mode"] != "dense":
        spec["sparse"] = "bm25"
        if spec["mode"] == "sparse":
            rest |= {"rag_embedding_model": spec.pop("embedder")} if "embedder" in spec else {}
    if not _true(params.get("reranker_enabled", True)):
        spec.pop("reranker", None)
    hyde = {"rewrite": "hyde"} if _true(params.get("hyde_enabled")) else {}
    spec = {**axes_of(params), **spec, **hyde}
    return kept({**spec, "params": rest} if rest else spec) or {"name": name}


@dataclass(frozen=True, slots=True)
class _Layout:
    """A table's column names: the trial's own, and the prefixes of the others."""

    number: str
    state: str
    param: str
    attribute: str


_DASHBOARD = _Layout("Number", "State", "Param ", "UserAttribute ")
_FRAME = _Layout("number", "state", "params_", "user_attrs_")


class OptunaCsv(Format):
    """Trials of one study as a table."""

    name, title = "optuna-csv", "optuna-dashboard, syftr (CSV)"
    takes = TAKES
    recognised = (
        "a table with Number, State and Param … or UserAttribute … columns, or Optuna's trials_dataframe "
        "(number, state, value or values_…)"
    )
    units = UNITS
    traps = (
        "Trials whose State is not COMPLETE, and those that were pruned or failed, are left out and counted.",
        "Which objectives are maximised is not in the file; without syftr's figures all are kept as is.",
    )

    def sniff(self, probe: Archive) -> float:
        member = probe.members[0]
        text = len(probe.members) == 1 and kind_of(member) not in ("jsonl", "parquet")
        return SURE if text and _layout(columns(member)) else 0.0

    def parts(self, member: Member, options: Options) -> ReportParts:  # noqa: ARG002
        names = header(member, kind_of(member) or ",")
        layout = _layout(names) or _DASHBOARD
        known = (layout.number, layout.state, *_named(names, layout))
        return dict.fromkeys((*known, f"{layout.param}*", f"{layout.attribute}*"), TAKEN)

    def read(self, archives: Sequence[Archive], options: Options) -> Import:
        """Read the trials of every file; the study is named after the file."""
        members = members_of(archives)
        return merged(trial_runs(_trials(member), member.digest, options, self.name) for member in members)


def _layout(names: Sequence[str]) -> _Layout | None:
    begun = [name for name in names if name.startswith((_DASHBOARD.param, _DASHBOARD.attribute))]
    if names[:2] == ["Number", "State"] and begun:
        return _DASHBOARD
    has_values = any(name == _VALUE or name.startswith(_VALUES) for name in names)
    return _FRAME if has_values and {"number", "state"} <= set(names) else None


def _named(names: Sequence[str], layout: _Layout) -> dict[str, str]:
    if layout is _FRAME:
        several = {name: name.removeprefix(_VALUES) for name in names if name.startswith(_VALUES)}
        return several or {_VALUE: "Objective"}
    begun = (layout.param, layout.attribute)
    other = [name for name in names if not name.startswith(begun)]
    return {name: name for name in other if name not in (layout.number, layout.state)}


def _trials(member: Member) -> list[OptunaTrial]:
    table = read_table(member, kind_of(member) or ",")
    names = table.rows.columns
    layout = _layout(names) or _DASHBOARD
    cells = table.taking({"Number": layout.number, "State": layout.state})
    numbered = numbers(cells, "Number", member.name, whole=True)
    objectives = _named(names, layout)
    trials = []
    for at, line, row in zip(numbered, table.lines, table.rows.iter_rows(named=True), strict=True):
        where = place(member.name, line)
        if at is None:
            raise InputError("The trial has no number.", where=where)
        trials.append(
            OptunaTrial(
                study=member.stem,
                number=at,
                state=str(row[layout.state] or "").upper().removeprefix("TRIALSTATE."),
                values=_objectives(row, objectives, str(row[layout.state])),
                params=_prefixed(row, layout.param),
                attributes=_prefixed(row, layout.attribute),
                where=where,
            )
        )
    if not trials:
        raise InputError("The table has no rows.", where=member.name)
    return trials


def _objectives(row: Mapping[str, object], named: Mapping[str, str], state: str) -> dict[str, float]:
    done = COMPLETE in state.upper()
    values = {name: _value(row[column]) for column, name in named.items()} if done else {}
    return {
        name: float(value)
        for name, value in values.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
    }


def _prefixed(row: Mapping[str, object], prefix: str) -> dict[str, object]:
    return {
        column.removeprefix(prefix): _value(value)
        for column, value in row.items()
        if column.startswith(prefix) and value not in (None, "")
    }


def _value(cell: object) -> str | int | float | bool | None:
    text = "" if cell is None else str(cell).strip()
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    if _WHOLE.fullmatch(text):
        return int(text)
    return float(text) if _NUMBER.fullmatch(text) else (text or None)
