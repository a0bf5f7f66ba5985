from collections.abc import Mapping
from typing import Any

import polars as pl
import streamlit as st

from core.decide.near import conditioned
from core.errors import ClqError
from core.ui import cache, show
from core.ui.pages import pick_section
from core.ui.pick import KEPT, carry_over, pick_one
from core.ui.sections.routing import routing
from core.ui.state import linked
from core.ui.view import current_view
from core.views.link import RULES
from core.views.pages import PAGES
from core.views.text import plain
from core.views.what_if import words
from core.views.what_if.deeper import PER, step_chart, step_rows, steps
from core.views.what_if.families import without_depth
from core.views.what_if.scenarios import (
    MOST,
    Choice,
    Scenario,
    choices,
    leaderboard,
    matrix,
    measures,
    named,
    parse,
    with_one,
)
from core.views.what_if.targets import panels, read_targets, target_rows, thinning
from core.views.workspace.scope import Latency, Quality
from core.views.workspace.view import View

_OWN, _PROBLEM = "scen", "_scenario_problem"
# What the form asks of a scenario: its field, label and largest value
_FIELDS = (
    ("sla_ms", "SLA (ms)", 1e9),
    ("budget", "Budget ($ / 1k)", 1e9),
    ("floor", "Worst quality", 1.0),
    ("max_harm", "Harm at most", 1.0),
    ("dim", "Dimensions at most", 1e6),
    ("depth", "K at least", 1e6),
)
# The leaderboards: title and whether the whole path's latency divides
_BOARDS = (("Retrieval-local: the reranker's latency", False), ("End to end: the whole retrieval path", True))


def scenarios(view: View) -> None:
    """Draw the section."""
    head = st.container()
    own = _ask_own()
    found = choices(view.table, _named(view), own, view.constraints, paired=view.paired)
    rows = _matrix(view, tuple(found))
    columns, more = _columns(view.quality, view.latency)
    with head:
        sentence, details = words.answer(rows, view.quality)
        show.head(sentence, details)
        show.caveats({"where they come from": words.legend(rows)})
        show.table(rows, "scenarios", columns, more=more, placeholder="unknown")
    with st.expander("Efficiency: quality per second of median latency (CLQ paper, Table 9)"):
        st.caption("For shortlisting only: a ratio favours small K and knows no latency target.")
        for title, end_to_end in _BOARDS:
            st.markdown(f"**{title}**")
            board = _leaders(view, end_to_end)
            show.table(board, f"efficiency_{end_to_end}", LEADERS, more=LEADERS_MORE)


@cache.cached()
def _named(view: View) -> Mapping[str, str]:
    return named(view.snapshot, view.scope.collection_id)


@cache.cached("Scoring the chosen stacks…")
def _matrix(view: View, found: tuple[Choice, ...]) -> pl.DataFrame:
    where = (view.snapshot, view.table, view.scope)
    return matrix(*where, found, view.book, quality=view.quality, latency=view.latency)


@cache.cached("Scoring the leaderboards…", entries=16)
def _leaders(view: View, end_to_end: bool) -> pl.DataFrame:
    return leaderboard(view.snapshot, view.scope, end_to_end=end_to_end)


