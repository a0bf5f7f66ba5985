"""Tests whether a decision still holds: today's store and prices against a decision record.

It fails if none of the given results is in the workspace that it judges, if the chosen
stack is gone, breaks a limit or lacks a number that a limit needs, is surely more than the indifference zone
worse than the rule's choice today, or if its probability of good selection falls below the required one. A
record of the rule until 0.2 is judged by that rule (`core.report.old_rule`). Changes since the record are
shown beside the result.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import numpy as np
import polars as pl
from pydantic import BaseModel, Field, PrivateAttr, ValidationError, model_validator

from core.analysis.workspace.noise import OFF
from core.analysis.workspace.query_sets import LeastJudged
from core.analysis.workspace.question import Question
from core.analysis.workspace.resolve import NO_INCUMBENT
from core.analysis.workspace.scope import AUTO, Answering, LatencyScope, Per, Percentile
from core.analysis.workspace.sure import good_enough
from core.analysis.workspace.view import View
from core.axes import Step, stack_key
from core.decide.axes import BESIDE, FORMER, LIMITS, MOVING, Axis
from core.decide.rules import Rule
from core.decide.selection import DECIDED_BY
from core.decide.ties import CHEAPER, LEVEL, ROUNDING, Numbers, not_slower
from core.errors import InputError, UnknownNameError
from core.importers.read.jsons import parsed
from core.importers.read.text import shown
from core.pipeline.own.config import OWN
from core.pipeline.sweep.problems import problems
from core.records import JsonMap
from core.report import old_rule
from core.report.changed import changes
from core.report.data import FORMAT, VERSION, Verdict, record_data
from core.report.gate_results import Given
from core.report.staying import holding, stale, stays
from core.stats.latency import Generation
from core.store import Snapshot
from core.views import text
from core.views.decision.words import numbers
from core.work.imports.versions import is_later_version

SHARE = 0.8  # Probability of another choice above which a decision no longer holds
SCHEMA = {"check": pl.String, "was": pl.String, "now": pl.String, "reason": pl.String}
_AGAIN = "Write the record again, as JSON."

Q = TypeVar("Q", bound=Question)
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Again(BaseModel):
    """The question to ask again; see `core.report.words.question`."""

    collection: str
    golden_set: str | None
    run: list[str]
    measure: str
    sla_ms: Amount | None
    on: Percentile
    latency: LatencyScope
    budget: Amount | None
    min_quality: Amount | None
    beside: dict[str, Amount | Step | None] = {}  # the limits on numbers other than quality
    rule: Rule
    judged: LeastJudged
    jitter_ms: Amount | None
    indifference: Amount | None = None
    take: str | None = None
    incumbent: str | None = None
    move: list[str] = []
    prices: str
    price: list[str] = []
    seed: Annotated[int, Field(ge=0)]
    every_golden_set: bool
    cluster_by: str = AUTO
    judge_noise: str = OFF
    reader: str = Answering().reader
    scorer: str = Answering().scorer
    cost_per: Per = "query"
    correct_from: Annotated[float, Field(gt=0, le=1)] = Answering().least
    together: bool
    generation: Generation | None

    @model_validator(mode="before")
    @classmethod
    def _gathered(cls, data: Any) -> Any:  # noqa: ANN401 - of a file
        """Gather the limits on numbers other than quality, each of which an older record may lack."""
        if not isinstance(data, dict):
            return data
        return {
            **data,
            "beside": {axis.limit: data[axis.limit] for axis in (*BESIDE, *MOVING) if axis.limit in data},
        }


class _Row(BaseModel):
    run_id: str
    stack: str


class _Made(BaseModel):
    stack_id: str
    spec: JsonMap = {}


class _Taken(BaseModel):
    given_up: float  # quality, minus the rule's choice's


class _Form(BaseModel):
    frontier: Literal["usual", "weak"]


class Recorded(BaseModel):
    """The parts of a decision record that the gate needs."""

    format: Literal["clq-explorer/decision-record"]
    version: Annotated[int, Field(le=VERSION)]
    chosen: _Row  # the chosen stack, by its run and name
    stack: _Made  # its components
    frontier: list[_Row]  # the stacks not dominated then
    asked: _Form  # the form of the frontier
    question: Again  # the question to ask again
    command: str | None  # the command line that decides the same; None if there is none
    decided_by: int = 1  # version of the rule
    taken: _Taken | None = None  # the stack that a person took, and the quality given up
    revision: int | None = None  # revision of the store that it was made from
    _data: dict[str, Any] = PrivateAttr(default_factory=dict)
    _given: frozenset[str] = PrivateAttr(default=frozenset())

    @property
    def given(self) -> frozenset[str]:
        """The ids of runs that a gate was given: among the recorded stack's runs these count first."""
        return self._given

    def beside_results(self, given: Given | None) -> Recorded:
        """Return the record together with the runs of the results that a gate was given."""
        self._given = frozenset() if given is None else given.runs
        return self

    @property
    def accepted(self) -> float:
        """The quality given up by hand, 0 or more."""
        return 0.0 if self.taken is None else max(0.0, self.taken.given_up)

    @property
    def data(self) -> Mapping[str, Any]:
        """The whole record."""
        return self._data


