"""Which stack to choose under an SLA, a budget, a quality floor and a harm cap (metrics.md §9).

1. Keep the rows that meet every limit and are known on every required axis: quality, the limited axes,
   and the one that the rule minimises. A row that lacks a required number but breaks no limit is
   promising: to be measured, not to be shipped. Unknown does not mean 0.
2. Rule "quality": the best estimate ships, or one of those that tie with it (`core.decide.ties`): surely no
   more than the indifference zone worse. "cost" takes the best quality among those within 1 % of the
   cheapest, "latency" among those within the jitter band of the fastest. Best follows the direction of the
   measure: the lowest Harm is the best Harm.
3. A person may take another feasible stack; the decision then names the rule's choice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, get_args

import numpy as np
import polars as pl
from numpy.typing import NDArray

from core.arrays import Floats, Mask, Rows
from core.decide.axes import BESIDE, MOVING, QUALITY, Axis, ExtraLimits, axes
from core.decide.ties import JITTER_MS, PROMPT, Numbers, Paired, best_within, same_results, tied
from core.errors import UnknownNameError
from core.number_format import PER_1K, CostUnit

Rule = Literal["quality", "cost", "latency"]
RULES: tuple[Rule, ...] = get_args(Rule)

REQUIRED = ("run_id", "quality", "latency_ms", "cost")
OPTIONAL = (
    *(name for axis in BESIDE for name in (axis.column, axis.example) if name),
    *(axis.column for axis in MOVING),
    "jitter_ms",
    "cost_noise",
    "cost_per",
    "name",
    *PROMPT,
)
"""Columns of the table that `decide` reads; the optional ones may be absent or null."""

_FINEST = 12  # Maximum number of decimals of an excess


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraints(ExtraLimits):
    """Limits that a stack must meet, None = no limit, and the direction of the quality."""

    sla_ms: float | None = None  # highest latency; ms
    budget: float | None = None  # highest cost; $ per 1,000 queries
    # Worst quality: the lowest, or the highest if lower is better; 0..1
    min_quality: float | None = None
    # Width of the band within which latencies count as equal; ms. None = each stack's own, from the
    # column "jitter_ms", or the paper's if a stack has none.
    jitter_ms: float | None = None
    higher_is_better: bool = True  # the direction of the quality; see `core.metrics.MeasureInfo`
    per_correct: bool = False  # whether the cost is per correct answer
    delta: float = 0.0  # the indifference zone: a difference in quality that does not matter
    costs_said: CostUnit = PER_1K  # how costs are written

    @property
    def axes(self) -> tuple[Axis, ...]:
        """All axes, with quality in its direction."""
        return axes(
            higher_is_better=self.higher_is_better, per_correct=self.per_correct, said=self.costs_said
        )

    def of(self, axis: Axis) -> float | None:
        """Return the limit on an axis, or None."""
        return axis.number(getattr(self, axis.limit))

    def said(self, axis: Axis) -> float | str | None:
        """Return the limit on an axis as it is asked for, or None: the word of a step."""
        return axis.said(self.of(axis))

    def required(self, rule: Rule) -> tuple[Axis, ...]:
        """Return the axes that must be known: quality, the limited ones, the one the rule minimises."""
        return tuple(
            axis for axis in self.axes if axis.key in (QUALITY.key, rule) or self.of(axis) is not None
        )


@dataclass(frozen=True, slots=True)
class Decision:
    """The choice of a rule among the stacks."""

    run_ids: pl.Series  # names of the table's rows
    chosen: int | None  # row of the table, or None if nothing is feasible
    # Row that the rule would choose without the chosen one and those with identical results; or None
    runner_up: int | None
    feasible: Mask  # which rows are feasible [n]
    # Index in the list of reasons of the first one that excludes a row [n], −1 = none
    violated: NDArray[np.int8]
    # By how much each row breaks the limit of each axis, in its unit [n, axes]; 0 if it does not
    over: Floats
    # Rows from which the rule takes the preferred one, which is the first
    ties: tuple[int, ...]
    note: str  # how a tie was broken, in words; "" if there was none
    axes: tuple[Axis, ...]  # all axes, with quality in its direction
    compared: tuple[Axis, ...]  # those that frontiers compare, if anything is known there
    required: tuple[Axis, ...]  # those whose numbers must be known
    lacking: tuple[Axis, ...]  # the required axes on which no stack has a number
    rule: Rule
    delta: float  # the indifference zone
    instead_of: int | None  # the rule's choice, if a person took the chosen one; None = the rule chose it
    unknown: Mask  # [n, required], whether the number is unknown
    examples: Mapping[str, pl.Series]  # axis key → an example of what breaks its limit, by row
    band: Floats  # band within which the latency of each row counts as equal [n]; ms

    @property
    def jitter_ms(self) -> float:
        """The band of the chosen row, otherwise of the first; ms."""
        return float(self.band[self.chosen or 0]) if len(self.band) else JITTER_MS

    @property
    def quality(self) -> Axis:
        """The quality axis, in its direction."""
        return next(axis for axis in self.axes if axis.key == QUALITY.key)

    @property
    def tied(self) -> tuple[int, ...]:
        """The other rows of `ties`."""
        return tuple(row for row in self.ties if row != self.chosen)

    @property
    def by(self) -> Floats:
        """By how much the first limit is broken [n]; NaN if none is, or the value is unknown."""
        first = np.where(self.over > 0, self.over, np.nan)
        place = self.violated.astype(np.intp) - 1
        limited = (place >= 0) & (place < len(self.axes))
        return np.where(limited, first[np.arange(len(first)), np.where(limited, place, 0)], np.nan)

    @property
    def promising(self) -> Mask:
        """Rows that break no known limit, but lack a required number [n]."""
        first = 1 + len(self.axes)  # after the unknown quality and the limits
        return np.asarray(self.violated >= first)

    def excluded(self) -> pl.DataFrame:
        """Return every excluded row.

        The columns are row, run_id, its first constraint, by and unit, and every reason in words.
        """
        rows, first = np.flatnonzero(self.violated >= 0), _reasons(self.axes)
        frame = pl.DataFrame(
            {
                "row": rows,
                "run_id": self.run_ids.gather(rows),
                "constraint": pl.Series(self.violated[rows], dtype=pl.Int8),
                "by": pl.Series(self.by[rows], dtype=pl.Float64).fill_nan(None),
                "reason": self.reasons(rows),
            }
        )
        return frame.select(
            "row",
            "run_id",
            _lookup([name for name, _ in first]),
            "by",
            _lookup([axis.unit for _, axis in first]).alias("unit"),
            "reason",
        )

    def reasons(self, rows: NDArray[np.intp]) -> pl.Series:
        """Return every reason of some excluded rows, in words."""
        amounts = {axis: over[rows] for axis, over in zip(self.axes, self.over.T, strict=True)}
        broken = {axis: over for axis, over in amounts.items() if over.any()}
        frame = pl.DataFrame(
            {
                **{axis.key: over for axis, over in broken.items()},
                **{axis.example: self.examples[axis.key].gather(rows) for axis in broken if axis.example},
                **{axis.unknown: self.unknown[rows, place] for place, axis in enumerate(self.required)},
            }
        )
        return frame.select(reason=_in_words(tuple(broken), self.required, self.quality)).to_series()


def _reasons(among: tuple[Axis, ...]) -> list[tuple[str, Axis]]:
    """Return the name and the axis of every reason for exclusion, in order of precedence."""
    rest = [axis for axis in among if axis.key != QUALITY.key]
    quality = next(axis for axis in among if axis.key == QUALITY.key)
    return [
        (quality.unknown, quality),
        *((axis.limit, axis) for axis in among),
        *((axis.unknown, axis) for axis in rest),
    ]


def _lookup(words: list[str]) -> pl.Expr:
    return pl.col("constraint").replace_strict(dict(enumerate(words)), return_dtype=pl.String)


@lru_cache(64)
def _in_words(broken: tuple[Axis, ...], required: tuple[Axis, ...], quality: Axis) -> pl.Expr:
    """Return an unknown quality, or every broken limit (of any row), or the unknown numbers."""
    amounts = [pl.when(pl.col(axis.key) > 0).then(_beyond(axis)) for axis in broken]
    lacking = [pl.when(pl.col(axis.unknown)).then(pl.lit(axis.unknown)) for axis in required]
    words: Any = pl.when(pl.col(quality.unknown)).then(pl.lit(quality.unknown))
    if broken:
        words = words.when(pl.any_horizontal(pl.col(axis.key) > 0 for axis in broken)).then(_joined(amounts))
    return words.otherwise(_joined(lacking))  # type: ignore[no-any-return]


def _example(axis: Axis) -> list[pl.Expr]:
    """Return an example of what breaks the limit, if the axis has any: the id of a query."""
    return [pl.format(" (query {})", axis.example).fill_null("")] if axis.example else []


def _joined(words: list[Any]) -> pl.Expr:
    return pl.concat_str(words, separator=" and ", ignore_nulls=True)


def _beyond(axis: Axis) -> pl.Expr:
    """Return the excess with its unit: ``20 ms over the SLA``; none is said of a step."""
    if axis.levels:
        return pl.lit(axis.beyond)
    amount = pl.format(axis.pattern, _digits(axis.factor * pl.col(axis.key), axis))
    return pl.concat_str(amount, pl.lit(f" {axis.beyond}"), *_example(axis))


def _digits(by: pl.Expr, axis: Axis) -> pl.Expr:
    """Format an amount.

    It has the axis's fixed decimals from its `least` on, and its significant digits below.
    """
    small = _fixed(by.round_sig_figs(axis.digits), _FINEST).str.strip_chars_end("0").str.strip_chars_end(".")
    exact = (by < axis.least) & small.str.contains(rf"\.\d{{{axis.decimals}}}")
    return pl.when(exact).then(small).otherwise(_fixed(by, axis.decimals))


def _fixed(by: pl.Expr, decimals: int) -> pl.Expr:
    if decimals == 0:
        return by.round().cast(pl.Int64).cast(pl.String)
    scale = 10**decimals
    scaled = (by * scale).round().cast(pl.Int64)
    fraction = (scaled % scale).cast(pl.String).str.zfill(decimals)
    return pl.format("{}.{}", scaled // scale, fraction)


def decide(
    table: pl.DataFrame,
    constraints: Constraints,
    rule: Rule = "quality",
    *,
    paired: Paired | None = None,
    take: str | None = None,
) -> Decision:
    """Apply a rule to a table of stacks.

    Args:
        table: One row per stack of the workspace; columns `REQUIRED` and, if known, `OPTIONAL`. Quality
            and harm 0..1, latency_ms in ms, cost in $ per 1,000 queries; null or NaN = unknown.
        constraints: The limits on a stack, and the direction of the quality.
        rule: "quality" takes the best quality, "cost" and "latency" minimise theirs.
        paired: Quality per query of the stacks for which it is known; without it, averages are compared.
        take: run_id of the stack that a person takes in place of the rule's; ignored if it isn't
            feasible.

    Returns:
        The decision; rows are positions in the table.

    Raises:
        UnknownNameError: If a required column or the rule does not exist.
    """
    _checked(table, rule)
    values = {axis.key: axis.read(table) for axis in constraints.axes}
    required = constraints.required(rule)
    over, violated = _violations(table, values, constraints, required)
    feasible = violated < 0
    quality = next(axis for axis in constraints.axes if axis.key == QUALITY.key)
    numbers = Numbers.of(table, quality, constraints.jitter_ms, paired, delta=constraints.delta)
    ties, note = _preferred(numbers, np.flatnonzero(feasible), rule)
    first = int(ties[0]) if len(ties) else None
    taken = _taken(table, feasible, take)
    chosen = first if taken is None else taken
    runner_up = None
    if chosen is not None:
        others = np.flatnonzero(feasible & (np.arange(len(feasible)) != chosen))
        twins = same_results(numbers, chosen, others)  # no rivals: cost and time alone decide between them
        others = others if twins.all() else others[~twins]
        second, _ = _preferred(numbers, others, rule)
        runner_up = int(second[0]) if len(second) else None
    unknown = {axis.key: np.isnan(values[axis.key]) for axis in constraints.axes}
    return Decision(
        run_ids=table["run_id"],
        chosen=chosen,
        runner_up=runner_up,
        feasible=feasible,
        violated=violated,
        over=over,
        ties=tuple(int(row) for row in ties),
        note=note,
        axes=constraints.axes,
        compared=tuple(
            axis
            for axis in constraints.axes
            if axis.compared and (axis == quality or not unknown[axis.key].all())
        ),
        required=required,
        lacking=tuple(axis for axis in required if unknown[axis.key].all()),
        rule=rule,
        delta=constraints.delta,
        instead_of=None if chosen == first else first,
        unknown=np.column_stack([unknown[axis.key] for axis in required]),
        examples={axis.key: _examples(table, axis) for axis in constraints.axes if axis.example},
        band=numbers.band,
    )


def _examples(table: pl.DataFrame, axis: Axis) -> pl.Series:
    """Return an example of what breaks the limit of an axis, by row; null where none is known."""
    nothing = pl.Series(axis.example, [None] * table.height, dtype=pl.String)
    return table.get_column(axis.example, default=nothing)


def _checked(table: pl.DataFrame, rule: Rule) -> None:
    if rule not in RULES:
        raise UnknownNameError("rule", rule, RULES)
    for name in REQUIRED:
        if name not in table.columns:
            raise UnknownNameError("column", name, table.columns)


def _taken(table: pl.DataFrame, feasible: Mask, take: str | None) -> int | None:
    """Return the feasible row that a person takes, or None."""
    if take is None:
        return None
    rows = np.flatnonzero(feasible & (table["run_id"] == take).to_numpy())
    return int(rows[0]) if len(rows) else None


def best(
    table: pl.DataFrame, constraints: Constraints, rule: Rule = "quality", *, paired: Paired | None = None
) -> int | None:
    """Return the row that `decide` chooses; None if nothing is left.

    Arguments and errors are those of `decide`, but it does not look for the runner-up.
    """
    left = np.flatnonzero(feasible(table, constraints, rule))
    quality = next(axis for axis in constraints.axes if axis.key == QUALITY.key)
    numbers = Numbers.of(table, quality, constraints.jitter_ms, paired, delta=constraints.delta)
    ties, _ = _preferred(numbers, left, rule)
    return int(ties[0]) if len(ties) else None


def feasible(table: pl.DataFrame, constraints: Constraints, rule: Rule = "quality") -> Mask:
    """Return the rows that a decision keeps [n].

    Arguments and errors are those of `decide`, but it does not look for the best.
    """
    _checked(table, rule)
    required = constraints.required(rule)
    values = {axis.key: axis.read(table) for axis in required}
    return np.asarray(_violations(table, values, constraints, required)[1] < 0)


def _violations(
    table: pl.DataFrame, values: dict[str, Floats], limits: Constraints, required: tuple[Axis, ...]
) -> tuple[Floats, NDArray[np.int8]]:
    """Return by how much each row breaks each limit [n, axes], and the index of its first reason [n]."""
    among = limits.axes
    over = np.zeros((table.height, len(among)))
    hits = {axis.unknown: np.isnan(values[axis.key]) for axis in required}
    for place, axis in enumerate(among):
        limit = limits.of(axis)
        if limit is not None:
            # More merit is better: a value below the limit's breaks it
            excess = axis.merit(np.asarray(limit)) - axis.merit(axis.at_least(table))
            over[:, place] = np.where(excess > 0, excess, 0.0)
            hits[axis.limit] = over[:, place] > 0
    violated = np.full(table.height, -1, dtype=np.int8)
    for place, (name, _) in reversed([*enumerate(_reasons(among))]):  # the first reason is set last
        if name in hits:
            violated[hits[name]] = place
    return over, violated


def _preferred(values: Numbers, rows: Rows, rule: Rule) -> tuple[Rows, str]:
    """Return the rows from which the rule takes the first, in order, and how a tie was broken."""
    if not len(rows):
        return rows, ""
    if rule == "quality":
        return tied(values, rows)
    return best_within(values, rows, rule), ""
