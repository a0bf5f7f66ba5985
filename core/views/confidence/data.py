"""Data of page Confidence, read from a workspace and cached if drawn often.

A view's functions are cached by the sources of its stack table; limits and rule are separate arguments.
"""

from __future__ import annotations

import polars as pl

from core.analysis.cache import cached
from core.analysis.judging import before_and_after
from core.analysis.workspace.clusters import groups
from core.analysis.workspace.query_sets import among
from core.analysis.workspace.scores import evidence
from core.analysis.workspace.sure import joint, sample
from core.analysis.workspace.view import View
from core.decide.near import turns
from core.decide.rules import Constraints, Decision, Rule, decide
from core.metrics import Measure
from core.views.confidence import weights, worth
from core.views.confidence.hold import shares, turn_rows
from core.views.confidence.noisy import choice_under_noise
from core.views.confidence.weights import WeightGrid
from core.views.confidence.worth import JudgingPlan

JUDGEMENTS = 30.0  # Judgements per query if the golden set doesn't tell


def decided(view: View, rule: Rule) -> Decision:
    """Apply a rule within the limits."""
    if rule == view.rule:
        return view.decision
    return decide(view.table, view.constraints, rule, paired=view.paired)


@cached("Counting the draws…", entries=64)
def chances(view: View, constraints: Constraints, rule: Rule) -> pl.DataFrame:
    """Return each stack's chances, with judge noise if it counts; see `hold.shares`."""
    return shares(view.table, joint(view), (constraints, rule), seed=view.seed)


@cached("Choosing for noisy queries…")
def under_noise(view: View, constraints: Constraints, rule: Rule) -> str:
    """Say which stack would be chosen for perturbed queries."""
    return choice_under_noise(view.replace(constraints=constraints, rule=rule))


@cached(entries=64)
def turned(view: View, constraints: Constraints, rule: Rule) -> pl.DataFrame:
    """Return the numbers that would change the choice; see `hold.turn_rows`."""
    decision = decide(view.table, constraints, rule, paired=view.paired)
    return turn_rows(view.table, turns(view.table, constraints, rule, decision=decision, paired=view.paired))


@cached("Scoring every cell of the grid…", entries=16)
def grid(view: View, measure: str) -> tuple[WeightGrid, pl.DataFrame]:
    """Return every stack in every setting of the weights of a measure, and the pairs that swap places."""
    names = dict(view.table.filter("has_rankings").select("run_id", "name").iter_rows())
    only = among(view.snapshot, view.scope)
    graded = evidence(view.snapshot, list(names), view.scope.golden_set_id or "", only=only)
    scored = weights.score_grid(graded, Measure.parse(measure), groups(view.snapshot, view.scope))
    return scored, weights.flips(scored, names)


@cached()
def judgements_per_query(view: View) -> float:
    """Return the golden set's judgements per query, to one decimal."""
    if view.scope.golden_set_id is None:
        return JUDGEMENTS
    judged = view.snapshot.within(view.scope.golden_set_id)
    queries = judged["query_id"].n_unique()
    return round(judged.height / queries, 1) if queries else JUDGEMENTS


@cached("Looking ahead…", entries=64)
def look_ahead(
    view: View, constraints: Constraints, rule: Rule, rows: tuple[int, ...], more: tuple[int, ...]
) -> JudgingPlan:
    """Predict what more queries and timings would do to the choice between some rows of the stack table."""
    known = sample(view)
    assert known is not None  # called only if there are results per query  # noqa: S101
    return worth.plan(view.table, rows, known, (constraints, rule), more)


@cached()
def with_grades(view: View, constraints: Constraints, more: str) -> pl.DataFrame:
    """Score the leading stacks with the grades of another golden set."""
    del constraints
    return before_and_after(view.snapshot, view.table, view.decision, view.scope, view.quality, more=more)


@cached("Looking for stacks to add…", entries=64)
def stacks_to_add(view: View, constraints: Constraints) -> pl.DataFrame:
    """Return stacks that were not evaluated; see `worth.next_rows`."""
    return worth.next_rows(view.table, view.decision, constraints)
