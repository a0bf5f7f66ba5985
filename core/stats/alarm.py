"""An alarm for live quality that may be checked after every judgement, by betting that something fell.

If nothing changed, the rank of every new value among all before it is uniform, whatever their distribution
(conformal test martingales: Vovk, Gammerman and Shafer 2005, ch. 7). A capital that is staked on low ranks
then reaches 1 / alpha with a chance of at most alpha, however often one looks (Ville 1939). As a fall may
begin at any query, the stake is dealt to beginnings, as an e-detector does (Shin, Ramdas and Rinaldo 2024,
New England J. Stat. Data Sci. 2), and to sizes of bets.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.stats.intervals import SEED

Floats = NDArray[np.float64]
ALPHA = 0.05
"""The most that an alarm is raised with where nothing changed, over all looks together."""
FIRST = 30
"""Queries that later ones are ranked among at the least."""
_BETS = np.array([0.1, 0.2, 0.35, 0.6, 0.95])  # What a rank of the lowest adds, at most, to the capital


@dataclass(frozen=True, slots=True, eq=False)
class Watched:
    """Judged queries in the order in which they were asked."""

    needed: float  # evidence that raises the alarm
    evidence: Floats  # [n], the capital after each query; 1 of the first ones, which nothing is staked on
    raised: int | None  # place of the query that raised the alarm, from 0


def watch(values: Floats, *, first: int = FIRST, alpha: float = ALPHA, seed: int = SEED) -> Watched:
    """Watch whether values fall.

    Args:
        values: [n], higher is better, in order; independent of one another if nothing changed.
        first: How many stand for how it was; what is ranked among fewer tells little.
        seed: Of the lots that rank equal values.
    """
    lots = np.random.default_rng(seed).random(len(values))
    known = sorted(values[:first].tolist())
    capital, evidence = np.zeros(len(_BETS)), np.ones(len(values))
    for at in range(first, len(values)):
        value, turn = float(values[at]), at - first + 1
        below, upto = bisect_left(known, value), bisect_right(known, value)
        rank = (below + lots[at] * (upto - below + 1)) / (len(known) + 1)
        known.insert(upto, value)
        capital = (capital + 1 / (turn * (turn + 1))) * (1 + _BETS * (1 - 2 * rank))
        evidence[at] = capital.mean() + 1 / (turn + 1)
    over = np.flatnonzero(evidence >= 1 / alpha)
    return Watched(1 / alpha, evidence, int(over[0]) if len(over) else None)
