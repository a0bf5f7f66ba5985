"""What a measure declares about itself, and the arrays it is given."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.errors import InputError

Grades = NDArray[np.int8]
"""Grade at each rank: 1..5 judged, 0 unjudged, -1 empty slot. Shape [..., queries, depth]."""
Counts = NDArray[np.integer[Any]]
"""How many passages have grade 1..5. Shape [..., queries, 5]."""
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


class Inputs:
    """The grades to score, and the counts that several measures share (each is computed once, on demand).

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
        self._found: dict[int, Scores] = {}
        self._candidates: Counts | None = None

    def found(self, grade: int) -> Scores:
        """How many of Top(K) have at least `grade` (1..5), at every K. Shared: do not write to it."""
        if grade not in self._found:
            self._found[grade] = running_count(self.grades >= grade)
        return self._found[grade]

    def candidate_counts(self) -> Counts:
        """Grade counts [..., Q, 5] of each candidate pool.

        Raises:
            InputError: If no candidate pools were given.
        """
        if self._candidates is None:
            if self.pool_grades is None:
                raise InputError(
                    "This measure needs the candidate pool of the run.", do="Give its pool stage."
                )
            self._candidates = count_grades(self.pool_grades)
        return self._candidates


def running_count(mask: NDArray[np.bool_]) -> Scores:
    """Number of true values among the first K, at every K."""
    return np.cumsum(mask, axis=-1, dtype=np.float64)


def count_grades(grades: Grades) -> Counts:
    """Count grades 1..5 along the last axis: int8 [..., P] to int64 [..., 5]."""
    rows = math.prod(grades.shape[:-1])
    # One bincount over (row, grade) is several times faster than five comparisons with a sum along an axis.
    keys = np.arange(rows, dtype=np.int64)[:, None] * 7 + 1 + grades.reshape(rows, grades.shape[-1])
    counts = np.bincount(keys.ravel(), minlength=rows * 7).reshape(*grades.shape[:-1], 7)
    return counts[..., 2:]


def or_nan(values: NDArray[Any]) -> Scores:
    """The values as divisors: zero becomes NaN, so that a quotient by it is NaN (not applicable)."""
    divisors = values.astype(np.float64)
    divisors[divisors == 0] = np.nan
    return divisors


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
        ceiling: Best value at every K that an ordering of the candidates with the given counts can reach;
            None when the notion makes no sense for the measure.
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
    ceiling: Callable[[Counts, Inputs, Values], Scores] | None = None
    params: tuple[Param, ...] = ()
    higher_is_better: bool = True
    unit: str = "share"
    low: float = 0.0
    high: float = 1.0
    needs_pool: bool = False

    def param(self, name: str) -> Param | None:
        """The declared parameter of that name, or None."""
        return next((param for param in self.params if param.name == name), None)
