"""What holes (unjudged passages in the Top-K) could do to a score.

A hole counts as 0. Were it judged, it could turn out to be of any grade; the two ends are computed by giving
every hole of a run's own Top-K the grade 1, or the grade 5, in its ranking and in what the ideal is made of.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from core.decide.rules import Decision
from core.metrics import Measure
from core.views import text
from core.views.workspace.scope import Quality
from core.views.workspace.scores import Evidence, Floats, Grades, mean

_HOLE, _WORST, _BEST = 0, 1, 5


def bounds(found: Evidence, measure: Measure) -> tuple[Floats, Floats]:
    """Mean score of every run if all its holes were of the worst, or of the best, grade."""
    top = found.grades[:, :, : measure.k]
    ends = [mean(_scored(found, top, measure, grade))[0] for grade in (_WORST, _BEST)]
    return np.fmin(*ends), np.fmax(*ends)


def _scored(found: Evidence, top: Grades, measure: Measure, grade: int) -> Floats:
    holes = top == _HOLE
    counts = np.broadcast_to(found.pool_counts, (*top.shape[:2], 5)).copy()
    counts[..., grade - 1] += holes.sum(axis=2, dtype=counts.dtype)
    grades = np.where(holes, np.int8(grade), top)
    return found.rescored(measure, grades, counts)


def overturned(table: pl.DataFrame, decision: Decision, quality: Quality) -> str | None:
    """Say when holes could overturn a decision."""
    if decision.chosen is None:
        return None
    chosen = table.row(decision.chosen, named=True)
    if chosen["hole_low"] is None or chosen["quality"] is None:
        return None
    up = decision.quality.higher_is_better
    sign, reach, worst = (1, "hole_high", "hole_low") if up else (-1, "hole_low", "hole_high")
    rivals = table.filter(
        pl.Series(decision.feasible)
        & (pl.col("run_id") != chosen["run_id"])
        & (sign * pl.col("quality") < sign * chosen["quality"])
        & (sign * pl.col(reach) > sign * chosen[worst])
    )
    if rivals.is_empty():
        return None
    nearest = rivals.sort(reach, descending=up).row(0, named=True)
    others = text.count(rivals.height, "other feasible stack")
    return (
        f"Judging more could overturn the choice: {others} could overtake it if every unjudged passage "
        f"in the Top-{quality.k} were of grade 5 (reaching at {'most' if up else 'least'} "
        f"{text.score(nearest[reach])}: {nearest['name']}, {text.percent(nearest['hole'])} unjudged)."
    )
