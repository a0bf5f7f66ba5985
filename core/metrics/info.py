"""What a measure declares about itself, and the arrays it is given."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.errors import InputError

Grades = NDArray[np.int8]
"""Grade at each rank: 1..5 judged, 0 unjudged, -1 empty slot. Shape [..., queries, depth]."""
Counts = NDArray[np.integer[Any]]
"""How many passages have grade 1..5. Shape [..., queries, 5]."""
Tally = NDArray[np.int16]
"""A running number of passages at every K (no cutoff comes near 32,767)."""
Scores = NDArray[np.float64]
"""A value per query at every K = 1..depth, NaN where it does not apply. Shape [..., queries, depth]."""

Value = float | int | str
Values = Mapping[str, Value]


@dataclass(frozen=True, slots=True, kw_only=True)
class Param:
    """One parameter of a measure, declared as data.

    Attributes:
        name: As written in a measure, for example "alpha".
        default: Its value when not written; the type of the default is the type of the parameter.
        text: What it does, in one line.
        low: Smallest number allowed (inclusive).
        high: Largest number allowed (inclusive).
        choices: The words allowed, for a parameter that is a word.
    """

    name: str
    default: Value
    text: str
    low: float = -math.inf
    high: float = math.inf
    choices: tuple[str, ...] = ()

    @property
    def range(self) -> str:
        """The allowed values in words."""
        return " | ".join(self.choices) if self.choices else f"{show(self.low)} to {show(self.high)}"

    def read(self, value: Value, where: str = "") -> Value:
        """Check a value, given as text or already typed, and give it the declared type.

        Raises:
            InputError: If it is not of the type, or not in the range, that is declared.
        """
        refused = InputError(
            f"{self.name}={value} is not allowed.",
            where=where,
            do=f"Use {self.range} (default {show(self.default)}).",
        )
        if isinstance(self.default, str):
            if value not in self.choices:
                raise refused
            return value
        try:
            number = float(value)
        except ValueError:
            raise refused from None
        whole = isinstance(self.default, int)
        if not (math.isfinite(number) and self.low <= number <= self.high) or (whole and number % 1):
            raise refused
        return int(number) if whole else number


def show(value: Value) -> str:
    """Write a parameter's value as short as it reads back: 1.0 as "1", 0.25 as "0.25"."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureInfo:
    """One measure: what it is called, how it is defined, and the function that computes it.

    Attributes:
        name: Canonical name without cutoff, for example "RA-nWG".
        text: One line of help.
        formula: The definition, as text.
        section: Where it is defined.
        score: Computes the value at every K.
        na: Why a query can be left out of the mean; empty when the measure always applies.
        ceiling: Computes the best value at every K that an ordering of the candidate pool can reach; None
            when that makes no sense for the measure.
        params: The declared parameters.
        higher_is_better: Which direction is good.
        unit: "share" for a number between 0 and 1.
        low: Smallest possible value.
        high: Largest possible value.
        needs_pool: Whether the candidate pool's grades are needed.
    """

    name: str
    text: str
    formula: str
    section: str
    score: Callable[[Inputs, Values], Scores]
    na: str = ""
    ceiling: Callable[[Inputs, Values], Scores] | None = None
    params: tuple[Param, ...] = ()
    higher_is_better: bool = True
    unit: str = "share"
    low: float = 0.0
    high: float = 1.0
    needs_pool: bool = False

    def param(self, name: str) -> Param | None:
        """The declared parameter of that name, or None."""
        return next((param for param in self.params if param.name == name), None)


