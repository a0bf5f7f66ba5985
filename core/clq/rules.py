"""Which stack to choose under an SLA, a budget and a quality floor (CLQ paper §3.3; metrics.md §9).

1. Keep the rows that meet every constraint. A row with an unknown value on an axis that a constraint or the
   rule needs is excluded: unknown is not 0.
2. Keep the rows that the rule cannot tell from its best: all of them for "quality", those within the jitter
   band of the fastest for "latency", those as cheap as the cheapest for "cost". The best of these by quality
   is the reference.
3. Rows within the jitter band and within the quality interval of the reference are ties: the smaller prompt
   wins (fewer candidates, then shorter chunks), then the lower cost, latency, then the better quality.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from core.errors import UnknownNameError

Rule = Literal["quality", "cost", "latency"]
Floats = NDArray[np.float64]

JITTER_MS = 75.0
"""Latency differences under this are noise (CLQ paper §3.2.2)."""

REQUIRED = ("run_id", "quality", "latency_ms", "cost")
OPTIONAL = ("quality_low", "quality_high", "candidates", "chunk_tokens")
"""Columns of the table that `decide` reads; the optional ones may be absent or null."""

_FINEST = 12
"""Decimals that an excess is told with at most."""
_CONSTRAINTS = (
    # name, unit, words of the reason
    ("unknown quality", "", "unknown quality"),
    ("unknown latency", "ms", "unknown latency"),
    ("unknown cost", "$ / 1k", "unknown cost"),
    ("sla", "ms", "{} ms over the SLA"),
    ("budget", "$ / 1k", "${} / 1k over the budget"),
    ("floor", "", "{} under the quality floor"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraints:
    """What a stack must meet; None = not asked for.

    Attributes:
        sla_ms: Highest latency; ms.
        budget: Highest cost; $ per 1,000 queries.
        floor: Lowest quality; 0..1.
        jitter_ms: Width of the band within which latencies are not told apart; ms.
    """

    sla_ms: float | None = None
    budget: float | None = None
    floor: float | None = None
    jitter_ms: float = JITTER_MS


@dataclass(frozen=True, slots=True)
class Decision:
    """What a rule chose.

    Attributes:
        run_ids: Names of the table's rows.
        chosen: Row of the table, or None when nothing is feasible.
        runner_up: Row that the rule would choose were the chosen one absent, or None.
        feasible: Mask [n].
        violated: Position in the list of constraints of the first one that excludes a row [n], −1 = none.
        by: By how much, in the constraint's unit [n]; NaN where nothing is violated or the value is unknown.
        ties: Rows that the rule could not tell from the best (chosen included), in order of preference.
        note: How a tie was broken, in words; empty when there was none.
    """

    run_ids: pl.Series
    chosen: int | None
    runner_up: int | None
    feasible: NDArray[np.bool_]
    violated: NDArray[np.int8]
    by: Floats
    ties: tuple[int, ...]
    note: str

    def excluded(self) -> pl.DataFrame:
        """Every excluded row with its first constraint: row, run_id, constraint, by, unit, reason."""
        rows = np.flatnonzero(self.violated >= 0)
        frame = pl.DataFrame(
            {
                "row": rows,
                "run_id": self.run_ids.gather(rows),
                "constraint": pl.Series(self.violated[rows], dtype=pl.Int8),
                "by": pl.Series(self.by[rows], dtype=pl.Float64).fill_nan(None),
            }
        )
        return frame.with_columns(
            _lookup([name for name, _, _ in _CONSTRAINTS]).alias("constraint"),
            _lookup([unit for _, unit, _ in _CONSTRAINTS]).alias("unit"),
            _reasons(),
        )


def _lookup(words: list[str]) -> pl.Expr:
    return pl.col("constraint").replace_strict(dict(enumerate(words)), return_dtype=pl.String)


def _reasons() -> pl.Expr:
    amounts = {"ms": _amount(0, 10), "$ / 1k": _amount(2, 0.1), "": _amount(3, 0.001)}
    reason = pl.lit(None, dtype=pl.String)
    for position, (_, unit, words) in enumerate(_CONSTRAINTS):
        text = pl.format(words, amounts[unit]) if "{}" in words else pl.lit(words)
        reason = pl.when(pl.col("constraint") == position).then(text).otherwise(reason)
    return reason.alias("reason")


def _amount(decimals: int, least: float) -> pl.Expr:
    """The excess as text: with fixed decimals from `least` on, with two significant digits below it."""
    by = pl.col("by")
    small = _fixed(by.round_sig_figs(2), _FINEST).str.strip_chars_end("0").str.strip_chars_end(".")
    return pl.when(by >= least).then(_fixed(by, decimals)).otherwise(small)


def _fixed(by: pl.Expr, decimals: int) -> pl.Expr:
    """A number as text with a fixed number of decimals."""
    if decimals == 0:
        return by.round().cast(pl.Int64).cast(pl.String)
    scale = 10**decimals
    scaled = (by * scale).round().cast(pl.Int64)
    fraction = (scaled % scale).cast(pl.String).str.zfill(decimals)
    return pl.format("{}.{}", scaled // scale, fraction)


@dataclass(frozen=True, slots=True)
class _Table:
    """The columns of the table as arrays; NaN = unknown."""

    quality: Floats
    low: Floats
    high: Floats
    latency: Floats
    cost: Floats
    candidates: Floats
    chunk_tokens: Floats


def decide(table: pl.DataFrame, constraints: Constraints, rule: Rule = "quality") -> Decision:
    """Apply a rule to a table of stacks.

    Args:
        table: One row per stack; columns `REQUIRED` and, where known, `OPTIONAL`. Quality 0..1, latency_ms in
            ms, cost in $ per 1,000 queries; null or NaN = unknown.
        constraints: What a stack must meet.
        rule: "quality" maximises quality, "cost" and "latency" minimise theirs.

    Returns:
        The decision; rows are positions in the table.

    Raises:
        UnknownNameError: If a required column or the rule does not exist.
    """
    if rule not in ("quality", "cost", "latency"):
        raise UnknownNameError("rule", rule, ("quality", "cost", "latency"))
    values = _arrays(table)
    violated, by = _violations(values, constraints, rule)
    feasible = violated < 0
    ties, note = _preferred(values, np.flatnonzero(feasible), constraints.jitter_ms, rule)
    chosen = int(ties[0]) if len(ties) else None
    runner_up = None
    if chosen is not None:
        others = np.flatnonzero(feasible & (np.arange(len(feasible)) != chosen))
        second, _ = _preferred(values, others, constraints.jitter_ms, rule)
        runner_up = int(second[0]) if len(second) else None
    rows = tuple(int(row) for row in ties)
    return Decision(table["run_id"], chosen, runner_up, feasible, violated, by, rows, note)


def _arrays(table: pl.DataFrame) -> _Table:
    for name in REQUIRED:
        if name not in table.columns:
            raise UnknownNameError("column", name, table.columns)

    def column(name: str) -> Floats:
        if name not in table.columns:
            return np.full(table.height, np.nan)
        return table[name].cast(pl.Float64).fill_null(np.nan).to_numpy()

    return _Table(
        quality=column("quality"),
        low=column("quality_low"),
        high=column("quality_high"),
        latency=column("latency_ms"),
        cost=column("cost"),
        candidates=column("candidates"),
        chunk_tokens=column("chunk_tokens"),
    )


def _violations(values: _Table, limits: Constraints, rule: Rule) -> tuple[NDArray[np.int8], Floats]:
    sla = np.inf if limits.sla_ms is None else limits.sla_ms
    budget = np.inf if limits.budget is None else limits.budget
    floor = -np.inf if limits.floor is None else limits.floor
    needs_latency = limits.sla_ms is not None or rule == "latency"
    needs_cost = limits.budget is not None or rule == "cost"
    unknown = np.full_like(values.quality, np.nan)
    checks = (
        (np.isnan(values.quality), unknown),
        (np.isnan(values.latency) & needs_latency, unknown),
        (np.isnan(values.cost) & needs_cost, unknown),
        (values.latency > sla, values.latency - sla),
        (values.cost > budget, values.cost - budget),
        (values.quality < floor, floor - values.quality),
    )
    hit = [mask for mask, _ in checks]
    violated = np.select(hit, list(range(len(checks))), default=-1).astype(np.int8)
    by = np.select(hit, [amount for _, amount in checks], default=np.nan)
    return violated, by


def _preferred(
    values: _Table, rows: NDArray[np.intp], jitter_ms: float, rule: Rule
) -> tuple[NDArray[np.intp], str]:
    """The rows tied for best, in order of preference, and how the tie was broken."""
    if not len(rows):
        return rows, ""
    within = rows[_near_objective(values, rows, jitter_ms, rule)]
    best = within[np.lexsort((values.cost[within], values.latency[within], -values.quality[within]))[0]]
    gap = np.abs(values.latency[within] - values.latency[best])
    low, high = values.low[best], values.high[best]
    quality = values.quality[within]
    alike = (quality == values.quality[best]) | ((quality >= low) & (quality <= high))
    tied = within[(_within_jitter(gap, jitter_ms) & alike) | (within == best)]
    keys = (
        -values.quality[tied],
        values.latency[tied],
        values.cost[tied],
        values.chunk_tokens[tied],
        values.candidates[tied],
    )
    ordered = tied[np.lexsort(keys)]
    return ordered, _note(values, ordered, int(best), jitter_ms)


def _near_objective(
    values: _Table, rows: NDArray[np.intp], jitter_ms: float, rule: Rule
) -> NDArray[np.bool_]:
    if rule == "latency":
        latency = values.latency[rows]
        return _within_jitter(latency - latency.min(), jitter_ms)
    if rule == "cost":
        cost = values.cost[rows]
        return np.asarray(np.isclose(cost, cost.min(), rtol=1e-9, atol=1e-12))
    return np.ones(len(rows), dtype=np.bool_)


def _within_jitter(gap: Floats, jitter_ms: float) -> NDArray[np.bool_]:
    return np.asarray((gap < jitter_ms) | (gap == 0))


def _note(values: _Table, ordered: NDArray[np.intp], best: int, jitter_ms: float) -> str:
    if len(ordered) < 2:
        return ""
    first, second = ordered[0], ordered[1]
    criteria = (
        ("fewer candidates", values.candidates),
        ("shorter chunks", values.chunk_tokens),
        ("lower cost", values.cost),
        ("lower latency", values.latency),
        ("higher quality", -values.quality),
    )
    by = next((words for words, key in criteria if key[first] < key[second]), "table order")
    interval = (
        "within its interval" if not np.isnan(values.low[best]) else "of equal quality (no interval known)"
    )
    return f"{len(ordered)} stacks tie with the best: within {jitter_ms:g} ms and {interval}. Chosen by {by}."
