"""The generator's speed as the timings of a workspace tell it."""

from __future__ import annotations

import polars as pl

from core.stats.generation import FIRST_TOKEN, GENERATE, Fit, answers, fit
from core.store import Snapshot
from core.views import text
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


def in_words(found: Fit) -> str:
    """A fitted speed as a sentence, or why there is none."""
    speed = found.speed
    if speed is None:
        return f"No speed can be fitted: {found.reason}."
    sure = f"R² {found.r2:.2f}, " if found.r2 == found.r2 else ""
    parts = [text.ms(ms) for ms in (speed.base_ms, speed.ms_per_1k_prompt, speed.ms_per_output)]
    return (
        f"Fitted to the timings of all stacks: {parts[0]} + {parts[1]} per 1,000 prompt tokens + {parts[2]} "
        f"per output token ({sure}n = {found.n})."
    )
