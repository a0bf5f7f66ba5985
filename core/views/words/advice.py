"""What to do before the choice is shipped: judge more, ask more questions, time again, or nothing."""

from __future__ import annotations

from core.analysis.judging import waiting
from core.analysis.workspace.view import View
from core.views import text

JUDGE = "Judge"
"""How the sentence begins where judging could take the confidence away."""
NOTHING = "Nothing more needs measuring first."
HARDLY = "More questions would hardly pay."
FINE = (NOTHING, HARDLY)
"""What is said where nothing need be done first: surely the best, or not worth more questions."""
PAYS = 0.1
"""Chance that as many questions again show a better stack, from which on they are asked first."""
MEETS = 0.9
"""Share of simulated repeats within the limits below which the stack is timed again first."""


def advice(view: View) -> str:
    """Say what to do first; empty where nothing is chosen, or nobody knows how sure that is."""
    decision, sure, table = view.decision, view.sure, view.table
    if decision.chosen is None or sure.pgs is None:
        return ""
    if _late(view):
        share = text.percent(sure.p_feasible)
        return f"Time it again first: it meets the limits in {share} of simulated repeats."
    told = waiting(view)
    if told is not None and told.matters:
        passages, other = text.count(told.first, "passage"), told.rival or "another stack"
        then = f"{other} {'would lead' if told.leads else 'could win'}"
        return f"{JUDGE} {passages} first; graded like the rest, {then}."
    if not asking_pays(view):
        return NOTHING if sure.ahead else HARDLY
    rival = "another stack" if sure.rival is None else table["name"][sure.rival]
    return f"Ask {again(view):,} more questions first: {rival} may be better."


def asking_pays(view: View) -> bool:
    """Tell whether as many questions again are likely to show a better stack than the chosen one."""
    found = view.sure.p_better_found
    return found is not None and found >= PAYS


def again(view: View) -> int:
    """Return how many questions are as many as the chosen stack was scored on."""
    assert view.decision.chosen is not None  # asked for where one is  # noqa: S101
    return int(view.table["n"][view.decision.chosen] or 0)


def _late(view: View) -> bool:
    """Tell whether the latency leaves it in doubt that the chosen stack meets the limits."""
    share, sla, chosen = view.sure.p_feasible, view.constraints.sla_ms, view.decision.chosen
    if share is None or share >= MEETS or sla is None or chosen is None:
        return False
    high = view.table["latency_high"][chosen]
    return high is None or high > sla
