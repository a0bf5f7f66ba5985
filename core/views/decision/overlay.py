"""What a Pareto chart says besides its marks: axes, frontier, intervals, limits, rings and names."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import polars as pl

from core.decide.axes import LATENCY, Axis
from core.decide.rules import Constraints, Decision
from core.views import text, theme
from core.views.decision.labels import Floats, Plot
from core.views.decision.limits import logarithmic
from core.views.decision.marks import PLACED_AXIS

OVER = "over-"
"""How the meta of a trace begins that holds for these limits only: frontier, whiskers, rings."""
WHISKERS_UP_TO = 40
LABELS = 6
STRIP_FROM = 0.9
"""Where the strip of stacks without a number begins, as a share of the chart's width."""
_WIDTH, _HEIGHT = 880.0, 300.0
"""Of the area between the axes in a window of 1280 pixels."""
_WIDEST = 0.5
"""Share of the axis that a jitter band says something on."""
_TICKS = (1, 2, 3, 5)


def axes(layout: theme.Spec, drawn: pl.DataFrame, bars: pl.DataFrame, across: Axis, quality: Axis) -> Plot:
    """Set ranges, ticks and the strip of what is unknown; `bars` are the stacks whose interval is drawn."""
    x = across.read(drawn)
    known = x[~np.isnan(x)]
    log = logarithmic(known)
    ends = _fitted(np.log10(known) if log else known, least=-np.inf if log else 0.0)
    layout["xaxis"] |= {"range": list(ends), "exponentformat": "none"}
    if log:
        layout["xaxis"] |= {"type": "log", **_log_ticks(ends, across)}
    bounds = np.concatenate([bars["quality_low"].to_numpy(), bars["quality_high"].to_numpy()])
    qualities = np.concatenate([drawn["quality"].to_numpy(), bounds[np.isfinite(bounds)]])
    high = _fitted(qualities, least=-0.01 if len(qualities) and qualities.min() >= 0 else -np.inf, share=0.08)
    # Labels of one width: else they change the margin, which changes the labels, without end on paper.
    layout["yaxis"] |= {"tickformat": ".2f" if high[1] - high[0] > 0.1 else ".3f", "range": list(high)}
    unknown = drawn.height - len(known)
    start = (STRIP_FROM if len(known) else 0.0) if unknown else 1.02
    if unknown:
        layout["xaxis"] |= {"domain": [0, start - 0.02] if start else [0, 1], "visible": start > 0}
        layout["xaxis2"] = {
            "domain": [start, 1],
            "anchor": "y",
            "range": [0, unknown + 1],
            "showticklabels": False,
            "ticks": "",
            "showgrid": False,
            "zeroline": False,
            "title": {"text": across.missing},
        }
    better = theme.better(higher=quality.higher_is_better)
    layout["annotations"], layout["shapes"] = [better], []
    plot = Plot(ends, high, log, _WIDTH * max(start - 0.02, 0.01), _HEIGHT)
    top = (1 - better["y"]) * (_HEIGHT - 18)
    plot.taken.append(np.array([[0.0, top, 70.0, top + 18]]))
    return plot


def _fitted(values: Floats, *, least: float, share: float = 0.04) -> tuple[float, float]:
    """The ends of an axis around its values, with some room."""
    if not len(values):
        return 0.0, 1.0
    low, high = float(values.min()), float(values.max())
    room = share * (high - low) or max(0.03, 0.05 * abs(high))
    return max(low - room, min(least, low)), high + room


def _log_ticks(ends: tuple[float, float], across: Axis) -> theme.Spec:
    powers = range(math.floor(ends[0]), math.ceil(ends[1]) + 1)
    steps = _TICKS if len(powers) < 4 else (1,) if len(powers) > 6 else (1, 3)
    ticks = [step * 10.0**power for power in powers for step in steps]
    words = [f"{tick / 1000:g} s" if across == LATENCY and tick >= 1000 else f"{tick:g}" for tick in ticks]
    return {"tickvals": ticks, "ticktext": words}


