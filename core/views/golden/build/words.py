"""A build of a golden set as sentences and tables: its plan, how far it is, how it ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from core.views.run.plan import RUNNING, duration, line_rows
from core.views.text import count, usd

if TYPE_CHECKING:  # the engines take a second to load
    from core.golden.plan import GoldenPlan
    from core.golden.refine import Refinement
    from core.pipeline.evaluate import Status
    from core.pipeline.sweep.plan import Bill
    from core.readers.plan import ReaderPlan

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
    names = " and ".join(f"“{status.name}”" for status in known if str(status.state) == RUNNING)
    now = f"{names} {'are' if ' and ' in names else 'is'} being built" if names else "none is under way"
    return f"{count(len(known), 'golden set')} begun; {now}."


def size_of(made: GoldenPlan) -> str:
    """What will be judged: ``64 questions, 3,200 passages in the pools, 2,950 texts to judge``."""
    about = "" if made.known else "≈ "
    taken = f", {made.taken:,} grades taken over" if made.taken else ""
    passages = f"{about}{made.pool:,} passages in the pools"
    judged = f"{about}{count(made.to_judge, 'text')} to judge{taken}"
    return f"{count(made.questions, 'question')}, {passages}, {judged}"


def dollars(made: GoldenPlan | ReaderPlan) -> str:
    """What it costs, how long it takes, and whether the budget is enough."""
    if not made.lines:
        return "Nothing is paid for: everything runs on this machine."
    total = "unknown, at least " if made.usd is None else ""
    parts = [f"{total}{usd(made.usd_known, '')}", f"about {duration(made.seconds)}", f"{made.calls:,} calls"]
    if made.limit is None:
        parts.append("no budget")
    else:
        enough = "it stops before its end" if made.over_budget else "enough as far as is known"
        parts.append(f"budget {usd(made.limit, '')}: {enough}")
    return ", ".join(parts)


def button(made: GoldenPlan) -> str:
    """What the button says: ``Judge 2,950 texts · $0.84 · about 5 min``."""
    act = f"Judge {count(made.to_judge, 'text')}" if made.to_judge else "Build it"
    return press(act, made, made.seconds)


def press(act: str, made: Bill, seconds: float = 0.0) -> str:
    """What a button says that does what was planned; 0 seconds are not said."""
    price = "$0" if not made.lines else ("≥ " if made.usd is None else "") + usd(made.usd_known, "")
    took = f" · about {duration(seconds)}" if seconds else ""
    return f"{act} · {price}{took}"


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


def bill(made: GoldenPlan | ReaderPlan) -> dict[str, Any]:
    """What a plan pays for, as JSON."""
    return {
        "stages": line_rows(made).to_dicts(),
        "calls": made.calls,
        "usd": made.usd,
        "usd_known": made.usd_known,
        "budget_usd": made.limit,
        "over_budget": made.over_budget,
        "problems": [{"severity": str(each.severity), "message": str(each)} for each in made.problems],
    }


def progress(status: Status) -> str:
    """How far one is: stage, passages or questions, time left, dollars so far."""
    parts = [status.stage, status.so_far]
    if status.eta_s is not None:
        parts.append(f"about {duration(status.eta_s)} left")
    if status.usd or status.usd_limit is not None:
        limit = "" if status.usd_limit is None else f" of {usd(status.usd_limit, '')}"
        parts.append(f"{usd(status.usd, '')} spent{limit}")
    return " · ".join(part for part in parts if part)


def ended(status: Status) -> str:
    """How it ended, in a sentence or two."""
    name, ungraded = (status.facts.get(fact) for fact in ("golden_set_id", "ungraded"))
    remarks = [f"{count(int(ungraded), 'text')} got no grade in three tries."] if ungraded else []
    return closing(status, f"the golden set {name} is in the store" if name else "", remarks)


def closing(status: Status, done: str, remarks: Sequence[str]) -> str:
    """How a job ended: what is done, if anything, and what it spent, then remarks and what went wrong.

    Args:
        status: Its status.
        done: What it put into the store; empty where nothing.
        remarks: Sentences of its own kind.
    """
    parts = [f"{status.state}: {done}" if done else f"{status.state}"]
    if status.usd:
        parts[0] += f", {usd(status.usd, '')} spent"
    parts += remarks
    if status.calls_again:
        calls = count(status.calls_again, "call")
        parts.append(f"{calls} whose answers were lost were sent again and may have been paid twice.")
    if status.message:
        parts.append(status.message)
    parts[0] += "."
    return " ".join(parts)


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
    return listed(known, "golden_set", pl.String(), fact="golden_set_id")


def listed(
    known: Sequence[tuple[str, Status]], made: str, kind: pl.DataType, *, fact: str = ""
) -> pl.DataFrame:
    """Jobs as a table with what each made, a fact of its status."""
    rows = [
        (name, str(one.state), one.stage, one.facts.get(fact or made), one.usd, one.started_at, one.message)
        for name, one in known
    ]  # fmt: skip
    columns: dict[str, Any] = {
        **dict.fromkeys(("name", "state", "stage"), pl.String()),
        made: kind,
        "usd": pl.Float64(),
        "began": pl.Datetime("us", "UTC"),
        "message": pl.String(),
    }
    return pl.DataFrame(rows, schema=columns, orient="row")
