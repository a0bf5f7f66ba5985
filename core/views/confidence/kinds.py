"""Whether a kind of question would need another stack: the best within the limits by tag and length."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import plotly.graph_objects as go
import polars as pl

from core.analysis.cache import cached
from core.analysis.kinds import LENGTH, tagged
from core.analysis.workspace.sure import sample
from core.analysis.workspace.view import View
from core.arrays import Floats, Mask
from core.decide.held_out import best_row, held_out
from core.decide.rules import Constraints
from core.stats.intervals import LEAST, SEED, Labels, quotient
from core.stats.means import mean_interval
from core.stats.significance import ALPHA, holm
from core.views import columns as cols
from core.views import text, theme
from core.views.ask import Ask
from core.views.blocks import Answer, Blocks, Cards, Chart, Table, section
from core.views.confidence import data

DRAWS = 2000  # Random sets of queries that a kind is compared with

SAME, CORRECTED = "same stack", "not significant after correction"
STAYS, OPEN, OTHER = "no sign of a better stack", "another may be better", "another is better"

_EQUAL = 1e-12

_LOOKS = {
    STAYS: (theme.OKABE_ITO[4], "circle"),
    OPEN: (theme.NEUTRAL, "circle-open"),
    OTHER: (theme.ACCENT, "diamond"),
}
"""Colour and mark of whether a kind needs another stack than the chosen one."""

_HOW = (
    "The best stack is that of the highest quality within the limits on the queries of the kind alone; "
    "latency, cost and harm are over all queries. The gain is measured on queries that the stack was not "
    "picked on, a fifth in turn, so that the best of many does not flatter itself. Kinds of fewer than "
    f"{LEAST} queries are left out. Another is better where the kind gains more by its best stack "
    f"than {DRAWS:,} random sets of as many queries do by theirs (p < 0.05, Holm-adjusted over the kinds)."
)

TABLE = cols.Rows(
    "kinds",
    "tag n",
    cols.text("is", "another stack", "By the gain on held-out queries and its adjusted p.", width=170),
    cols.signed(
        "difference",
        "gain on held-out queries",
        "Over the chosen stack, on the fifth of the queries that picked no stack, each in turn; another "
        "fifth may pick another stack.",
    ),
    "low high",
    cols.text(
        "stack",
        "best in sample",
        "On these very queries, on which it was picked: that flatters it.",
        width=290,
    ),
    more=(
        cols.score(
            "quality", "its quality in sample", "On these queries, on which it was picked: that flatters it."
        ),
        "quality_low quality_high",
        cols.score("today", "chosen stack's", "Quality of the chosen stack on these queries."),
        cols.number(
            "p_holm",
            "p (Holm)",
            "Against random sets of as many queries, Holm-adjusted over the kinds.",
            digits=4,
        ),
    ),
)


@cached("Looking at each kind of query…", entries=32)
def kinds(view: View, constraints: Constraints) -> pl.DataFrame:
    """Find the best stack within the limits on the queries of each kind alone.

    Returns:
        `TABLE`, kinds with a better stack first, then by tag; empty if nothing is known per
        query or nothing is chosen.
    """
    known, decision = sample(view), data.decided(view.replace(constraints=constraints), view.rule)
    if known is None or decision.chosen is None:
        return TABLE.frame()
    offered = np.flatnonzero(decision.feasible & known.quality_varies)
    if decision.chosen not in offered:
        return TABLE.frame()
    names, today = view.table["name"].to_list(), int(np.flatnonzero(offered == decision.chosen)[0])
    sign = 1.0 if view.quality.higher_is_better else -1.0
    gaps = sign * (known.quality[offered] - known.quality[offered[today]])
    rows = []
    for kind, mask in tagged(view, known.query_ids).items():
        here = np.flatnonzero(mask & ~np.isnan(known.quality[offered[today]]))
        values = known.quality[np.ix_(offered, here)]
        alike = None if known.clusters is None else known.clusters[here]
        if values.shape[1] >= LEAST:
            best = best_row(values, today, sign)
            low, high = mean_interval(values[[best]], "shares", clusters=alike)
            gain, ends = gained(values, today, sign, alike)
            rows.append({
                "tag": kind, "n": values.shape[1], "stack": names[offered[best]],
                "is": STAYS if best == today or not sign * gain > 0 else OPEN,
                "p_holm": chance(gaps, mask, known.clusters),
                "quality": float(np.nanmean(values[best])), "quality_low": low[0], "quality_high": high[0],
                "today": float(values[today].mean()), "difference": gain, "low": ends[0], "high": ends[1],
            })  # fmt: skip
    found = TABLE.frame(rows)
    found = found.with_columns(p_holm=pl.Series(holm(found["p_holm"].to_numpy())))
    better = (pl.col("is") == OPEN) & (pl.col("p_holm") < ALPHA) & (sign * pl.col("difference") > 0)
    found = found.with_columns(pl.when(better).then(pl.lit(OTHER)).otherwise("is").alias("is"))
    order = [pl.col("is") != OTHER, pl.col("is") != OPEN, pl.col("tag")]
    return found.sort(order)


def uncorrected(rows: pl.DataFrame) -> pl.DataFrame:
    """Return rows of `TABLE` whose interval excludes 0 but whose p isn't significant after correction."""
    sure = pl.col("low") * pl.col("high") > 0
    return rows.filter(sure, pl.col("is") == OPEN).sort(pl.col("difference").abs(), descending=True)