def margins(scale_labels: Sequence[str]) -> theme.Spec:
    """Margins that fit: else Plotly draws all marks, finds that labels need room, and draws again."""
    right = 72 + 7 * max(len(label) for label in scale_labels) if scale_labels else 12
    return {"l": 62, "r": right, "t": 36, "b": 48, "autoexpand": False}


def on_line(drawn: pl.DataFrame) -> pl.DataFrame:
    """The stacks that the line of the frontier joins, in its order."""
    line = drawn[np.flatnonzero(drawn["line"].to_numpy())]
    return line[np.lexsort((line["quality"].to_numpy(), line["x"].to_numpy()))]


def frontier(line: pl.DataFrame) -> list[theme.Spec]:
    """The frontier of what is left, as steps."""
    if line.is_empty():
        return []
    return [
        {
            "type": "scatter",
            "meta": f"{OVER}frontier",
            "x": line["x"].to_numpy(),
            "y": line["quality"].to_numpy(),
            "mode": "lines",
            "line": {"shape": "hv", "color": theme.FRONTIER, "width": 2},
            "name": "frontier",
            "showlegend": False,
            "hoverinfo": "skip",
        }
    ]


def with_whisker(line: pl.DataFrame) -> pl.DataFrame:
    """The stacks of the line whose interval is drawn: those that have one, where few enough to read."""
    known = np.flatnonzero(~np.isnan(line["quality_low"].to_numpy()))
    return line[known] if len(known) <= WHISKERS_UP_TO else line.clear()


def whiskers(part: pl.DataFrame) -> list[theme.Spec]:
    """Intervals of stacks."""
    if part.is_empty():
        return []
    return [
        {
            "type": "scatter",
            "meta": f"{OVER}whiskers",
            "x": part["x"].to_numpy(),
            "y": part["quality"].to_numpy(),
            "mode": "markers",
            "marker": {"size": 1, "color": theme.FRONTIER},
            "error_y": {
                "type": "data",
                "symmetric": False,
                "array": (part["quality_high"] - part["quality"]).to_numpy(),
                "arrayminus": (part["quality"] - part["quality_low"]).to_numpy(),
                "thickness": 1,
                "width": 3,
                "color": theme.FRONTIER,
            },
            "name": "95 % interval",
            "showlegend": False,
            "hoverinfo": "skip",
        }
    ]


def rings(drawn: pl.DataFrame, decision: Decision, selected: int | None) -> list[theme.Spec]:
    """Rings around the chosen stack and the selected one."""
    looks = (
        (decision.chosen, "chosen", theme.ACCENT, 20),
        (None if selected == decision.chosen else selected, "selected", theme.OKABE_ITO[3], 22),
    )
    return [
        {
            "type": "scatter",
            "meta": f"{OVER}{title}",
            "x": [row["x"]],
            "xaxis": row["axis"],
            "y": [row["quality"]],
            "mode": "markers",
            "marker": {"symbol": "circle-open", "size": size, "line": {"width": 2.5}, "color": colour},
            "name": title,
            "showlegend": False,
            "hoverinfo": "skip",
        }
        for place, title, colour, size in looks
        if place is not None
        for row in drawn.filter(pl.col("row") == place).iter_rows(named=True)
    ]


def lines(
    layout: theme.Spec,
    plot: Plot,
    *,
    table: pl.DataFrame,
    decision: Decision,
    limits: Constraints,
    across: Axis,
) -> None:
    """Draw the limits as lines, and the band of latencies that are not told apart; named by `labels`."""
    line = {"color": theme.ACCENT, "width": 1.5, "dash": "dash"}
    most, floor = limits.of(across), limits.floor
    if across == LATENCY and (band := _band(table, decision, plot)):
        layout["shapes"].append(band)
    if most is not None and (most > 0 or not plot.log):
        layout["shapes"].append(
            {"type": "line", "line": line, "x0": most, "x1": most, "y0": 0, "y1": 1, "yref": "y domain"}
        )
        plot.take_column(most)
    if floor is not None:
        layout["shapes"].append(
            {"type": "line", "line": line, "x0": 0, "x1": 1, "y0": floor, "y1": floor, "xref": "x domain"}
        )
        plot.take_row(floor)


