"""What to do before the choice is shipped: judge more, ask more questions, or nothing."""

from __future__ import annotations

from core.analysis.judging import TARGET, waiting
from core.analysis.workspace.view import View
from core.views import text

JUDGE = "Judge"
"""How the sentence begins where judging could take the confidence away."""
NOTHING = "Nothing more needs measuring first."


def advice(view: View) -> str:
    """Say what to do first; empty where nothing is chosen, or nobody knows how sure that is."""
    decision, sure, table = view.decision, view.sure, view.table
    if decision.chosen is None or sure.pgs is None:
        return ""
    told = waiting(view)
    if told is not None and told.matters:
        passages, other = text.count(told.first, "passage"), told.rival or "another stack"
        then = f"{other} {'would lead' if told.leads else 'could win'}"
        return f"{JUDGE} {passages} first; graded like the rest, {then}."
    if sure.pgs >= TARGET:
        return NOTHING
    rival = "another stack" if sure.rival is None else table["name"][sure.rival]
    return f"Ask more questions first: {rival} may be better."
