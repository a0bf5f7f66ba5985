"""The limits that can be set on a workspace: their ranges on the scale of the charts, and their words."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl

from core.analysis.workspace.beside import measure_of
from core.analysis.workspace.scope import Latency, Quality
from core.decide.axes import COST, LATENCY, QUALITY, Axis, Floats, axes
from core.number_format import MOST_DOLLARS, CostUnit, dollars_per_1k
from core.tables import remembered
from core.views.text import cost_unit
from core.views.theme import logarithmic

NO_LIMIT = "no limit"

LARGEST = MOST_DOLLARS
"""No limit lies beyond it."""

_STEPS = 200

_FINEST = 0.01
"""Step of a share, and of a quality that counts."""


@dataclass(frozen=True)
class Limit:
    """A limit that can be set to any number from 0 on, or left away."""

    key: str  # setting of the address that holds it
    label: str  # its name with the unit; may hold the name of a measure, which is a user's text
    help: str  # what it does
    bottom: float  # where its slider begins
    top: float  # where its slider ends
    steps: int  # how many steps the slider has
    log: bool  # whether the slider is logarithmic, as the axis of the chart is
    # Whether it is a most, so that the slider's upper end stands for no limit; else its lower end
    upper: bool
    share: bool  # whether it lies between 0 and 1
    counts: bool  # whether it may be below 0, as a quality that is no share
    digits: int  # decimals that its number is shown with at least
    prefix: str  # what stands before its number
    suffix: str  # what stands behind its number
    factor: int  # by which its number is multiplied where it is shown and typed: 1,000 of dollars per million
    money: bool  # whether it is one of dollars, which an address says with their unit

    @property
    def loose(self) -> float:
        """The end of the slider that stands for no limit."""
        return self.top if self.upper else self.bottom

    def taken(self, value: object) -> float | None:
        """Return a limit that came from a field, a link or a browser; None where it is none.

        Links of earlier releases name the loose end where there is no limit.
        """
        if self.money and isinstance(value, str):
            value = dollars_per_1k(value)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            return None
        beyond = self.share and (value >= 1 if self.upper else value <= 0)
        return None if value == self.loose or beyond else float(value)

    def held(self, value: float | None) -> float | str | None:
        """Return how the address holds a limit: dollars with their unit, ``0.2per1M``."""
        return value if value is None or not self.money else CostUnit(self.factor > 1).typed(value)

    def allows(self, value: float | None) -> bool:
        """Tell whether its field takes a number; it always takes None."""
        least, most = -LARGEST if self.counts else 0.0, 1.0 if self.share else LARGEST
        return value is None or least <= value <= most

    def spec(self) -> dict[str, Any]:
        """Return what a browser draws it from."""
        return asdict(self) | {"loose": self.loose}


def per_correct(table: pl.DataFrame) -> bool:
    """Tell whether the costs of a stack table are those of correct answers."""
    return "cost_per" in table.columns and (table["cost_per"] == "correct answer").any()


@remembered
def limits(
    table: pl.DataFrame, quality: Quality, latency: Latency, asked: Collection[str] = ()
) -> list[Limit]:
    """Return the limits that make sense for a workspace.

    Args:
        asked: Keys of those that are set, so that nothing is decided as if they were not.

    Returns:
        One per axis of `core.decide.axes`; that of quality always, the others where numbers are known.
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
    if axis.key != QUALITY.key and (not len(numbers) or (not share and numbers.max() <= 0)):
        return None
    log = not share and logarithmic(numbers)
    counts = axis.like_quality and not quality.is_share
    if share:
        bottom, top = _around(numbers, counts=counts)
    else:
        bottom = _round(numbers.min(), up=False) if log else 0.0
        top = _round(numbers.max(), up=True)
    said = cost_unit(table)
    names = {
        LATENCY.key: f"SLA, {latency.percentile} (ms)",
        COST.key: f"Budget ({axis.unit.replace('1k', said.many)})",
    }
    word = f"{axis.word[:1].upper()}{axis.word[1:]}"
    of = quality.name if axis.key == QUALITY.key else measure_of(table, axis)
    prefix, _, suffix = axis.pattern.partition("{}")
    return Limit(
        key=axis.limit,
        label=names.get(axis.key, axis.asks),
        help=f"Stacks {axis.beyond} are excluded.{f' {word} is {of}.' if share else ''}",
        bottom=bottom,
        top=top,
        steps=round((top - bottom) / _FINEST) if share else _STEPS,
        log=log,
        upper=not axis.higher_is_better,
        share=share and not counts,
        counts=counts,
        digits=0 if axis.key == LATENCY.key else 2,
        prefix=prefix,
        suffix=suffix,
        factor=axis.factor,
        money=axis.key == COST.key,
    )


def _around(numbers: Floats, *, counts: bool) -> tuple[float, float]:
    """Return ends of a slider around the known qualities: twentieths of a share, tenths of what counts."""
    if not len(numbers):
        return 0.0, 1.0
    parts = 10 if counts else 20
    bottom, top = math.floor(numbers.min() * parts + 1e-9), math.ceil(numbers.max() * parts - 1e-9)
    return bottom / parts, max(top, bottom + 1) / parts


_ROUND = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10)


def _round(value: float, *, up: bool) -> float:
    """Return the nearest round number at or above a number, or at or below it."""
    scale = 10.0 ** math.floor(math.log10(value))
    steps = [float(f"{scale * step:.3g}") for step in _ROUND]  # without what multiplying adds
    return (
        min(step for step in steps if step >= value) if up else max(step for step in steps if step <= value)
    )
