"""An alarm for live quality that may be checked after every judgement, by betting that something fell.

If nothing changed, the rank of every new value among all before it is uniform, whatever their distribution
(conformal test martingales: Vovk, Gammerman and Shafer 2005, ch. 7). A capital that is staked on low ranks
then reaches 1 / alpha with a chance of at most alpha, however often one looks (Ville 1939). Since a fall may
begin at any query, the stake is divided over possible beginnings, as an e-detector does (Shin, Ramdas and
Rinaldo 2024, New England J. Stat. Data Sci. 2), and over sizes of bets.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass

import numpy as np

from core.arrays import Floats
from core.stats.intervals import SEED

ALPHA = 0.05
"""The chance, at most, that an alarm is raised although nothing changed, over all looks together."""
FIRST = 30
"""The fewest earlier queries among which a later one is ranked."""
_BETS = np.array([0.1, 0.2, 0.35, 0.6, 0.95])  # The most that the lowest rank adds to the capital


@dataclass(frozen=True, slots=True, eq=False)
class Watched:
    """Judged queries in the order in which they were asked, with the evidence that their values fell."""

    needed: float  # evidence that raises the alarm
    evidence: Floats  # [n], the capital after each query; 1 for the first ones, on which nothing is staked
    raised: int | None  # index of the query that raised the alarm, from 0


def watch(values: Floats, *, first: int = FIRST, alpha: float = ALPHA, seed: int = SEED) -> Watched:
    """Watch a series of values for a fall.

    Args:
        values: [n], higher is better, in order; independent of one another if nothing changed.
        first: How many values stand for the time before; a rank among fewer tells little.
        seed: Seed of the lots that rank equal values.
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
