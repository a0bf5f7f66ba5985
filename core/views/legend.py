"""How stacks look in charts: one colour and one label in every chart of a view."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from core.analysis.workspace.view import View
from core.decide.pareto import frontier_rows
from core.views import text, theme
from core.views.ask import RUNNER_UP, usual_stacks

_LONGEST = 54  # characters of a label


def colours_of(view: View, names: Sequence[str]) -> dict[str, str]:
    """Return the colour of some stacks, which charts of the same view share.

    The stacks that pages show first (chosen, runner-up, running today, frontier) have different colours. Any
    other has its own, or the next one where a stack beside it has that.
    """
    table = view.table
    rows = [*([] if view.running_row is None else [view.running_row]), *frontier_rows(table, view.decision)]
    first = [*usual_stacks(table, view.decision), *(str(table["name"][row]) for row in rows)]
    of_view = theme.colours_for(list(dict.fromkeys(first))[: len(theme.OKABE_ITO)])
    return theme.colours_for(names, {name: of_view[name] for name in names if name in of_view})


def shown_first(view: View, names: Sequence[str] | None = None) -> dict[str, Any]:
    """Return how stacks are asked for: which are shown at first, with the one of today, and their words.

    Args:
        names: The others; by default the chosen one and the runner-up.
    """
    usual = usual_stacks(view.table, view.decision) if names is None else list(names)
    today = view.running_name
    if today is None or today in usual:
        return {"usual": usual}
    return {"usual": [*usual, today], "unsaid": f"{RUNNER_UP}, and what runs today"}


def labels_of(names: Iterable[str], today: str | None = None) -> dict[str, str]:
    """Return the label of each stack in a legend, safe for Plotly; names that are cut stay unlike.

    Args:
        today: The stack that runs today, whose label has its mark.
    """
    names = list(names)
    labels = zip(names, text.unlike(names, _LONGEST), strict=True)
    return {name: text.escape(theme.as_today(label, runs=name == today)) for name, label in labels}
