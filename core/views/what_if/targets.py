"""The frontier of cost and quality at several latency targets, as small charts (CLQ paper §5.4)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
import polars as pl

from core.analysis.workspace.scope import Quality
from core.decide.axes import floats
from core.decide.near import Conditioned, lets_in
from core.decide.pareto import frontier_2d
from core.decide.rules import Constraints
from core.errors import InputError
from core.views import text, theme

USUAL_MS = (350.0, 500.0, 750.0, 1000.0)  # The paper's first targets and two wider ones
MOST = 8
_MARKS = 1500  # Marks in one small chart; with more, several charts are slow to draw


def read_targets(line: str, table: pl.DataFrame, limits: Constraints) -> list[float]:
    """Return the latency targets in a line such as ``350, 500``.

    Args:
        line: Numbers in ms separated by commas; empty = `USUAL_MS`, or, if three quarters of the stacks are
            faster than the first of them, what each stack of the frontier of latency and quality needs.
        limits: Those of the page, whose SLA an empty line includes.

    Returns:
        In ascending order, without duplicates.

    Raises:
        InputError: If an entry isn't a latency, or there are too many.
    """
    parts = [part.strip() for part in line.replace(";", ",").split(",") if part.strip()]
    if not parts:
        return sorted({*_usual(table, limits), *([] if limits.sla_ms is None else [limits.sla_ms])})
    targets = set()
    for part in parts:
        try:
            value = float(part.removesuffix("ms"))
        except ValueError:
            value = -1.0
        if not 0 < value < 1e9:
            raise InputError(f"“{part[:20]}” is not a latency.", do="Write numbers of ms, such as 350, 500.")
        targets.add(value)
    if len(targets) > MOST:
        raise InputError(f"{len(targets)} targets are too many to compare.", do=f"Keep {MOST} at most.")
    return sorted(targets)


def _usual(table: pl.DataFrame, limits: Constraints) -> list[float]:
    known = table["latency_ms"].drop_nulls()
    slow = known.quantile(0.75, "higher")
    if slow is None or slow > USUAL_MS[0]:
        return list(USUAL_MS)
    sign = 1 if limits.higher_is_better else -1
    line = frontier_2d(floats(table, "latency_ms"), sign * floats(table, "quality")).tolist()
    ends = _told_apart(table[line], limits)
    if len(ends) >= MOST:  # leaves a place for the page's limit
        ends = ends.gather(np.linspace(0, len(ends) - 1, MOST - 1).round().astype(int))
    return [lets_in(float(end)) for end in ends]


def _told_apart(line: pl.DataFrame, limits: Constraints) -> pl.Series:
    """Return a frontier's latencies without those that jitter cannot tell from the next better stack's."""
    took = line["latency_ms"]
    band = np.full(line.height, limits.jitter_ms or 0.0)
    if limits.jitter_ms is None and "jitter_ms" in line.columns:
        band = line["jitter_ms"].fill_null(0.0).to_numpy()
    apart = np.diff(took.to_numpy()) > np.maximum(band[1:], band[:-1])
    return took.filter(pl.Series(np.append(apart, [True])[: line.height], dtype=pl.Boolean))


def target_rows(table: pl.DataFrame, conditions: Sequence[Conditioned]) -> pl.DataFrame:
    """Return one row per target: the remaining stacks, the chosen one, its numbers.

    Returns:
        sla_ms, feasible, frontier (number of stacks), chosen and runner_up (names), quality with interval and
        n, latency_ms, cost; null if no stack is left.
    """
    about = []
    for target in conditions:
        of = target.decision
        about.append((target.sla_ms, int(of.feasible.sum()), len(target.frontier), of.chosen, of.runner_up))
    counts = dict.fromkeys(("feasible", "frontier", "row", "second"), pl.Int64)
    numbers = ("quality", "quality_low", "quality_high", "n", "latency_ms", "cost")
    stacks = table.with_row_index("row").cast({"row": pl.Int64})
    return (
        pl.DataFrame(about, schema={"sla_ms": pl.Float64, **counts}, orient="row")
        .join(stacks.select("row", *numbers, chosen="name"), on="row", how="left", maintain_order="left")
        .join(stacks.select(second="row", runner_up="name"), on="second", how="left", maintain_order="left")
        .select("sla_ms", "feasible", "frontier", "chosen", *numbers, "runner_up")
    )


def panels(table: pl.DataFrame, conditions: Sequence[Conditioned], quality: Quality) -> go.Figure | None:
    """Draw cost and quality of the stacks within each target, the frontier as steps, the chosen one ringed.

    Returns:
        A panel per target, two in a row, all on the same axes and with one legend; None if no stack has
        both a cost and a quality.
    """
    known = table.with_row_index("row").drop_nulls(["cost", "quality"])
    if known.is_empty():
        return None
    titles = [
        f"≤ {text.ms(target.sla_ms)}: {text.count(int(target.decision.feasible.sum()), 'stack')}"
        for target in conditions
    ]
    said = text.cost_unit(table)
    factor = said.factor
    drawn = theme.Panels(titles, across=2, x=f"$ per {said.many} queries", height=210)
    for place, target in enumerate(conditions):
        rows = known.with_columns(feasible=pl.Series(target.decision.feasible).gather(known["row"]))
        marks = rows.gather_every(thinning(table))
        line = table[target.frontier.tolist()]
        ring = rows.filter(pl.col("row").is_in([target.decision.chosen]))
        outline = {"symbol": "circle-open", "size": 16, "line": {"width": 3}}
        steps = {"shape": "hv", "color": theme.FRONTIER, "width": 2}
        x, y = factor * line["cost"].to_numpy(), line["quality"].to_numpy()
        traces = [
            _marks(
                "breaks a limit",
                marks.filter(~pl.col("feasible")),
                theme.NEUTRAL,
                factor,
                opacity=theme.DIMMED,
            ),
            _marks(
                "within the target and your other limits",
                marks.filter("feasible"),
                theme.OKABE_ITO[4],
                factor,
                opacity=0.9,
            ),
            theme.scatter("frontier", x, y, mode="lines", line=steps, hoverinfo="skip"),
            _marks("chosen", ring, theme.ACCENT, factor, **outline),
        ]
        for trace in traces:
            if len(trace["x"]):
                drawn.add(place, go.Scatter(trace))
    drawn.figure.update_xaxes(**_across(factor * known["cost"]))
    drawn.figure.update_yaxes(range=theme.span(known["quality"], 0.08))
    return drawn.figure.update_yaxes(title_text=text.escape(quality.name), col=1)


def _across(costs: pl.Series) -> dict[str, object]:
    """Return the axis of the panels: of powers of ten where costs spread over more than one of them."""
    if not costs.min() or costs.max() < 10 * costs.min():  # type: ignore[operator]
        return {"range": theme.span(costs, 0.08), "nticks": 5, "exponentformat": "none"}
    powers = costs.log10()
    ticks = [10.0**power for power in range(math.floor(powers.min()), math.ceil(powers.max()) + 1)]  # type: ignore[arg-type]
    said = [f"{tick:g}" for tick in ticks]
    return {"type": "log", "range": theme.span(powers, 0.08), "tickvals": ticks, "ticktext": said}


def thinning(table: pl.DataFrame) -> int:
    """Return n so that a panel draws one in n stacks; 1 = all."""
    return -(-table.height // _MARKS) or 1


def _marks(name: str, rows: pl.DataFrame, colour: str, factor: int, **look: object) -> theme.Spec:
    hovers = [
        f"{text.escape(row['name'])}<br>{text.score(row['quality'])} · {text.cost_of(row)}"
        f" · {text.ms(row['latency_ms'])}"
        for row in rows.iter_rows(named=True)
    ]
    x, y, marker = (
        factor * rows["cost"].to_numpy(),
        rows["quality"].to_numpy(),
        {"color": colour, "size": 7, **look},
    )
    return theme.scatter(name, x, y, hover=hovers, marker=marker)
