"""Other weights: whether choice and order hold under other weights of RA-nWG."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl
import streamlit as st

from core.metrics import Measure
from core.ui import cache, show
from core.ui.pick import pick_stack
from core.ui.view import View, end
from core.views.confidence import weight_charts, weights, words
from core.views.confidence.weights import Grid
from core.views.text import plain
from core.views.workspace.query_sets import among
from core.views.workspace.scores import evidence

BEST_STACK = "the best as usual"


def other_weights(view: View) -> None:
    """Draw the section."""
    obstacle = words.nothing(view.table, view.scope)
    if obstacle is not None:
        show.head(*obstacle)
        st.page_link("pages/add.py", label="Import rankings", icon=":material/upload:")
        end()
    measure, own = weights.weighed(view.quality)
    grid, flips = _grid(view, str(measure))
    chosen = weights.choices(grid, view.table, view.constraints)
    sentence, details = words.weighed(grid, chosen, flips)
    show.head(sentence)
    if numbers := words.weighed_cards(grid, chosen, flips):
        show.cards(*numbers)
    foreign = f"{view.quality.name} has no such weights: the grid, and the floor in it, are of {measure}."
    show.caveats({"which orders turn": details, "another measure": "" if own else foreign})

    left, right = st.columns(2, vertical_alignment="bottom")
    with left:
        st.markdown("**Order and choice, cell by cell**")
        show.chart(weight_charts.agreement(grid, chosen), "agreement", alt=sentence)
    with right:
        ranked = view.table.filter("has_rankings")
        run_id = pick_stack(ranked, view.decision, "One stack, cell by cell", default=BEST_STACK)
        show.chart(weight_charts.one_stack(grid, run_id or grid.leader), "one_stack")
    st.caption(plain(words.weighing_legend(grid, chosen)))

    st.subheader("How far the stacks move", anchor=False)
    names = dict(view.table.select("run_id", "name").iter_rows())
    ranges = weights.stack_ranges(grid, names)
    show.chart(weight_charts.ranges(ranges, str(measure)), "ranges")
    show.table(weights.grouped(ranges), "ranges", RANGES, whole=ranges)
    st.subheader("Which orders turn round", anchor=False)
    show.table(flips, "flips", FLIPS, more=FLIPS_MORE)
    with st.expander("Every stack in every cell"):
        cells = weights.long_table(grid, names, chosen)
        marks = [pl.when(pl.col(name)).then(pl.lit("yes")).alias(name) for name in ("usual", "chosen")]
        show.table(cells.with_columns(marks), "grid", CELLS)


@cache.cached("Scoring every cell of the grid…", entries=16)
def _grid(view: View, measure: str) -> tuple[Grid, pl.DataFrame]:
    names = dict(view.table.filter("has_rankings").select("run_id", "name").iter_rows())
    only = among(view.snapshot, view.scope)
    found = evidence(view.snapshot, list(names), view.scope.golden_set_id or "", only=only)
    grid = weights.score_grid(found, Measure.parse(measure))
    return grid, weights.flips(grid, names)


RANGES: Mapping[str, Any] = {
    "stack": show.text_column("stack", "Of those with the same score on every query, the first.", width=360),
    "quality": show.score_column("as usual"),
    "rank": show.number_column("rank", 0, "As usual; equal scores share a rank."),
    "lowest": show.score_column("lowest", "Over all cells of the grid."),
    "highest": show.score_column("highest", "Over all cells of the grid."),
    "best_rank": show.number_column("best rank", 0),
    "worst_rank": show.number_column("worst rank", 0),
}
FLIPS: Mapping[str, Any] = {
    "better": show.text_column("better, as usual", width=180),
    "worse": show.text_column("worse, as usual", width=180),
    "difference": show.signed_column("difference", "As usual, mean over queries."),
    "flips": show.number_column("cells turned", 0, "Cells in which the order is reversed."),
    "reversal": show.signed_column("reversal", "The largest difference the other way."),
    "reading": show.text_column("reading", width=230),
}
FLIPS_MORE: Mapping[str, Any] = {
    "low": show.signed_column("low", "Lower end of its 95 % interval."),
    "high": show.signed_column("high", "Upper end of its 95 % interval."),
    "p_holm": show.number_column("p adjusted", 4, "Of the usual order, Holm-adjusted over these pairs."),
    "where": show.text_column("where", "The cell with the reversal."),
    "p_there": show.number_column("p there", 4, "Of that reversal, Holm-adjusted over the reversed pairs."),
}
CELLS: Mapping[str, Any] = {
    "name": show.text_column("stack", width=270),
    "alpha": show.number_column("alpha", 1),
    "cap4": show.number_column("cap4", 2),
    "cap3": show.number_column("cap3", 2),
    "usual": show.text_column("usual"),
    "quality": show.score_column("score"),
    "low": show.score_column("low"),
    "high": show.score_column("high"),
    "n": show.number_column("n", 0),
    "rank": show.number_column("rank", 0),
    "chosen": show.text_column("chosen", "Selected by the limits."),
}
