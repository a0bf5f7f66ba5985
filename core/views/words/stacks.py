"""The columns of a list of stacks."""

from __future__ import annotations

from core.analysis.workspace.view import View
from core.views import columns as cols
from core.views.words import choice as choice_of


def stack_columns(view: View) -> tuple[cols.Column, ...]:
    """Return the columns of a list of stacks."""
    return cols.Rows(
        "stacks",
        cols.text("stack", width=360),
        cols.score("quality", view.quality.name),
        cols.number("latency_ms", f"{view.latency.percentile} ms", view.latency.name),
        cols.usd("cost", "$ / 1k", f"Per 1,000 {choice_of.costed(view.table)}."),
        "n",
        cols.text("outcome", "status", width=260),
    ).columns
