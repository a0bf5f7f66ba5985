"""The generator's speed as the timings of a workspace tell it."""

from __future__ import annotations

import polars as pl

from core.stats.generation import FIRST_TOKEN, GENERATE, Fit, answers, fit
from core.store import Snapshot
from core.views.workspace.scope import Scope
from core.views.workspace.stacks import runs_in

STAGES = (FIRST_TOKEN, GENERATE)


def timed_answers(snapshot: Snapshot, scope: Scope) -> pl.DataFrame:
    """Every timed answer of a workspace with its tokens.

    Returns:
        The columns of `core.stats.generation.answers`, and stage.
    """
    ids = runs_in(snapshot, scope)["run_id"].to_list()
    timings = snapshot.timings(ids).filter(pl.col("stage").is_in(STAGES))
    usage = snapshot.usage(ids).filter(pl.col("stage") == GENERATE)
    parts = [answers(timings, usage, stage).with_columns(pl.lit(stage).alias("stage")) for stage in STAGES]
    return pl.concat(parts)


def fitted(timed: pl.DataFrame, stage: str = GENERATE) -> Fit:
    """The speed that the timed answers of a stage show; one generator is assumed."""
    return fit(timed.filter(pl.col("stage") == stage))
