"""What to evaluate next: queries to judge, timings to repeat, stacks to add, and what each costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
import polars as pl

from core.decide.axes import quality_axis
from core.decide.frontier import frontier_rows
from core.decide.joint import JointSample
from core.decide.planner import Bill, Outlook, outlook, stakes
from core.decide.rules import Constraints, Decision, Rule
from core.stats.intervals import SEED
from core.views import text, theme
from core.views.workspace.scope import Quality

USUAL = (10, 20, 40, 80, 160, 320, 640, 1280)
"""Numbers of further queries that are always looked at."""
REPEATS = (1, 3, 9)
"""How often to time the same queries again."""
CALM = 0.05
"""A chance below this is called small."""
LEADING = 30
"""Stacks that the planner looks at; the others hardly ever win."""


@dataclass(frozen=True)
class Plan:
    """What more evaluation would do.

    Attributes:
        rows: Rows of the stack table that were looked at.
        judged: With more queries.
        timed: With the same queries timed again; None where no stack has a timing per query.
        queries: How many there are today.
    """

    rows: tuple[int, ...]
    judged: Outlook
    timed: Outlook | None
    queries: int


def leading(table: pl.DataFrame, decision: Decision, chances: pl.DataFrame) -> list[int]:
    """Rows of the stacks that may be chosen: today's choice and runner-up, its ties, the likeliest best.

    Args:
        table: The stack table.
        decision: What was selected from it.
        chances: From `core.views.confidence.certainty.shares` on the same rows.
    """
    first = [row for row in (decision.chosen, decision.runner_up) if row is not None]
    best = chances["p_best"].fill_null(0.0).to_numpy()
    hopeful = [int(row) for row in np.argsort(-best, kind="stable") if best[row] > 0]
    frontier = frontier_rows(table, decision)
    return list(dict.fromkeys([*first, *hopeful, *frontier, *decision.ties]))[:LEADING]


def plan(
    table: pl.DataFrame,
    rows: Sequence[int],
    sample: JointSample,
    limits: tuple[Constraints, Rule],
    more: Sequence[int],
    *,
    seed: int = SEED,
) -> Plan:
    """Look ahead for the leading stacks.

    Args:
        table: The stack table.
        rows: From `leading`.
        sample: Results per query in the order of the table.
        limits: Constraints and rule.
        more: Numbers of further queries, rising.
        seed: Of the drawing.
    """
    kept = list(rows)
    part = sample.take(kept)
    held = stakes(table[kept], quality_axis(higher_is_better=limits[0].higher_is_better))
    queries = sample.quality.shape[1]
    timed = None
    if part.latency_varies.any():
        again = [queries * repeat for repeat in REPEATS]
        timed = outlook(part, held, limits, again, kind="timings", seed=seed)
    return Plan(tuple(kept), outlook(part, held, limits, more, seed=seed), timed, queries)


def amounts(affordable: int | None) -> tuple[int, ...]:
    """Numbers of queries to look at: the usual ones, and what the money pays for."""
    extra = {affordable} if affordable and affordable <= 10 * USUAL[-1] else set()
    return tuple(sorted({*USUAL, *extra}))


def plan_rows(found: Plan, price: Bill) -> pl.DataFrame:
    """One row per number of further queries, nothing first.

    Returns:
        more, n (queries then), usd (what they cost; null where a query's price is unknown), flip and left
        (shares; see `core.decide.planner.Outlook`).
    """
    more = [0, *found.judged.more]
    return pl.DataFrame(
        {
            "more": more,
            "n": [found.queries + each for each in more],
            "usd": [each * price.per_query for each in more],
            "flip": [0.0, *found.judged.flip.tolist()],
            "left": [found.judged.left_now, *found.judged.left.tolist()],
        }
    )


def plan_answer(rows: pl.DataFrame, affordable: int | None, quality: Quality) -> tuple[str, str]:
    """The answer in words: what the money buys, and when to stop.

    Args:
        rows: From `plan_rows`.
        affordable: Queries that the money pays for; None = any number.
        quality: The measure that the decision is about.

    Returns:
        The sentence to head the page with, and when the doubt that is left becomes small.
    """
    n = rows["n"][0]
    wanted = rows["more"].to_list()[-1] if affordable is None else affordable
    at = rows.filter(pl.col("more") == wanted)
    here = f"({quality.name}, n = {n} today)"
    if at.is_empty() or wanted == 0:
        sentence = f"The money pays for {text.count(wanted, 'more query', 'more queries')} {here}."
    else:
        row = at.row(0, named=True)
        sentence = (
            f"{text.count(wanted, 'more query', 'more queries')} ({text.usd(row['usd'], '')}) give a "
            f"{text.percent(row['flip'])} chance that another stack is chosen {here}."
        )
    left = rows["left"][0]
    if left < CALM:
        return sentence, (
            f"Whatever is judged, the choice stays in {text.percent(1 - left)} of the worlds: more queries "
            "are hardly worth their money."
        )
    calm = rows.filter(pl.col("left") < CALM)
    doubt = f"Today the choice is not the one that judging without end would make in {text.percent(left)}"
    if calm.is_empty():
        last = rows.row(-1, named=True)
        return sentence, (
            f"{doubt}; with {last['more']:,} more it still is not in {text.percent(last['left'])}: the "
            "leading stacks are too close for queries of this kind to separate."
        )
    row = calm.row(0, named=True)
    return sentence, f"{doubt}; from {row['more']:,} more on in less than {text.percent(CALM)}."


def plan_chart(rows: pl.DataFrame, affordable: int | None) -> go.Figure:
    """Both chances against the number of further queries; what the money pays for as a line."""
    drawn = rows.filter(pl.col("more") > 0)
    layout = theme.layout(x="further queries", y="share of the worlds", height=360)
    ticks = list(USUAL)
    layout["xaxis"] |= {"type": "log", "tickvals": ticks, "ticktext": [f"{tick:,}" for tick in ticks]}
    layout["yaxis"] |= {"range": [0, 1.02], "tickformat": ".0%"}
    looks = (
        ("flip", "another stack is chosen then", theme.FRONTIER, "circle", "solid"),
        ("left", "yet more would change it", theme.ACCENT, "diamond", "dot"),
    )
    traces = [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "name": title,
            "x": drawn["more"].to_numpy(),
            "y": drawn[column].to_numpy(),
            "line": {"color": colour, "dash": dash, "width": 2},
            "marker": {"color": colour, "symbol": symbol, "size": 9},
            "hovertemplate": "%{x:,} more: %{y:.1%}<extra>" + title + "</extra>",
        }
        for column, title, colour, symbol, dash in looks
    ]
    if affordable and affordable in drawn["more"]:
        line = {"color": theme.NEUTRAL, "width": 1.5, "dash": "dash"}
        ends = {"x0": affordable, "x1": affordable, "y0": 0, "y1": 1}
        layout["shapes"] = [{"type": "line", "line": line, "yref": "y domain", **ends}]
        note = {"text": f"the money: {affordable:,}", "showarrow": False, "yanchor": "top", "xanchor": "left"}
        layout["annotations"] = [{"x": float(np.log10(affordable)), "y": 1, "yref": "paper", **note}]
    return theme.finished(traces, layout)


def rival_rows(table: pl.DataFrame, found: Plan, decision: Decision) -> pl.DataFrame:
    """Which stacks evaluation without end would choose, the likeliest first.

    Returns:
        run_id, name, today ("chosen", "runner-up" or null), final (share of the worlds), quality with
        interval and n, latency_ms, cost; stacks that no world chooses are left out.
    """
    marks = {decision.runner_up: "runner-up", decision.chosen: "chosen"}
    rows = table[list(found.rows)].with_columns(
        pl.Series("final", found.judged.final, dtype=pl.Float64),
        pl.Series("today", [marks.get(row) for row in found.rows], dtype=pl.String),
    )
    numbers = ("quality", "quality_low", "quality_high", "n", "latency_ms", "cost")
    kept = rows.filter((pl.col("final") > 0) | pl.col("today").is_not_null())
    return kept.sort("final", descending=True, maintain_order=True).select(
        "run_id", "name", "today", "final", *numbers
    )


def rival_words(rivals: pl.DataFrame, leading_ones: int) -> str:
    """How many stacks the choice is between, in words."""
    in_play = rivals.filter(pl.col("final") >= CALM)
    if in_play.is_empty():
        return "No stack is chosen in as much as one world of twenty."
    names = [
        f"{name} ({text.percent(share)})" for name, share in in_play.select("name", "final").head(3).rows()
    ]
    return (
        f"Of {text.count(leading_ones, 'leading stack')}, {in_play.height} would be chosen in the end with a "
        f"chance of {CALM:.0%} or more; first {', '.join(names)}.".replace("5%", "5 %")
    )


def price_words(price: Bill, leading_ones: int) -> str:
    """What a further query costs, in words."""
    running = "of unknown cost" if price.running is None else f"{text.usd(price.running, '')}"
    words = f"One query: {text.usd(price.judging, '')} for judging, {running} for running "
    words += text.count(leading_ones, "leading stack")
    if price.unpriced and price.running is not None:
        words += f" ({price.unpriced} of unknown cost left out)"
    return f"{words}."


def timing_words(found: Plan, price: Bill) -> str:
    """What timing the same queries again would do, in words."""
    if found.timed is None:
        return "No stack has a latency per query, so what repeats would do is unknown."
    if found.timed.left_now == 0:
        return "Timing the same queries again changes nothing: no latency is near a limit that matters."
    cost = "" if price.running is None else f" ({text.usd(price.running * found.queries, '')} a round)"
    parts = [
        f"{text.count(repeat, 'round')} more: {text.percent(share)}"
        for repeat, share in zip(REPEATS, found.timed.flip.tolist(), strict=True)
    ]
    return f"The chance that timing the same queries again{cost} changes the choice: {'; '.join(parts)}."


def unknown_answer(table: pl.DataFrame, decision: Decision, quality: Quality) -> str:
    """The head of the page where nothing is known query by query."""
    if decision.chosen is None:
        return "Nothing is chosen, so there is no decision that more evaluation could change."
    row = table.row(decision.chosen, named=True)
    figures = f"{quality.name} {text.score(row['quality'])}, {text.sample(row['n'])}"
    return (
        f"What more queries would do is unknown: of {row['name']} ({figures}) and the others only averages "
        "are known."
    )
