"""Charts of page Confidence: probabilities, ties, more queries, and other weights."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
import polars as pl

from core.arrays import Floats
from core.views import text, theme
from core.views.confidence.weights import ALPHAS, CAPS3, CAPS4, CELLS, WeightGrid, letters
from core.views.confidence.worth import USUAL
from core.views.words.advice import ROLES

SHOWN = 12  # Stacks in the chart of probabilities; the table has all
_LINE = 68
_COLOURS = {
    "chosen": theme.ACCENT,
    **dict.fromkeys(ROLES, theme.ACCENT),
    "excluded": theme.NEUTRAL,
}  # of bars; others have the frontier's
RANGES_SHOWN = 15  # Stacks whose range is drawn: the best in the usual setting
_COLUMNS = [(cap4, cap3) for cap4 in CAPS4 for cap3 in CAPS3]


def chances(rows: pl.DataFrame) -> go.Figure | None:
    """Draw how often a stack is the best (bars), and within the limits (marks) where one is not always.

    Returns:
        The first `SHOWN` stacks that are ever the best; None if no probability is known.
    """
    drawn = rows.filter(pl.col("p_best").is_not_null()).head(SHOWN)
    drawn = drawn.filter((pl.col("p_best") > 0) | pl.col("status").is_in(["chosen", *ROLES]))
    if drawn.is_empty():
        return None
    layout = theme.layout(x="Share of the resamples", height=110 + 42 * drawn.height)
    layout["xaxis"] |= {"range": [0, 1.02], "tickformat": ".0%"}
    words = [
        (f" · <b>{status}</b>" if status in ("chosen", "runner-up", "excluded", *ROLES) else "")
        for status in drawn["status"]
    ]
    y, hovers = _named_rows(layout, drawn, words), _hovers(drawn)
    bar = theme.scatter("is the best", drawn["p_best"].to_numpy(), y, hover=hovers) | {
        "type": "bar",
        "orientation": "h",
        "width": 0.34,
        "marker": {"color": [_COLOURS.get(status, theme.FRONTIER) for status in drawn["status"]]},
    }
    if (drawn["p_feasible"].fill_null(1.0) == 1).all():
        return theme.finished([bar], layout | {"showlegend": False})
    mark = {"symbol": "circle-open", "size": 11, "color": theme.OKABE_ITO[3], "line": {"width": 2}}
    within = theme.scatter(
        "within the limits", drawn["p_feasible"].to_numpy(), y, hover=hovers, marker=mark, cliponaxis=False
    )
    return theme.finished([bar, within], layout)


def _named_rows(layout: theme.Spec, rows: pl.DataFrame, words: Sequence[str]) -> Floats:
    """Write each row's name, with a few words behind it, above its mark; return the rows' positions."""
    y = np.arange(rows.height, dtype=float)[::-1]
    layout["yaxis"] |= {"visible": False, "range": [-0.6, rows.height - 0.1]}
    layout["annotations"] = [
        {"x": 0, "xref": "paper", "xanchor": "left", "y": float(place), "yanchor": "bottom", "yshift": 6,
         "showarrow": False, "font": {"size": 12}, "text": text.escape(text.shorten(name, _LINE)) + more}
        for place, name, more in zip(y, rows["name"], words, strict=True)
    ]  # fmt: skip
    return y


def _hovers(drawn: pl.DataFrame) -> list[str]:
    parts = [("p_best", "best"), ("p_again", "again on new queries"), ("p_feasible", "within the limits")]
    return [
        "<br>".join(
            [f"<b>{text.escape(row['name'])}</b>"]
            + [f"{title}: {text.percent(row[name])}" for name, title in parts if row[name] is not None]
        )
        for row in drawn.iter_rows(named=True)
    ]


def plan_chart(
    rows: pl.DataFrame, affordable: int | None, better: tuple[int, float] | None = None, delta: float = 0.0
) -> go.Figure:
    """Draw how often the choice has changed after further queries; a line marks what the budget buys.

    Args:
        better: Further queries, and the share of simulations in which they show a better stack, if known.
        delta: By how much it is better at least.
    """
    drawn = rows.filter(pl.col("more") > 0)
    y = "share of simulations"
    layout = theme.layout(x="further queries", y=y, height=300, legend=better is not None)
    ticks = list(USUAL)
    layout["xaxis"] |= {"type": "log", "tickvals": ticks, "ticktext": [f"{tick:,}" for tick in ticks]}
    layout["yaxis"] |= {"range": [0, 1.02], "tickformat": ".0%"}
    traces = [
        theme.scatter(
            "another stack is chosen",
            drawn["more"].to_numpy(),
            drawn["flip"].to_numpy(),
            mode="lines+markers",
            line={"color": theme.FRONTIER, "width": 2},
            marker={"color": theme.FRONTIER, "size": 9},
            hovertemplate="%{x:,} more: %{y:.1%}<extra></extra>",
        )
    ]
    if better is not None:
        marker = {"color": theme.OKABE_ITO[5], "size": 11, "symbol": "diamond"}
        name = f"one better by {delta:g} or more" if delta else "a better one"
        traces.append(
            theme.scatter(name, [better[0]], [better[1]], marker=marker, hover=[f"{name}: {better[1]:.1%}"])
        )
    if affordable and affordable in drawn["more"]:
        line = {"color": theme.NEUTRAL, "width": 1.5, "dash": "dash"}
        ends = {"x0": affordable, "x1": affordable, "y0": 0, "y1": 1}
        layout["shapes"] = [{"type": "line", "line": line, "yref": "y domain", **ends}]
        note = {
            "text": f"your budget: {text.count(affordable, 'query')}",
            "showarrow": False,
            "yanchor": "top",
            "xanchor": "left",
        }
        layout["annotations"] = [{"x": float(np.log10(affordable)), "y": 1, "yref": "paper", **note}]
    return theme.finished(traces, layout)


def agreement(grid: WeightGrid, chosen: Sequence[str | None]) -> go.Figure:
    """Draw every cell with Kendall's tau-b against the usual order, and the letter of its chosen stack."""
    named = letters(chosen, grid.start)
    words = [
        f"{'–' if np.isnan(tau) else f'{tau:.2f}'}<br>{named.get(name, '+')}"
        for tau, name in zip(grid.taus, chosen, strict=True)
    ]
    hovers = [
        f"{cell}<br>tau-b {tau:.3f}, AP-correlation {top:.3f}<br>choice: {text.escape(name or 'none')}"
        for cell, tau, top, name in zip(grid.cells, grid.taus, grid.tops, chosen, strict=True)
    ]
    floor = min(0.8, float(np.nanmin(grid.taus, initial=1.0)))
    return _heatmap(grid, grid.taus, words, hovers, {"zmin": floor, "zmax": 1, "title": "tau-b"})


