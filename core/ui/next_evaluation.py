"""Inputs, cached look-ahead and columns of the page that plans the next evaluation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import streamlit as st

from core.decide.joint import JointSample
from core.decide.planner import Bill, bill
from core.decide.rules import Constraints, Decision
from core.ui import cache, show, sure
from core.ui.view import View
from core.views.confidence.next_evaluation import Plan, amounts, leading, plan
from core.views.confidence.next_stacks import neighbour_rows
from core.views.workspace.scope import Scope

_JUDGEMENTS = 30.0
"""Judgements per query where the golden set does not tell."""


@dataclass(frozen=True)
class Money:
    """What the user would spend.

    Attributes:
        price: Of one more query.
        affordable: Queries that the money pays for; None = any number, since a query costs nothing.
    """

    price: Bill
    affordable: int | None


def ask_money(view: View, rows: list[int]) -> Money:
    """The budget and what a judgement costs, both the user's; the runs' own cost is the table's.

    Args:
        view: The workspace.
        rows: Stacks that would be evaluated on every further query.
    """
    usual = _usual_judgements(str(cache.store().path), view.snapshot.revision, view.scope)
    places = st.columns(3)
    spend = places[0].number_input(
        "Money to spend ($)",
        min_value=0.0,
        value=12.0,
        step=1.0,
        format="%g",
        key="spend",
        bind="query-params",
    )
    judge = places[1].number_input(
        "$ per judgement",
        min_value=0.0,
        value=0.01,
        step=0.01,
        format="%g",
        key="judge",
        bind="query-params",
        help="Of one passage for one query, by a person or a model: your own figure.",
    )
    each = places[2].number_input(
        "Judgements per query",
        min_value=0.0,
        value=None,
        step=1.0,
        format="%g",
        key="perq",
        bind="query-params",
        placeholder=f"{usual:g}",
        help="Empty: as many as the golden set has per query today.",
    )
    costs = view.table["cost"].cast(pl.Float64).fill_null(np.nan).to_numpy()[rows]
    price = bill(costs, judgements=usual if each is None else each, usd_per_judgement=judge)
    return Money(price, price.affordable(spend))


@st.cache_resource(show_spinner=False, max_entries=32)
def _usual_judgements(path: str, revision: int, scope: Scope) -> float:
    del path  # part of the key
    if scope.golden_set_id is None:
        return _JUDGEMENTS
    judged = cache.snapshot(revision).judgements(scope.golden_set_id)
    queries = judged["query_id"].n_unique()
    return round(judged.height / queries, 1) if queries else _JUDGEMENTS


def contenders(view: View) -> list[int]:
    """Rows of the stacks that may be chosen; see `core.views.confidence.next_evaluation.leading`."""
    return leading(view.table, view.decision, sure.chances(view, "quality"))


def look_ahead(view: View, rows: list[int], sample: JointSample, money: Money) -> Plan:
    """What more evaluation would do; see `core.views.confidence.next_evaluation.plan`."""
    return _look_ahead(
        view.table,
        sample,
        cache.table_key(view),
        constraints=view.constraints,
        rows=tuple(rows),
        more=amounts(money.affordable),
    )


@st.cache_resource(show_spinner="Looking ahead…", max_entries=64)
def _look_ahead(
    _table: pl.DataFrame,
    _sample: JointSample,
    key: tuple[object, ...],
    *,
    constraints: Constraints,
    rows: tuple[int, ...],
    more: tuple[int, ...],
) -> Plan:
    del key  # of the table and of the sample
    return plan(_table, rows, _sample, (constraints, "quality"), more)


def two_in_play(view: View, rivals: pl.DataFrame) -> tuple[str, str, pl.DataFrame] | None:
    """The two stacks that the choice is most likely between, and their queries side by side.

    Args:
        view: The workspace.
        rivals: From `core.views.confidence.next_evaluation.rival_rows`.

    Returns:
        Their names and `core.views.queries.page.query_table`; None where there are not two with rankings.
    """
    ranked = rivals.join(
        view.table.filter("has_rankings").select("run_id"), on="run_id", maintain_order="left"
    )
    if ranked.height < 2:
        return None
    one, other = ranked["run_id"][:2]
    return ranked["name"][0], ranked["name"][1], cache.queries(view, one, other)


def near(view: View) -> pl.DataFrame:
    """Stacks to add; see `core.views.confidence.next_stacks.neighbour_rows`."""
    return _near(view.table, view.decision, (*cache.table_key(view), view.constraints))


@st.cache_resource(show_spinner=False, max_entries=64)
def _near(_table: pl.DataFrame, _decision: Decision, key: tuple[object, ...]) -> pl.DataFrame:
    del key  # of the table and the decision
    return neighbour_rows(_table, _decision)


PLAN_COLUMNS: Mapping[str, Any] = {
    "more": show.number_column("further queries", 0),
    "n": show.number_column("n then", 0),
    "usd": st.column_config.NumberColumn("$", format="%.2f", help="Judging and running, as far as known."),
    "flip": show.percent_column("another choice", "Chance that another stack is chosen then than today."),
    "left": show.percent_column(
        "doubt left", "Chance that judging without end would change the choice then."
    ),
}
RIVAL_COLUMNS: Mapping[str, Any] = {
    "name": show.text_column("stack", width=290),
    "today": show.text_column("today"),
    "final": show.percent_column("chosen in the end", "Share of the worlds, were judging endless."),
    "quality": show.score_column("quality"),
    "quality_low": show.score_column("low"),
    "quality_high": show.score_column("high"),
    "n": show.number_column("n", 0),
    "latency_ms": show.number_column("latency ms", 2),
    "cost": show.dollar_column("$ / 1k"),
}
TAG_COLUMNS: Mapping[str, Any] = {
    "tag": show.text_column("queries with", width=220),
    "n": show.number_column("n", 0),
    "difference": show.signed_column("difference", "Mean, first stack less the second."),
    "spread": show.score_column("spread", "Standard deviation of the differences."),
    "share": show.percent_column("today"),
    "best": show.percent_column("tells most", "Share of further queries with the least error (Neyman)."),
}
NEIGHBOUR_COLUMNS: Mapping[str, Any] = {
    "of": show.text_column("stack", width=290),
    "step": show.text_column("with", width=220),
    "guess": show.score_column("guessed quality", "Modelled: additive effects of the axes."),
    "spread": show.score_column("±", "Standard error of the guess."),
    "chance": show.percent_column("beats the choice", "Chance of a higher quality than today's choice."),
}