def recorded(data: object, name: str) -> Recorded:
    """Return the part of a record that the gate needs.

    Raises:
        InputError: If it isn't a record, has another version, or chose nothing.
    """
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise InputError("This is not a decision record.", where=name, do=_AGAIN)
    if "chosen" in data and data["chosen"] is None:
        raise InputError(
            "This record chose no stack, so there is nothing to hold.", where=name, do="Loosen its limits."
        )
    try:
        was = Recorded.model_validate(data)
    except ValidationError as error:
        _, problem = next(iter(problems(error, Recorded, data)))
        raise InputError(f"{problem.where}: {problem.found}", where=name, do=_AGAIN) from None
    was._data = data
    return was


def record_of(path: Path) -> Recorded:
    """Read a record from its file.

    Raises:
        InputError: If it cannot be read, or like `recorded`.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(
            f"The record cannot be read: {error.strerror}.",
            where=shown(path, 200),
            do="Give the JSON that `record` wrote.",
        ) from None
    return recorded(parsed(data, path.name), path.name)


@dataclass(frozen=True)
class Held:
    """A recorded decision, compared with today's question and store."""

    was: Recorded
    view: View  # today's, with the recorded question or another one
    verdict: Verdict
    share: float = SHARE  # for the old rule: probability of another choice above which it is reported
    least_pgs: float = 0.0  # minimum probability of good selection of the recorded stack
    waived: tuple[Axis, ...] = ()  # limits that were dropped because their number is unknown
    given: Given | None = None  # the results that the gate was given

    @cached_property
    def findings(self) -> pl.DataFrame:
        """The reasons why it no longer holds; see `broken`."""
        found = broken(self.was, self.view, share=self.share, least_pgs=self.least_pgs)
        return (
            found if self.given is None else pl.concat([_elsewhere(self.was, self.view, self.given), found])
        )

    @cached_property
    def today(self) -> Mapping[str, Any]:
        """Return today's record."""
        return record_data(self.view, self.verdict, link="", made_at=datetime.now(UTC))

    @cached_property
    def changes(self) -> pl.DataFrame:
        """The changes since: kind, what, was, now; see `core.report.changed.changes`."""
        return changes(self.was.data, self.today)

    @property
    def holds(self) -> bool:
        """Whether it still holds."""
        return self.findings.is_empty()

    @property
    def cause(self) -> str:
        """The first reason why it does not hold, or "" while it holds."""
        return "" if self.holds else str(self.findings["check"][0])

    @property
    def sentence(self) -> str:
        """The result: that it holds, with today's numbers, or that it doesn't."""
        if self.holds:
            return answer(self.was, self.view)
        said = stays(self.was.data)
        what = self.was.chosen.stack if said is None else f"stay with {said['incumbent']}"
        return f"No longer holds: {what}."


