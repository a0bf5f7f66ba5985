"""Chart of a judge's scores corrected with people's grades, beside the uncorrected ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import plotly.graph_objects as go
import polars as pl

from core.views import text, theme
from core.views.text import NOT_APPLICABLE

MARKS = "Dot: corrected, with its 95 % interval. Diamond: judge. Cross: people alone."


def drawn(
    rows: pl.DataFrame, names: Sequence[str], axis: str, said: Callable[[float | None], str]
) -> go.Figure:
    """Draw corrected scores with their intervals, beside the scores of the judge and of people.

    Args:
        rows: corrected, low, high, judged_score, alone and graded.
        names: Names of the rows.
        axis: What is scored.
        said: Formats a score.
    """
    places = list(range(len(names)))
    hover = [
        f"{text.escape(name)}: {said(value)} [{said(low)}, {said(high)}], {text.sample(n)} graded"
        for name, (value, low, high, n) in zip(
            names, rows.select("corrected", "low", "high", "graded").rows(), strict=True
        )
    ]
    bars = theme.whiskers(
        *(rows[name].to_numpy() for name in ("low", "corrected", "high")),
        thickness=2,
        color=theme.OKABE_ITO[0],
    )
    look = {"color": theme.OKABE_ITO[0], "size": 10}
    traces = [
        theme.scatter(
            "corrected", rows["corrected"].to_list(), places, hover=hover, marker=look, error_x=bars
        )
    ]
    for column, name, symbol, colour in (
        ("judged_score", "judge", "diamond-open", theme.OKABE_ITO[1]),
        ("alone", "people alone", "x-thin-open", theme.NEUTRAL),
    ):
        told = [f"{name}: {said(value) or NOT_APPLICABLE}" for value in rows[column]]
        style = {"symbol": symbol, "size": 11, "color": colour, "line": {"width": 2}}
        traces.append(theme.scatter(name, rows[column].to_list(), places, hover=told, marker=style))
    figure = theme.figure(traces, x=axis, height=110 + 38 * max(len(names), 2))
    return theme.name_rows(figure, names)