def becomes(rows: pl.DataFrame) -> list[str]:
    """Return a verdict per row of `TABLE`: whether another stack is better."""
    nothing = pl.all_horizontal(pl.col("difference", "low", "high") == 0)
    corrected = pl.col("tag").is_in(uncorrected(rows)["tag"].implode())
    word = pl.when(nothing).then(pl.lit(SAME)).when(corrected).then(pl.lit(CORRECTED)).otherwise("is")
    return rows.select(word).to_series().to_list()


def chance(gaps: Floats, kind: Mask, clusters: Labels | None = None) -> float:
    """Return how often a random set of equally many queries gains as much from its own best stack.

    Args:
        gaps: [S, Q], each stack's lead over today's choice; NaN = unknown. For today's choice it is 0.
        kind: [Q], the queries of the kind.
        clusters: [Q], queries that are drawn together; None if each is independent.

    Returns:
        The p-value of the test that the kind is like the others; the kind counts as one of the sets.
    """
    asked = ~np.isnan(gaps).all(axis=0)
    gaps, kind = gaps[:, asked], kind[asked]
    labels = np.arange(len(kind)) if clusters is None else clusters[asked]
    keys = np.random.default_rng(SEED).random((DRAWS, int(labels.max()) + 1))[:, labels]
    sets = np.zeros(keys.shape)
    np.put_along_axis(sets, np.argsort(keys, axis=1, kind="stable")[:, : int(kind.sum())], 1.0, axis=1)
    known, values = (~np.isnan(gaps)).astype(np.float64), np.nan_to_num(gaps)

    def best(of: Floats) -> Floats:
        return np.asarray(np.nan_to_num(quotient(of @ values.T, of @ known.T)).max(axis=1))

    reached = best(sets) >= best(kind[None].astype(np.float64)) - _EQUAL
    return float((reached.sum() + 1) / (DRAWS + 1))


def gained(
    values: Floats, today: int, sign: float, clusters: Labels | None = None
) -> tuple[float, tuple[float, float]]:
    """Average the gain of a choice made for these queries over today's, on held-out queries.

    Args:
        values: [S, Q], the quality of every stack within the limits; known for today's choice.
        today: Row of today's choice.
        sign: 1 if higher is better, otherwise −1.
        clusters: [Q], equal for queries of a group, which are held out together; None = each alone.

    Returns:
        The mean over queries, each fifth held out in turn, and its 95 % interval.
    """
    gain = held_out(values, today, sign, clusters) - values[today]
    low, high = mean_interval(gain, "differences", clusters=clusters)
    return float(np.nanmean(gain)), (float(low[0]), float(high[0]))