def _elsewhere(was: Recorded, asked: View, given: Given) -> pl.DataFrame:
    """Return a finding if none of the given results is judged, or those of the recorded stack are not."""
    if not given.landed(asked):
        reason = f"nothing of the results counts in {asked.scope.collection_id}, which is judged"
    elif _set_apart(was, asked, given):
        reason = "results of this stack came, but they do not compare with the rest"
    else:
        return _rows([])
    return _rows([("elsewhere", was.chosen.stack, f"results in {given.into}", reason)])


def _set_apart(was: Recorded, asked: View, given: Given) -> bool:
    """Return whether results under the recorded stack's name came that its numbers are not of."""
    row, runs = today(was, asked.table), asked.snapshot.runs(asked.scope.collection_id)
    if row is not None and asked.table["run_id"][row] in given.runs:
        return False
    names = {was.chosen.stack, *runs.filter(run_id=was.chosen.run_id)["label"]}
    return not runs.filter(pl.col("run_id").is_in(given.runs), pl.col("label").is_in(names)).is_empty()


def asked_again(was: Recorded, question: Q, snapshot: Snapshot, given: Collection[str]) -> Q:
    """Return the question of a record, with some choices replaced.

    Args:
        question: The replacement choices; the others are the record's.
        given: The names of the fields to replace.
    """
    asked = was.question
    taken: dict[str, Any] = {
        **{name: getattr(asked, name) for name in vars(question).keys() & type(asked).model_fields},
        **asked.beside,
        "runs": () if "origin" in given else _runs_again(was, snapshot),
    }
    if asked.incumbent is not None and asked.incumbent not in snapshot.runs(asked.collection)["run_id"]:
        taken["incumbent"] = NO_INCUMBENT
    return replace(question, **{name: value for name, value in taken.items() if name not in given})


def _runs_again(was: Recorded, snapshot: Snapshot) -> tuple[str, ...]:
    """Return the recorded choice of runs, insofar as they exist, and later runs of the same stacks."""
    chosen = was.question.run
    if not chosen:
        return ()
    known = snapshot.with_deleted().runs(was.question.collection)
    meant = known.filter(pl.col("run_id").is_in(chosen))
    later = pl.col("added_revision") > (was.revision or 0)
    stacks, labels = (meant[name].implode() for name in ("stack_id", "label"))
    again = (pl.col("stack_id").is_in(stacks) | pl.col("label").is_in(labels)) & later
    there = snapshot.runs(was.question.collection)
    return tuple(there.filter(pl.col("run_id").is_in(chosen) | again)["run_id"]) or tuple(chosen)


def broken(was: Recorded, asked: View, *, share: float = SHARE, least_pgs: float = 0.0) -> pl.DataFrame:
    """Return why a recorded decision no longer holds.

    Args:
        share: For a record of the old rule: probability of another choice above which it is reported.
        least_pgs: For others: minimum probability of good selection of the recorded stack.

    Returns:
        A row per reason: check ("gone", "limit", "unknown", "worse", "pgs"; for the old rule "dominated",
        "another"; for a decision to stay those of `core.report.staying.stale`), was, now, reason; no rows
        while the decision holds.
    """
    if said := stays(was.data):
        return _rows([*stale(said, asked)])
    row = today(was, asked.table)
    if row is None:
        return _rows([("gone", was.chosen.stack, "", "no run of this stack is in the workspace")])
    over = _over(row, was, asked)
    if was.decided_by < DECIDED_BY:
        return _rows([*over, *_dominated(row, was, asked), *_another(row, was, asked, share)])
    if over:
        return _rows(over)
    return _rows([*_worse(row, was, asked), *_unsure(row, was, asked, least_pgs)])


