"""The limits that a workspace can have: their ranges on the scale of the charts, and their words."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl

from core.analysis.workspace.figures.beside import measure_of, usual_limit
from core.analysis.workspace.scope import Latency, Quality
from core.arrays import Floats
from core.decide.axes import COST, LATENCY, QUALITY, Axis, axes
from core.number_format import MOST_DOLLARS, CostUnit, dollars_per_1k
from core.tables import remembered
from core.views.text import cost_unit
from core.views.theme import logarithmic

NO_LIMIT = "no limit"

LARGEST = MOST_DOLLARS
"""The largest value that a limit can have."""

_STEPS = 200
_LEAST = 1e-6
"""End of a slider whose numbers are all 0."""

_FINEST = 0.01
"""Step of a share, and of a quality that counts."""
_ROUND = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10)


@dataclass(frozen=True)
class Limit:
    """A limit that can be any number from 0 on, or unset."""

    key: str  # its setting in the URL
    label: str  # its name with the unit; may contain the name of a measure, which is user text
    help: str  # its effect
    bottom: float  # start of its slider
    top: float  # end of its slider
    steps: int  # number of the slider's steps
    log: bool  # whether the slider is logarithmic, like the axis of the chart
    # Whether it is an upper limit, so that the slider's upper end means no limit; otherwise its lower end
    upper: bool
    share: bool  # whether it is between 0 and 1
    counts: bool  # whether it may be below 0, like a quality that isn't a share
    digits: int  # minimum decimals of its number
    prefix: str  # text before its number
    suffix: str  # text after its number
    factor: int  # factor of its number on screen and in its field: 1,000 for dollars per million
    money: bool  # whether it is in dollars, whose unit is part of the URL
    levels: tuple[str, ...] = ()  # the words of its numbers, if they are places of a list

    @property
    def loose(self) -> float:
        """The end of the slider that means no limit."""
        return self.top if self.upper else self.bottom

    def taken(self, value: object) -> float | None:
        """Return a limit from a field, a link or a browser, or None if it isn't one.

        Links of earlier releases hold the loose end if there is no limit.
        """
        if self.money and isinstance(value, str):
            value = dollars_per_1k(value)
        if self.levels and isinstance(value, str):
            value = float(self.levels.index(value)) if value in self.levels else None
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            return None
        beyond = self.share and (value >= 1 if self.upper else value <= 0)
        return None if value == self.loose or beyond else float(value)

    def held(self, value: float | None) -> float | str | None:
        """Return a limit in its URL form: dollars with their unit, ``0.2per1M``."""
        if value is None:
            return None
        if self.levels:
            return self.levels[round(value)]
        return CostUnit(self.factor > 1).typed(value) if self.money else value

    def allows(self, value: float | None) -> bool:
        """Return whether its field accepts a number; it always accepts None."""
        least, most = -LARGEST if self.counts else 0.0, 1.0 if self.share else LARGEST
        if self.levels and value is not None and value not in range(len(self.levels)):
            return False
        return value is None or least <= value <= most

    def spec(self) -> dict[str, Any]:
        """Return the description that a browser draws it from."""
        return asdict(self) | {"loose": self.loose}


def per_correct(table: pl.DataFrame) -> bool:
    """Return whether the costs of a stack table are per correct answer."""
    return "cost_per" in table.columns and (table["cost_per"] == "correct answer").any()


@remembered
def limits(
    table: pl.DataFrame, quality: Quality, latency: Latency, asked: Collection[str] = ()
) -> list[Limit]:
    """Return the limits applicable to a workspace.

    Args:
        asked: Keys of limits already set, which are always included.

    Returns:
        One per axis of `core.decide.axes`; quality always, the others if numbers are known.
    """
    up, costed = quality.higher_is_better, per_correct(table)
    among = axes(higher_is_better=up, per_correct=costed, said=cost_unit(table))
    offered = (_limit(axis, table, quality, latency, set_=axis.limit in asked) for axis in among)
    return [limit for limit in offered if limit is not None]


def _limit(
    axis: Axis, table: pl.DataFrame, quality: Quality, latency: Latency, *, set_: bool
) -> Limit | None:
    numbers = axis.read(table)
    numbers = numbers[~np.isnan(numbers)]
    if set_ and not len(numbers):
        numbers = np.ones(1)
    share = not axis.unit
    if axis.key != QUALITY.key and (not len(numbers) or (not share and numbers.max() <= 0)) and not set_:
        return None
    log = not share and not axis.levels and logarithmic(numbers)
    counts = axis.like_quality and not quality.is_share
    if share:
        bottom, top = _around(numbers, counts=counts)
    elif axis.levels:
        bottom, top = 0.0, float(len(axis.levels))  # beyond the last level there is no limit
    else:
        bottom = _round(numbers.min(), up=False) if log else 0.0
        top = _round(max(numbers.max(), _LEAST), up=True)
    said = cost_unit(table)
    names = {
        LATENCY.key: f"SLA, {latency.percentile} (ms)",
        COST.key: f"Budget ({axis.unit.replace('1k', said.per)})",
    }
    word = f"{axis.word[:1].upper()}{axis.word[1:]}"
    of = quality.name if axis.key == QUALITY.key else measure_of(table, axis)
    usual = usual_limit(table, axis)
    prefix, _, suffix = axis.pattern.partition("{}")
    return Limit(
        key=axis.limit,
        label=names.get(axis.key, axis.asks) + ("" if usual is None else f" ({usual:g} unless set)"),
        help=f"Stacks {axis.beyond} are excluded.{f' {word} is {of}.' if share else ''}",
        bottom=bottom,
        top=top,
        steps=round((top - bottom) / _FINEST) if share else len(axis.levels) or _STEPS,
        log=log,
        upper=not axis.higher_is_better,
        share=share and not counts,
        counts=counts,
        digits=0 if axis.key == LATENCY.key else 2,
        prefix=prefix,
        suffix=suffix,
        factor=axis.factor,
        money=axis.key == COST.key,
        levels=axis.levels,
    )


def _around(numbers: Floats, *, counts: bool) -> tuple[float, float]:
    """Return slider ends around the known qualities: twentieths of a share, tenths of a count."""
    if not len(numbers):
        return 0.0, 1.0
    parts = 10 if counts else 20
    bottom, top = math.floor(numbers.min() * parts + 1e-9), math.ceil(numbers.max() * parts - 1e-9)
    return bottom / parts, max(top, bottom + 1) / parts


def _round(value: float, *, up: bool) -> float:
    """Return the nearest round number at or above a number, or at or below it."""
    scale = 10.0 ** math.floor(math.log10(value))
    steps = [float(f"{scale * step:.3g}") for step in _ROUND]  # without floating-point residue
    return (
        min(step for step in steps if step >= value) if up else max(step for step in steps if step <= value)
    )
