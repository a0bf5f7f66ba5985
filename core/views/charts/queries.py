"""Chart of page Queries: the score of every query, or its difference to a second stack."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
import polars as pl

from core.analysis.per_query import WEAK
from core.analysis.workspace.scope import Quality
from core.arrays import Floats, Mask
from core.stats.significance import ROUNDING, TOLERANCE, outcomes
from core.views import text, theme
from core.views.words.choice import axis

BARS = 200  # Maximum bars drawn: the two ends of the order; the table has every query
_LABELLED = 40
_QUESTION = 60
_Part = tuple[str, str, Floats, Mask, str, str]
"""Kind, name in the legend, heights, which queries, colour, and pattern or symbol: never colour alone."""


@dataclass(frozen=True)
class Bars:
    """The chart."""

    figure: go.Figure  # the bars; customdata[0] of every mark is the row of `drawn`
    drawn: pl.DataFrame  # the queries drawn, in order


def bars(
    rows: pl.DataFrame,
    quality: Quality,
    colours: Mapping[str, str],
    called: tuple[str, ...] = (),
    *,
    selected: str | None = None,
    tolerance: float = TOLERANCE,
) -> Bars | None:
    """Draw the score of every query, or its difference to a second stack, in the order of the table.

    Args:
        colours: Colour by name of the stack, and of the second one that it is compared with.
        called: What the page calls the stacks; by default their names.
        tolerance: Largest difference that is a tie.

    Returns:
        The chart; None when no query has a value.
    """
    names = list(colours)
    column = "score" if len(names) == 1 else "delta"
    drawn = rows.filter(pl.col(column).is_not_null())
    if drawn.is_empty():
        return None
    gains = drawn[column].to_numpy() * (1 if quality.higher_is_better else -1)
    if drawn.height > BARS:
        drawn = pl.concat([drawn.head(BARS // 2), drawn.tail(BARS // 2)])
    heights = drawn[column].to_numpy()
    best = drawn["best"].to_numpy() if len(names) == 1 else heights
    title = axis(quality) if len(names) == 1 else f"difference in {quality.name}"
    layout = theme.layout(y=title, height=280)
    few = drawn.height <= _LABELLED
    ticks = [text.escape(text.shorten(name, 12)) for name in drawn["query_id"]] if few else []
    layout["xaxis"] |= {
        "range": [-0.8, drawn.height - 0.2], "showgrid": False, "ticktext": ticks,
        "tickvals": np.arange(drawn.height) if few else [],
    }  # fmt: skip
    layout["yaxis"] |= {"zeroline": True, "range": _fitted(heights, best)}
    layout |= {"barmode": "overlay", "bargap": 0.15, "annotations": _pointer(drawn, heights, selected)}
    if len(names) == 1:
        parts = _parts(drawn)
    else:
        sides = list(zip(colours.values(), called or text.unlike(names, 34), strict=True))
        parts = _differences(heights, gains, quality, sides, tolerance)
    hover = [_hover(row) for row in drawn.iter_rows(named=True)]
    return Bars(theme.finished([_trace(part, hover) for part in parts if part[3].any()], layout), drawn)


def _fitted(heights: Floats, best: Floats) -> list[float]:
    top = float(np.nanmax(np.concatenate([heights, best]), initial=0.0))
    low = min(0.0, float(heights.min()))
    room = 0.12 * max(top - low, 0.02)
    return [low - (room if low else 0.2 * room), top + room]


def _parts(drawn: pl.DataFrame) -> list[_Part]:
    score, best, share = (drawn[name].to_numpy() for name in ("score", "best", "share"))
    weak, zero = share < WEAK, np.zeros(drawn.height)
    blue, red = theme.OKABE_ITO[0], theme.OKABE_ITO[5]
    return [
        ("bar", "at least half of PROC", score, ~weak & (score > 0), blue, ""),
        ("bar", "less than half of PROC", score, weak & (score > 0), red, "/"),
        ("scatter", "scores 0", zero, score == 0, red, "x-thin"),
        ("scatter", "best order of its pool (PROC)", best, ~np.isnan(best), theme.NEUTRAL, "line-ew"),
    ]


def _differences(
    delta: Floats, gains: Floats, quality: Quality, sides: Sequence[tuple[str, str]], tolerance: float
) -> list[_Part]:
    """Return the parts of a comparison: the queries on which each stack is better, and ties.

    Args:
        delta: The differences that are drawn.
        gains: What the first stack gains on every query, drawn or not: these are counted.
        sides: Colour and name of the two stacks.
    """
    gain, limit = delta if quality.higher_is_better else -delta, tolerance + ROUNDING
    won, ties, lost = (int(number[0]) for number in outcomes(gains[None], tolerance))
    (first, one), (second, other) = ((colour, text.escape(name)) for colour, name in sides)
    return [
        ("bar", f"{one} better ({won})", delta, gain > limit, first, ""),
        ("bar", f"{other} better ({lost})", delta, gain < -limit, second, "/"),
        ("scatter", f"tie ({ties})", delta, np.abs(gain) <= limit, theme.NEUTRAL, "circle"),
    ]


def _trace(part: _Part, hover: list[str]) -> theme.Spec:
    kind, name, heights, mask, colour, look = part
    picked = np.flatnonzero(mask)
    if kind == "bar":
        pattern = {"shape": look, "fillmode": "replace"}
        marker: dict[str, Any] = {"color": colour, "line": {"width": 0}, "pattern": pattern}
    else:
        size = float(np.clip(500 / len(hover), 4, 9))
        marker = {"color": colour, "symbol": look, "size": size, "line": {"color": colour, "width": 2}}
    still: theme.Spec = {"selected": {"marker": {"opacity": 1}}, "unselected": {"marker": {"opacity": 1}}}
    shared: theme.Spec = {"hover": [hover[row] for row in picked], "customdata": picked[:, None]}
    return theme.scatter(name, picked, heights[picked], marker=marker, **shared, **still) | {"type": kind}


def _hover(row: dict[str, Any]) -> str:
    question = text.escape(text.shorten(row["text"] or "", _QUESTION))
    against = "" if row["other"] is None else f"<br>second stack {text.score(row['other'])}"
    possible = "" if row["best"] is None else f" of a possible {text.score(row['best'])}"
    holes = "" if row["holes"] is None else f"<br>{row['holes']:,} of the Top-K unjudged"
    head = f"<b>{text.escape(row['query_id'])}</b> {question}"
    return f"{head}<br>score {text.score(row['score'])}{possible}{against}{holes}"


def _pointer(drawn: pl.DataFrame, heights: Floats, selected: str | None) -> list[theme.Spec]:
    place = None if selected is None else drawn["query_id"].index_of(selected)
    if place is None:
        return []
    top = max(float(heights[place]), 0.0)
    return [{"x": place, "y": top, "text": "▼", "showarrow": False, "yshift": 14, "font": {"size": 13}}]