def one_stack(grid: WeightGrid, run_id: str) -> go.Figure:
    """Draw every cell with the score and the rank of one stack."""
    place = grid.run_ids.index(run_id)
    scores, ranks = grid.means[:, place], grid.ranks[:, place]
    words = [
        f"{text.score(score)}<br>#{rank}" if rank else "–" for score, rank in zip(scores, ranks, strict=True)
    ]
    hovers = [
        f"{cell}<br>{text.score(score)}{text.interval(low, high)}, rank {rank}"
        for cell, score, low, high, rank in zip(
            grid.cells, scores, grid.low[:, place], grid.high[:, place], ranks, strict=True
        )
    ]
    return _heatmap(grid, scores, words, hovers, {"title": "score"})


def _heatmap(
    grid: WeightGrid, values: Floats, words: list[str], hovers: list[str], scale: dict[str, object]
) -> go.Figure:
    """Draw the cells of the paper's grid, alpha downwards.

    The usual cell is framed if it is among them.
    """
    shape, title = (len(ALPHAS), len(_COLUMNS)), scale.pop("title")
    size = len(CELLS)
    layout = theme.layout(x="cap3", y="alpha", height=330, legend=False)
    middle = len(CAPS3) // 2
    layout["xaxis"] |= {
        "tickvals": list(range(len(_COLUMNS))),
        "ticktext": [
            f"{cap3:.2f}" + (f"<br>cap4 {cap4:g}" if place % len(CAPS3) == middle else "")
            for place, (cap4, cap3) in enumerate(_COLUMNS)
        ],
        "showgrid": False,
    }
    layout["yaxis"] |= {
        "tickvals": list(range(len(ALPHAS))),
        "ticktext": [f"{alpha:g}" for alpha in ALPHAS],
        "autorange": "reversed",
        "showgrid": False,
    }
    if grid.start < size:
        y, x = divmod(grid.start, len(_COLUMNS))
        box = {"x0": x - 0.5, "x1": x + 0.5, "y0": y - 0.5, "y1": y + 0.5}
        layout["shapes"] = [{"type": "rect", "line": {"color": theme.ACCENT, "width": 3}, **box}]
    trace = {
        "type": "heatmap",
        "z": np.asarray(values[:size], dtype=np.float64).reshape(shape),
        "text": np.array(words[:size], dtype=object).reshape(shape).tolist(),
        "texttemplate": "%{text}",
        "hovertext": np.array(hovers[:size], dtype=object).reshape(shape).tolist(),
        "hovertemplate": "%{hovertext}<extra></extra>",
        "colorscale": [[0, "#F4F9FD"], [1, theme.OKABE_ITO[4]]],  # light enough for dark words on any cell
        "textfont": {"color": "#14202B"},
        "colorbar": {"title": {"text": title}, "thickness": 10, "outlinewidth": 0},
        "xgap": 2,
        "ygap": 2,
        **scale,
    }
    return theme.finished([trace], layout)


def ranges(rows: pl.DataFrame, title: str) -> go.Figure:
    """Draw how far the score of each stack moves over the grid.

    A line from lowest to highest, a dot at the usual setting.

    Args:
        rows: From `core.views.confidence.weights.stack_ranges`; of each group of twins only the first.
    """
    drawn = rows.filter(pl.col("twin").is_null()).head(RANGES_SHOWN)
    layout = theme.layout(x=title, height=90 + 40 * drawn.height)
    layout["showlegend"] = True
    words, hovers = [], []
    for row in drawn.iter_rows(named=True):
        best, worst = row["best_rank"], row["worst_rank"]
        rank = f"rank {best}" if best == worst else f"rank {best} to {worst}"
        words.append((f" (+{row['twins']} equal)" if row["twins"] else "") + f" · {rank}")
        hovers.append(
            f"<b>{text.escape(row['name'])}</b><br>as usual {text.score(row['quality'])}, rank {row['rank']}"
            f"<br>{text.score(row['lowest'])} to {text.score(row['highest'])}, {rank}"
        )
    low, middle, high = (drawn[name].to_numpy() for name in ("lowest", "quality", "highest"))
    mark = theme.scatter(
        "as usual; line: over the grid",
        middle,
        _named_rows(layout, drawn, words),
        hover=hovers,
        marker={"color": theme.FRONTIER, "size": 10},
        error_x=theme.whiskers(low, middle, high, color=theme.FRONTIER, thickness=4, width=0),
    )
    return theme.finished([mark], layout)
