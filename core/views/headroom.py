"""Headroom: whether retrieval or ordering is the bottleneck (CLQ paper §5.1, §6).

A quality of 1 is the actual quality + ordering headroom + retrieval headroom, for every stack.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go
import polars as pl

from core.analysis.workspace.pools import (
    NOT_STATED,
    ORDERING,
    RETRIEVAL,
    candidates_of,
    lost,
    split,
    stack_of,
)
from core.analysis.workspace.scope import Quality
from core.analysis.workspace.view import View
from core.decide.ties import Paired
from core.views import columns as cols
from core.views import text, theme
from core.views.ask import Ask
from core.views.blocks import Answer, Blocks, Cards, Chart, Table, section
from core.views.levers import to_try
from core.views.words.choice import axis

POOL = (
    "What the final order could choose from. dense@50: the first 50 of a dense search; rrf100@50: of two "
    "lists of 100, fused. PROC holds for its convention alone (CLQ paper §5.1, A.8)."
)
HOW = (
    "1 = actual + ordering headroom (in the pool, but ranked too low) + retrieval headroom (not in the "
    "pool). PROC is the best order of the pool; %PROC = mean actual / mean PROC, over the same n queries."
)
DEEPER = (
    "Nothing reads K here, so every K has the same ranking, and PROC is that of the deepest pool that a run "
    "of this stack kept: {pool}."
)
MIXED_POOLS = "These bars stand on several pool conventions: compare PROC only within one of them."
_ORDERING = "Perfect ordering would add {ordering} {of}, perfect retrieval {retrieval} more ({n})."
_RETRIEVAL = "Perfect retrieval would add {retrieval} {of}, perfect ordering {ordering} more ({n})."
MIXED = "all conventions"
BARS = 20  # Maximum bars drawn in addition to the chosen stack's; the table has all stacks


def no_ceiling(quality: Quality) -> Answer:
    """Say why the page is empty, and how to fill it."""
    return Answer(
        f"No stack here has a PROC for {quality.name}.",
        "PROC needs rankings with their candidate pool, or a published one at this cutoff: "
        "choose another measure or cutoff.",
    )


def answer(row: Mapping[str, Any], quality: Quality) -> str:
    """Say what better ordering and better retrieval could add; takes a row of `HeadroomView.table`."""
    ordering, retrieval = written(row)
    parts = {"ordering": ordering, "retrieval": retrieval, "of": quality.name, "n": text.sample(row)}
    said = _RETRIEVAL if row["reading"] == RETRIEVAL else _ORDERING
    return said.format(**parts)


def written(row: Mapping[str, Any]) -> tuple[str, str]:
    """Format ordering and retrieval loss; after rounding, the parts add up to the ceiling and to 1."""
    actual, best = (round(value, 3) for value in (row["quality"], max(row["quality"], row["proc"])))
    return text.score(best - actual), text.score(1 - best)


def numbers(row: Mapping[str, Any], quality: Quality) -> str:
    """Return the three parts of a stack in one sentence, for files that have no cards."""
    ordering, retrieval = written(row)
    return (
        f"{row['name']} reaches {text.score(row['quality'])} of a possible 1 ({quality.name}, "
        f"{text.sample(row)}, pool {row['pool']}): {ordering} is lost in ordering "
        f"and {retrieval} in retrieval."
    )


def limiting(
    row: Mapping[str, Any],
    quality: Quality,
    table: pl.DataFrame,
    feasible: Sequence[bool],
    paired: Paired | None = None,
) -> str:
    """Say what limits a stack and what to try, or why that is unknown; takes a row of the stack table."""
    if row["quality"] is None or row["proc"] is None:
        return f"Not known: no PROC for {quality.name} on record."
    proc = max(row["quality"], row["proc"])
    parts = lost(row["quality"], proc)
    first = {RETRIEVAL: "The pool limits first", ORDERING: "The order within the pool limits first"}
    share = text.percent(row["quality"] / proc if proc else None)
    ordering, retrieval = written(row)
    return (
        f"{first.get(parts['reading'], 'Both limit about equally')}: {retrieval} is lost in "
        f"retrieval and {ordering} in ordering (pool {row['proc_pool'] or NOT_STATED}, %PROC "
        f"{share}, {text.sample(row)}). {to_try(row, parts['reading'], table, feasible, paired)}"
    )


def caveats(row: Mapping[str, Any], view: View, *, mixed: bool) -> dict[str, str]:
    """Say what to try and how to read the bars, keyed by the words of a chip.

    Args:
        row: From `HeadroomView.table`.
        mixed: Whether the bars have several pool conventions.
    """
    own = view.table.row(by_predicate=pl.col("name") == row["name"], named=True)
    deeper = DEEPER.format(pool=row["pool"]) if own["pool"] != own["proc_pool"] else ""
    return {
        "what was tried": to_try(
            own, row["reading"], view.table, view.decision.feasible.tolist(), view.paired
        ),
        "which PROC": deeper,
        "several pools": MIXED_POOLS if mixed else "",
        "how to read": HOW,
    }


def cards(row: Mapping[str, Any], quality: Quality) -> tuple[tuple[str, str, str], ...]:
    """Return the four numbers of a stack: label, number, its basis."""
    interval = text.interval(row["quality_low"], row["quality_high"]).strip()
    ordering, retrieval = written(row)
    return (
        (quality.name, text.score(row["quality"]), f"{interval} {text.sample(row)}".strip()),
        ("Ordering headroom", ordering, f"in the pool, ranked too low, {text.sample(row)}"),
        ("Retrieval headroom", retrieval, f"not in the pool, {text.sample(row)}"),
        (
            "%PROC",
            text.percent(row["pct_proc"]),
            f"of what a perfect order of its {candidates_of(row['pool'])} reaches",
        ),
    )


@dataclass(frozen=True)
class HeadroomView:
    """The page's content."""

    explained: Mapping[str, Any]  # the table's row of the chosen stack, or of the best if none is chosen
    figure: go.Figure  # one stacked bar per stack
    # name, pool, quality with its interval, ordering, retrieval, proc, pct_proc (all 0..1), n, reading; the
    # best first, and the chosen stack if its pool is another one
    table: pl.DataFrame


