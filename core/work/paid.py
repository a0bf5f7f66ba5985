"""Descriptions of paid work of every kind: its cost, its progress, how it ended."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import polars as pl

from core.number_format import count, duration, usd
from core.prices import PRICE_IT
from core.tables import schema

if TYPE_CHECKING:  # the engines take a second to load
    from core.pipeline.evaluate import Status
    from core.pipeline.sweep.plan import Bill
    from core.work.golden.plan import GoldenPlan
    from core.work.questions.plan import QuestionsPlan
    from core.work.readers.plan import ReaderPlan

RUNNING = "running"
_OWN_STAGE = "pipeline"  # For custom pipelines
_OF_BILLS = ("lines", "limit", "problems")
_RESUMABLE = ("stopped by budget", "cancelled", "interrupted", "failed", "killed")
_LINES = schema("stage model calls:int64 unit amount:float counted usd:float unknown")


def line_rows(plan: Bill) -> pl.DataFrame:
    """List what is paid for, one row per stage, model and unit; usd is null if it is unknown."""
    rows = [
        (
            line.stage,
            line.model,
            line.calls,
            line.unit,
            line.amount,
            "; ".join(("exact" if line.exact else "estimated", *line.notes)),
            line.usd,
            line.reason,
        )
        for line in plan.lines
    ]
    return pl.DataFrame(rows, schema=_LINES, orient="row")


def dollars(plan: GoldenPlan | ReaderPlan | QuestionsPlan) -> str:
    """Describe the cost, the duration, and whether the budget is enough."""
    if not plan.lines:
        return "No vendor is paid: everything runs on this machine."
    total = "unknown, at least " if plan.usd is None else ""
    parts = [f"{total}{usd(plan.usd_known)}", f"about {duration(plan.seconds)}", f"{plan.calls:,} calls"]
    if plan.limit is None:
        parts.append("no budget")
    else:
        enough = "it stops before its end" if plan.over_budget else "enough as far as is known"
        parts.append(f"budget {usd(plan.limit)}: {enough}")
    return ", ".join(parts) + (f".{without_price(plan)}" if plan.unpriced else "")


def without_price(plan: Bill) -> str:
    """List the models without a price, and the remedy, or return "" if all have one."""
    pipelines = {line.model for line in plan.lines if line.stage == _OWN_STAGE}
    own, rest = (
        ", ".join(name for name in plan.unpriced if (name in pipelines) == inside) for inside in (True, False)
    )
    said = (
        f" {own} costs what it reports as usage; if it reports none, give $ per query or hour." if own else ""
    )
    return f"{said} No price in $: {rest}. {PRICE_IT}" if rest else said


def press(act: str, plan: Bill, seconds: float = 0.0) -> str:
    """Return the label of the button that carries out the plan; a duration of 0 is left out."""
    known = usd(plan.usd_known)
    price = known if plan.usd is not None else f"≥ {known}" if plan.usd_known else "cost unknown"
    price = price if plan.lines else "$0"
    took = f" · about {duration(seconds)}" if seconds else ""
    return f"{act} · {price}{took}"


def bill(plan: Bill) -> dict[str, Any]:
    """Return a plan's bill as JSON."""
    return {
        "stages": line_rows(plan).to_dicts(),
        "calls": plan.calls,
        "usd": plan.usd,
        "usd_known": plan.usd_known,
        "budget_usd": plan.limit,
        "over_budget": plan.over_budget,
        "problems": [
            {"severity": str(problem.severity), "message": str(problem)} for problem in plan.problems
        ],
    }


def as_json(plan: GoldenPlan | ReaderPlan) -> dict[str, Any]:
    """Return everything about a plan."""
    own = {field.name: getattr(plan, field.name) for field in fields(plan) if field.name not in _OF_BILLS}
    return own | bill(plan)


def embedders() -> list[str]:
    """Return the names of known embedders, the one without requirements first."""
    from core.pipeline.sweep.known import KnownNames  # noqa: PLC0415 - with the engines, a second

    return sorted(KnownNames().names["embedder"], key=lambda name: (name != "wordllama", name))


def resumable(status: Status) -> bool:
    """Return whether work was started, did not finish and isn't running now."""
    return str(status.state) in _RESUMABLE


def now(known: Sequence[Status], doing: str, none: str) -> str:
    """List the running jobs: ``“paris” and “rome” are running``, or return `none` if none runs."""
    names = [f"“{status.name}”" for status in known if str(status.state) == RUNNING]
    return f"{' and '.join(names)} {'are' if names[1:] else 'is'} {doing}" if names else none


def progress(status: Status, stored: str = "") -> str:
    """Describe the progress: stage, passages or questions, stored results, time left, dollars so far."""
    parts = [status.stage, status.so_far, stored]
    if status.eta_s is not None:
        parts.append(f"about {duration(status.eta_s)} left")
    if status.usd or status.usd_limit is not None:
        limit = "" if status.usd_limit is None else f" of {usd(status.usd_limit)}"
        parts.append(f"{usd(status.usd)} spent{limit}")
    return " · ".join(part for part in parts if part)


def closing(status: Status, done: str, remarks: Sequence[str]) -> str:
    """Describe how a job ended: its results, if any, and its cost, then remarks and errors."""
    parts = [f"{status.state}: {done}" if done else f"{status.state}"]
    if status.usd:
        parts[0] += f", {usd(status.usd)} spent"
    parts += remarks
    if status.calls_again:
        calls = count(status.calls_again, "call")
        parts.append(f"{calls} whose answers were lost were sent again and may have been paid twice.")
    if status.message:
        parts.append(status.message)
    parts[0] += "."
    return " ".join(parts)


def fact(name: str) -> Callable[[Status], object]:
    """Return a function that reads a fact from a status, or None if it has none."""
    return lambda status: status.facts.get(name)


def listed(
    known: Iterable[tuple[str, Status]], own: Mapping[str, Callable[[Status], object]], **kinds: pl.DataType
) -> pl.DataFrame:
    """Return all as a table: name, state, custom columns (text by default), usd, began, message."""
    rows = [
        (name, str(one.state), *(read(one) for read in own.values()), one.usd, one.started_at, one.message)
        for name, one in known
    ]
    columns: dict[str, Any] = {
        **dict.fromkeys(("name", "state", *own), pl.String()),
        **kinds,
        "usd": pl.Float64(),
        "began": pl.Datetime("us", "UTC"),
        "message": pl.String(),
    }
    return pl.DataFrame(rows, schema=columns, orient="row")


def models() -> list[str]:
    """Return the names of known chat models."""
    from core.providers.chat import CHATS  # noqa: PLC0415 - with the engines, a second

    return sorted(CHATS, key=lambda name: (name == "fake", name))
