"""The declaration of a measure, and counts of sources by the grades of their passages.

Sources of passages serve as facets: which passage repeats a source, and which sets of grades sources have.

The best choice of K passages depends only on how many sources have passages with exactly the grades of a
set, whatever the weights: the best passage of a source has the best grade of its set. A set of grades
is a number from 0 to 31 whose bit g − 1 stands for grade g.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from core.params import Param, ParamValue, show

if TYPE_CHECKING:
    from core.metrics.inputs import Inputs


SETS = 32


def repeated(sources: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Return which slots hold a passage whose source occurs earlier in the ranking."""
    order = np.argsort(sources, axis=0, kind="stable")
    ordered = np.take_along_axis(sources, order, axis=0)
    again = np.zeros(sources.shape, dtype=np.bool_)
    again[1:] = ordered[1:] == ordered[:-1]
    marks = np.empty_like(again)
    np.put_along_axis(marks, order, again, axis=0)
    return marks


def sets_of(grades: NDArray[np.int8], sources: NDArray[np.int32]) -> NDArray[np.int64]:
    """Count the sources by the set of grades of their judged passages.

    Args:
        grades: [..., P]; 1..5, or less for an unjudged or missing passage.
        sources: [..., P]; codes from 0.

    Returns:
        [..., 32]; the empty set is not counted.
    """
    leading = grades.shape[:-1]
    rows = math.prod(leading)
    judged = np.flatnonzero(grades.ravel() > 0)
    if not judged.size:
        return np.zeros((*leading, SETS), dtype=np.int64)
    row = judged // grades.shape[-1]
    bits = np.left_shift(1, grades.ravel()[judged].astype(np.int64) - 1)
    return sets_by_row(row, sources.ravel()[judged], bits, rows).reshape(*leading, SETS)


def sets_by_row(row: NDArray[Any], source: NDArray[Any], bits: NDArray[Any], rows: int) -> NDArray[np.int64]:
    """Count the sources by set of grades, as `sets_of` does, from a list of judged passages.

    Args:
        row: [n], which ranking or query each passage belongs to.
        source: [n], codes from 0.
        bits: [n], 1 << (grade − 1).

    Returns:
        [rows, 32].
    """
    key = row.astype(np.int64) * (int(source.max(initial=0)) + 1) + source
    order = np.argsort(key, kind="stable")
    key = key[order]
    starts = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]])) if key.size else np.arange(0)
    grades = np.bitwise_or.reduceat(bits[order], starts) if key.size else np.arange(0)
    cells = row[order][starts].astype(np.int64) * SETS + grades
    return np.bincount(cells, minlength=rows * SETS).reshape(rows, SETS)


def depths_by_row(
    row: NDArray[Any], source: NDArray[Any], grade: NDArray[Any], rows: int
) -> NDArray[np.int64]:
    """Count the sources with at least a given number of passages of at least a given grade.

    Args:
        row: [n], which ranking or query each judged passage belongs to.
        source: [n], codes from 0.
        grade: [n], 1 to 5.

    Returns:
        [rows, most · 5], most = passages of one source in any row; column (j − 1)·5 + g − 1 counts the
        sources with j passages of grade g or more.
    """
    key = row.astype(np.int64) * (int(source.max(initial=0)) + 1) + source
    _, first, group = np.unique(key, return_index=True, return_inverse=True)
    counts = np.bincount(group * 5 + grade - 1, minlength=5 * len(first)).reshape(-1, 5)
    held = np.cumsum(counts[:, ::-1], axis=1)[:, ::-1]
    most = int(held.max(initial=1))
    depths = np.zeros((rows, most, 5), dtype=np.int64)
    for number in range(1, most + 1):
        np.add.at(depths[:, number - 1], row[first], held >= number)
    return depths.reshape(rows, most * 5)


def depths_of(grades: NDArray[np.int8], sources: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return `depths_by_row` of rankings, pools or golden sets: from [..., P] to [..., most · 5]."""
    rows = math.prod(grades.shape[:-1])
    judged = np.flatnonzero(grades.ravel() > 0)
    row = judged // max(1, grades.shape[-1])
    depths = depths_by_row(row, sources.ravel()[judged], grades.ravel()[judged].astype(np.int64), rows)
    return depths.reshape(*grades.shape[:-1], depths.shape[1])


"""Grade at each rank: 1..5 judged, 0 unjudged, -1 empty slot. Shape [..., queries, depth]."""
Counts = NDArray[np.integer[Any]]  # How many passages have grade 1..5. Shape [..., queries, 5].
Scores = NDArray[np.float64]
"""A value per query at every K = 1..depth, NaN where it does not apply. Shape [..., queries, depth]."""

Values = Mapping[str, ParamValue]
Need = Literal["pool", "sources", "facets", "answers", "perturbed", "nuggets", "filters"]
"""What a measure needs besides grades: the candidate pool, the sources of passages, their facets (nuggets, or
otherwise sources), graded answers, the same stack's rankings for perturbed queries, and nuggets with the
passages that support them; and what the filters of questions allow."""


Fill = Callable[["Inputs", Values, Scores], None]  # Fills an array with a value at every K; see `Inputs`


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureInfo:
    """One measure: its name, its definition, and the function that computes it."""

    name: str  # canonical name without cutoff, for example "RA-nWG"
    text: str  # one line of help
    formula: str  # the definition, as text
    section: str  # where it is defined
    score: Fill  # fills in the value
    na: str = ""  # why a query can be left out of the mean; empty if the measure always applies
    # Fills in the best value that an ordering of the candidate pool can reach; None if there is no such value
    ceiling: Fill | None = None
    params: tuple[Param, ...] = ()  # the declared parameters
    higher_is_better: bool = True  # which direction is good
    unit: str = "share"  # "share" for a number between 0 and 1, otherwise what is counted
    low: float = 0.0  # smallest possible value
    high: float = 1.0  # largest possible value
    binary: bool = False  # whether it is 0 or 1 for each query
    needs: frozenset[Need] = frozenset()  # what it needs besides grades
    ahead: int = 1  # how deep it looks into the ranking, in multiples of K
    # For a ratio of means, the measure that has a value per query and whose mean is another number
    by_query: str = ""
    differs: str = ""  # how other tools define it differently; empty if they agree

    @property
    def needs_pool(self) -> bool:
        """Whether the candidate pool's grades are needed."""
        return "pool" in self.needs

    @property
    def range(self) -> str:
        """The range of possible values, in words."""
        return f"{show(self.low)} to {show(self.high)}"

    def param(self, name: str) -> Param | None:
        """Return the declared parameter of that name, or None."""
        return next((param for param in self.params if param.name == name), None)


def rel_param() -> Param:
    """Return the relevance threshold that all measures over relevant passages share."""
    return Param(
        name="rel",
        default=4,
        low=1,
        high=5,
        step=1,
        text="Least grade, 1 to 5 after the golden set's mapping, that counts as relevant",
    )