def conventions(table: pl.DataFrame, chosen: int | None = None) -> list[str]:
    """Return pool conventions with a ceiling: the chosen (or best) stack's first, `MIXED` last."""
    name = None if chosen is None else table["name"][chosen]
    known = _known(table, name).sort("quality", descending=True)
    own = known.filter(pl.col("name") == name) if chosen is not None else known
    first = (own if own.height else known)["pool"].head(1).to_list()
    pools = sorted(known["pool"].unique(), key=lambda pool: (pool not in first, _natural(pool)))
    return [*pools, MIXED] if len(pools) > 1 else pools


def _natural(pool: str) -> tuple[str, int]:
    """Return a key that sorts dense@50 before dense@100."""
    head, _, depth = pool.rpartition("@")
    return head, int(depth) if depth.isdigit() else 0


def headroom(
    table: pl.DataFrame,
    quality: Quality,
    convention: str,
    chosen: int | None = None,
    today: str | None = None,
) -> HeadroomView | None:
    """Split the quality of all stacks of one pool convention (`MIXED` = any), and of the chosen stack.

    Returns:
        The view, or None if no stack has a ceiling at this cutoff.
    """
    name = None if chosen is None else table["name"][chosen]
    wanted = (pl.col("pool") == convention) | pl.lit(convention == MIXED) | pl.col("name").eq_missing(name)
    parts = split(pl.col("quality"), pl.col("proc"))
    best = (
        _known(table, name)
        .filter(wanted)
        .with_columns(parts)
        .sort("quality", "name", descending=[True, False])
    )
    names = ("ordering", "retrieval", "reading", "proc", "pct_proc", "n", "clusters", "cluster_kind")
    rows = best.select("name", "pool", "^quality(_low|_high|_basis)?$", *names)
    if rows.is_empty():
        return None
    explained = next(
        (row for row in rows.iter_rows(named=True) if row["name"] == name), rows.row(0, named=True)
    )
    return HeadroomView(explained, _figure(rows, quality, name, today), rows)


