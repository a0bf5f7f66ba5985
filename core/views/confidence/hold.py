"""Whether the choice would hold: joint resamples of the queries, and the stacks that tie with the best.

It also finds what a choice depends on: the number that would change it, the limits, the frontier's shape.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from core.analysis.status import CHANCES, status_rows
from core.analysis.workspace.view import View
from core.decide.axes import COST, LATENCY
from core.decide.joint import JointSample, chances
from core.decide.near import Turn
from core.decide.pareto import frontier, knee
from core.decide.rules import Constraints, Decision, Rule
from core.number_format import UNIT
from core.stats.intervals import RESAMPLES, SEED
from core.views import text

SLIGHT = "next to nothing"  # A change too small to show in its two formatted numbers
# Facts about a tied stack, compared with the best of them
BEST, ALIKE = "the best", "surely as good, but for what does not matter"
SAME, AVERAGE = "same score on every query", "only averages are known"
_NUMBERS = ("quality", "quality_low", "quality_high", "n", "latency_ms", "cost")


def turn_rows(table: pl.DataFrame, turns: list[Turn]) -> pl.DataFrame:
    """Change one number at a time until the choice changes: one row per number.

    Args:
        turns: From `core.decide.near.turns` on the same table.

    Returns:
        stack, number (the word of its axis), now, then and change in words with their unit, winner
        (the stack then chosen) and reason (why nothing changes the choice).
    """
    columns = ("stack", "number", "now", "then", "change", "winner", "reason")
    rows = [{"stack": table["name"][turn.of], **_turned(table, turn)} for turn in turns]
    return pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.String))


def _turned(table: pl.DataFrame, turn: Turn) -> dict[str, str | None]:
    written = turn.axis.written
    row = {"number": turn.axis.word, "now": written(turn.now), "reason": turn.reason or None}
    if turn.then is None or turn.now is None or turn.change is None:
        return row
    row["winner"] = "no stack" if turn.winner is None else str(table["name"][turn.winner])
    if written(turn.then) == row["now"]:  # too small a change to show
        side = "above" if turn.change > 0 else "below"
        return {**row, "then": f"just {side} {row['now']}", "change": SLIGHT}
    sign, size = "+" if turn.change >= 0 else "−", abs(turn.change)
    share = f" ({sign}{100 * size / turn.now:.1f} %)" if turn.now else ""
    return {**row, "then": written(turn.then), "change": f"{sign}{written(size)}{share}"}


def excluded_rows(table: pl.DataFrame, decision: Decision) -> pl.DataFrame:
    """Return every excluded stack with the first constraint that excludes it, nearest misses first.

    Returns:
        run_id, name, constraint, by (in its unit, costs in the page's; null if the value is unknown), unit,
        reason and the stack's three numbers.
    """
    said = text.cost_unit(table)
    unit = pl.col("unit").replace("", None)
    of_cost = unit.str.starts_with("$")
    numbers = table.select("run_id", "name", "quality", "latency_ms", "cost")
    rows = decision.excluded().drop("row").join(numbers, on="run_id", how="left", maintain_order="left")
    rows = rows.with_columns(
        by=pl.when(of_cost).then(pl.col("by") * said.factor).otherwise("by"),
        unit=pl.when(of_cost).then(unit.str.replace("1k", said.per)).otherwise(unit),
    )
    return rows.sort("constraint", "by", nulls_last=True, maintain_order=True)


@dataclass(frozen=True)
class Front:
    """Size and knee of the frontier of the feasible stacks."""

    size: int  # stacks on it
    knee: str | None  # the stack beyond which more quality costs most; None if the frontier has no bend


def front(table: pl.DataFrame, decision: Decision) -> Front | None:
    """Return the frontier's size and knee, or None if neither cost nor latency is known."""
    compared = {axis.key for axis in decision.compared}
    quality = decision.quality.read(table)
    if np.isnan(quality).all() or len(compared) < 2:
        return None
    # For a measure where lower is better, 1 minus its value is the gain, so that the ideal is 0.
    gain = quality if decision.quality.higher_is_better else 1.0 - quality
    paid = [axis.read(table) for axis in (COST, LATENCY) if axis.key in compared]
    complete = ~np.isnan(np.column_stack([gain, *paid])).any(axis=1)
    if not complete.any():
        return None
    within = np.where(decision.feasible, gain, np.nan)
    bend = knee(paid, within)
    return Front(
        size=int(frontier(table, decision).sum()),
        knee=None if bend is None else str(table["name"][bend]),
    )


def shares(
    table: pl.DataFrame,
    sample: JointSample | None,
    limits: tuple[Constraints, Rule],
    *,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> pl.DataFrame:
    """Resample the queries of a workspace and count how often each stack is best or meets each limit.

    Args:
        table: The stack table, or some of its rows; the shares are among these stacks only.
        sample: From `joint_sample`, with judge noise if it counts; None = no results per query.
        seed: Seed of the resampling; show it beside the shares.

    Returns:
        One row per row of the table, in its order: run_id, `CHANCES` (0..1, null = unknown) and reason (why
        they are null).
    """
    if sample is None:
        unknown = [pl.lit(None, pl.Float64).alias(name) for name in CHANCES]
        reason = pl.lit("no results per query: nothing can be resampled").alias("reason")
        return table.select("run_id", *unknown, reason)
    sampled = chances(sample, *limits, resamples=resamples, seed=seed)
    counted = zip(CHANCES, sampled.counted, strict=True)
    varies = pl.Series(sampled.varies)
    return table.select(
        "run_id",
        *(pl.when(varies).then(pl.Series(share).fill_nan(None)).alias(name) for name, share in counted),
        pl.when(~varies).then(pl.lit("no results per query for this stack")).alias("reason"),
    )


def share_rows(table: pl.DataFrame, decision: Decision, chances: pl.DataFrame) -> pl.DataFrame:
    """Return every stack with its probabilities, the most likely best first.

    Args:
        chances: From `core.views.confidence.hold.shares` for the same rows.

    Returns:
        run_id, name, status, `CHANCES` (0..1, null = unknown), `_NUMBERS` and unknown (why they are null).
    """
    statuses = status_rows(table, decision).select("run_id", "status")
    rows = table.join(chances.rename({"reason": "unknown"}), on="run_id", how="left", maintain_order="left")
    order = ["p_best", "p_frontier", "quality"]
    falling = [True, True, decision.quality.higher_is_better]
    return (
        rows.join(statuses, on="run_id", how="left", maintain_order="left")
        .sort(order, descending=falling, nulls_last=True, maintain_order=True)
        .select("run_id", "name", "status", *CHANCES, *_NUMBERS, "unknown", *_units(table))
    )


def _units(table: pl.DataFrame) -> list[str]:
    """Return the columns that say how costs are written, if the table has them."""
    return [name for name in UNIT if name in table.columns]


def tie_rows(view: View, decision: Decision) -> pl.DataFrame:
    """Return the stacks that tie with the best estimate, the preferred one first.

    Returns:
        One row per stack: run_id, name, `_NUMBERS`, row (in the table), gap_ms and d_quality (minus the best
        estimate's), d_low and d_high (its 95 % interval, query by query; null = unknown) and reading.
    """
    rows, table = list(decision.ties), view.table
    if not rows:
        return table.clear().select("run_id", "name", *_NUMBERS)
    quality = decision.quality.read(table)
    best = rows[int(np.argmax(decision.quality.merit(quality)[rows]))]
    gain, low, high = quality[rows] - quality[best], *np.full((2, len(rows)), np.nan)
    equal = np.zeros(len(rows), dtype=np.bool_)
    if view.paired is not None:
        places = view.paired.places(table["run_id"])
        there = np.flatnonzero(places[rows] >= 0) if places[best] >= 0 else np.zeros(0, dtype=np.intp)
        ours = places[np.array(rows)[there]]
        gain[there], low[there], high[there] = view.paired.differences(ours, int(places[best]))
        equal[there] = view.paired.equal(int(places[best]), ours)
    readings = [
        BEST if row == best else SAME if same else AVERAGE if np.isnan(end) else ALIKE
        for row, same, end in zip(rows, equal, low, strict=True)
    ]
    differences = {"d_quality": gain, "d_low": low, "d_high": high}
    latency = table["latency_ms"][best]
    return table[rows].select(
        *("run_id", "name", *_NUMBERS),
        *_units(table),
        (pl.col("latency_ms") - latency).cast(pl.Float64).alias("gap_ms"),
        *(pl.Series(name, values).fill_nan(None) for name, values in differences.items()),
        pl.Series("row", rows, dtype=pl.Int64),
        pl.Series("reading", readings, dtype=pl.String),
    )