class Inputs:
    """The grades to score; what several measures share is computed once and not written to again.

    Args:
        grades: int8 [..., Q, D].
        pool_counts: Integers [Q, 5], the golden set's counts per query.
        pool_grades: int8 [..., Q, P], grades of each candidate pool; needed by PROC only.

    Raises:
        ValueError: If the shapes do not belong together.
    """

    def __init__(self, grades: Grades, pool_counts: Counts, pool_grades: Grades | None = None) -> None:
        queries = grades.shape[-2] if grades.ndim >= 2 else -1
        if pool_counts.shape != (queries, 5):
            raise ValueError(
                f"grades {grades.shape} need pool_counts ({queries}, 5), not {pool_counts.shape}"
            )
        if pool_grades is not None and pool_grades.shape[:-1] != grades.shape[:-1]:
            raise ValueError(f"pool_grades {pool_grades.shape} do not match grades {grades.shape}")
        self.grades = grades
        self.pool_counts = pool_counts
        self.pool_grades = pool_grades
        self.depth = grades.shape[-1]
        self.cutoffs = np.arange(1, self.depth + 1, dtype=np.float64)
        self._kept: dict[Hashable, NDArray[Any]] = {}

    def once(self, key: Hashable, make: Callable[[], NDArray[Any]]) -> NDArray[Any]:
        """The array made under this key, made now if it was not yet."""
        if key not in self._kept:
            self._kept[key] = make()
        return self._kept[key]

    def value(self, info: MeasureInfo, values: Values, out: Scores | None = None) -> Scores:
        """A measure's value at every K, put into `out` if given (and kept there, which spares memory)."""
        key = (info.name, *values.items())
        made = self.once(key, lambda: info.score(self, values))
        if out is not None:
            out[...] = made
            self._kept[key] = made = out
        return made

    def found(self, low: int, high: int = 5) -> Tally:
        """How many of Top(K) have a grade from `low` to `high` (0 = unjudged), at every K."""
        return self.once(("found", low, high), lambda: self._tally(low, high))

    def _tally(self, low: int, high: int) -> Tally:
        within = self.grades >= low
        if high < 5:
            within &= self.grades <= high
        return np.cumsum(within.view(np.int8), axis=-1, dtype=np.int16)

    def candidate_counts(self) -> Counts:
        """Grade counts [..., Q, 5] of each candidate pool.

        Raises:
            InputError: If no candidate pools were given.
        """
        if self.pool_grades is None:
            raise InputError("This measure needs the candidate pool of the run.", do="Give its pool stage.")
        pool_grades = self.pool_grades
        return self.once("candidates", lambda: count_grades(pool_grades))

    def reachable(self, low: int) -> Tally:
        """How many passages with at least grade `low` the best K candidates have, at every K.

        Raises:
            InputError: If no candidate pools were given.
        """
        return self.once(("reachable", low), lambda: self._reachable(low))

    def _reachable(self, low: int) -> Tally:
        present = self.candidate_counts()[..., low - 1 :].sum(axis=-1)
        return np.minimum(
            np.arange(1, self.depth + 1, dtype=np.int16), clipped(present, self.depth)[..., None]
        )

    def part(self, queries: slice) -> Inputs:
        """The same for some of the queries."""
        pools = None if self.pool_grades is None else self.pool_grades[..., queries, :]
        return Inputs(self.grades[..., queries, :], self.pool_counts[queries], pools)


def count_grades(grades: Grades) -> Counts:
    """Count grades 1..5 along the last axis: int8 [..., P] to int64 [..., 5]."""
    rows = math.prod(grades.shape[:-1])
    # One bincount over (row, grade) is faster than five comparisons with a sum along an axis.
    keys = np.arange(rows, dtype=np.int64)[:, None] * 7 + 1 + grades.reshape(rows, grades.shape[-1])
    counts = np.bincount(keys.ravel(), minlength=rows * 7).reshape(*grades.shape[:-1], 7)
    return counts[..., 2:]


def clipped(counts: Counts, depth: int) -> Tally:
    """Counts of which no more than `depth` matter, small enough for fast comparison with cutoffs."""
    return np.minimum(counts, depth).astype(np.int16)


def or_nan(values: NDArray[Any]) -> Scores:
    """The values as divisors: zero becomes NaN, so that a quotient by it is NaN (not applicable)."""
    divisors = values.astype(np.float64)
    divisors[divisors == 0] = np.nan
    return divisors
