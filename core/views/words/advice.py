"""What to do before shipping the choice: judge more, ask more queries, time again, or nothing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core.analysis.judging import waiting
from core.analysis.workspace.clusters import made_up, one_known
from core.analysis.workspace.comparable import MANY_HOLES
from core.analysis.workspace.noise import about_grades
from core.analysis.workspace.view import View
from core.views import text
from core.views.words.judging import ASK_REAL, check_first
from core.views.words.trade import Trade, trade

JUDGE = "Judge"
"""Beginning of a step if judging could remove the confidence."""
NOTHING = "Nothing more needs measuring first."
PAYS = 0.1
"""Least chance that doubling the questions shows a better stack at which doing so is recommended first."""
ROLES = ("first by the rule", "advised")
"""What two stacks are of which none clearly wins."""
MEETS = 0.9
"""Share of resamples within the limits below which the stack is timed again first."""


@dataclass(frozen=True)
class AdviceStep:
    """The objection to shipping the choice, if any."""

    do: str = ""  # in a few words: "Judge 333 passages first"; "" if nothing need be done first
    why: str = ""  # the end of its sentence
    whole: str = ""  # its sentence, if that is not both of these
    rather: Trade | None = None  # the stack that may be as good for far less; None = not the objection


def advice(view: View) -> str:
    """Say what to do first, or return "" if nothing is chosen or its confidence is unknown."""
    first = first_step(view)
    if first.do:
        return first.whole or f"{first.do}{first.why}."
    if view.decision.chosen is None or view.sure.pgs is None:
        return ""
    if check := check_first(view):
        return f"{check}."
    return NOTHING if view.sure.ahead else found_again(view)


def objection(view: View) -> str:
    """Return the advice if it objects to shipping the choice, unless an offered stack says it beside it."""
    first = first_step(view)
    return "" if not first.do or first.whole else advice(view)


def found_again(view: View) -> str:
    """Say how often as many questions again find a stack that is better by what matters, or ""."""
    found = view.sure.p_better_found
    if found is None or view.decision.chosen is None:
        return ""
    more = text.count(again(view), "more query")
    delta = view.decision.delta
    better = f"a stack {delta:g} better" if delta else "a better stack"
    return f"{more} find {better} in {text.percent(found)} of simulations."


def first_step(view: View) -> AdviceStep:
    """Return the most important step before shipping the choice."""
    decision, sure = view.decision, view.sure
    if decision.chosen is None:
        return AdviceStep()
    if _late(view):
        share = text.percent(sure.p_feasible)
        return AdviceStep("Time it again first", f": it meets the limits in {share} of resamples")
    if made_up(view.snapshot, view.scope):
        return AdviceStep(text.capital(ASK_REAL), ", as people use other words")
    if sure.pgs is None:
        return AdviceStep()
    return _instead(view) or _judge(view) or _consider(view) or _ask(view) or AdviceStep()


def roles(view: View) -> dict[str, str]:
    """Return what both stacks are where none clearly wins, by run_id; empty otherwise."""
    rather = view.once(first_step).rather
    return {} if rather is None else dict(zip((row["run_id"] for row in rather.sides), ROLES, strict=True))


def second_row(view: View) -> int | None:
    """Return the row of the stack that the heading names after the chosen one, or None if it names one."""
    return None if view.once(first_step).rather is None else view.sure.alternatives[0].row


def _judge(view: View) -> AdviceStep | None:
    told = waiting(view)
    if told is None:
        return _judge_all(view)
    if not told.matters:
        return None
    passages, other = text.count(told.first, "passage"), told.rival or "another stack"
    then = f"{other} {'would lead' if told.leads else 'could win'}"
    return AdviceStep(f"{JUDGE} {passages} first", f"; graded like the rest, {then}")


def _judge_all(view: View) -> AdviceStep | None:
    """Return that the chosen stack is to be judged, if no rival's passages are cut like its own."""
    row, scope = view.decision.chosen, view.scope
    hole = None if row is None or "hole" not in view.table.columns else view.table["hole"][row]
    alone = int(view.decision.feasible.sum()) < 2
    if hole is None or hole <= MANY_HOLES or alone or not about_grades(view.quality):
        return None
    if one_known(view.snapshot, scope.golden_set_id):
        return None
    return AdviceStep(
        f"{JUDGE} its results first", f": nobody judged {text.percent(hole)} of its Top-{view.quality.k}"
    )


def _consider(view: View) -> AdviceStep | None:
    """Return the first alternative if it loses no more than matters, for a tenth of the time or cost."""
    found, first = view.once(trade), next(iter(view.sure.alternatives), None)
    if found is None or first is None or first.difference < -view.decision.delta or not found.tenth:
        return None
    return AdviceStep(f"Another may be as good for {found.tenth}", whole=found.sentence, rather=found)


def _ask(view: View) -> AdviceStep | None:
    if not asking_pays(view):
        return None
    rival = "another stack" if view.sure.rival is None else _name(view, view.sure.rival)
    return AdviceStep(f"Ask {again(view):,} more queries first", f": {rival} may be better")


def _instead(view: View) -> AdviceStep | None:
    """Return the rule's stack if it is significantly better than the one that a person took."""
    decision, paired = view.decision, view.paired
    if decision.instead_of is None or decision.chosen is None or paired is None:
        return None
    own, other = paired.places(view.table["run_id"])[[decision.chosen, decision.instead_of]].tolist()
    if min(own, other) < 0:
        return None
    told = paired.differences(np.array([other]), own)
    gap, *ends = (float(decision.quality.merit(end)[0]) for end in told)
    if min(ends) <= 0:
        return None
    by = f", by {text.score(gap)} [{text.score(min(ends))}, {text.score(max(ends))}]"
    return AdviceStep(f"Surely worse than {_name(view, decision.instead_of)}", by)


def _name(view: View, row: int) -> str:
    return str(view.table["name"][row])


def asking_pays(view: View) -> bool:
    """Return whether doubling the questions is likely to show a better stack than the chosen one."""
    found = view.sure.p_better_found
    return found is not None and found >= PAYS


def again(view: View) -> int:
    """Return the number of questions to add to double those that the chosen stack was scored on."""
    assert view.decision.chosen is not None  # called only if one is  # noqa: S101
    return int(view.table["n"][view.decision.chosen] or 0)


def _late(view: View) -> bool:
    """Return whether the latency leaves in doubt that the chosen stack meets the limits."""
    share, sla, chosen = view.sure.p_feasible, view.constraints.sla_ms, view.decision.chosen
    if share is None or share >= MEETS or sla is None or chosen is None:
        return False
    high = view.table["latency_high"][chosen]
    return high is None or high > sla
