"""Searches near the stack that runs today: stacks beyond a limit on the move to them are not begun."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from core.analysis.moves.cost import Ground, items_of
from core.analysis.moves.switching import asked_move
from core.analysis.workspace.scope import Scope
from core.analysis.workspace.stacks import runs_in
from core.axes import AxisSpec, is_called
from core.decide.axes import COST, STEPS
from core.decide.switching import Terms, largest, needed
from core.pipeline.evaluate import Job
from core.pipeline.sweep.fields import Search, searched_by
from core.pipeline.sweep.problems import Problem, Severity, SpecError
from core.records import Stack, stack_label
from core.store import Snapshot

_WHERE = "search.limits"


def near(snapshot: Snapshot, job: Job) -> tuple[Job, list[Problem]]:
    """Return a search without the stacks that its limits on a move exclude, and a note of how many.

    The step of a move follows from both specifications. Of its dollars, what running both would cost is
    measured only later: a stack is left out where what is known already exceeds the limit.

    Raises:
        SpecError: If no stack is known to run today, or no other is within the limits.
    """
    how = searched_by(job.spec)
    if how is None or (how.limits.max_step is None and how.limits.max_switching_usd is None):
        return job, []
    running = _running(snapshot, job)
    kept = [stack for stack in job.stacks if _within(snapshot, job, running, stack, how)]
    if all(_same(running, stack) for stack in kept):
        reason = f"No stack of the search is within them, seen from {stack_label(running)}."
        raise SpecError([Problem(_WHERE, reason, "Loosen max_step or max_switching_usd.")])
    if len(kept) == len(job.stacks):
        return job, []
    reason = f"{len(job.stacks) - len(kept)} of {len(job.stacks)} stacks are beyond them and not begun."
    return replace(job, stacks=kept), [Problem(_WHERE, reason, "", Severity.WARNING)]


def _running(snapshot: Snapshot, job: Job) -> AxisSpec:
    """Return the specification of the stack that runs today: named by the search, or marked in the store."""
    name, runs = job.spec.get("incumbent"), snapshot.runs(job.collection_id)
    named = [stack.spec for stack in job.stacks if is_called(name, stack.label, stack.spec)]
    if name is not None and not named and not runs.is_empty():
        shown = runs_in(snapshot, Scope(job.collection_id)).select("run_id", "name", "label", "spec")
        known = ((*row[:3], json.loads(row[3])) for row in shown.iter_rows())
        named = [row[3] for row in known if name in row[:2] or is_called(name, row[2], row[3])]
    elif name is None and (marked := snapshot.incumbent(job.collection_id)) is not None:
        named = [json.loads(text) for run, text in runs.select("run_id", "spec").iter_rows() if run == marked]
    if len(named) == 1:
        return named[0]
    found = "No stack is" if name is None else f"{len(named) or 'No'} stacks called {name!r} are"
    reason = f"{found} known to run today."
    raise SpecError([Problem(_WHERE, reason, 'Name it: incumbent = "NAME" at the top, or mark it.')])


def _same(running: AxisSpec, stack: Stack) -> bool:
    return stack.spec == running or needed(running, stack.spec) == {}


def _within(snapshot: Snapshot, job: Job, running: AxisSpec, stack: Stack, how: Search) -> bool:
    if _same(running, stack):
        return True
    terms = Terms.of(f"{name}={value:.10g}" for name, value in how.move.items())
    ground = Ground(snapshot=snapshot, book=job.book, source=(), collection_id=job.collection_id, terms=terms)
    asked = asked_move(ground, _row(running, "now"), _row(stack.spec, stack.stack_id))
    most, step = how.limits.max_step, largest(asked.needs)
    if most is not None and (step is None or STEPS.index(step) > STEPS.index(most)):
        return False
    dollars = how.limits.max_switching_usd
    known = math.fsum(item.usd for item in items_of(asked) if item.usd is not None)
    return dollars is None or (step is not None and known <= dollars)


def _row(spec: Mapping[str, Any], run_id: str) -> dict[str, Any]:
    return {"run_id": run_id, "name": stack_label(spec), "spec": json.dumps(dict(spec)), COST.column: None}
