"""Passages to judge next: the unjudged ones of stacks that may be chosen, and what judging them did."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from core.decide.rules import Decision
from core.golden.value import Contest, Floats, Scoring, Worth, contest, overlaid, worth
from core.stats.intervals import SEED
from core.store import Snapshot
from core.tables import schema
from core.views import text
from core.views.workspace.noise import about_grades
from core.views.workspace.query_sets import among
from core.views.workspace.scope import Quality, Scope
from core.views.workspace.scores import evidence

TARGET = 0.9  # P(best) from which nothing more needs judging
USUAL = 20
LEADING = 30  # Stacks that may be chosen of which is looked at


@dataclass(frozen=True, eq=False)
class Next:
    """Prediction of what judging more would do."""

    names: tuple[str, ...]  # The stacks that may be chosen; of equal ones the first
    worth: Worth  # How often each is the best, and what to judge

    @property
    def likeliest(self) -> tuple[str, float]:
        """The stack that is the best most often, and how often."""
        row = int(self.worth.best.argmax())
        return self.names[row], float(self.worth.best[row])


def _leading(table: pl.DataFrame, decision: Decision) -> tuple[str, ...]:
    """Return the stacks that may be chosen: those that tie, and the best within the limits."""
    merit = decision.quality.merit(decision.quality.read(table))
    best = [int(row) for row in np.argsort(-merit, kind="stable") if decision.feasible[row]]
    return tuple(table["run_id"].gather(list(dict.fromkeys([*decision.ties, *best]))[:LEADING]))


def contenders(
    snapshot: Snapshot, table: pl.DataFrame, decision: Decision, scope: Scope, quality: Quality
) -> pl.DataFrame:
    """Give stacks that may be chosen and whose passages the golden set judges one by one; none if no two."""
    golden = scope.golden_set_id
    rows = table.filter(pl.col("run_id").is_in(_leading(table, decision)), "has_rankings")
    if golden is None or not about_grades(quality):
        return rows.clear()
    judges = snapshot.judging(rows["run_id"].to_list(), golden)
    rows = rows.filter(pl.col("run_id").is_in([run for run, name in judges.items() if name == golden]))
    return rows if rows.height > 1 else rows.clear()


def what_next(
    snapshot: Snapshot,
    table: pl.DataFrame,
    decision: Decision,
    scope: Scope,
    quality: Quality,
    *,
    seed: int = SEED,
) -> Next | None:
    """Rank the unjudged passages by what their grades could do to the choice.

    Returns:
        None where no two stacks can be told apart by grades.
    """
    rows = contenders(snapshot, table, decision, scope, quality)
    if rows.is_empty():
        return None
    field, scoring = _read(snapshot, rows, scope, quality)
    names = dict(rows.select("run_id", "name").iter_rows())
    return Next(tuple(names[run_id] for run_id in field.stacks), worth(field, scoring, seed=seed))


def before_and_after(
    snapshot: Snapshot, table: pl.DataFrame, decision: Decision, scope: Scope, quality: Quality, *, more: str
) -> pl.DataFrame:
    """Return stacks that may be chosen as the golden set has them, and with the grades of another one on top.

    Returns:
        name, before, after (mean quality), change, and is ("best before", "best after" or both); the best
        after first.
    """
    rows = contenders(snapshot, table, decision, scope, quality)
    if rows.is_empty():
        return pl.DataFrame(schema=schema("name before:float after:float change:float is"))
    means = []
    for name in (None, more):
        field, scoring = _read(snapshot, rows, scope, quality, name)
        means.append(field.means(scoring))
    rows = rows.filter(pl.col("run_id").is_in(field.stacks))
    sign = 1.0 if quality.higher_is_better else -1.0
    best = [int(np.nanargmax(mean)) for mean in means]
    marks = [
        ", ".join(word for word, at in zip(("best before", "best after"), best, strict=True) if at == row)
        for row in range(rows.height)
    ]
    return (
        rows.select("name")
        .with_columns(
            before=pl.Series(sign * means[0]),
            after=pl.Series(sign * means[1]),
            change=pl.Series(sign * (means[1] - means[0])),
            **{"is": pl.Series(marks)},
        )
        .sort("after", "name", descending=[quality.higher_is_better, False])
    )


def _read(
    snapshot: Snapshot, rows: pl.DataFrame, scope: Scope, quality: Quality, more: str | None = None
) -> tuple[Contest, Scoring]:
    """Give contest of some stacks, with the grades of another golden set on top, and the measure upwards."""
    ids, golden, measure = rows["run_id"].to_list(), scope.golden_set_id, quality.measure
    assert golden is not None  # `contenders` looks  # noqa: S101
    assert measure is not None  # noqa: S101
    only = among(snapshot, scope)
    graded = evidence(snapshot, ids, golden, [measure], only=only)
    judged = snapshot.judgements(golden).filter(pl.col("query_id").is_in(list(graded.query_ids)))
    if more is not None:
        extra = snapshot.judgements(more).filter(pl.col("query_id").is_in(list(graded.query_ids)))
        judged = overlaid(judged, extra)
    sign = 1.0 if quality.higher_is_better else -1.0

    def scoring(grades: np.ndarray, counts: np.ndarray) -> Floats:
        return sign * graded.rescored(measure, grades, counts)

    field = contest(snapshot.rankings(ids, stage="final"), judged, tuple(ids), quality.k)
    return field.distinct(), scoring


def next_words(unjudged: Next, quality: Quality, target: float = TARGET) -> str:
    """Tell whether more judging is worth it, and what the first passages would bring."""
    name, share = unjudged.likeliest
    head = f"{name} has the best {quality.name} in {text.percent(share)} of simulations"
    if unjudged.worth.rows.is_empty():
        return f"{head}; everything in the Top-{quality.k} of the leading stacks is judged."
    if share >= target:
        return f"{head}, past the target of {text.percent(target)}: no more judging is needed."
    first = unjudged.worth.rows.head(USUAL)
    return (
        f"{head}, below the target of {text.percent(target)}; of {unjudged.worth.rows.height:,} unjudged "
        f"passages these {first.height} could change that first."
    )
