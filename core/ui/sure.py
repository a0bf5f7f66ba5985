"""Cached reads and columns of the page that says how sure a choice is.

Resampling waits for this page: other pages do not pay for it, whatever moves there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl
import streamlit as st

from core.decide.joint import JointSample
from core.decide.paired import Paired
from core.decide.rules import Constraints, Decision, Rule, decide
from core.decide.turning import Turn, turns
from core.stats.intervals import SEED
from core.ui import cache, show
from core.ui.view import View
from core.views.confidence.certainty import joint_sample, shares
from core.views.link import RULES


def ask_rule(view: View) -> tuple[Rule, Decision]:
    """Which stack is best, and what that selects; the sidebar's limits hold."""
    words: str = st.segmented_control(
        "Best is",
        tuple(RULES),
        default="highest quality",
        required=True,
        key="rule",
        bind="query-params",
        help="Among the stacks within the limits: the highest quality; the cheapest, then the best; or the "
        "best within the jitter band of the fastest.",
    )
    rule = RULES[words]
    return rule, view.decision if rule == "quality" else decide(
        view.table, view.constraints, rule, paired=view.paired
    )


def sample(view: View) -> JointSample | None:
    """Results per query of all stacks of the workspace; see `certainty.joint_sample`."""
    return _sample(view, cache.table_key(view))


@st.cache_resource(show_spinner="Reading the results per query…", max_entries=8)
def _sample(_view: View, key: tuple[object, ...]) -> JointSample | None:
    del key  # of the table
    where = (_view.snapshot, _view.table, _view.scope)
    return joint_sample(*where, quality=_view.quality, latency=_view.latency)


def chances(view: View, rule: Rule) -> pl.DataFrame:
    """How often each stack does what; see `core.views.confidence.certainty.shares`."""
    return _chances(
        view.table, sample(view), cache.table_key(view), limits=(view.constraints, rule), seed=SEED
    )


@st.cache_resource(show_spinner="Drawing the queries again…", max_entries=64)
def _chances(
    _table: pl.DataFrame,
    _sample: JointSample | None,
    key: tuple[object, ...],
    *,
    limits: tuple[Constraints, Rule],
    seed: int,
) -> pl.DataFrame:
    del key  # of the table and of the sample
    return shares(_table, _sample, limits, seed=seed)


def turned(view: View, rule: Rule, decision: Decision) -> list[Turn]:
    """What would have to be true for another stack to win; see `core.decide.turning.turns`."""
    limits = (view.constraints, rule)
    return _turned(view.table, decision, view.paired, cache.table_key(view), limits=limits)


@st.cache_resource(show_spinner=False, max_entries=64)
def _turned(
    _table: pl.DataFrame,
    _decision: Decision,
    _paired: Paired | None,
    key: tuple[object, ...],
    *,
    limits: tuple[Constraints, Rule],
) -> list[Turn]:
    del key  # of the table
    return turns(_table, *limits, decision=_decision, paired=_paired)


def three(figures: Mapping[str, tuple[str, str]]) -> None:
    """Cards: label → number and what it means."""
    with st.container(border=True):
        for place, (label, (number, meaning)) in zip(st.columns(len(figures)), figures.items(), strict=True):
            place.metric(label, number)
            place.caption(meaning)


CHANCE_COLUMNS: Mapping[str, Any] = {
    "name": show.text_column("stack", width=290),
    "status": show.text_column("is"),
    "p_best": show.percent_column("P(best)", "Share of the resamples it wins; equal bests share one."),
    "p_frontier": show.percent_column("P(frontier)", "In cost, latency and quality, limits or not."),
    "p_sla": show.percent_column("P(SLA)", "Empty without an SLA, or where the latency is unknown."),
    "p_feasible": show.percent_column("P(feasible)", "Meets every limit."),
    "quality": show.score_column("quality"),
    "quality_low": show.score_column("low", "95 % interval over queries."),
    "quality_high": show.score_column("high", "95 % interval over queries."),
    "n": show.number_column("n", 0),
    "latency_ms": show.number_column("latency ms", 2),
    "cost": show.dollar_column("$ / 1k"),
    "unknown": show.text_column("unknown because"),
}
ALIKE_COLUMNS: Mapping[str, Any] = {
    "name": show.text_column("stack", width=290),
    "quality": show.score_column("quality"),
    "quality_low": show.score_column("low"),
    "quality_high": show.score_column("high"),
    "n": show.number_column("n", 0),
    "latency_ms": show.number_column("latency ms", 2),
    "gap_ms": show.signed_column("against chosen, ms", "Its latency less the chosen one's."),
    "d_quality": show.signed_column("difference", "Its quality less the chosen one's, on the same queries."),
    "d_low": show.signed_column("low", "95 % interval of the difference, paired."),
    "d_high": show.signed_column("high", "95 % interval of the difference, paired."),
    "reading": show.text_column("query by query"),
}
TURN_COLUMNS: Mapping[str, Any] = {
    "stack": show.text_column("if of this stack", width=250),
    "number": show.text_column("the"),
    "now": show.text_column("which is"),
    "then": show.text_column("were"),
    "change": show.text_column("a change of"),
    "winner": show.text_column("the choice would be", width=250),
    "reason": show.text_column("or why nothing turns it", width=280),
}
EXCLUDED_COLUMNS: Mapping[str, Any] = {
    "name": show.text_column("stack", width=290),
    "reason": show.text_column("excluded because", width=230),
    "constraint": show.text_column("first limit"),
    "by": show.number_column("by", 3),
    "unit": show.text_column("unit"),
    "quality": show.score_column("quality"),
    "latency_ms": show.number_column("latency ms", 2),
    "cost": show.dollar_column("$ / 1k"),
}


def queries(view: View) -> int:
    """How many queries are drawn from."""
    found = sample(view)
    return 0 if found is None else int(found.quality.shape[1])
