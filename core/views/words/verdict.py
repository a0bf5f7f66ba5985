"""Whether the chosen stack should be shipped, or is only the best so far; shared by all surfaces.

A choice is shipped only if nothing speaks against it; any objection is stated in the same sentence.
"""

from __future__ import annotations

from core.analysis.workspace.view import View
from core.decide.axes import COST, LATENCY
from core.decide.selection import ALONE
from core.views import text
from core.views.words.advice import first_step

SHIP, SO_FAR, TAKEN, NONE = "ship", "best so far", "taken by hand", "none"
LIKELY = 0.8
"""Probability of good selection below which nothing is shipped."""
BAR = (
    f"“Ship” needs {100 * LIKELY:.0f} % confidence, deciding results judged and timed, no far lighter match."
)
"""The bar in words."""


def verdict(view: View) -> str:
    """Return the verdict: `SHIP`, `SO_FAR`, `TAKEN` (against a significantly better one) or `NONE`."""
    if view.decision.chosen is None:
        return NONE
    if not doubt(view):
        return SHIP
    return SO_FAR if view.decision.instead_of is None else TAKEN


def level(view: View) -> bool:
    """Return whether several stacks meet the limits, and all have the same result on every query."""
    return view.sure.unknown == ALONE and int(view.decision.feasible.sum()) > 1


def doubt(view: View) -> str:
    """State in a few words the objection to shipping the choice, or return "" if there is none.

    It is the thing to do first, if any; otherwise a confidence below `LIKELY`; otherwise an unknown latency,
    cost or confidence.
    """
    decision, sure = view.decision, view.sure
    if decision.chosen is None:
        return ""
    if first := view.once(first_step).do:
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