@section("kinds of query", "Does any kind of query need another stack?")
def kinds_of_question(view: View, ask: Ask) -> Blocks:
    """Yield the stack that the limits select on the queries of each tag, beside today's choice."""
    del ask
    rows = kinds(view, view.constraints)
    if rows.is_empty():
        yield Answer(
            "Kinds of query cannot be told apart here.",
            "That takes results per query of a stack that is chosen, and tags or lengths of at least "
            f"{LEAST} queries.",
        )
        return
    said = answer(rows, view.quality.name)
    yield Answer(said, before_correction(rows), caveats={"how it is measured": _HOW})
    counts = dict(rows["is"].value_counts().iter_rows())
    known = sample(view)
    n = "" if known is None else f", {text.sample(known.quality.shape[1])}"
    lengths = rows.filter(pl.col("tag").str.starts_with(LENGTH)).height
    tags = text.count(rows.height - lengths, "tag")
    among = f"of {text.count(rows.height, 'kind')} ({tags}, {text.count(lengths, 'length')}){n}"
    yield Cards([(word.capitalize(), f"{counts.get(word, 0)}", among) for word in _LOOKS])
    drawn = figure(rows, f"{view.quality.name} gained over the chosen stack (95 % interval)")
    yield Chart(drawn, "kinds", "What each kind of query would gain by its own choice")
    chosen = view.table["name"][view.decision.chosen or 0]
    said_best = ({"stack": "the chosen stack"} if name == chosen else {} for name in rows["stack"])
    cells = [{"is": word, **best} for word, best in zip(becomes(rows), said_best, strict=True)]
    yield Table(rows, TABLE, cells=cells)


def figure(rows: pl.DataFrame, title: str) -> go.Figure:
    """Draw the gain of each kind's own choice over today's, with its interval."""
    y = np.arange(rows.height)[::-1]
    marks = []
    for word, (colour, symbol) in _LOOKS.items():
        at = np.flatnonzero(rows["is"] == word)
        part = rows[at]
        x, low, high = (part[name].to_numpy() for name in ("difference", "low", "high"))
        hover = [
            f"{text.escape(tag)}: {text.escape(name)}"
            for tag, name in part.select("tag", "stack").iter_rows()
        ]
        marker = {"color": colour, "symbol": symbol, "size": 11, "line": {"width": 2, "color": colour}}
        bars = theme.whiskers(low, x, high, thickness=1.5, width=4, color=colour)
        marks.append(theme.scatter(word, x, y[at], hover=hover, marker=marker, error_x=bars, mode="markers"))
    layout = theme.layout(x=title, height=110 + 26 * rows.height)
    labels = [
        f"{text.escape(text.shorten(tag, 36))} (n = {n})" for tag, n in rows.select("tag", "n").iter_rows()
    ]
    layout["yaxis"] |= {
        "range": [-0.6, rows.height - 0.4],
        "showgrid": False,
        "tickvals": y,
        "ticktext": labels,
    }
    return theme.finished(marks, layout)


def answer(rows: pl.DataFrame, measure: str) -> str:
    """Name the kinds that would need another stack by a measure."""
    apart, among = rows.filter(pl.col("is") == OTHER), text.count(rows.height, "kind")
    if apart.is_empty():
        return f"For none of {among} of query is another stack's {measure} significantly better."
    first = apart.sort(pl.col("difference").abs(), descending=True).row(0, named=True)
    most = "" if apart.height == 1 else "most "
    return (
        f"{apart.height} of {among} gain {measure}, {most}{first['tag']}: {_gain(first)} by {first['stack']}."
    )


def before_correction(rows: pl.DataFrame) -> str:
    """Name the kind whose gain is the largest of those not significant after correction, or return ""."""
    for first in uncorrected(rows).head(1).iter_rows(named=True):
        among = text.count(rows.height, "kind")
        return f"{first['tag']} gains {_gain(first)}: not significant after correction for {among}."
    return ""


def _gain(row: Mapping[str, Any]) -> str:
    return f"{text.signed(row['difference'])} [{text.signed(row['low'])}, {text.signed(row['high'])}]"
