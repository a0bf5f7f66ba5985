"""Tests whether a decision still holds: today's store and prices against a decision record.

It fails if none of the given results is in the workspace that it judges, if the chosen
stack is gone, breaks a limit or lacks a number that a limit needs, is surely more than the indifference zone
worse than the rule's choice today, or if its probability of good selection falls below the required one. A
record of the rule until 0.2 is judged by that rule (`core.report.old_rule`). Changes since the record are
shown beside the result.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import polars as pl

from core.analysis.workspace.question import Question
from core.analysis.workspace.sure import good_enough
from core.analysis.workspace.view import View
from core.decide.axes import FORMER, LIMITS, Axis
from core.decide.selection import DECIDED_BY
from core.decide.ties import CHEAPER, LEVEL, ROUNDING, Numbers, not_slower
from core.errors import UnknownNameError
from core.report import old_rule
from core.report.changed import changes
from core.report.data import Verdict, record_data
from core.report.gate_results import Given
from core.report.gate_runs import elsewhere, running_again, today, version, versions
from core.report.recorded import Recorded
from core.report.staying import holding, stale, stays
from core.store import Snapshot
from core.views import text
from core.views.decision.words import numbers

SHARE = 0.8  # Probability of another choice above which a decision no longer holds
SCHEMA = {"check": pl.String, "was": pl.String, "now": pl.String, "reason": pl.String}

Q = TypeVar("Q", bound=Question)


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
        apart = _rows([*elsewhere(self.was, self.view, self.given)])
        return pl.concat([apart, found])

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
    if asked.incumbent is not None:
        taken["incumbent"] = running_again(was, snapshot)
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
        found, runs = [*stale(said, asked)], asked.running_row
        if runs is not None and not was.excluded(str(was.question.incumbent)):
            found += _over(runs, str(said["incumbent"]), asked)
        return _rows(found)
    row = today(was, asked)
    if row is None:
        return _rows([("gone", was.chosen.stack, "", "no run of this stack is in the workspace")])
    over = _over(row, was.chosen.stack, asked)
    if was.decided_by < DECIDED_BY:
        return _rows([*over, *_dominated(row, was, asked), *_another(row, was, asked, share)])
    if over:
        return _rows(over)
    return _rows([*_worse(row, was, asked), *_unsure(row, was, asked, least_pgs)])


def answer(was: Recorded, asked: View) -> str:
    """Say that a decision holds, with today's numbers, and the rule's choice today if it differs."""
    if stays(was.data):
        return holding(asked)
    table, row = asked.table, today(was, asked)
    if row is None:
        return ""
    name = version(row, was, asked) or was.chosen.stack
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
        words += f" {good_enough(kept.decision).capitalize()} in {share} of resamples."
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


def _over(row: int, name: str, asked: View) -> list[tuple[str, str, str, str]]:
    """Return the limit that a stack breaks, or lacks a number for."""
    reasons = asked.decision.excluded().filter(pl.col("row") == row)
    now = numbers(asked.table.row(row, named=True), asked.quality, asked.latency)
    check = "limit" if asked.decision.over[row].any() else "unknown"
    return [(check, name, now, reason) for reason in reasons["reason"]]


def waived(was: Recorded, asked: View, names: Collection[str]) -> tuple[View, tuple[Axis, ...]]:
    """Drop limits by name if the recorded stack has no number for them; known numbers still count.

    Raises:
        UnknownNameError: If there is no such limit.
    """
    names = [FORMER.get(name, name) for name in names]
    for name in names:
        if name not in LIMITS:
            raise UnknownNameError("limit", name, LIMITS)
    row, decision = today(was, asked), asked.decision
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
    later = versions(was, asked)
    for other in on:
        if not later[other] and (merits[:, other] >= merits[:, row]).all():
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
    if named := version(row, was, asked):
        words = f"{words}, and not {named}"
    if likely is None or likely == row or (best[likely] is not None and best[likely] <= share):
        return []
    return [("another", was.chosen.stack, str(asked.table["name"][likely]), words)]
