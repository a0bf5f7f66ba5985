"""A set of questions: the form and its specification, its cost and power, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from core.number_format import count, score, shorten
from core.tables import schema
from core.work.paid import closing, fact, listed, now, press

if TYPE_CHECKING:  # the engines take a second to load
    from core.pipeline.evaluate import Status
    from core.work.questions.folder import QuestionSet
    from core.work.questions.plan import QuestionsPlan


METHODS = (
    "Without a model: headings, for what stands below, or words drawn from a stretch of a document; a log "
    "has what people really asked. A chat model writes them, with a key."
)

HEAD = "Make test queries from your documents."
GOOD_FOR = (
    "Good for latency, cost and a first look at quality by RR and Success. Made-up questions: check with "
    "real ones."
)

OF_LOGS = "Real questions have no known answer yet: run stacks, then judge what they find."
_LIKE = schema("query_id question type method quote source overlap:float frequency:int64 reason")


def choose(workspace: str) -> str:
    """Ask for documents, and mention that a workspace has no texts; "" = it has some."""
    lacks = f"{workspace} has no texts of passages. " if workspace else ""
    return f"{lacks}Choose documents, or type a path."


def headline(known: Sequence[Status]) -> str:
    """State what was made last, or which are in progress."""
    if doing := now(known, "being made", ""):
        return f"{doing}."
    made = next((status.facts for status in known if status.facts.get("questions")), None)
    if made is None:
        return HEAD
    sources = made.get("documents")
    origin = f" from {count(int(str(sources)), 'document')}" if sources else ""
    return f"{count(int(str(made['questions'])), 'question')} made{origin}."


def size_of(plan: QuestionsPlan) -> str:
    """Describe the sources of the questions, and the smallest difference they show."""
    texts = f"{count(plan.stretches, 'stretch', 'stretches')} of {count(plan.sources, 'document')}"
    all_there_are = ", as many as there are," if plan.count < plan.wanted else ""
    return f"{count(plan.count, 'question')}{all_there_are} from {texts}, {plan.language}. {shows(plan)}"


def shows(plan: QuestionsPlan) -> str:
    """Describe the difference that this many questions show, and how many a finer one needs."""
    told = f"{count(plan.count, 'question')} tell apart stacks that differ by {score(plan.shows)} in RR@10"
    likely, most = plan.needed
    upto = f" to {most:,}" if most > likely else ""
    told += "" if plan.count >= most else f"; for .03 ask {likely:,}{upto}"
    spread = plan.spread
    where = (
        f"{count(spread.stacks, 'different stack')} and {count(spread.questions, 'question')} here"
        if spread.stacks
        else "two public collections"
    )
    return f"{told} (power 80 %, level 5 %; standard deviation {score(spread.sd)}, of {where})"


def button(plan: QuestionsPlan) -> str:
    """Return the label of the button: ``Make 64 questions · $0``."""
    return press(f"Make {count(plan.count, 'question')}", plan, plan.seconds)


def ended(status: Status) -> str:
    """Describe how the work ended: how many questions there are, what was dropped, and whom they favour."""
    made = status.facts.get("questions")
    if made is None:
        return closing(status, "", ())
    thrown = status.facts.get("thrown_out")
    remarks = []
    if isinstance(some := status.facts.get("examples"), list) and some:
        remarks.append(f"Such as: {'; '.join(f'“{shorten(str(one))}”' for one in some)}.")
    if isinstance(thrown, Mapping) and thrown:
        counted = ", ".join(f"{reason} {number}" for reason, number in thrown.items())
        remarks.append(f"Thrown out: {counted}.")
    mean = status.facts.get("overlap")
    if isinstance(mean, float):
        from core.work.questions.overlap import favours  # noqa: PLC0415 - with the engines, a second

        remarks.append(f"{favours(mean)}.")
    if twins := status.facts.get("twins"):
        remarks.append(f"{count(int(str(twins)), 'twin')} in other words beside it.")
    return closing(status, count(int(str(made)), "question"), remarks)


def table(known: Sequence[tuple[str, Status]]) -> pl.DataFrame:
    """Return all sets, newest first: name, state, folder, questions, usd, began (UTC), message."""
    columns = {"folder": fact("folder"), "questions": fact("questions")}
    return listed(known, columns, questions=pl.Int64())


def made_in(status: Status) -> Path | None:
    """Return the folder of a finished set, or None if there is none."""
    folder = status.facts.get("folder")
    path = Path(str(folder)) if folder else None
    return path if path is not None and (path / "set.json").is_file() else None


def rows(made: QuestionSet) -> pl.DataFrame:
    """List every draft of a set with its outcome; reason is "" for kept ones."""
    from core.pipeline.index.terms import Analyzer  # noqa: PLC0415
    from core.work.questions.overlap import overlap  # noqa: PLC0415 - with the engines, a second

    analyzer, method = Analyzer(str(made.about["language"])), str(made.about["method"])
    listed_rows = [
        (
            entry.query_id,
            entry.draft.text,
            entry.draft.kind,
            method,
            " … ".join(quote.text for quote in entry.draft.quotes),
            ", ".join(dict.fromkeys(quote.source for quote in entry.draft.quotes)),
            overlap(entry.draft, analyzer),
            entry.draft.frequency,
            entry.reason or None,
        )
        for entry in made.entries
    ]
    return pl.DataFrame(listed_rows, schema=_LIKE, orient="row")
