"""What the page on K curves says."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from core.views import text
from core.views.curves.cuts import Cuts
from core.views.workspace.scope import Quality

X_AXES = {"k": "cutoff K", "tokens": "tokens sent", "usd_per_1k": "$ of generator input / 1k"}
"""What the curves can be drawn against, by column."""
HOW = (
    "Band: 95 % bootstrap interval over queries, where results per query exist (2,000 resamples, fixed "
    "seed). Dotted: what the best order of the candidate pool would reach (PROC). Dashed line or large dot: "
    "the cutoff. ↓: lower is better."
)
NO_OTHERS = "Every other measure needs rankings; of these stacks only averages are known."
NO_DEPTHS = "No two stacks here differ only in their candidate depth."
CUTS = (
    "How many passages to send, query by query, from the scores alone. Precision, recall and F1 are of what "
    "is kept, not of K slots."
)
GENERATOR = "Counts the tokens where its vocabulary is at hand, and prices them."


def answer(main: pl.DataFrame, quality: Quality, names: Sequence[str]) -> str:
    """Who leads at the cutoff, and what it has at the deepest one."""
    known = main.filter(pl.col("value").is_not_null())
    places = dict(zip(names, range(len(names)), strict=True))
    place = pl.col("name").replace_strict(places, default=len(names), return_dtype=pl.Int64)
    at_k = known.filter(pl.col("k") == quality.k)
    at_k = at_k.sort(pl.col("value"), place, descending=[quality.higher_is_better, False])
    if at_k.is_empty():
        return f"None of the stacks shown has a value for {quality.name}."
    best = at_k.row(0, named=True)
    deepest = known.filter(pl.col("name") == best["name"]).sort("k").row(-1, named=True)
    deeper = f"; at cutoff {deepest['k']} it has {text.score(deepest['value'])}"
    return (
        f"Of the stacks shown, {best['name']} leads with {quality.name} {text.score(best['value'])}"
        f"{text.interval(best['low'], best['high'])}, {text.sample(best['n'])}"
        f"{deeper if deepest['k'] > quality.k else ''}."
    )


def nothing(table: pl.DataFrame, quality: Quality, x: str) -> str:
    """Why there is no curve of the measure."""
    known = table.filter((pl.col("measure") == quality.bare) & pl.col("value").is_not_null())["k"].unique()
    if len(known) == 1:
        return f"{quality.bare} is known at cutoff {known[0]} only, which the table has: there is no curve."
    return f"There is no curve: of the stacks shown, the {X_AXES[x]} is not known."


def depth_answer(depths: pl.DataFrame, family: str, quality: Quality) -> str:
    """What the deepest candidate pool of a family has beside the shallowest.

    Args:
        depths: Of `page.depth_table`.
    """
    rows = depths.filter(pl.col("family") == family)
    first, last = rows.row(0, named=True), rows.row(-1, named=True)
    span = f"K from {first['candidates']} to {last['candidates']}"
    about = f"{quality.name} ({text.sample(last['n'])})"
    quality_of, ms_of, cost_of = (
        (f"from {start} to {end}", start != end)
        for start, end in (
            (write(first[column]), write(last[column]))
            for column, write in (("quality", text.score), ("latency_ms", text.ms), ("cost", text.usd))
        )
    )
    if not any(differs for _, differs in (quality_of, ms_of, cost_of)):
        return f"Deepening {span} leaves {family} as it is: {about} {text.score(last['quality'])}."
    return f"Deepening {span} takes {family} {quality_of[0]} in {about}, {ms_of[0]}, and {cost_of[0]}."


def cut_answer(found: Cuts, fixed: int) -> str:
    """Which way is best by F1, beside the fixed K."""
    if found.rows.is_empty():
        return found.left_out
    best = found.rows.sort("f1", descending=True).row(0, named=True)
    usual = found.rows.filter(pl.col("way") == f"K = {fixed}")
    beside = ""
    if not usual.is_empty() and best["way"] != f"K = {fixed}":
        row = usual.row(0, named=True)
        beside = f"; K = {fixed} has {text.score(row['f1'])} with {row['kept']:.1f}"
    return (
        f"{best['way']} gives the best F1: {text.score(best['f1'])}"
        f"{text.interval(best['f1_low'], best['f1_high'])} with {best['kept']:.1f} passages a query, "
        f"{text.sample(best['n'])}{beside}."
    )
