"""The frontier of cost and quality at each of several latency targets, as small charts (CLQ paper §5.4)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
import polars as pl

from core.decide.slo import Conditioned
from core.errors import InputError
from core.views import text, theme
from core.views.workspace.scope import Quality
from core.views.workspace.scores import Floats

USUAL_MS = (350.0, 500.0, 750.0, 1000.0)
"""The paper's first targets and two wider ones."""
MOST = 8
_MARKS = 1500
"""Marks of one small chart; with more, several charts take long to draw."""


def read_targets(line: str, table: pl.DataFrame) -> list[float]:
    """The latency targets of a line such as ``350, 500``.

    Args:
        line: Numbers in ms between commas; empty = `USUAL_MS`, or, where every stack is faster than the
            first of them, a quarter, a half and all of the slowest stack's latency.
        table: The stack table.

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


def target_words(rows: pl.DataFrame) -> str:
    """What a looser target buys, in words."""
    left = rows.filter(pl.col("chosen").is_not_null())
    if left.is_empty():
        return "No stack meets any of these targets."
    first, last = left.row(0, named=True), left.row(-1, named=True)
    words = f"Within {text.ms(first['sla_ms'])}: {first['chosen']} ({text.score(first['quality'])})"
    if first["chosen"] == last["chosen"]:
        return f"{words}; looser targets up to {text.ms(last['sla_ms'])} do not change that."
    gained = last["quality"] - first["quality"]
    return (
        f"{words}; within {text.ms(last['sla_ms'])}: {last['chosen']} ({text.score(last['quality'])}, "
        f"{gained:+.3f})."
    )


def panel_title(row: dict[str, object]) -> tuple[str, str]:
    """The target and what it leaves, for a row of `target_rows`: a heading, and the chosen stack."""
    sla = row["sla_ms"]
    left = text.count(int(str(row["feasible"])), "stack")
    head = f"At most {text.ms(sla) if isinstance(sla, float) else text.UNKNOWN}: {left}."
    return head, f"Chosen: {row['chosen']}." if row["chosen"] else "Nothing to choose."


def panel(
    table: pl.DataFrame, one: Conditioned, quality: Quality, ranges: tuple[Floats, Floats]
) -> go.Figure:
    """Cost and quality of what one target leaves, its frontier as steps, the chosen stack ringed.

    Args:
        table: The stack table.
        one: From `core.decide.slo.conditioned`.
        quality: The y axis.
        ranges: From `spans`, the same for all panels.
    """
    layout = theme.layout(x="$ / 1k", y=quality.name, height=280, legend=False)
    layout["xaxis"]["range"], layout["yaxis"]["range"] = ranges[0].tolist(), ranges[1].tolist()
    layout["xaxis"] |= {"exponentformat": "none", "nticks": 5}
    layout["margin"]["t"] = 8
    rows = table.with_row_index("row").with_columns(pl.Series("feasible", one.decision.feasible))
    known = rows.filter(pl.col("cost").is_not_null(), pl.col("quality").is_not_null())
    marks = known.gather_every(thinning(table))
    line = table[one.frontier.tolist()]
    traces: list[theme.Spec] = [
        _marks(marks.filter(~pl.col("feasible")), theme.NEUTRAL, theme.DIMMED),
        _marks(marks.filter("feasible"), theme.OKABE_ITO[4], 0.9),
        {
            "type": "scatter",
            "mode": "lines",
            "x": line["cost"].to_numpy(),
            "y": line["quality"].to_numpy(),
            "line": {"shape": "hv", "color": theme.FRONTIER, "width": 2},
            "hoverinfo": "skip",
        },
    ]
    ring = known.filter(pl.col("row") == (-1 if one.decision.chosen is None else one.decision.chosen))
    if not ring.is_empty():
        trace = _marks(ring, theme.ACCENT, 1.0)
        trace["marker"] |= {"symbol": "circle-open", "size": 16, "line": {"width": 3}}
        traces.append(trace)
    return theme.finished(traces, layout)


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


def _marks(rows: pl.DataFrame, colour: str, opacity: float) -> theme.Spec:
    return {
        "type": "scatter",
        "mode": "markers",
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
