"""The decision of a workspace with everything it rests on, in one call."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from core.decide.paired import Paired
from core.decide.rules import Decision, decide
from core.errors import UnknownNameError
from core.prices import PriceBook
from core.stats.intervals import SEED
from core.store import Snapshot
from core.views.confidence.hold import joint_sample, shares
from core.views.confidence.noise import Noise, noise, with_noise
from core.views.decision.facts import Asked
from core.views.workspace.choices import choices
from core.views.workspace.query_sets import paired
from core.views.workspace.scope import Scope
from core.views.workspace.stacks import stack_table


@dataclass(frozen=True)
class Verdict:
    """What was decided, and on what."""

    table: pl.DataFrame  # the stack table
    decision: Decision  # what was selected from it
    chances: pl.DataFrame  # how sure that is, row by row; see `core.views.confidence.hold.shares`
    paired: Paired | None = None  # quality per query of the stacks, where it is known
    noise: Noise | None = None  # the judge noise that is in the chances; None = none is

    @property
    def sure_table(self) -> pl.DataFrame:
        """The stack table with the chances beside the numbers."""
        shares = self.chances.drop("reason")
        return self.table.join(shares, on="run_id", how="left", maintain_order="left")


def verdict(snapshot: Snapshot, scope: Scope, asked: Asked, book: PriceBook, *, seed: int = SEED) -> Verdict:
    """Decide for a workspace.

    Args:
        seed: Of the resampling behind the chances.

    Returns:
        The decision, its table and how sure it is.

    Raises:
        UnknownNameError: If the measure is neither computed nor reported here.
    """
    table = stack_table(snapshot, scope, asked.quality, asked.latency, book)
    if asked.quality.measure is None and table["quality"].is_null().all():
        raise UnknownNameError("measure", asked.quality.bare, choices(snapshot, scope).measures)
    pairs = paired(snapshot, table, scope, asked.quality, seed=seed)
    decision = decide(table, asked.constraints, asked.rule, paired=pairs)
    sample = joint_sample(snapshot, table, scope, quality=asked.quality, latency=asked.latency)
    drawn = None
    if asked.noise is not None and sample is not None:
        drawn = noise(snapshot, table, scope, asked.quality, asked.noise, seed=seed, queries=sample.query_ids)
    sample = with_noise(table, sample, drawn)
    chances = shares(table, sample, (asked.constraints, asked.rule), seed=seed)
    return Verdict(table, decision, chances, pairs, drawn)
