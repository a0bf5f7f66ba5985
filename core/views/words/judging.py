"""Passages to judge next: the unjudged ones of stacks that may be chosen, and what judging them did."""

from __future__ import annotations

from core.analysis.judging import TARGET, USUAL, Next
from core.analysis.workspace.scope import Quality
from core.views import text


def next_words(unjudged: Next, quality: Quality, target: float = TARGET) -> str:
    """Tell whether more judging is worth it, and what the first passages would bring."""
    rows, filled = unjudged.worth.rows, unjudged.filled
    if unjudged.stack is None:
        said = "No stack ships."
    elif unjudged.pgs is None:
        said = f"How sure {unjudged.stack} is, is unknown."
    else:
        said = f"{unjudged.stack} is {unjudged.good} in {text.percent(unjudged.pgs)} of simulated repeats."
    if rows.is_empty():
        return f"{said} Everything in the Top-{quality.k} of the leading stacks is judged."
    enough = filled is not None and filled >= target
    if filled is not None:
        side = "past" if enough else "below"
        said += (
            f" Were the unjudged passages graded like the judged ones at their ranks, it would be in "
            f"{text.percent(filled)}, {side} the target of {text.percent(target)}."
        )
    if enough:
        return f"{said} No more judging is needed."
    first = rows.head(USUAL).height
    return f"{said} Of {rows.height:,} unjudged passages these {first} could change that first."
