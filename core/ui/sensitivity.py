"""Cached reads and columns of the sensitivity page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl
import streamlit as st

from core.metrics import Measure
from core.ui import cache, show
from core.ui.view import View
from core.views.confidence import sensitivity, sensitivity_flips
from core.views.confidence.sensitivity import Grid
from core.views.workspace.query_sets import among
from core.views.workspace.scope import Scope
from core.views.workspace.scores import evidence


def grid(view: View, measure: Measure) -> tuple[Grid, pl.DataFrame]:
    """All stacks with rankings in all cells, and the pairwise orders; see `confidence.sensitivity`."""
    ranked = view.table.filter("has_rankings").select("run_id", "name")
    return _grid(
        str(cache.store().path),
        view.snapshot.revision,
        scope=view.scope,
        measure=str(measure),
        runs=tuple(ranked.iter_rows()),
    )


@st.cache_resource(show_spinner="Scoring every cell of the grid…", max_entries=16)
def _grid(
    path: str, revision: int, *, scope: Scope, measure: str, runs: tuple[tuple[str, str], ...]
) -> tuple[Grid, pl.DataFrame]:
    del path  # part of the key
    names = dict(runs)
    found_at = cache.snapshot(revision)
    found = evidence(found_at, list(names), scope.golden_set_id or "", only=among(found_at, scope))
    made = sensitivity.score_grid(found, Measure.parse(measure))
    return made, sensitivity_flips.flips(made, names)


RANGES: Mapping[str, Any] = {
    "name": show.text_column("stack", width=290),
    "quality": show.score_column("as usual"),
    "rank": show.number_column("rank", 0, "As usual; equal scores share a rank."),
    "lowest": show.score_column("lowest", "Over all cells of the grid."),
    "highest": show.score_column("highest", "Over all cells of the grid."),
    "best_rank": show.number_column("best rank", 0),
    "worst_rank": show.number_column("worst rank", 0),
    "twin": show.text_column("same scores as", "The first stack with the same score on every query."),
}
FLIPS: Mapping[str, Any] = {
    "better": show.text_column("better, as usual", width="medium"),
    "worse": show.text_column("worse, as usual", width="medium"),
    "difference": show.signed_column("difference", "As usual, mean over queries."),
    "low": show.signed_column("low", "Lower end of its 95 % interval."),
    "high": show.signed_column("high", "Upper end of its 95 % interval."),
    "p_holm": show.number_column("p adjusted", 4, "Of the usual order, Holm-adjusted over these pairs."),
    "flips": show.number_column("cells turned", 0, "Cells in which the order is reversed."),
    "reversal": show.signed_column("reversal", "The largest difference the other way."),
    "where": show.text_column("where", "The cell with that difference."),
    "p_there": show.number_column("p there", 4, "Of that reversal, Holm-adjusted over the reversed pairs."),
    "reading": show.text_column("reading"),
}
CELLS: Mapping[str, Any] = {
    "name": show.text_column("stack", width=290),
    "alpha": show.number_column("alpha", 1),
    "cap4": show.number_column("cap4", 2),
    "cap3": show.number_column("cap3", 2),
    "usual": st.column_config.CheckboxColumn("usual"),
    "quality": show.score_column("score"),
    "low": show.score_column("low"),
    "high": show.score_column("high"),
    "n": show.number_column("n", 0),
    "rank": show.number_column("rank", 0),
    "chosen": st.column_config.CheckboxColumn("chosen", help="Selected by the limits of the sidebar."),
}
