"""A reader job as sentences and tables: its plan, how it ended, what it answered."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import polars as pl

from core.views.run.paid import bill, closing, fact, listed, now, press
from core.views.text import count

if TYPE_CHECKING:  # the engines take a second to load
    from core.pipeline.evaluate import Status
    from core.readers.plan import ReaderPlan


WHAT = "Models answer from the rankings of stored runs, which are not made again: only answers are paid."
NO_RANKINGS = "Readers answer from rankings, and this workspace has none: run stacks, or add runs with them."
NO_READER = "Choose a model that answers; “fake” tries it out without a key or money."


def headline(known: Sequence[Status]) -> str:
    """How many jobs there were, and which run now."""
    if not known:
        return "No reader was asked on stored runs yet."
    return f"{count(len(known), 'job')} of readers; {now(known, 'answering', 'none is answering')}."


def button(made: ReaderPlan) -> str:
    """What the button says: ``Get 5,400 answers · $0.84 · about 5 min``."""
    return press(f"Get {count(made.answers, 'answer')}", made, made.seconds)


def size_of(made: ReaderPlan) -> str:
    """What will be answered: ``4 runs, 225 questions, 5,400 answers from 2,310 different calls``."""
    runs, questions = count(made.runs, "run"), count(made.questions, "question")
    held = f"; {made.held:,} of them are in the store" if made.held else ""
    return f"{runs}, {questions}, {made.answers:,} answers from {count(made.asked, 'different call')}{held}"


def as_json(made: ReaderPlan) -> dict[str, Any]:
    """Everything about a plan."""
    return {
        "name": made.name,
        "runs": made.runs,
        "questions": made.questions,
        "answers": made.answers,
        "held": made.held,
        "asked": made.asked,
        **bill(made),
        "seconds": made.seconds,
    }


def ended(status: Status) -> str:
    """How it ended, in a sentence or two."""
    answers, unused = (status.facts.get(fact) for fact in ("answers", "unused"))
    remarks = [f"{count(int(unused), 'answer')} of the judge could not be used."] if unused else []
    remarks += [
        f"Left out: {count(int(other), what)} other than the store has in this place."
        for what in ("answer", "score")
        if (other := status.facts.get(f"other_{what}s"))
    ]
    return closing(status, f"{answers:,} answers are in the store" if answers else "", remarks)


def table(known: Sequence[tuple[str, Status]]) -> pl.DataFrame:
    """All of them, newest first: name, state, stage, answers, usd, began (UTC), message."""
    return listed(known, {"stage": attrgetter("stage"), "answers": fact("answers")}, answers=pl.Int64())


def answered(answers: pl.DataFrame) -> pl.DataFrame:
    """How many answers there are by run, reader, prompt, temperature, mode and k, truncated ones counted."""
    by = ["run_id", "reader", "prompt", "temperature", "mode", "k"]
    counted = answers.group_by(by).agg(answers=pl.len(), truncated=pl.col("truncated").sum())
    return counted.sort(by, nulls_last=True)