def _known(table: pl.DataFrame, chosen: str | None) -> pl.DataFrame:
    """Return stacks with a ceiling, with its pool; only one of stacks that differ in a K that nothing reads.

    The chosen stack is the one kept if it is among them.
    """
    there = pl.col("proc").is_not_null() & pl.col("quality").is_not_null()
    rows = table.filter(there).with_columns(pool=pl.col("proc_pool").fill_null(NOT_STATED))
    stacks = pl.Series("_stack", [stack_of(spec) for spec in rows["spec"]], dtype=pl.String)
    rows = rows.with_columns(pl.coalesce(stacks, "run_id").alias("_stack"))
    first = rows.sort(pl.col("name").eq_missing(chosen), descending=True, maintain_order=True)
    kept = first.unique(["_stack", "pool", "quality", "n"], keep="first")["run_id"]
    return rows.filter(pl.col("run_id").is_in(kept.implode())).drop("_stack")


def _figure(rows: pl.DataFrame, quality: Quality, chosen: str | None, today: str | None) -> go.Figure:
    stays = pl.col("name").eq_missing(chosen) | pl.col("name").eq_missing(today)
    shown = rows.filter((pl.int_range(pl.len()) < BARS) | stays)
    several = shown["pool"].n_unique() > 1
    names = [
        f"{name} ({pool})" if several else name for name, pool in shown.select("name", "pool").iter_rows()
    ]
    label_of = dict(zip(shown["name"].to_list(), names, strict=True))
    looks = (
        ("actual", "quality", theme.OKABE_ITO[0], ""),
        ("ordering headroom", "ordering", theme.OKABE_ITO[1], "/"),
        ("retrieval headroom", "retrieval", theme.NEUTRAL, "."),
    )
    parts = [
        theme.BarPart(title, shown[column].to_list(), colour, pattern,
                   [f"{name}: {title} {value:.3f}, %PROC {text.percent(share)}"
                    for name, value, share in shown.select("name", column, "pct_proc").iter_rows()])
        for title, column, colour, pattern in looks
    ]  # fmt: skip
    marked = {"chosen": label_of.get(chosen or ""), "today": label_of.get(today or "")}
    return theme.stacked(names, parts, x=axis(quality), **marked).update_xaxes(range=[0, 1])


@section(question="Would better retrieval or better ordering raise the quality?")
def limit(view: View, ask: Ask) -> Blocks:
    """Yield the ordering and retrieval loss of each stack."""
    offered = conventions(view.table, view.decision.chosen)
    pool = ask.listed("Candidate pool", offered, "pool", about=POOL, width=240) if offered else ""
    parted = headroom(view.table, view.quality, pool, view.decision.chosen, view.running_name)
    if parted is None:
        yield no_ceiling(view.quality)
        return
    mixed = parted.table["pool"].n_unique() > 1
    chips = caveats(parted.explained, view, mixed=mixed)
    yield Answer(answer(parted.explained, view.quality), f"Of {parted.explained['name']}.", caveats=chips)
    yield Cards(cards(parted.explained, view.quality))
    yield Chart(parted.figure, "headroom", numbers(parted.explained, view.quality))
    yield Table(
        parted.table,
        cols.Rows(
            "headroom",
            "name pool",
            cols.score("quality", "actual"),
            "ordering retrieval pct_proc reading",
            more=(
                "quality_low quality_high",
                cols.score("proc", "PROC of that pool", "The best ordering of the candidate pool."),
                "n quality_basis",
            ),
        ),
        cells=[
            dict(zip(("ordering", "retrieval"), written(row), strict=True))
            for row in parted.table.iter_rows(named=True)
        ],
    )


SECTIONS = (limit,)
