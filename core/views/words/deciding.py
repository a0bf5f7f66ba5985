"""What two stacks show differently, and what a few grades decide, in sentences."""

from __future__ import annotations

import polars as pl

from core.analysis.between import Between
from core.analysis.deciding import Standing
from core.number_format import interval, signed
from core.views import text

NOT_A_GAIN = "A change is not yet a gain."
_ANSWERS = {
    "switch": "switch",
    "stay": "stay",
    "no difference": "no difference that matters",
}


def changed(found: Between) -> tuple[str, str]:
    """Say on how many questions another passage comes first, and how much the two Top-K share."""
    rows, alike = found.questions, mean(found.questions)
    of = f"{int(rows['other_first'].sum()):,} of {text.count(rows.height, 'query')}"
    first = f"Moving from {found.now} to {found.to} changes the first passage on {of}."
    shared = f"The two Top-{found.contest.k} share {text.percent(alike['overlap'])} of their passages"
    return first, f"{shared}; rank-biased overlap {text.score(alike['rbo'])}. {NOT_A_GAIN}"


def errs(found: Between) -> str:
    """Say how well the judge of a golden set tells useful passages; "" if its grades do not count."""
    if found.by is None:
        return ""
    known = found.mistakes
    if known is None or known.found is None or known.wrong is None:
        return f"How often {found.by} errs is not known: no other judge grades enough of it."
    said = f"{found.by} finds {text.percent(known.found)} of what {known.golden_set} calls useful"
    wrong = f"{text.percent(known.wrong)} of the rest too, n = {known.passages:,}"
    return f"{said}, {wrong}. Mistakes alike on both leave {text.percent(known.keeps)} of a true lead."


def mean(rows: pl.DataFrame) -> dict[str, float]:
    """Return the means of `DIFFERENCES` over the questions."""
    return rows.select(pl.col("overlap", "rbo", "other_first").mean()).row(0, named=True)


def stands(found: Standing) -> str:
    """Say what the grades so far decide, and how many more questions are expected."""
    of = text.count(found.open, "query")
    if not found.done:
        return f"Nothing is decided yet: 0 of {of} judged."
    lead = f"{signed(found.value)}{interval(*found.ends)} {found.contest.measure}"
    if found.answer is not None:
        said = f"Decided after {text.count(found.at or 0, 'query')}: {_ANSWERS[found.answer]}"
        return f"{said}. The candidate's lead is {lead}."
    more = "" if found.more is None else f"; about {found.more} more"
    return f"Not decided after {found.done} of {of}{more}. The candidate's lead is {lead}."
