"""Data of page Confidence, read from a workspace and cached if drawn often.

A view's functions are cached by the sources of its stack table; limits and rule are separate arguments.
"""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from core.analysis.cache import cached
from core.analysis.judging import before_and_after
from core.analysis.workspace.clusters import groups
from core.analysis.workspace.figures.robust import robust_quality
from core.analysis.workspace.query_sets import among
from core.analysis.workspace.scores import evidence
from core.analysis.workspace.stacks import stack_table
from core.analysis.workspace.sure import joint, sample
from core.analysis.workspace.view import View
from core.decide.near import turns
from core.decide.rules import Constraints, Decision, Rule, decide
from core.metrics import Measure
from core.views import text
from core.views.confidence import weights, worth
from core.views.confidence.hold import shares, turn_rows
from core.views.confidence.weights import WeightGrid
from core.views.confidence.worth import JudgingPlan

JUDGEMENTS = 30.0  # Judgements per query if the golden set doesn't tell


def choice_under_noise(view: View) -> str:
    """Say which stack is best by the worse of its clean and noisy scores, among stacks run on both.

    A quality floor is left out, as it applies to clean queries.

    Returns:
        A sentence, or "" if the measure has no Robust form or no stack was run on noisy queries.
    """
    robust = robust_quality(view.snapshot, view.scope, view.quality)
    if robust is None:
        return ""
    noisy = stack_table(view.snapshot, view.scope, robust, view.latency, view.book)
    noisy = noisy.filter(pl.col("quality").is_not_null())
    clean = noisy.select("run_id").join(view.table, on="run_id", how="inner", maintain_order="left")
    limits = replace(view.constraints, min_quality=None, min_robust=None)
    places = [(rows, decide(rows, limits, view.rule).chosen) for rows in (clean, noisy)]
    chosen = [rows["name"][place] for rows, place in places if place is not None]
    if len(chosen) < len(places):
        return ""
    first, then = chosen
    of = f"Of the {text.count(noisy.height, 'stack')} asked noisy queries too"
    if first == then:
        return f"{of}, {first} would be chosen by {robust.name} as well."
    return f"{of}, {then} would be chosen by {robust.name}, {first} by {view.quality.name}."


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
