"""How far an evaluation is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from core import jobs
from core.jobs import State

__all__ = ["Progress", "State", "Status"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Status(jobs.Status):
    """How far an evaluation is.

    Attributes:
        evaluation_id: Its identity.
        collection_id: What is searched.
        usd: Dollars spent so far, resumed runs included, as far as prices are known.
        usd_limit: The budget; None = none.
        usd_lost: The most dollars that calls whose answers were lost can have cost.
        calls_again: Calls whose answers were lost and that were sent again: they may have been paid twice.
        runs_done: Stacks whose results have landed.
        runs_total: Stacks in all.
    """

    evaluation_id: str = ""
    collection_id: str = ""
    usd: float = 0.0
    usd_limit: float | None = None
    usd_lost: float = 0.0
    calls_again: int = 0
    runs_done: int = 0
    runs_total: int = 0


Progress = Callable[[Status], None]
"""Told about every unit of work, and once more at the end."""
