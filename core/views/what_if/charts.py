"""Charts of a move from the running stack: dollars by month, and what each step buys at what cost."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import plotly.graph_objects as go
import polars as pl

from core.analysis.moves.switching import Switch
from core.analysis.workspace.view import View
from core.arrays import Floats
from core.decide.pareto import frontier_2d
from core.number_format import interval, sample, score, signed, usd
from core.views import theme
from core.views.text import escape
from core.views.words.moving import RUNS_TODAY, STEP_WORDS

_POINTS = 60  # Points of a line
_FARTHEST = 3  # A payback up to as many times later than asked is drawn
_STRIP = 0.84  # Share of the width from which stacks of unknown cost are drawn
LOOKS: Mapping[str | None, tuple[str, str]] = {
    "none": (theme.OKABE_ITO[0], "circle"),
    "rebuild": (theme.OKABE_ITO[2], "diamond"),
    "embed": (theme.OKABE_ITO[5], "triangle-up"),
    None: (theme.NEUTRAL, "x"),
}
"""Colour and symbol of the stacks, by the largest step that they need."""


def by_month(move: Switch) -> go.Figure | None:
    """Draw what staying and switching cost by each month, and where they cross; None if that is unknown."""
    once, monthly = move.move.once_usd, move.monthly
    if once is None or monthly is None:
        return None
    crossing, end = move.verdict.payback_months or math.inf, max(2.0, move.terms.months)
    if crossing < _FARTHEST * end:
        end = max(end, 1.2 * crossing)
    months = np.linspace(0, end, _POINTS)
    traces: list[theme.Spec] = []
    for name, spent, moved, colour in (
        ("stay", monthly.stay * months, False, theme.OKABE_ITO[0]),
        ("switch", once + monthly.switch * months, True, theme.OKABE_ITO[5]),
    ):
        low, high = monthly.band(months, once, moved=moved)
        traces += _with_band(name, months, (low, spent, high), colour, "solid" if moved else "dash")
    if crossing <= end:
        said = f"paid back after {crossing:.1f} months"
        mark = {"size": 12, "color": theme.ACCENT, "symbol": "x"}
        traces.append(theme.scatter(said, [crossing], [monthly.stay * crossing], hover=[said], marker=mark))
    value = " less what quality is worth" if move.terms.value_usd else ""
    layout = theme.layout(x="months since the move", y=f"$ since the decision{value}", height=340)
    most = max(monthly.stay * end, once + monthly.switch * end)
    layout["yaxis"] |= {"rangemode": "tozero", "tickformat": _ticks(most)}
    return theme.finished(traces, layout)


def _ticks(most: float) -> str:
    """Return how dollars are written on an axis: 1.5k from a thousand on; below, m would mean thousandths."""
    return "$~s" if most >= 1_000 else "$.3~r"


def _with_band(
    name: str, x: Floats, ends: tuple[Floats, Floats, Floats], colour: str, dash: str
) -> Iterator[theme.Spec]:
    """Yield a line, and the band of its 95 % interval below it."""
    low, middle, high = ends
    if not np.allclose(low, high):
        yield theme.quiet(name, x, low, mode="lines", line={"width": 0})
        yield theme.quiet(
            name, x, high, mode="lines", line={"width": 0}, fill="tonexty", fillcolor=theme.SOFT
        )
    hover = [f"{name}, month {at:.1f}: {usd(spent)}" for at, spent in zip(x, middle, strict=True)]
    line = {"color": colour, "dash": dash, "width": 2}
    yield theme.scatter(name, x, middle, hover=hover, mode="lines", line=line)


def by_step(view: View, rows: pl.DataFrame) -> go.Figure | None:
    """Draw quality against the one-time cost of every stack, coloured by the step that it needs.

    Args:
        rows: From `core.analysis.moves.switching.moves`.

    Returns:
        The figure, with stacks of unknown cost beside the others; None if no quality is known.
    """
    now = view.table.row(view.running_row or 0, named=True)
    quality = view.table.select("run_id", "quality", "quality_low", "quality_high", "n")
    own, sign = now["quality"], 1 if view.quality.higher_is_better else -1
    replayed = pl.col("difference") * sign + (np.nan if own is None else own)
    either = pl.coalesce("quality", pl.when(pl.col("run_id").is_null()).then(replayed.fill_nan(None)))
    stacks = rows.join(quality, on="run_id", how="left").with_columns(quality=either).drop_nulls("quality")
    if stacks.is_empty():
        return None
    unknown = stacks["once_usd"].is_null()
    places = unknown.cast(pl.Int64).cum_sum().cast(pl.Float64)
    stacks = stacks.with_columns(
        x=pl.when(unknown).then(places).otherwise("once_usd"),
        axis=pl.when(unknown).then(pl.lit("x2")).otherwise(pl.lit("x")),
    )
    known = stacks.filter(~unknown)
    layout = theme.layout(x="$ once, to get there", y=view.quality.name, height=420)
    most = known["x"].to_numpy().max(initial=0.0) or 1.0  # if nothing costs anything, marks are whole dollars
    layout["xaxis"] |= {"range": [-0.08 * most, 1.08 * most], "tickformat": _ticks(most)}
    if unknown.any():
        bare = {"showticklabels": False, "showgrid": False, "zeroline": False, "anchor": "y"}
        start = _STRIP if known.height else 0.2
        layout["xaxis"] |= {"domain": [0, start - 0.02]}
        layout["xaxis2"] = {"domain": [start, 1], "title": {"text": "cost not known"}, **bare}
        layout["xaxis2"] |= {"range": [0, int(unknown.sum()) + 1]}
    return theme.finished([*_frontier(view, known, now), *_marks(stacks), *_today(now)], layout)


def _marks(stacks: pl.DataFrame) -> Iterator[theme.Spec]:
    """Yield the stacks of each step, those of unknown cost on an axis of their own."""
    for step, (colour, symbol) in LOOKS.items():
        of = stacks.filter(pl.col("step").is_null() if step is None else pl.col("step") == step)
        for place, (axis, some) in enumerate(of.group_by("axis", maintain_order=True)):
            name = f"needs {STEP_WORDS[step]}" if step else "needs: not known"
            look = {"color": colour, "symbol": symbol, "size": 10}
            hover = [_hover(row) for row in some.to_dicts()]
            more = {"xaxis": axis[0], "legendgroup": name, "showlegend": not place}
            yield theme.scatter(name, some["x"], some["quality"], hover=hover, marker=look, **more)


def _hover(row: Mapping[str, Any]) -> str:
    apart, once = row["difference"], row["once_usd"]
    ends = interval(row["difference_low"], row["difference_high"])
    said = (
        f"<b>{escape(row['name'])}</b>",
        f"{score(row['quality'])}, {sample(row['n'])}" if row["run_id"] else "replayed, held out",
        "" if apart is None else f"{signed(apart)}{ends}",
        "cost not known" if once is None else f"{usd(once)} once",
    )
    return "<br>".join(filter(None, said))


def _frontier(view: View, known: pl.DataFrame, now: Mapping[str, Any]) -> Iterator[theme.Spec]:
    """Yield the line of the stacks that no cheaper move reaches, from the running stack on."""
    cost = np.append(known["x"].to_numpy(), 0.0)
    own = np.nan if now["quality"] is None else now["quality"]
    merit = np.append(known["quality"].to_numpy(), own) * (1 if view.quality.higher_is_better else -1)
    rows = frontier_2d(cost, merit)
    values = np.append(known["quality"].to_numpy(), own)
    look = {"shape": "hv", "color": theme.FRONTIER, "width": 1.5}
    yield theme.quiet("frontier", cost[rows], values[rows], mode="lines", line=look)


def _today(now: Mapping[str, Any]) -> Iterator[theme.Spec]:
    """Yield the square of the running stack, which costs nothing to keep."""
    if now["quality"] is not None:
        look = {"symbol": "square-open", "size": 18, "color": theme.OKABE_ITO[2], "line": {"width": 2.5}}
        hover = [f"<b>{escape(str(now['name']))}</b><br>{RUNS_TODAY}"]
        whole = {"cliponaxis": False}  # it stands on the edge of a narrow chart
        yield theme.scatter(RUNS_TODAY, [0.0], [now["quality"]], hover=hover, marker=look, **whole)