def answer(was: Recorded, asked: View) -> str:
    """Say that a decision holds, with today's numbers, and the rule's choice today if it differs."""
    if stays(was.data):
        return holding(asked)
    table, row = asked.table, today(was, asked.table)
    if row is None:
        return ""
    name = _version(row, was, table) or was.chosen.stack
    words = f"Holds: {name}: {numbers(table.row(row, named=True), asked.quality, asked.latency)}."
    if was.decided_by < DECIDED_BY:
        words += f" Judged {old_rule.NAMED}."
        now = old_rule.chosen(asked)
        if now is None or now == row:
            return words
        share = old_rule.best_shares(asked)[now]
        return f"{words} Today {table['name'][now]} is chosen, the best in {text.percent(share)}."
    kept = _kept(row, asked)
    if kept.sure.pgs is not None:
        share = text.percent(kept.sure.pgs)
        words += f" {good_enough(kept.decision).capitalize()} in {share} of simulated repeats."
    instead = kept.decision.instead_of
    return words if instead is None else f"{words} Today the rule chooses {table['name'][instead]}."


def _kept(row: int, asked: View) -> View:
    """Return the workspace with the recorded stack taken, so that its own probabilities are computed."""
    return asked.replace(take=str(asked.table["run_id"][row]))


def _worse(row: int, was: Recorded, asked: View) -> list[tuple[str, str, str, str]]:
    """Return the rule's choice if the recorded stack is significantly worse by more than δ.

    If a person took the stack, the accepted loss is added to δ.
    """
    kept = _kept(row, asked).decision
    first = kept.instead_of
    if first is None:
        return []
    values = Numbers.of(
        asked.table, kept.quality, asked.constraints.jitter_ms, asked.paired, delta=kept.delta
    )
    here = np.array([row])
    if kept.rule == "quality":
        least = (
            float(values.better_by(first, here, 1 - LEVEL)[0][0]) if values.singly(here).all() else -np.inf
        )
        if np.isinf(least) and not values.singly(here).all():
            least = float(values.merit[first] - values.merit[row])
        worse = least > kept.delta + was.accepted + ROUNDING
        words = f"it is surely at least {text.score(least)} better"
    elif kept.rule == "cost":
        worse = values.cost[row] > values.cost[first] * (1 + CHEAPER)
        words = "it is cheaper by more than 1 %"
    else:
        worse = not not_slower(values, here, first)[0]
        words = "it is faster by more than the jitter band"
    if not worse:
        return []
    said = numbers(asked.table.row(first, named=True), asked.quality, asked.latency)
    now = f"{asked.table['name'][first]}: {said}"
    return [("worse", was.chosen.stack, now, words)]


def _unsure(row: int, was: Recorded, asked: View, least: float) -> list[tuple[str, str, str, str]]:
    """Return the recorded stack's probability of good selection if it is below the required one."""
    sure = _kept(row, asked).sure
    if least <= 0 or (sure.pgs is not None and sure.pgs >= least):
        return []
    now = f"unknown: {sure.unknown}" if sure.pgs is None else text.percent(sure.pgs)
    return [("pgs", was.chosen.stack, now, f"{text.percent(least)} is asked for")]


def _rows(findings: list[tuple[str, str, str, str]]) -> pl.DataFrame:
    return pl.DataFrame(findings, schema=SCHEMA, orient="row")


def today(was: Recorded, table: pl.DataFrame) -> int | None:
    """Return the chosen stack's row: its newest run, given results first, and on ties the recorded run.

    The newest version of a custom pipeline, or of an imported stack, represents it: the question is whether
    that version may ship.
    """
    own, given = pl.col("run_id") == was.chosen.run_id, pl.col("run_id").is_in(was.given)
    rows = (
        table.with_row_index("row")
        .filter(own | _same(was, table) | _versions(was, table))
        .sort(given, "created_at", own, descending=True, nulls_last=True)
    )
    return None if rows.is_empty() else int(rows["row"][0])


def _same(was: Recorded, table: pl.DataFrame) -> pl.Series:
    """Return which stacks are the recorded one, ignoring keys that nothing reads [n]."""
    key = stack_key(was.stack.spec)
    same = [stack_key(json.loads(spec)) == key for spec in table["spec"]]
    return (table["stack_id"] == was.stack.stack_id) | pl.Series(same, dtype=pl.Boolean)


