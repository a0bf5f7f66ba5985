"""A measure must keep its range and shape, and say nothing of other queries or deeper passages."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from core.arrays import Grades
from core.metrics import Counts, Measure, MeasureInfo, Scores, score_all

_QUERIES, _DEPTH = 40, 12


def measure_faults(info: MeasureInfo) -> Iterator[str]:
    """Try a measure on random grades: its range, one value per query, and independence of other queries."""
    if info.needs:  # sources, answers and other inputs that no random ranking has
        return
    random = np.random.default_rng(7)
    grades = random.integers(0, 6, (1, _QUERIES, _DEPTH)).astype(np.int8)
    grades[0, 0], grades[0, 1] = 1, 5
    counts = np.stack([(grades == grade).sum(axis=-1) for grade in range(1, 6)], axis=-1)
    before, measure = grades.copy(), Measure(info.name)

    def values_of(some: Grades, judged: Counts) -> Scores:
        return score_all((measure,), some, judged)[measure]

    try:
        values = values_of(grades, counts)
        alone = values_of(grades[:, :5].copy(), counts[:, :5].copy())
        shallow = values_of(grades[..., :5].copy(), counts)
    except Exception as error:
        yield f"It raises {type(error).__name__}: {error}"
        return
    known = values[~np.isnan(values)]
    if known.size and (known.min() < info.low - 1e-9 or known.max() > info.high + 1e-9):
        yield f"Its values lie from {known.min():.3g} to {known.max():.3g}; it declares {info.range}."
    if np.isnan(values).any() and not info.na:
        yield "It has no value for some queries, and does not say why (na)."
    if not np.array_equal(alone, values[:, :5], equal_nan=True):
        yield "Its value of a query depends on the other queries."
    deepest = 5 // info.ahead
    if not np.array_equal(shallow[..., :deepest], values[..., :deepest], equal_nan=True):
        yield "Its value at K depends on passages beyond K."
    if not np.array_equal(before, grades):
        yield "It changes the grades that it is given."
