"""A build of a golden set: the form and its specification, sentences and tables, and its stored result.

The result is stored under its own id, or as the next version, which names the one before.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING

import polars as pl

from core.number_format import count, usd
from core.work.paid import closing, fact, listed, now, press

if TYPE_CHECKING:  # the engines take a second to load
    from core.golden.refine.base import Refinement
    from core.pipeline.evaluate import Status
    from core.work.golden.plan import GoldenPlan


RISK = (
    "Passages may carry instructions for the judge; they stand between marks that they cannot foresee and "
    "answers of another form are refused, but a model can still be swayed: have people judge a sample."
)

WHAT = (
    "A judge model grades what the sources find for each question; let people check a sample of its grades."
)
NO_JUDGE = "Choose a judge; “fake” tries it out without a key or money."
JUDGES = (
    "Of several the majority counts; ties take the lower grade. “fake” compares words: for trying out, never "
    "for results."
)

PROMPTS = {
    "grade": "To grade a passage",
    "order": "To put five passages in order",
    "nuggets": "To list nuggets",
    "support": "To tell which nuggets a passage supports",
}


def headline(known: Sequence[Status]) -> str:
    """State how many were built and which are in progress."""
    if not known:
        return "Let a model grade your passages; a person checks a sample."
    if doing := now(known, "being built", ""):
        return f"{doing}."
    built = sum(str(status.state) == "finished" for status in known)
    return f"{count(built, 'golden set')} built here{'' if built == len(known) else ', some unfinished'}."


def size_of(plan: GoldenPlan) -> str:
    """Describe the work: ``64 questions, 3,200 passages in the pools, 2,950 texts to judge``."""
    about = "" if plan.pools_known else "≈ "
    taken = f", {plan.grades_taken:,} grades taken over" if plan.grades_taken else ""
    passages = f"{about}{plan.pool:,} passages in the pools"
    judged = f"{about}{count(plan.to_judge, 'text')} to judge{taken}"
    return f"{count(plan.questions, 'question')}, {passages}, {judged}"


def planned(plan: GoldenPlan) -> str:
    """Return `size_of`, and the predicted gain of each method of refining."""
    return f"{size_of(plan)}{refining(plan)}"


def refining(plan: GoldenPlan) -> str:
    """Describe the predicted gain and cost of each method, and which is recommended, or return "" if none."""
    ways = []
    for way in plan.ways:
        name = "grades alone" if way["method"] == "none" else way["method"]
        paid = "" if way["usd"] is None or not way["usd"] else f", {usd(way['usd'])}"
        calls = f" ({way['turns']:.0f} calls a question{paid})" if way["turns"] else ""
        ways.append(f"{name} {way['tau']:.2f}{calls}")
    chosen = "".join(way["method"] for way in plan.ways if way["recommended"])
    advice = {"": "", "none": "do not refine"}.get(chosen, f"{chosen} is recommended")
    if not ways:
        return ""
    return (
        f". Order of the best, Kendall tau to the true one, simulated at an assumed judge noise of 1 grade: "
        f"{', '.join(ways)}; {advice}"
    )


def button(plan: GoldenPlan) -> str:
    """Return the label of the button: ``Judge 2,950 texts · $0.84 · about 5 min``."""
    act = f"Judge {count(plan.to_judge, 'text')}" if plan.to_judge else "Build it"
    return press(act, plan, plan.seconds)


def ended(status: Status) -> str:
    """Describe how a build ended, in a sentence or two."""
    name, ungraded = (status.facts.get(fact) for fact in ("golden_set_id", "ungraded"))
    remarks = [f"{count(int(ungraded), 'text')} got no grade in three tries."] if ungraded else []
    return closing(status, f"the golden set {name} is in the store" if name else "", remarks)


def pays(ways: pl.DataFrame) -> str:
    """State the recommendation, and its gain over the grades alone."""
    chosen = ways.filter("recommended").row(0, named=True)
    if chosen["method"] == "none":
        return "At the judge's noise as measured, refining would lose or gain nothing sure; grades decide."
    grades = ways.filter(method="none")["tau"].item()
    return f"{chosen['method']} pays: tau {chosen['tau']:.2f} instead of {grades:.2f} by grades alone."


def came_to_rest(state: Refinement) -> str:
    """Describe how the refinement of one question ended."""
    why = {"stable": "the Top-20 came to rest", "limit": "it stopped at the limit of turns"}
    skipped = f", {state.skips} skipped" if state.skips else ""
    against = count(len(state.contradictions), "judgement against a lock", "judgements against locks")
    ended = why.get(state.stopped, "too few passages to order" if state.stopped else "it is under way")
    return f"{count(state.turns, 'turn')}{skipped}, {against}; {ended}."


def table(known: Sequence[tuple[str, Status]]) -> pl.DataFrame:
    """Return all builds, newest first: name, state, stage, golden_set, usd, began (UTC), message."""
    return listed(known, {"stage": attrgetter("stage"), "golden_set": fact("golden_set_id")})
