"""The frontier of cost and quality at each of several latency targets, as small charts (CLQ paper §5.4)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
import polars as pl

from core.decide.near import Conditioned
from core.errors import InputError
from core.views import text, theme
from core.views.workspace.scope import Quality
from core.views.workspace.scores import Floats

USUAL_MS = (350.0, 500.0, 750.0, 1000.0)  # The paper's first targets and two wider ones
MOST = 8
_ACROSS, _TALL, _GAP = 2, 250, 50
_MARKS = 1500  # Marks of one small chart; with more, several charts take long to draw


def read_targets(line: str, table: pl.DataFrame) -> list[float]:
    """The latency targets of a line such as ``350, 500``.

    Args:
        line: Numbers in ms between commas; empty = `USUAL_MS`, or, where every stack is faster than the
            first of them, a quarter, a half and all of the slowest stack's latency.

    Returns:
        Rising, each once.

    Raises:
        InputError: If something is no latency, or there are too many.
    """
    parts = [each.strip() for each in line.replace(";", ",").split(",") if each.strip()]
    if not parts:
        return _usual(table)
    found = set()
    for part in parts:
        try:
            value = float(part.removesuffix("ms"))
        except ValueError:
            value = -1.0
        if not 0 < value < 1e9:
            raise InputError(f"“{part[:20]}” is no latency.", do="Write numbers of ms, such as 350, 500.")
        found.add(value)
    if len(found) > MOST:
        raise InputError(f"{len(found)} targets are too many to compare.", do=f"Keep {MOST} at most.")
    return sorted(found)


def _usual(table: pl.DataFrame) -> list[float]:
    slowest = table["latency_ms"].max()
    if not isinstance(slowest, float) or slowest > USUAL_MS[0]:
        return list(USUAL_MS)
    return sorted({float(f"{slowest * share:.2g}") for share in (0.25, 0.5, 0.75)} | {_up(slowest)})


def _up(value: float) -> float:
    """Two significant digits, not below the value."""
    rounded = float(f"{value:.2g}")
    return rounded if rounded >= value else float(f"{value * 1.05:.2g}")


def target_rows(table: pl.DataFrame, found: Sequence[Conditioned]) -> pl.DataFrame:
    """One row per target: what is left, what is chosen, its numbers.

    Returns:
        sla_ms, feasible, frontier (number of stacks), chosen and runner_up (names), quality with interval and
        n, latency_ms, cost; null where nothing is left.
    """
    numbers = ("quality", "quality_low", "quality_high", "n", "latency_ms", "cost")
    rows = []
    for each in found:
        chosen, second = each.decision.chosen, each.decision.runner_up
        row = {} if chosen is None else table.row(chosen, named=True)
        rows.append(
            {
                "sla_ms": each.sla_ms,
                "feasible": int(each.decision.feasible.sum()),
                "frontier": len(each.frontier),
                "chosen": row.get("name"),
                **{name: row.get(name) for name in numbers},
                "runner_up": None if second is None else table["name"][second],
            }
        )
    whole, texts = ("feasible", "frontier", "n"), ("chosen", "runner_up")
    kinds = dict.fromkeys(whole, pl.Int64) | dict.fromkeys(texts, pl.String)
    columns = ("sla_ms", "feasible", "frontier", "chosen", *numbers, "runner_up")
    return pl.DataFrame(rows, schema={name: kinds.get(name, pl.Float64) for name in columns})


def panels(table: pl.DataFrame, found: Sequence[Conditioned], quality: Quality) -> go.Figure | None:
    """Cost and quality of what each target leaves, its frontier as steps, the chosen stack ringed.

    Returns:
        A panel per target, two in a row, all on the same axes and with one legend; None where no stack has
        both a cost and a quality.
    """
    ranges = spans(table)
    if ranges is None:
        return None
    rows = -(-len(found) // _ACROSS)
    height = _TALL * rows + 70
    layout = theme.layout(height=height)
    layout["margin"]["t"] = 60
    layout["legend"]["y"] = 1 + 30 / (height - 70)
    layout["annotations"] = []
    traces: list[theme.Spec] = []
    for place, target in enumerate(found):
        row, column = divmod(place, _ACROSS)
        axes = "" if not place else str(place + 1)
        top = 1 - row / rows
        left = column / _ACROSS + (0.04 if column else 0.0)
        across, up = [left, left + 1 / _ACROSS - 0.04], [top - 1 / rows + _GAP / height, top - 24 / height]
        style = {"zeroline": False, "automargin": True}
        layout[f"xaxis{axes}"] = {
            "domain": across,
            "anchor": f"y{axes}",
            "range": ranges[0].tolist(),
            "nticks": 5,
            **style,
            "exponentformat": "none",
            "title": {"text": "$ / 1k" if row == rows - 1 else ""},
        }
        layout[f"yaxis{axes}"] = {
            "domain": up,
            "anchor": f"x{axes}",
            "range": ranges[1].tolist(),
            **style,
            "title": {"text": "" if column else text.escape(quality.name)},
        }
        left_over = text.count(int(target.decision.feasible.sum()), "stack")
        layout["annotations"].append(
            {"text": f"<b>{_named(target)}</b>: {left_over}", "x": left, "y": up[1], "xref": "paper",
             "yref": "paper", "xanchor": "left", "yanchor": "bottom", "showarrow": False}
        )  # fmt: skip
        traces += [{**trace, "xaxis": f"x{axes}", "yaxis": f"y{axes}"} for trace in _panel(table, target)]
    return theme.finished(_once(traces), layout)


def _named(target: Conditioned) -> str:
    return "no target" if target.sla_ms is None else f"≤ {text.ms(target.sla_ms)}"


def _once(traces: list[theme.Spec]) -> list[theme.Spec]:
    """Each kind of mark stands once in the legend, wherever it first has any."""
    seen: set[str] = set()
    for trace in traces:
        trace["showlegend"] = trace["name"] not in seen and len(trace["x"]) > 0
        trace["legendgroup"] = trace["name"]
        if trace["showlegend"]:
            seen.add(trace["name"])
    return traces


def _panel(table: pl.DataFrame, target: Conditioned) -> list[theme.Spec]:
    rows = table.with_row_index("row").with_columns(pl.Series("feasible", target.decision.feasible))
    known = rows.filter(pl.col("cost").is_not_null(), pl.col("quality").is_not_null())
    marks = known.gather_every(thinning(table))
    line = table[target.frontier.tolist()]
    chosen = -1 if target.decision.chosen is None else target.decision.chosen
    ring = _marks("chosen", known.filter(pl.col("row") == chosen), theme.ACCENT, 1.0)
    ring["marker"] |= {"symbol": "circle-open", "size": 16, "line": {"width": 3}}
    return [
        _marks("breaks a limit", marks.filter(~pl.col("feasible")), theme.NEUTRAL, theme.DIMMED),
        _marks("within the limits", marks.filter("feasible"), theme.OKABE_ITO[4], 0.9),
        {
            "type": "scatter",
            "mode": "lines",
            "name": "frontier",
            "x": line["cost"].to_numpy(),
            "y": line["quality"].to_numpy(),
            "line": {"shape": "hv", "color": theme.FRONTIER, "width": 2},
            "hoverinfo": "skip",
        },
        ring,
    ]


def thinning(table: pl.DataFrame) -> int:
    """Of how many stacks a panel draws one; 1 = all."""
    return -(-table.height // _MARKS) or 1


def spans(table: pl.DataFrame) -> tuple[Floats, Floats] | None:
    """Ranges of cost and quality with some room; None where no stack has both."""
    known = table.filter(pl.col("cost").is_not_null(), pl.col("quality").is_not_null())
    if known.is_empty():
        return None
    made = []
    for name in ("cost", "quality"):
        low, high = float(known[name].to_numpy().min()), float(known[name].to_numpy().max())
        room = 0.08 * (high - low) or 0.05 * max(abs(high), 1e-9)
        made.append(np.array([low - room, high + room]))
    return made[0], made[1]


def _marks(name: str, rows: pl.DataFrame, colour: str, opacity: float) -> theme.Spec:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "x": rows["cost"].to_numpy(),
        "y": rows["quality"].to_numpy(),
        "marker": {"color": colour, "size": 7, "opacity": opacity},
        "hovertext": [
            f"{text.escape(row['name'])}<br>{text.score(row['quality'])} · {text.cost_of(row)}"
            f" · {text.ms(row['latency_ms'])}"
            for row in rows.iter_rows(named=True)
        ],
        "hovertemplate": "%{hovertext}<extra></extra>",
    }
