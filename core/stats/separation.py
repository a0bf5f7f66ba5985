"""How well a score tells two classes apart: the area under the curve, and what a threshold costs.

DeLong, DeLong and Clarke-Pearson (1988), Comparing the areas under two or more correlated ROC curves,
Biometrics 44, for the interval, on the logit so that it stays within 0 and 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, ndtri

Floats = NDArray[np.float64]
FEW = 5  # of either class, below which nothing is said


class Area(NamedTuple):
    """Chance that a member of the class scores above one of the other, ties counting half."""

    value: float
    low: float
    high: float


def area(members: Floats, others: Floats, level: float = 0.95) -> Area:
    """Return the area under the curve of the receiver.

    Args:
        members: [m], scores of the class that should score high.
        others: [n], scores of the other class.

    Returns:
        NaN below `FEW` of either; the ends are the value where it is 0 or 1.
    """
    if min(len(members), len(others)) < FEW:
        return Area(np.nan, np.nan, np.nan)
    above = (members[:, None] > others).astype(np.float64) + (members[:, None] == others) / 2
    value = float(above.mean())
    if not 0 < value < 1:
        return Area(value, value, value)
    variance = above.mean(axis=1).var(ddof=1) / len(members) + above.mean(axis=0).var(ddof=1) / len(others)
    reach = float(ndtri((1 + level) / 2)) * np.sqrt(variance) / (value * (1 - value))
    return Area(value, *(float(expit(logit(value) + sign * reach)) for sign in (-1, 1)))


def threshold(members: Floats, most: float) -> float:
    """Return the highest score below which at most a share of the members lies.

    Args:
        members: [m], scores of the class that should be kept, one at least.
        most: The share that may be lost, 0..1.
    """
    ordered = np.sort(members)
    return float(ordered[min(int(np.floor(most * len(ordered) + 1e-9)), len(ordered) - 1)])
