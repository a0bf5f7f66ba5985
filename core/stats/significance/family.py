"""Several tests at once: Holm's correction."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from core.stats.significance.sample import Floats


def holm(p: ArrayLike) -> Floats:
    """Adjust the p-values of a family so that the chance of any false alarm stays below the level.

    Step-down Bonferroni (Holm 1979, Scand. J. Statist. 6): the smallest of m is multiplied by m, the next by
    m − 1 and so on, never below an earlier one, at most 1.
    """
    values = np.asarray(p, dtype=np.float64)
    order = np.argsort(values, kind="stable")[: np.count_nonzero(~np.isnan(values))]
    adjusted = np.full(values.shape, np.nan)
    steps = values[order] * np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted
