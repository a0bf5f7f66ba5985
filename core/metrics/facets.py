"""Sources of passages as facets: which passage repeats a source, and which sets of grades sources have.

How many sources have passages with exactly the grades of a set is all that the best choice of K passages
depends on, whatever the weights: the best passage of a source is the best grade of its set. A set of grades
is a number from 0 to 31 whose bit g − 1 stands for grade g.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

SETS = 32


def repeated(sources: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Which slots hold a passage whose source occurs earlier in the ranking."""
    order = np.argsort(sources, axis=0, kind="stable")
    ordered = np.take_along_axis(sources, order, axis=0)
    again = np.zeros(sources.shape, dtype=np.bool_)
    again[1:] = ordered[1:] == ordered[:-1]
    made = np.empty_like(again)
    np.put_along_axis(made, order, again, axis=0)
    return made


def sets_of(grades: NDArray[np.int8], sources: NDArray[np.int32]) -> NDArray[np.int64]:
    """Count the sources by the set of grades that their judged passages have.

    Args:
        grades: [..., P]; 1..5, or less for what is not judged.
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
    """The same from a list of judged passages.

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
