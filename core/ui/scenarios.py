"""Widgets, cached reads and columns of the page of scenarios."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl
import streamlit as st

from core.decide.rules import Constraints
from core.decide.slo import Conditioned
from core.errors import ClqError
from core.ui import cache, show
from core.ui.pick import KEPT, carry_over
from core.ui.view import View
from core.views.link import RULES
from core.views.text import plain
from core.views.what_if.deeper import steps
from core.views.what_if.deeper_chart import PER, Per, step_rows
from core.views.what_if.leaderboard import leaderboard
from core.views.what_if.scenario_page import Choice, choices, matrix, measures
from core.views.what_if.scenario_text import MOST, Scenario, parse, with_one
from core.views.what_if.scenarios import named
from core.views.what_if.targets import panel, panel_title, read_targets, spans, thinning
from core.views.workspace.scope import Latency, Quality, Scope

_OWN, _PROBLEM = "scen", "_scenario_problem"


def ask_own() -> list[Scenario]:
    """The user's own scenarios: a form that adds one, and the line of text that the link carries."""
    carry_over(_OWN)
    with st.expander("Your own scenarios", icon=":material/add:"):
        with st.form("new_scenario", border=False):
            left, middle, right = st.columns([3, 2, 2])
            left.text_input("Name", key="_scen_name", max_chars=60, placeholder="Launch")
            middle.selectbox("Best is", tuple(RULES), key="_scen_rule")
            right.number_input("SLA (ms)", min_value=0.0, value=None, key="_scen_sla", placeholder="none")
            places = st.columns(len(_FIELDS))
            for place, (key, label, top) in zip(places, _FIELDS, strict=True):
                place.number_input(
                    label, min_value=0.0, max_value=top, value=None, key=f"_scen_{key}", placeholder="none"
                )
            st.form_submit_button("Add, or replace by name", on_click=_add)
        line = st.text_input(
            "As text; the link carries it",
            key=_OWN,
            bind="query-params",
            placeholder="Launch: quality, sla 500, budget 2.5; Cheap: cost, floor 0.7",
            help="NAME: rule (quality, cost or latency), then sla, budget, floor (the worst quality), harm, "
            "dim (at most) and K (at least), each with a number. A semicolon between scenarios, "
            f"{MOST} at most.",
        )
    st.session_state[KEPT + _OWN] = line
    problem = st.session_state.pop(_PROBLEM, None)
    if problem:
        st.warning(plain(problem), icon=":material/edit:")
    try:
        return parse(line)
    except ClqError as error:
        st.warning(plain(f"Your scenarios are left out. {error}"), icon=":material/edit:")
        return []


_FIELDS = (
    ("budget", "Budget ($ / 1k)", 1e9),
    ("floor", "Worst quality", 1.0),
    ("harm", "Harm at most", 1.0),
    ("dim", "Dimensions at most", 1e6),
    ("depth", "K at least", 1e6),
)


def _add() -> None:
    """In a callback: add what the form holds to the line of text."""
    given = {key: st.session_state.get(f"_scen_{key}") for key in ("sla", *(key for key, _, _ in _FIELDS))}
    made = Scenario(
        str(st.session_state.get("_scen_name") or ""),
        RULES[st.session_state.get("_scen_rule") or next(iter(RULES))],
        given["sla"],
        given["budget"],
        given["floor"],
        given["dim"],
        given["depth"],
        max_harm=given["harm"],
    )
    try:
        st.session_state[_OWN] = with_one(st.session_state.get(_OWN) or "", made)
    except ClqError as error:
        st.session_state[_PROBLEM] = str(error)


def compare(view: View, own: list[Scenario]) -> pl.DataFrame:
    """The scenarios side by side; see `core.views.what_if.scenario_page.matrix`."""
    found = choices(
        view.table, _named(*_where(view), view.scope.collection_id), own, view.constraints, paired=view.paired
    )
    chosen = tuple((each.name, each.asked, each.run_id, each.kind) for each in found)
    return _matrix(view, tuple(found), (*cache.table_key(view), chosen))


def _where(view: View) -> tuple[str, int]:
    return str(cache.store().path), view.snapshot.revision


@st.cache_resource(show_spinner=False, max_entries=32)
def _named(path: str, revision: int, collection_id: str) -> Mapping[str, str]:
    del path  # part of the key
    return named(cache.snapshot(revision), collection_id)


@st.cache_resource(show_spinner="Scoring the chosen stacks…", max_entries=32)
def _matrix(_view: View, _found: tuple[Choice, ...], key: tuple[object, ...]) -> pl.DataFrame:
    del key  # of the table and the choices
    where = (_view.snapshot, _view.table, _view.scope)
    return matrix(*where, _found, _view.book, quality=_view.quality, latency=_view.latency)


def leaders(view: View, *, end_to_end: bool) -> pl.DataFrame:
    """Stacks by quality per second; see `core.views.what_if.leaderboard.leaderboard`."""
    return _leaders(*_where(view), scope=view.scope, end_to_end=end_to_end)


@st.cache_resource(show_spinner="Scoring the leaderboards…", max_entries=16)
def _leaders(path: str, revision: int, *, scope: Scope, end_to_end: bool) -> pl.DataFrame:
    del path  # part of the key
    return leaderboard(cache.snapshot(revision), scope, end_to_end=end_to_end)


def deeper(view: View) -> pl.DataFrame:
    """What every step to the next K buys; see `core.views.what_if.deeper.steps`."""
    return _deeper(view, cache.table_key(view))


