"""Diagnoses in the store, and one of names for the page: specification, button, how it ended."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING

import polars as pl

from core.number_format import count, usd
from core.work.paid import closing, fact, listed, press, without_price

if TYPE_CHECKING:  # the engines take a second to load
    from core.pipeline.evaluate import Status
    from core.work.names.job import NamesPlan


NO_EMBEDDER = "Choose an embedder; wordllama runs here without a key."


def size_of(plan: NamesPlan) -> str:
    """Describe how many texts are embedded, and the cost."""
    if not plan.lines:
        return f"{count(plan.texts, 'text')} to embed; nothing is paid for."
    least = "unknown, at least " if plan.usd is None else ""
    limit = f"; the budget of {usd(plan.limit)} ends it before" if plan.over_budget else ""
    return f"{count(plan.texts, 'text')} to embed: {least}{usd(plan.usd_known)}{limit}.{without_price(plan)}"


def button(plan: NamesPlan) -> str:
    """Return the label of the button: ``Embed 16,100 texts · $0.02 · about 2 min``."""
    return press(f"Embed {count(plan.texts, 'text')}", plan)


def ended(status: Status) -> str:
    """Describe how a diagnosis ended."""
    return closing(status, "its figures are in the store" if status.runs_done else "", ())


def table(known: Sequence[tuple[str, Status]]) -> pl.DataFrame:
    """Return all diagnoses, newest first: name, state, stage, runs, usd, began (UTC), message."""
    return listed(known, {"stage": attrgetter("stage"), "runs": fact("runs")}, runs=pl.Int64())
