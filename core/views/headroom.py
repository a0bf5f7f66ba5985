"""Headroom: is retrieval or ordering the limit? Actual, ordering and retrieval headroom of every stack."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go
import polars as pl

from core.decide.headroom import LEVERS, MARGIN, Reading
from core.views import text, theme
from core.views.workspace.scope import Quality

POOL = (
    "What the final order could choose from. dense@50: the first 50 of a dense search. A ceiling means "
    "something only together with its convention (CLQ paper §5.1, A.8)."
)
HOW = (
    "1 = actual + ordering headroom (in the pool, but ranked too low) + retrieval headroom (not in the "
    "pool). PROC is the best order of the pool; %PROC = mean actual / mean PROC, over the same n queries."
)
MIXED_POOLS = "These bars stand on several pool conventions: compare ceilings only within one of them."
_ANSWERS: Mapping[Reading, str] = {
    "improve retrieval": "Retrieval is the limit of {}: its pool lacks more than its order loses.",
    "improve ordering": "Ordering is the limit of {}: its order loses more than its pool lacks.",
    "balanced": "Retrieval and ordering limit {} about equally.",
}


def no_ceiling(quality: Quality) -> tuple[str, str]:
    """Why the page is empty, and the way out."""
    return (
        f"No stack here has a ceiling for {quality.name}.",
        "A ceiling (PROC) needs rankings with their candidate pool, or published ceilings at this cutoff: "
        "choose another measure or cutoff.",
    )


def answer(row: Mapping[str, Any]) -> str:
    """Whether retrieval or ordering limits a stack; a row of `HeadroomView.table`."""
    return _ANSWERS[row["reading"]].format(row["name"])


def numbers(row: Mapping[str, Any], quality: Quality) -> str:
    """The three parts of a stack in one sentence, for files that have no cards."""
    return (
        f"{row['name']} reaches {text.score(row['quality'])} of a possible 1 ({quality.name}, "
        f"{text.sample(row['n'])}): {text.score(row['ordering'])} is lost in ordering and "
        f"{text.score(row['retrieval'])} in retrieval."
    )


def levers(row: Mapping[str, Any]) -> str:
    """What the paper suggests to try."""
    reading: Reading = row["reading"]
    return f"The CLQ paper (§6) suggests: {'; '.join(LEVERS[reading])}."


def caveats(row: Mapping[str, Any], *, mixed: bool) -> dict[str, str]:
    """What to try and how to read the bars, by the words of the chip; mixed = of several pool conventions."""
    pools = MIXED_POOLS if mixed else ""
    return {"what to try": levers(row), "several pools": pools, "how to read": HOW}


def cards(row: Mapping[str, Any], quality: Quality) -> tuple[tuple[str, str, str], ...]:
    """The four numbers of a stack: label, number, what it rests on."""
    interval = text.interval(row["quality_low"], row["quality_high"]).strip()
    return (
        (quality.name, text.score(row["quality"]), f"{interval} {text.sample(row['n'])}".strip()),
        ("Ordering headroom", text.score(row["ordering"]), "in the pool, ranked too low"),
        ("Retrieval headroom", text.score(row["retrieval"]), "not in the pool"),
        ("%PROC", text.percent(row["pct_proc"]), f"of the best order of {row['pool']}"),
    )


MIXED = "all conventions"
NO_POOL = "not stated"
BARS = 20  # Bars drawn at most besides the chosen stack's; the table has every stack


@dataclass(frozen=True)
class HeadroomView:
    """The page's content."""

    answer: str  # whether retrieval or ordering limits the chosen stack, or the best one where none is chosen
    explained: Mapping[str, Any]  # that stack's row of the table
    figure: go.Figure  # one stacked bar per stack
    # name, pool, quality with its interval, ordering, retrieval, proc, pct_proc (all 0..1), n, reading; the
    # best first, and the chosen stack where its pool is another one
    table: pl.DataFrame


