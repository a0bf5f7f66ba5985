"""What every page works on: the workspace, and what is asked of it."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from core.decide.rules import Constraints, Decision, Rule
from core.decide.ties import Paired
from core.prices import PriceBook
from core.store import Snapshot
from core.views.workspace.comparable import Comparability
from core.views.workspace.scope import Latency, Quality, Scope


@dataclass(frozen=True)
class Place:
    """The workspace of one script run, on pages that read no results."""

    snapshot: Snapshot  # the data at the chosen revision
    scope: Scope  # collection, golden set and runs


@dataclass(frozen=True)
class View(Place):
    """The workspace of one script run, with what is asked of it."""

    quality: Quality  # measure and cutoff
    latency: Latency  # percentile and scope
    constraints: Constraints  # SLA, budget and quality floor
    book: PriceBook  # prices
    table: pl.DataFrame  # the stack table, one row per run
    decision: Decision  # the stack that the constraints select
    paired: Paired | None  # quality per query of the stacks, where it is known
    compared: Comparability  # what differs between the runs and is kept off the charts
    # The golden set whose grades are drawn in the chances; None = no judge noise in them
    noise: str | None = None
    rule: Rule = "quality"  # by which the constraints select it
