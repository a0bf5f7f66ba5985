"""Passages to judge next: the unjudged ones of candidate stacks, and the effect of judging them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from core.analysis.cache import cached
from core.analysis.workspace.clusters import groups, one_known
from core.analysis.workspace.noise import about_grades
from core.analysis.workspace.query_sets import among
from core.analysis.workspace.scope import Quality, Scope
from core.analysis.workspace.scores import evidence
from core.analysis.workspace.sure import good_enough, sample
from core.analysis.workspace.view import View
from core.arrays import Floats
from core.decide.beliefs import Beliefs, beliefs
from core.decide.rules import Constraints, Decision, Rule
from core.decide.selection import assess
from core.golden.value import StackContest, Worth, contest, overlaid, worth
from core.stats.judge_noise import Scoring
from core.store import Snapshot
from core.tables import schema

TARGET = 0.9  # Probability of good selection from which no more judging is needed

USUAL = 20

NEAR = 0.05  # Chances that differ by no more than this are mentioned once

LEADING = 30  # Maximum number of candidate stacks to look at


@dataclass(frozen=True, eq=False)
class Next:
    """Predicted effect of judging more."""

    worth: Worth  # The passages to judge, and the possible effects of their grades
    stack: str | None  # The stack that ships; None = none
    good: str  # The definition of a good selection, in words
    pgs: float | None  # Probability that it is one, with unjudged passages of no use; None = unknown
    # The same if the unjudged passages had the grades of judged ones at like ranks of the same stacks
    filled: float | None
    rival: str | None = None  # The stack that is most often the best if the shipped one is no longer good
    leads: bool = False  # Whether it is expected to be better than the shipped one then
    first: int = 0  # Number of unjudged passages in the Top-K of these two
    within: str = ""  # The collection that the passages belong to: the whole, or its chunks of one kind

    @property
    def matters(self) -> bool:
        """Whether unjudged passages could undermine the confidence."""
        known = self.pgs is not None and self.filled is not None and not self.worth.rows.is_empty()
        return known and self.filled < min(self.pgs - NEAR, TARGET)  # type: ignore[operator]  # both are known


def _leading(table: pl.DataFrame, decision: Decision) -> tuple[str, ...]:
    """Return the candidate stacks: those that tie, and the best within the limits."""
    merit = decision.quality.merit(decision.quality.read(table))
    best = [int(row) for row in np.argsort(-merit, kind="stable") if decision.feasible[row]]
    return tuple(table["run_id"].gather(list(dict.fromkeys([*decision.ties, *best]))[:LEADING]))


def contenders(
    snapshot: Snapshot, table: pl.DataFrame, decision: Decision, scope: Scope, quality: Quality
) -> pl.DataFrame:
    """Return candidate stacks of passages that the golden set judges one by one; none if fewer than two.

    Of stacks that cut their documents differently only those cut like the first of them are returned.
    """
    golden = scope.golden_set_id
    leading = _leading(table, decision)
    rows = table.filter(pl.col("run_id").is_in(leading), "has_rankings")
    if golden is None or rows.is_empty() or not about_grades(quality):
        return rows.clear()
    searched = snapshot.searched(rows["run_id"].to_list())
    first = next(searched[run_id] for run_id in leading if run_id in searched)
    rows = rows.filter(pl.col("run_id").is_in([run_id for run_id, of in searched.items() if of == first]))
    return rows if rows.height > 1 else rows.clear()


def _judged(snapshot: Snapshot, run_ids: Sequence[str], golden_set_id: str) -> pl.DataFrame:
    """Return the judgements of the passages that some stacks of one way of cutting rank."""
    (golden,) = {*snapshot.judging(run_ids, golden_set_id).values()}
    return snapshot.within(golden)


def what_next(view: View) -> Next | None:
    """Rank the unjudged passages by the possible effects of their grades on the choice.

    Returns:
        None if grades cannot tell any two stacks apart.
    """
    rows = contenders(view.snapshot, view.table, view.decision, view.scope, view.quality)
    if rows.is_empty():
        return None
    run_ids = tuple(rows["run_id"])
    field, found = _worth(view, run_ids)
    row, names = view.decision.chosen, dict(view.table.select("run_id", "name").iter_rows())
    filled, rival, leads = _if_filled(view, run_ids)
    both = [run_id for run_id in (rival, None if row is None else view.table["run_id"][row]) if run_id]
    return Next(
        worth=found,
        stack=None if row is None else str(view.table["name"][row]),
        good=good_enough(view.decision),
        pgs=view.sure.pgs,
        filled=filled,
        rival=names.get(rival),
        leads=leads,
        first=field.unjudged(both),
        within=view.snapshot.searched(list(run_ids))[run_ids[0]],
    )


@cached("Looking for what to judge…")
def to_judge(view: View, constraints: Constraints, rule: Rule) -> Next | None:
    """Return the passages to judge next."""
    del constraints, rule  # the decision follows from these
    return what_next(view)


def waiting(view: View) -> Next | None:
    """Return the possible effects of judging more; None if no stack within the limits has holes to judge."""
    if "hole" not in view.table.columns:
        return None
    holes = view.table["hole"].filter(pl.Series(view.decision.feasible)).max()
    if not holes or one_known(view.snapshot, view.scope.golden_set_id):
        return None
    return to_judge(view, view.constraints, view.rule)


@cached()
def _worth(view: View, run_ids: tuple[str, ...]) -> tuple[StackContest, Worth]:
    """Return the possible effects of judging on some stacks: limits move, the candidate stacks stay."""
    field, scoring = _read(view.snapshot, run_ids, view.scope, view.quality)
    return field, worth(field.distinct(), scoring, seed=view.seed)


@cached()
def _filled(view: View, run_ids: tuple[str, ...]) -> tuple[pl.DataFrame, Beliefs | None] | None:
    """Return the rows of some stacks, and beliefs about them from the means of their worlds."""
    field, found = _worth(view, run_ids)
    rows = view.table.with_row_index("row").filter(pl.col("run_id").is_in(field.stacks))
    if (known := sample(view)) is None:
        return None
    first = field.alike()
    places = [field.stacks.index(run_id) for run_id in rows["run_id"]]
    means = found.means[np.searchsorted(np.unique(first), first[places])]
    sign = 1.0 if view.quality.higher_is_better else -1.0
    drawn = replace(known.take(rows["row"].to_list()), noisy=sign * means)
    return rows.drop("row"), beliefs(drawn, seed=view.seed)


def _if_filled(view: View, run_ids: tuple[str, ...]) -> tuple[float | None, str | None, bool]:
    """Return the probability of good selection among some stacks, if unjudged passages are like judged ones.

    The rival of the shipped stack then is also returned, and whether it is expected to be better.
    """
    filled, chosen = _filled(view, run_ids), view.decision.chosen
    if filled is None or chosen is None or view.table["run_id"][chosen] not in filled[0]["run_id"]:
        return None, None, False
    part = view.replace(given=filled[0])
    sure = assess(part.table, part.decision, part.constraints, filled[1], part.paired)
    if sure.rival is None or filled[1] is None or part.decision.chosen is None:
        return sure.pgs, None, False
    means = part.decision.quality.merit(filled[1].quality.mean(axis=1))
    leads = bool(means[sure.rival] > means[part.decision.chosen])
    return sure.pgs, str(part.table["run_id"][sure.rival]), leads


def before_and_after(
    snapshot: Snapshot, table: pl.DataFrame, decision: Decision, scope: Scope, quality: Quality, *, more: str
) -> pl.DataFrame:
    """Return candidate stacks under the golden set, and with the grades of another one on top.

    Returns:
        name, before, after (mean quality), change, and is ("best before", "best after" or both); the best
        after first.
    """
    rows = contenders(snapshot, table, decision, scope, quality)
    if rows.is_empty():
        return pl.DataFrame(schema=schema("name before:float after:float change:float is"))
    means = []
    for name in (None, more):
        whole, scoring = _read(snapshot, tuple(rows["run_id"]), scope, quality, name)
        field = whole.distinct()
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
    snapshot: Snapshot, run_ids: tuple[str, ...], scope: Scope, quality: Quality, more: str | None = None
) -> tuple[StackContest, Scoring]:
    """Return the contest of some stacks, another golden set's grades on top, and the measure as merit."""
    ids, golden, measure = list(run_ids), scope.golden_set_id, quality.measure
    assert golden is not None  # `contenders` looks  # noqa: S101
    assert measure is not None  # noqa: S101
    only = among(snapshot, scope)
    graded = evidence(snapshot, ids, golden, [measure], only=only)
    judged = _judged(snapshot, ids, golden).filter(pl.col("query_id").is_in(list(graded.query_ids)))
    if more is not None:
        extra = _judged(snapshot, ids, more).filter(pl.col("query_id").is_in(list(graded.query_ids)))
        judged = overlaid(judged, extra)
    sign = 1.0 if quality.higher_is_better else -1.0

    def scoring(grades: np.ndarray, counts: np.ndarray) -> Floats:
        return sign * graded.rescored(measure, grades, counts)

    field = contest(snapshot.rankings(ids, stage="final"), judged, run_ids, quality.k)
    return replace(field, clusters=groups(snapshot, scope).labels(field.queries)), scoring
