"""What to do before the choice is shipped: judge more, ask more questions, time again, or nothing."""

from __future__ import annotations

from core.analysis.judging import TARGET, waiting
from core.analysis.workspace.view import View
from core.views import text

JUDGE = "Judge"
"""How the sentence begins where judging could take the confidence away."""
NOTHING = "Nothing more needs measuring first."
HARDLY = "More questions would hardly pay."
FINE = (NOTHING, HARDLY)
"""What is said where nothing need be done first: surely the best, or surely good enough."""
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
    if sure.pgs >= TARGET:
        return NOTHING if sure.ahead else HARDLY
    rival = "another stack" if sure.rival is None else table["name"][sure.rival]
    return f"Ask more questions first: {rival} may be better."


def _late(view: View) -> bool:
    """Tell whether the latency leaves it in doubt that the chosen stack meets the limits."""
    share, sla, chosen = view.sure.p_feasible, view.constraints.sla_ms, view.decision.chosen
    if share is None or share >= MEETS or sla is None or chosen is None:
        return False
    high = view.table["latency_high"][chosen]
    return high is None or high > sla
