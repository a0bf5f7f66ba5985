"""Latency targets: what each leaves, and the frontier of cost and quality within it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import streamlit as st

from core.decide.slo import conditioned
from core.errors import ClqError
from core.ui import show
from core.ui.view import View
from core.views.text import plain
from core.views.what_if import words
from core.views.what_if.targets import panels, read_targets, target_rows, thinning


def latency_targets(view: View) -> None:
    """Draw the section."""
    head = st.container()
    free = replace(view.constraints, sla_ms=None)  # every target sets its own
    found = conditioned(view.table, _ask_targets(view), free, paired=view.paired)
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
        key="slas",
        bind="query-params",
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
