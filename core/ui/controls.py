"""The forms and buttons that only the dashboard has; a section refers to them with a `Control`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import polars as pl
import streamlit as st

from core.analysis.between import begun, stand
from core.analysis.deciding import Contest
from core.analysis.workspace.scope import Scope
from core.decide.axes import BESIDE, Axis
from core.errors import ClqError
from core.number_format import CostUnit, dollars_per_1k
from core.ui import access, cache
from core.ui.address.links import go
from core.ui.live import pareto_chart
from core.ui.sections import decision, leaving, library
from core.ui.sections.judge_cards import book
from core.views.golden.judging import propose
from core.views.golden.sections import begin
from core.views.link import RULES
from core.views.text import plain
from core.views.what_if.scenarios import Scenario, with_one
from core.views.words.deciding import stands


def judge_next(golden: str, within: str, rows: pl.DataFrame) -> None:
    """Draw the button that passes passages of a collection, or of its chunks, on to page Golden sets."""
    if access.forbidden() or not st.button(f"Judge these {rows.height} next", icon=":material/rule:"):
        return
    queue = propose(book(), within, rows, golden)
    go("golden", queue=queue.queue_id)  # the section follows from it


def judge_between(scope: Scope, contest: Contest) -> None:
    """Draw what the grades decide so far, and the button that starts or continues the judging."""
    data = cache.snapshot(None)
    known = begun(book(), data, scope, contest)
    if known is not None and (found := stand(book(), data, known)) is not None:
        st.markdown(plain(stands(found)))
    if not access.forbidden() and st.button(
        "Judge what decides" if known is None else "Go on judging", icon=":material/rule:"
    ):
        go("golden", queue=begin(book(), data, scope, contest).queue_id)


_PROBLEM = "_scenario_problem"
_FIELDS = (
    ("sla_ms", "SLA (ms)", 1e9),
    ("budget", "Budget ($ / {})", 1e9),
    ("min_quality", "Worst quality", 1.0),
    ("dim", "Dimensions at most", 1e6),
    ("depth", "K at least", 1e6),
    *((axis.limit, axis.asks, 1.0) for axis in BESIDE),
)
"""Limits that the form asks of a scenario: field, label and largest value."""
_ABREAST = 5  # Fields per row


def new_scenario(key: str, beside: Sequence[Axis], said: CostUnit) -> None:
    """Draw the form that adds a scenario to a setting's line of text.

    Args:
        beside: The axes other than quality with known values.
        said: The page's cost unit.
    """
    left_out = {axis.limit for axis in BESIDE if axis not in beside}
    fields = [field for field in _FIELDS if field[0] not in left_out]
    with (
        st.expander("Add a scenario", icon=":material/add:"),
        st.form("new_scenario", border=False),
    ):
        left, right = st.columns([3, 2])
        left.text_input("Name", key="_scen_name", max_chars=60, placeholder="Launch")
        right.selectbox("Best is", tuple(RULES), key="_scen_rule")
        rooms = [
            room
            for start in range(0, len(fields), _ABREAST)
            for room in st.columns(min(len(fields), _ABREAST))
        ]
        for place, (field, label, top) in zip(rooms, fields, strict=False):
            place.number_input(
                label.format(said.per),
                min_value=0.0,
                max_value=top,
                value=None,
                key=f"_scen_{field}",
                placeholder="none",
            )
        st.form_submit_button("Add, or replace by name", on_click=_add, args=(key, fields, said))
    if problem := st.session_state.pop(_PROBLEM, None):
        st.warning(plain(problem), icon=":material/edit:")


def _add(key: str, fields: Sequence[tuple[str, str, float]], said: CostUnit) -> None:
    """Add the form's scenario to the line of text (a callback)."""
    state = st.session_state
    given: dict[str, Any] = {field: state.get(f"_scen_{field}") for field, _, _ in fields}
    if given["budget"] is not None:
        given["budget"] = dollars_per_1k(f"{given['budget']!r}per{said.per}")
    rule = RULES[state.get("_scen_rule") or next(iter(RULES))]
    try:
        scenario = Scenario(str(state.get("_scen_name") or ""), rule, **given)
        st.session_state[key] = with_one(st.session_state.get(key) or "", scenario, said)
    except ClqError as error:
        st.session_state[_PROBLEM] = str(error)


CONTROLS: Mapping[str, Callable[..., None]] = {
    "judge next": judge_next,
    "judge between": judge_between,
    "new scenario": new_scenario,
    "choice": decision.choice,
    "alternatives": decision.alternatives,
    "near misses": decision.near_misses,
    "pareto": pareto_chart,
    "held": library.held,
    "permissions": library.permissions,
    "deleted": library.deleted,
    "export": library.export,
    "files": leaving.files,
    "stack": decision.stack,
    "stacks": decision.stacks,
}
"""Functions that draw a control, by its name."""
