"""The columns of a list of stacks."""

from __future__ import annotations

from core.analysis.workspace.view import View
from core.views.columns import COLUMNS, Column
from core.views.words import choice as choice_of

PER_1K = COLUMNS["cost"]


def stack_columns(view: View) -> tuple[Column, ...]:
    """Return the columns of a list of stacks."""
    return (
        COLUMNS["stack"].but(width=360),
        COLUMNS["quality"].but(view.quality.name),
        COLUMNS["latency_ms"].but(f"{view.latency.percentile} ms", view.latency.name),
        PER_1K.but("$ / 1,000", f"Per 1,000 {choice_of.costed(view.table)}."),
        COLUMNS["n"].but(about="Queries that the mean rests on."),
        COLUMNS["outcome"].but("status", width=260),
    )