def _versions(was: Recorded, table: pl.DataFrame) -> pl.Series:
    """Return which stacks are later versions of the chosen one [n].

    Versions of a custom pipeline differ in nothing but their version; those of an imported stack that is
    known only by name are called ``name (2)``, which the store derived from an existing name.
    """
    spec = was.stack.spec
    if spec.get("mode") == OWN:
        chosen = _unversioned(spec)
        return pl.Series([_unversioned(json.loads(one)) == chosen for one in table["spec"]], dtype=pl.Boolean)
    if set(spec) != {"name"} or was.revision is None:
        return pl.Series([False] * table.height, dtype=pl.Boolean)
    named = [str(json.loads(one).get("name", "")) for one in table["spec"]]
    versions = [is_later_version(name, str(spec["name"])) for name in named]
    return pl.Series(versions, dtype=pl.Boolean) & (table["added_revision"] > was.revision)


def _version(row: int, was: Recorded, table: pl.DataFrame) -> str:
    """Name the version of the chosen stack that represents it today, or return "" if it is unchanged."""
    return "" if _same(was, table)[row] else str(table["name"][row])


def _unversioned(spec: JsonMap) -> JsonMap:
    return {key: value for key, value in spec.items() if key != "version"}


def _over(row: int, was: Recorded, asked: View) -> list[tuple[str, str, str, str]]:
    """Return the limit that the chosen stack breaks, or lacks a number for."""
    reasons = asked.decision.excluded().filter(pl.col("row") == row)
    now = numbers(asked.table.row(row, named=True), asked.quality, asked.latency)
    check = "limit" if asked.decision.over[row].any() else "unknown"
    return [(check, was.chosen.stack, now, reason) for reason in reasons["reason"]]


def waived(was: Recorded, asked: View, names: Collection[str]) -> tuple[View, tuple[Axis, ...]]:
    """Drop limits by name if the recorded stack has no number for them; known numbers still count.

    Raises:
        UnknownNameError: If there is no such limit.
    """
    names = [FORMER.get(name, name) for name in names]
    for name in names:
        if name not in LIMITS:
            raise UnknownNameError("limit", name, LIMITS)
    row, decision = today(was, asked.table), asked.decision
    if row is None:
        return asked, ()
    dropped = tuple(
        axis
        for place, axis in enumerate(decision.axes)
        if axis.limit in names and asked.constraints.of(axis) is not None
        if np.isnan(axis.read(asked.table)[row]) and not decision.over[row, place]
    )
    no_limits: dict[str, Any] = {axis.limit: None for axis in dropped}
    return asked.replace(constraints=replace(asked.constraints, **no_limits)), dropped


def _dominated(row: int, was: Recorded, asked: View) -> list[tuple[str, str, str, str]]:
    """Return the best stack that dominates the chosen one, if none did before, except its versions."""
    on = old_rule.frontier_rows(asked)
    before = was.chosen.run_id in {stack.run_id for stack in was.frontier}
    if row in on or not before or not asked.decision.feasible[row]:
        return []
    merits = np.array([axis.merit(axis.read(asked.table)) for axis in asked.decision.compared])
    versions = _versions(was, asked.table)
    for other in on:
        if not versions[other] and (merits[:, other] >= merits[:, row]).all():
            name = asked.table["name"][other]
            now = numbers(asked.table.row(other, named=True), asked.quality, asked.latency)
            return [("dominated", was.chosen.stack, f"{name}: {now}", "no worse in anything, better in one")]
    return []


def _another(row: int, was: Recorded, asked: View, share: float) -> list[tuple[str, str, str, str]]:
    """Return the stack that would be chosen instead, if that is likely enough."""
    best = old_rule.best_shares(asked)
    likely = best.arg_max()
    if likely is None:  # nothing was resampled: only the point estimates are known
        likely = old_rule.chosen(asked)
        words = "it is chosen on the figures as they are; without results per query there is no probability"
    else:
        words = f"it would be chosen with a probability of {text.percent(best[likely])}"
    if version := _version(row, was, asked.table):
        words = f"{words}, and not {version}"
    if likely is None or likely == row or (best[likely] is not None and best[likely] <= share):
        return []
    return [("another", was.chosen.stack, str(asked.table["name"][likely]), words)]
