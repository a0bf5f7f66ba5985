"""Evaluations that were begun, as sentences and a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import polars as pl

from core.views import text
from core.views.run.plan import duration

if TYPE_CHECKING:
    from core.pipeline.evaluate import Status

RUNNING = "running"
_RESUMABLE = ("stopped by budget", "cancelled", "interrupted", "failed", "killed")


def resumable(status: Status) -> bool:
    """Whether it was begun, did not finish and does not run now."""
    return str(status.state) in _RESUMABLE


def headline(known: Sequence[Status]) -> str:
    """How many there are and which run now: ``3 evaluations; “paris” is running.``."""
    if not known:
        return "No evaluation was run here yet."
    names = " and ".join(f"“{status.name}”" for status in known if str(status.state) == RUNNING)
    now = f"{names} {'are' if ' and ' in names else 'is'} running" if names else "none is running"
    return f"{text.count(len(known), 'evaluation')}; {now}."


def progress(status: Status) -> str:
    """How far one is: stage, stacks that have landed, time left, dollars so far."""
    parts = [status.stage, status.so_far]
    if status.runs_total:
        parts.append(f"{status.runs_done:,} of {text.count(status.runs_total, 'stack')} in the store")
    if status.eta_s is not None:
        parts.append(f"about {duration(status.eta_s)} left")
    if status.usd or status.usd_limit is not None:
        limit = "" if status.usd_limit is None else f" of {text.usd(status.usd_limit, '')}"
        parts.append(f"{text.usd(status.usd, '')} spent{limit}")
    return " · ".join(part for part in parts if part)


def ended(status: Status) -> str:
    """How it ended, in a sentence; what a lost answer may have cost besides is said."""
    lost = (
        f" Lost answers may have cost up to {text.usd(status.usd_lost, '')} more." if status.usd_lost else ""
    )
    if status.calls_again:
        calls = text.count(status.calls_again, "call")
        lost += f" {calls} whose answers were lost were sent again and may have been paid twice."
    landed = f"{status.runs_done:,} of {text.count(status.runs_total, 'stack')} in the store"
    return f"{status.state} ({landed}). {status.message}{lost}".strip()


def table(found: Sequence[Status]) -> pl.DataFrame:
    """All of them, newest first: name, state, stacks, of, usd, began (UTC), message."""
    rows = [
        (each.name, str(each.state), each.runs_done, each.runs_total, each.usd, each.started_at, each.message)
        for each in found
    ]
    columns: dict[str, pl.DataType] = {
        "name": pl.String(),
        "state": pl.String(),
        "stacks": pl.Int64(),
        "of": pl.Int64(),
        "usd": pl.Float64(),
        "began": pl.Datetime("us", "UTC"),
        "message": pl.String(),
    }
    return pl.DataFrame(rows, schema=columns, orient="row")