def _ask_own() -> list[Scenario]:
    """The user's own scenarios: a form that adds one, and the line of text that the link carries."""
    carry_over(_OWN)
    with st.expander("Your own scenarios", icon=":material/add:"):
        with st.form("new_scenario", border=False):
            left, right = st.columns([3, 2])
            left.text_input("Name", key="_scen_name", max_chars=60, placeholder="Launch")
            right.selectbox("Best is", tuple(RULES), key="_scen_rule")
            for place, (key, label, top) in zip(st.columns(len(_FIELDS)), _FIELDS, strict=True):
                place.number_input(
                    label, min_value=0.0, max_value=top, value=None, key=f"_scen_{key}", placeholder="none"
                )
            st.form_submit_button("Add, or replace by name", on_click=_add)
        line = st.text_input(
            "As text; the link carries it",
            **linked(_OWN),
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


def _add() -> None:
    """In a callback: add what the form holds to the line of text."""
    state = st.session_state
    given = {field: state.get(f"_scen_{field}") for field, _, _ in _FIELDS}
    rule = RULES[state.get("_scen_rule") or next(iter(RULES))]
    made = Scenario(str(state.get("_scen_name") or ""), rule, **given)
    try:
        st.session_state[_OWN] = with_one(st.session_state.get(_OWN) or "", made)
    except ClqError as error:
        st.session_state[_PROBLEM] = str(error)


def _columns(quality: Quality, latency: Latency) -> tuple[dict[str, Any], dict[str, Any]]:
    """The columns that decide, with the measure of the limits, and the others."""
    scores = {
        f"{each.name} in words": show.text_column(each.name, "With 95 % interval and n.", width=175)
        for each in measures(quality)
    }
    own = f"{quality.name} in words"
    shown = {
        "scenario": show.text_column("scenario", width=130),
        "name": show.text_column("stack", width=250),
        own: scores.pop(own),
        "latency_ms": show.number_column("latency ms", 2, f"{latency.name}."),
        "cost": show.dollar_column("$ / 1k", "Per 1,000 queries."),
    }
    more = {
        "asked": show.text_column("asked for", width=230),
        **scores,
        "rerank_ms": show.number_column("reranker ms", 2, "Median of the reranker call, as in the paper."),
        "embedder": show.text_column("embedder"),
        "dim": show.number_column("dim", 0),
        "reranker": show.text_column("reranker"),
        "candidates": show.number_column("K", 0),
        "latency_low": show.number_column("latency low", 2, "95 % interval."),
        "latency_high": show.number_column("latency high", 2, "95 % interval."),
        "latency_n": show.number_column("latency n", 0),
        "cost_note": show.text_column("cost note"),
    }
    return shown, more


LEADERS: Mapping[str, Any] = {
    "rank": show.number_column("rank", 0),
    "name": show.text_column("stack", width=270),
    "efficiency": show.number_column("quality / s", 3),
    "average": show.score_column("average quality", "Of N-Recall4+ and RA-nWG, each at 10 and 30."),
    "latency_ms": show.number_column("latency ms", 2),
    "reason": show.text_column("unknown because"),
}
LEADERS_MORE: Mapping[str, Any] = {"average_basis": show.text_column("average is")}


def latency_targets(view: View) -> None:
    """Draw the section."""
    head = st.container()
    found = conditioned(view.table, _ask_targets(view), view.constraints, paired=view.paired)
    rows = target_rows(view.table, found)
    sentence = words.target_words(rows, view.quality)
    with head:
        show.head(sentence)
        thin = thinning(view.table)
        sparse = f"Marks: one stack in {thin}. Frontier and choice are those of all."
        show.caveats({"not all are drawn": sparse if thin > 1 else ""})
    drawn = panels(view.table, found, view.quality)
    if drawn is None:
        st.caption("No stack has both a cost and a quality, so there is no frontier to draw.")
    else:
        show.chart(drawn, "targets", alt=sentence)
    show.table(rows, "targets", TARGETS, more=TARGETS_MORE)


def _ask_targets(view: View) -> list[float]:
    """Latency targets, from a line of the link."""
    usual = read_targets("", view.table)
    line = st.text_input(
        "Targets (ms)",
        **linked("slas"),
        placeholder=", ".join(f"{target:g}" for target in usual),
        help="Numbers between commas. Budget and floor hold; the SLA does not.",
    )
    try:
        return read_targets(line, view.table)
    except ClqError as error:
        st.warning(plain(str(error)), icon=":material/edit:")
        return usual


TARGETS: Mapping[str, Any] = {
    "sla_ms": show.number_column("target ms", 2),
    "chosen": show.text_column("chosen", width=270),
    **show.NUMBERS,
    "feasible": show.number_column("stacks left", 0),
}
TARGETS_MORE: Mapping[str, Any] = {
    **show.INTERVAL,
    "frontier": show.number_column("on the frontier", 0, "Of cost and quality, among those left."),
    "runner_up": show.text_column("runner-up", width=270),
}


def larger_k(view: View) -> None:
    """Draw the section."""
    rows = _steps(view)
    sentence = words.step_words(rows, view.quality, view.table)
    show.head(sentence)
    if not (rows["d_quality"].abs() > 0).any():  # also where there is no step
        return
    show.caveats({"when a step pays": words.PAYS})
    per = pick_one("Quality bought per", PER, "per", usual="100 ms")
    row = view.decision.chosen
    chosen = None if row is None else without_depth(view.table["spec"][row])
    drawn = step_chart(rows, per, chosen)
    if drawn is None:
        st.caption(plain(f"Nothing to draw: no step moves quality, or none is known to cost more of {per}."))
    else:
        show.chart(drawn, "steps", alt=sentence)
        st.caption("Hollow: the step does not pay, for the reason in the table.")
    paying = pl.when(pl.col("pays")).then(pl.lit("yes")).otherwise(pl.lit("no")).alias("pays")
    told = rows.with_columns(paying)
    moving = told.filter(pl.col("d_quality").abs().fill_null(1.0) > 0)
    show.table(moving, "steps", STEPS, more=STEPS_MORE, whole=told)
    if still := told.height - moving.height:
        st.caption(words.still_steps(still))


@cache.cached("Pricing every step in K…", entries=16)
def _steps(view: View) -> pl.DataFrame:
    found = steps(view.snapshot, view.table, view.scope, quality=view.quality, latency=view.latency)
    return step_rows(found, view.table, higher_is_better=view.quality.higher_is_better)


def _signed(label: str, form: str = "%+.3g") -> Any:
    return st.column_config.NumberColumn(label, format=form)


STEPS: Mapping[str, Any] = {
    "family": show.text_column("stack without K", width=250),
    "from_k": show.number_column("from K", 0),
    "to_k": show.number_column("to K", 0),
    "d_quality": _signed("quality", "%+.3f"),
    "d_ms": _signed("ms"),
    "d_usd": _signed("$ / 1k"),
    "pays": show.text_column("pays"),
    "reason": show.text_column("why not", width=200),
}
STEPS_MORE: Mapping[str, Any] = {
    "per_100_ms": _signed("quality per 100 ms"),
    "per_usd": _signed("quality per $1"),
}


page = PAGES["what_if"]
sections = (scenarios, latency_targets, larger_k, routing)
view = current_view()
dict(zip(page.sections, sections, strict=True))[pick_section(page)](view)