def conventions(table: pl.DataFrame, chosen: int | None = None) -> list[str]:
    """Pool conventions with a ceiling: the chosen stack's or else the best one's first, `MIXED` last."""
    known = _known(table).sort("quality", descending=True)
    own = known.filter(pl.col("name") == table["name"][chosen]) if chosen is not None else known
    first = (own if own.height else known)["pool"].head(1).to_list()
    pools = sorted(known["pool"].unique(), key=lambda pool: (pool not in first, _natural(pool)))
    return [*pools, MIXED] if len(pools) > 1 else pools


def _natural(pool: str) -> tuple[str, int]:
    """Return a key that sorts dense@50 before dense@100."""
    head, _, depth = pool.rpartition("@")
    return head, int(depth) if depth.isdigit() else 0


def headroom(
    table: pl.DataFrame, quality: Quality, convention: str, chosen: int | None = None
) -> HeadroomView | None:
    """Split the quality of every stack of one pool convention, and of the chosen stack.

    Args:
        convention: One of `conventions`; `MIXED` takes all.

    Returns:
        The view; None when no stack has a ceiling at this cutoff.
    """
    name = None if chosen is None else table["name"][chosen]
    wanted = (pl.col("pool") == convention) | pl.lit(convention == MIXED) | pl.col("name").eq_missing(name)
    rows = _parts(_known(table).filter(wanted))
    if rows.is_empty():
        return None
    explained = next(
        (row for row in rows.iter_rows(named=True) if row["name"] == name), rows.row(0, named=True)
    )
    return HeadroomView(answer(explained), explained, _figure(rows, quality, name), rows)


def _known(table: pl.DataFrame) -> pl.DataFrame:
    there = pl.col("proc").is_not_null() & pl.col("quality").is_not_null()
    return table.filter(there).with_columns(pl.col("pool").fill_null(NO_POOL))


def _parts(known: pl.DataFrame) -> pl.DataFrame:
    actual, proc = pl.col("quality"), pl.col("proc")
    ordering = (proc - actual).clip(lower_bound=0)
    retrieval = 1 - pl.max_horizontal(actual, proc)
    reading = (
        pl.when((ordering - retrieval).abs() < MARGIN)
        .then(pl.lit("balanced"))
        .when(retrieval > ordering)
        .then(pl.lit("improve retrieval"))
        .otherwise(pl.lit("improve ordering"))
    )
    split = {"ordering": ordering, "retrieval": retrieval, "reading": reading}
    best = known.with_columns(**split).sort("quality", "name", descending=[True, False])
    return best.select("name", "pool", "^quality(_low|_high|_basis)?$", *split, "proc", "pct_proc", "n")


def _figure(rows: pl.DataFrame, quality: Quality, chosen: str | None) -> go.Figure:
    shown = rows.filter((pl.int_range(pl.len()) < BARS) | pl.col("name").eq_missing(chosen))
    several = shown["pool"].n_unique() > 1
    names = [
        f"{name} ({pool})" if several else name for name, pool in shown.select("name", "pool").iter_rows()
    ]
    marked = next((label for label, name in zip(names, shown["name"], strict=True) if name == chosen), None)
    looks = (
        ("actual", "quality", theme.OKABE_ITO[0], ""),
        ("ordering headroom", "ordering", theme.OKABE_ITO[1], "/"),
        ("retrieval headroom", "retrieval", theme.NEUTRAL, "."),
    )
    parts = [
        theme.Part(title, shown[column].to_list(), colour, pattern,
                   [f"{name}: {title} {value:.3f}, %PROC {text.percent(share)}"
                    for name, value, share in shown.select("name", column, "pct_proc").iter_rows()])
        for title, column, colour, pattern in looks
    ]  # fmt: skip
    fig = theme.stacked(names, parts, x=f"{quality.name}, of a possible 1", chosen=marked)
    return fig.update_xaxes(range=[0, 1])
