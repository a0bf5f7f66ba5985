"""Headroom: is retrieval or ordering the limit? Actual, ordering and retrieval headroom of every stack."""

from __future__ import annotations

from dataclasses import dataclass

import plotly.graph_objects as go
import polars as pl

from core.decide.headroom import LEVERS, Reading, split
from core.views import text, theme
from core.views.workspace.scope import Quality

MIXED = "all conventions"
NO_POOL = "not stated"
BARS = 40
"""Bars drawn at most; the table has every stack."""


@dataclass(frozen=True)
class HeadroomView:
    """The page's content.

    Attributes:
        answer: What limits the best stack, in words and numbers.
        details: The levers to pull, and how the numbers were made.
        figure: One stacked bar per stack.
        table: name, pool, quality, ordering, retrieval, proc, pct_proc (all 0..1), n, reading.
        mixed: Whether stacks of several pool conventions stand on the chart.
    """

    answer: str
    details: str
    figure: go.Figure
    table: pl.DataFrame
    mixed: bool


def conventions(table: pl.DataFrame) -> list[str]:
    """Pool conventions with a ceiling: the best stack's first, `MIXED` last if there are several."""
    known = table.filter(pl.col("proc").is_not_null() & pl.col("quality").is_not_null())
    pools = known.sort("quality", descending=True)["pool"].fill_null(NO_POOL)
    found = sorted(pools.unique(), key=lambda name: (name != pools[0], _natural(name)))
    return [*found, MIXED] if len(found) > 1 else found


def _natural(name: str) -> tuple[str, int]:
    """A key that sorts dense@50 before dense@100."""
    head, _, depth = name.rpartition("@")
    return head, int(depth) if depth.isdigit() else 0


def headroom(
    table: pl.DataFrame, quality: Quality, convention: str, chosen: int | None = None
) -> HeadroomView | None:
    """Split the quality of every stack of one pool convention.

    Args:
        table: The stack table.
        quality: Measure and cutoff.
        convention: One of `conventions`; `MIXED` shows all, and says so.
        chosen: Row of the stack that the limits select, which is told of where it is another one.

    Returns:
        The view; None when no stack has a ceiling at this cutoff.
    """
    whole = table.filter(pl.col("proc").is_not_null() & pl.col("quality").is_not_null()).with_columns(
        pl.col("pool").fill_null(NO_POOL)
    )
    known = whole if convention == MIXED else whole.filter(pl.col("pool") == convention)
    if known.is_empty():
        return None
    rows = _parts(known)
    best = rows.row(0, named=True)
    reading = split(best["quality"], max(best["proc"], best["quality"]))
    answer = (
        f"{best['name']} reaches {text.score(best['quality'])} of a possible 1 ({quality.name}, "
        f"{text.sample(best['n'])}): {text.score(best['ordering'])} is lost in ordering and "
        f"{text.score(best['retrieval'])} in retrieval, so {_ADVICE[reading.reading]}."
    )
    details = f"Levers of the CLQ paper (§6): {'; '.join(LEVERS[reading.reading])}."
    if chosen is not None and (name := table["name"][chosen]) != best["name"]:
        details += _of_chosen(_parts(whole.filter(pl.col("name") == name)))
    return HeadroomView(
        answer=answer,
        details=details,
        figure=_figure(rows, quality),
        table=rows,
        mixed=rows["pool"].n_unique() > 1,
    )


def _of_chosen(rows: pl.DataFrame) -> str:
    """What is lost by the stack that the limits select, where that is not the one at the head."""
    if rows.is_empty():
        return ""
    row = rows.row(0, named=True)
    return (
        f" The chosen stack, {row['name']} (pool {row['pool']}), reaches {text.score(row['quality'])}: "
        f"{text.score(row['ordering'])} is lost in ordering and {text.score(row['retrieval'])} in retrieval, "
        f"so {_ADVICE[row['reading']]}."
    )


_ADVICE: dict[Reading, str] = {
    "improve retrieval": "improve retrieval first",
    "improve ordering": "improve ordering first",
    "balanced": "both matter about equally",
}


def _parts(known: pl.DataFrame) -> pl.DataFrame:
    actual, proc = pl.col("quality"), pl.col("proc")
    ordering, retrieval = pl.col("ordering"), pl.col("retrieval")
    return (
        known.with_columns(
            (proc - actual).clip(lower_bound=0).alias("ordering"),
            (1 - pl.max_horizontal(actual, proc)).alias("retrieval"),
        )
        .with_columns(
            pl.when((ordering - retrieval).abs() < 0.02)
            .then(pl.lit("balanced"))
            .when(retrieval > ordering)
            .then(pl.lit("improve retrieval"))
            .otherwise(pl.lit("improve ordering"))
            .alias("reading")
        )
        .sort("quality", "name", descending=[True, False])
        .select(
            "name",
            "pool",
            "quality",
            "ordering",
            "retrieval",
            "proc",
            "pct_proc",
            "n",
            "reading",
            "quality_basis",
        )
    )


def _figure(rows: pl.DataFrame, quality: Quality) -> go.Figure:
    shown = rows.head(BARS).reverse()
    mixed = shown["pool"].n_unique() > 1
    names = [
        text.escape(f"{name}  ({pool})" if mixed else name)
        for name, pool in zip(shown["name"], shown["pool"], strict=True)
    ]
    places = list(range(shown.height))  # not names: two that are cut to the same text would be one bar
    parts = (
        ("actual", "quality", theme.OKABE_ITO[0], ""),
        ("ordering headroom", "ordering", theme.OKABE_ITO[1], "/"),
        ("retrieval headroom", "retrieval", theme.NEUTRAL, "."),
    )
    traces = [
        go.Bar(
            name=title,
            y=places,
            x=shown[column].to_numpy(),
            orientation="h",
            marker={"color": colour, "pattern": {"shape": shape, "fillmode": "replace"}},
            customdata=list(zip(names, map(text.percent, shown["pct_proc"]), strict=True)),
            hovertemplate=f"%{{customdata[0]}}<br>{title} %{{x:.3f}}<br>%PROC %{{customdata[1]}}"
            "<extra></extra>",
        )
        for title, column, colour, shape in parts
    ]
    fig = theme.figure(
        traces, x=f"{quality.name}: actual | ordering | retrieval", height=150 + 26 * shown.height
    )
    fig.update_layout(barmode="stack", bargap=0.25)
    fig.update_xaxes(range=[0, 1])
    fig.update_yaxes(tickvals=places, ticktext=[text.shorten(name, 70) for name in names])
    return fig
