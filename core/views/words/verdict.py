"""Whether the chosen stack is to be shipped, or only the best so far; every surface reads it here.

Only a choice that nothing stands against is shipped. What stands against one is said in the same sentence.
"""

from __future__ import annotations

from core.analysis.workspace.view import View
from core.decide.axes import COST, LATENCY
from core.decide.selection import ALONE
from core.views import text
from core.views.words.advice import first_step

SHIP, SO_FAR, TAKEN, NONE = "ship", "best so far", "taken by hand", "none"
LIKELY = 0.5
"""Probability of good selection below which nothing is shipped."""


def verdict(view: View) -> str:
    """Return what the decision is: `SHIP`, `SO_FAR`, `TAKEN` (against what is surely better) or `NONE`."""
    if view.decision.chosen is None:
        return NONE
    if not doubt(view):
        return SHIP
    return SO_FAR if view.decision.instead_of is None else TAKEN


def doubt(view: View) -> str:
    """Say in a few words what stands against shipping the choice; empty where nothing does.

    What to do first, where anything; else a confidence below `LIKELY`; else what is unknown of latency, cost
    and confidence.
    """
    decision, sure = view.decision, view.sure
    if decision.chosen is None:
        return ""
    if first := first_step(view).do:
        return first[:1].lower() + first[1:]
    if view.table.height == 1:
        return "nothing to compare it with"
    if sure.pgs is not None and sure.pgs < LIKELY:
        return f"confidence {text.percent(sure.pgs)}"
    row = view.table.row(decision.chosen, named=True)
    unknown = [axis.key for axis in (LATENCY, COST) if row[axis.column] is None]
    if sure.pgs is None and sure.unknown != ALONE:
        unknown.append("confidence")
    return f"{', '.join(unknown[:-1])}{' and ' * (len(unknown) > 1)}{unknown[-1]} unknown" if unknown else ""