def _band(table: pl.DataFrame, decision: Decision, plot: Plot) -> theme.Spec | None:
    """A strip over the latencies that are not told apart from that of the chosen stack."""
    latency = None if decision.chosen is None else table["latency_ms"][decision.chosen]
    if latency is None or not decision.jitter_ms:
        return None
    # No wider than the marks reach, and none that covers most of them.
    ends = np.array([latency - decision.jitter_ms, latency + decision.jitter_ms])
    low, high = ends.clip(*np.nanquantile(LATENCY.read(table), [0, 1]))
    if np.ptp(plot.across(np.array([low, high]))) > _WIDEST * plot.width:
        return None
    span = {"x0": low, "x1": high, "y0": 0, "y1": 1, "yref": "y domain"}
    return {
        "type": "rect",
        **span,
        "fillcolor": theme.SOFT,
        "line": {"width": 0},
        "layer": "below",
        "label": {
            "text": f"jitter<br>± {text.ms(decision.jitter_ms)}",
            "textposition": "bottom center",
            "font": {"size": 11},
        },
    }


def labels(
    layout: theme.Spec,
    plot: Plot,
    *,
    shown: pl.DataFrame,
    decision: Decision,
    across: Axis,
    selected: int | None,
) -> None:
    """Name the limits, the chosen stack, the selected one and the frontier, where there is room."""
    x, y = shown["x"].to_numpy(), shown["quality"].to_numpy()
    placed = (shown["axis"] == PLACED_AXIS).to_numpy()
    plot.take(x[placed], y[placed], 6)
    chosen = -1 if decision.chosen is None else decision.chosen
    rows = [chosen, *([] if selected is None else [selected])]
    row_of = shown["row"].to_numpy()
    named = np.isin(row_of, rows)
    few = np.flatnonzero(placed & (named | shown["line"].to_numpy()))
    _limit_labels(layout, plot, across, decision.quality)
    wanted = few[np.lexsort((-x[few], row_of[few] != chosen, ~named[few]))][:LABELS]
    for row in shown[wanted].iter_rows(named=True):
        words = text.shorten(row["name"], 38) + (f" (+{row['alike']} equal)" if row["alike"] else "")
        at = plot.place(words, row["x"], row["quality"])
        if at is not None:
            said = text.escape(words)
            bold = row["row"] == decision.chosen
            layout["annotations"].append(
                _label(plot, f"<b>{said}</b>" if bold else said, row["x"], row["quality"], at)
            )


def _label(plot: Plot, words: str, x: float, y: float, shift: tuple[float, float]) -> theme.Spec:
    # A shape takes the value on a logarithmic axis, an annotation its logarithm.
    return {
        "x": math.log10(x) if plot.log else x,
        "y": y,
        "text": words,
        "showarrow": False,
        "xanchor": "center",
        "yanchor": "middle",
        "xshift": shift[0],
        "yshift": shift[1],
        "font": {"size": 12},
    }


def _limit_labels(layout: theme.Spec, plot: Plot, across: Axis, quality: Axis) -> None:
    """Name each limit at its line, at the end that is free."""
    for shape in [shape for shape in layout["shapes"] if shape["type"] == "line"]:
        if "yref" in shape:
            x = shape["x0"]
            words = f"{across.limit_word} {across.written(x)}"
            half = len(words) * 3.2 + 4
            ends = ((plot.y[0], 12.0), (plot.y[1], -12.0))
            spots = [(x, y, side * half, dy) for y, dy in ends for side in (1, -1)]
        else:
            words = f"{quality.limit} {shape['y0']:g}"
            half = len(words) * 3.2 + 4
            edge = 10 ** plot.x[1] if plot.log else plot.x[1]
            spots = [(edge, shape["y0"], -half - 4, dy) for dy in (10.0, -10.0)]
        layout["annotations"].append(_first_free(plot, words, spots))


def _first_free(plot: Plot, words: str, spots: Sequence[tuple[float, float, float, float]]) -> theme.Spec:
    left, down, right, up = np.array(spots).T
    centres = np.column_stack([plot.across(left) + right, plot.down(down) - up])
    x, y, dx, dy = spots[plot.first_free(centres, (len(words) * 3.2, 7.5)) or 0]
    return _label(plot, words, x, y, (dx, dy))
