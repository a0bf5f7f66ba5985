"""Readers on stored runs: their inputs from the store, and adding their answers to existing ones.

It also describes a reader job in sentences and tables: its plan, how it ended, its answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING

import polars as pl

from core.number_format import count
from core.work.paid import closing, fact, listed, now, press

if TYPE_CHECKING:  # the engines take a second to load
    from core.pipeline.evaluate import Status
    from core.work.readers.plan import ReaderPlan


WHAT = "Only answers and the judges that you choose cost money: nothing is retrieved again."
NO_RANKINGS = "Readers answer from rankings, and this workspace has none: run stacks, or add runs with them."
NO_READER = "Choose a model that answers; “fake” tries it out without a key or money."


def headline(known: Sequence[Status]) -> str:
    """State how many jobs there were, and which are running."""
    if not known:
        return "Let a model answer from the passages that a stack found."
    times = count(len(known), "time")
    return f"{now(known, 'answering', f'Readers answered {times}')}."


def button(plan: ReaderPlan) -> str:
    """Return the label of the button: ``Get 5,400 answers · $0.84 · about 5 min``."""
    return press(f"Get {count(plan.answers, 'answer')}", plan, plan.seconds)


def size_of(plan: ReaderPlan) -> str:
    """Describe the answers: ``4 runs, 225 questions, 5,400 answers from 2,310 different calls``."""
    runs, questions = count(plan.runs, "run"), count(plan.questions, "question")
    held = f"; {plan.held:,} of them are in the store" if plan.held else ""
    return f"{runs}, {questions}, {plan.answers:,} answers from {count(plan.asked, 'different call')}{held}"


def ended(status: Status) -> str:
    """Describe how a job ended, in a sentence or two."""
    answers, unused = (status.facts.get(fact) for fact in ("answers", "unused"))
    remarks = [f"{count(int(unused), 'answer')} of the judge could not be used."] if unused else []
    remarks += [
        f"Left out: {count(int(other), what)} other than the store has in this place."
        for what in ("answer", "score")
        if (other := status.facts.get(f"other_{what}s"))
    ]
    return closing(status, f"{answers:,} answers are in the store" if answers else "", remarks)


def table(known: Sequence[tuple[str, Status]]) -> pl.DataFrame:
    """Return all jobs, newest first: name, state, stage, answers, usd, began (UTC), message."""
    return listed(known, {"stage": attrgetter("stage"), "answers": fact("answers")}, answers=pl.Int64())


def answered(answers: pl.DataFrame) -> pl.DataFrame:
    """Count answers, truncated ones too, by run, reader, prompt, temperature, mode and k."""
    by = ["run_id", "reader", "prompt", "temperature", "mode", "k"]
    counted = answers.group_by(by).agg(answers=pl.len(), truncated=pl.col("truncated").sum())
    return counted.sort(by, nulls_last=True)
