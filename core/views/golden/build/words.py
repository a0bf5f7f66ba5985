"""A build of a golden set as sentences and tables: its plan, how far it is, how it ended."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import polars as pl

from core.views.run.paid import bill, closing, fact, listed, now, press
from core.views.text import count

if TYPE_CHECKING:  # the engines take a second to load
    from core.golden.plan import GoldenPlan
    from core.golden.refine import Refinement
    from core.pipeline.evaluate import Status


RISK = (
    "Passages may carry instructions for the judge; they stand between marks that they cannot foresee and "
    "answers of another form are refused, but a model can still be swayed: have people judge a sample."
)
WHAT = "A judge model grades what the sources find for each question; have people check a sample of it."
NO_JUDGE = "Choose a judge; “fake” tries it out without a key or money."
JUDGES = (
    "Of several the majority counts; ties take the lower grade. “fake” compares words: for trying out, never "
    "for results."
)
PROMPTS = {"grade": "To grade a passage", "order": "To put five passages in order"}


def headline(known: Sequence[Status]) -> str:
    """How many were built and which are now."""
    if not known:
        return "No golden set was built here yet."
    if all(str(status.state) == "finished" for status in known):
        return f"{count(len(known), 'golden set')} built here."
    return f"{count(len(known), 'golden set')} begun; {now(known, 'being built', 'none is under way')}."


def size_of(made: GoldenPlan) -> str:
    """What will be judged: ``64 questions, 3,200 passages in the pools, 2,950 texts to judge``."""
    about = "" if made.known else "≈ "
    taken = f", {made.taken:,} grades taken over" if made.taken else ""
    passages = f"{about}{made.pool:,} passages in the pools"
    judged = f"{about}{count(made.to_judge, 'text')} to judge{taken}"
    return f"{count(made.questions, 'question')}, {passages}, {judged}"


def button(made: GoldenPlan) -> str:
    """What the button says: ``Judge 2,950 texts · $0.84 · about 5 min``."""
    act = f"Judge {count(made.to_judge, 'text')}" if made.to_judge else "Build it"
    return press(act, made, made.seconds)


def as_json(made: GoldenPlan) -> dict[str, Any]:
    """Everything about a plan."""
    return {
        "name": made.name,
        "questions": made.questions,
        "pool": made.pool,
        "to_judge": made.to_judge,
        "pools_known": made.known,
        "grades_taken": made.taken,
        **bill(made),
        "seconds": made.seconds,
    }


def ended(status: Status) -> str:
    """How it ended, in a sentence or two."""
    name, ungraded = (status.facts.get(fact) for fact in ("golden_set_id", "ungraded"))
    remarks = [f"{count(int(ungraded), 'text')} got no grade in three tries."] if ungraded else []
    return closing(status, f"the golden set {name} is in the store" if name else "", remarks)


def pays(ways: pl.DataFrame) -> str:
    """What is recommended, and what it gains over the grades alone."""
    chosen = ways.filter("recommended").row(0, named=True)
    if chosen["method"] == "none":
        return "At the judge's noise as measured, refining would lose or gain nothing sure; grades decide."
    grades = ways.filter(method="none")["tau"].item()
    return f"{chosen['method']} pays: tau {chosen['tau']:.2f} instead of {grades:.2f} by grades alone."


def came_to_rest(state: Refinement) -> str:
    """How the refinement of one question ended."""
    why = {"stable": "the Top-20 came to rest", "limit": "it stopped at the limit of turns"}
    skipped = f", {state.skips} skipped" if state.skips else ""
    against = count(len(state.contradictions), "judgement against a lock", "judgements against locks")
    ended = why.get(state.stopped, "too few passages to order" if state.stopped else "it is under way")
    return f"{count(state.turns, 'turn')}{skipped}, {against}; {ended}."


def table(known: Sequence[tuple[str, Status]]) -> pl.DataFrame:
    """All of them, newest first: name, state, stage, golden_set, usd, began (UTC), message."""
    return listed(known, {"stage": attrgetter("stage"), "golden_set": fact("golden_set_id")})