@st.cache_resource(show_spinner="Pricing every step in K…", max_entries=16)
def _deeper(_view: View, key: tuple[object, ...]) -> pl.DataFrame:
    del key  # of the table
    where = (_view.snapshot, _view.table, _view.scope)
    found = steps(*where, quality=_view.quality, latency=_view.latency)
    return step_rows(found, _view.table, higher_is_better=_view.quality.higher_is_better)


def free(constraints: Constraints) -> Constraints:
    """The sidebar's limits without its SLA, which every panel sets itself."""
    return replace(constraints, sla_ms=None)


def ask_targets(view: View) -> list[float]:
    """Latency targets, from a line of the link."""
    usual = read_targets("", view.table)
    line = st.text_input(
        "Targets (ms)",
        key="slas",
        bind="query-params",
        placeholder=", ".join(f"{each:g}" for each in usual),
        help="Numbers between commas. The sidebar's budget and floor hold; its SLA does not.",
    )
    try:
        return read_targets(line, view.table)
    except ClqError as error:
        st.warning(plain(str(error)), icon=":material/edit:")
        return usual


def panels(view: View, found: Sequence[Conditioned], left: pl.DataFrame) -> None:
    """Draw the targets two by two; below one another on a narrow screen.

    Args:
        view: The workspace.
        found: From `core.decide.slo.conditioned`.
        left: From `core.views.what_if.targets.target_rows` of it.
    """
    ranges = spans(view.table)
    if ranges is None:
        st.caption("No stack has both a cost and a quality, so there is no frontier to draw.")
        return
    if thinning(view.table) > 1:
        st.caption(f"Marks: one stack in {thinning(view.table)}. Frontier and choice are those of all.")
    titles = [panel_title(row) for row in left.iter_rows(named=True)]
    for start in range(0, len(found), 2):
        for place, at in zip(st.columns(2), range(start, min(start + 2, len(found))), strict=False):
            with place:
                st.markdown(f"**{plain(titles[at][0])}** {plain(titles[at][1])}")
                drawn = panel(view.table, found[at], view.quality, ranges)
                show.chart(drawn, f"target_{at}", alt=" ".join(titles[at]))


def ask_per() -> Per:
    """What a step is priced in."""
    per: Per = st.segmented_control(
        "Quality bought per",
        tuple(PER),
        default="100 ms",
        required=True,
        key="per",
        bind="query-params",
    )
    return per


BOARDS = (("Retrieval-local: the reranker's latency", False), ("End to end: the whole retrieval path", True))
"""The leaderboards: title and whether the whole path's latency divides."""


def matrix_columns(quality: Quality, latency: Latency) -> Mapping[str, Any]:
    """The columns of the scenarios."""
    return {
        "scenario": show.text_column("scenario", width=130),
        "name": show.text_column("stack", width=240),
        "cost": show.dollar_column("$ / 1k", "Per 1,000 queries."),
        "latency_ms": show.number_column("latency ms", 1, f"{latency.name}, as in the sidebar."),
        "rerank_ms": show.number_column("reranker ms", 1, "Median of the reranker call, as in the paper."),
        **{
            f"{each.name} in words": show.text_column(each.name, "With 95 % interval and n.", width=160)
            for each in measures(quality)
        },
        "asked": show.text_column("asked for", width=230),
        "embedder": show.text_column("embedder"),
        "dim": show.number_column("dim", 0),
        "reranker": show.text_column("reranker"),
        "candidates": show.number_column("K", 0),
        "latency_low": show.number_column("latency low", 1, "95 % interval."),
        "latency_high": show.number_column("latency high", 1, "95 % interval."),
        "latency_n": show.number_column("latency n", 0),
        "cost_note": show.text_column("cost note"),
    }


TARGET_COLUMNS: Mapping[str, Any] = {
    "sla_ms": show.number_column("SLA ms", 2),
    "chosen": show.text_column("chosen", width=280),
    "quality": show.score_column("quality"),
    "quality_low": show.score_column("low"),
    "quality_high": show.score_column("high"),
    "n": show.number_column("n", 0),
    "latency_ms": show.number_column("latency ms", 2),
    "cost": show.dollar_column("$ / 1k"),
    "feasible": show.number_column("stacks left", 0),
    "frontier": show.number_column("on the frontier", 0, "Of cost and quality, among those left."),
    "runner_up": show.text_column("runner-up", width=280),
}
LEADERS: Mapping[str, Any] = {
    "rank": show.number_column("rank", 0),
    "name": show.text_column("stack", width=270),
    "efficiency": show.number_column("quality / s", 3),
    "average": show.score_column("average quality", "Of N-Recall4+ and RA-nWG, each at 10 and 30."),
    "latency_ms": show.number_column("latency ms", 1),
    "average_basis": show.text_column("average is"),
    "reason": show.text_column("unknown because"),
}
STEP_COLUMNS: Mapping[str, Any] = {
    "family": show.text_column("stack without K", width=250),
    "from_k": show.number_column("from K", 0),
    "to_k": show.number_column("to K", 0),
    "d_quality": st.column_config.NumberColumn("quality", format="%+.3f"),
    "d_ms": st.column_config.NumberColumn("ms", format="%+.3g"),
    "d_usd": st.column_config.NumberColumn("$ / 1k", format="%+.3g"),
    "per_100_ms": st.column_config.NumberColumn("per 100 ms", format="%+.3g"),
    "per_usd": st.column_config.NumberColumn("per $1", format="%+.3g"),
    "pays": st.column_config.CheckboxColumn("pays"),
    "reason": show.text_column("why not", width=270),
}
