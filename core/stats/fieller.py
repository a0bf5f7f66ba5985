"""The interval of a ratio of two means whose divisor may be near 0, by Fieller (1954, J. R. Stat. Soc. B 16).

The interval holds every ratio r for which mean(top − r · bottom) does not differ significantly from 0 by
Student's t. Unlike a bootstrap of the ratio it holds for few questions and for a divisor of either sign.
"""

from __future__ import annotations

import numpy as np
import scipy

from core.arrays import Floats
from core.stats.intervals import FEW, Sample


def fieller(sample: Sample) -> tuple[Floats, Floats]:
    """Return the interval of each stack's ratio of sums: (low [S], high [S]).

    NaN below `FEW` units (queries, or clusters of them), and if the divisor does not differ clearly from 0:
    then any ratio is possible.
    """
    rows = zip(sample.top, sample.bottom, sample.applies, strict=True)
    ends = [_of_row(top[counts], bottom[counts]) for top, bottom, counts in rows]
    low, high = np.array(ends).reshape(-1, 2).T
    return low, high


def _of_row(top: Floats, bottom: Floats) -> tuple[float, float]:
    n = len(top)
    if n < FEW:
        return np.nan, np.nan
    a, b = float(top.mean()), float(bottom.mean())
    (saa, sab), (_, sbb) = np.cov(top, bottom) / n
    t2 = float(scipy.special.stdtrit(n - 1, 0.975)) ** 2
    square = b * b - t2 * sbb
    if square <= 0:
        return np.nan, np.nan
    middle = a * b - t2 * sab
    root = np.sqrt(max(0.0, middle * middle - square * (a * a - t2 * saa)))
    return (middle - root) / square, (middle + root) / square
