"""How many relevant passages there are when only those that some retrievers found were judged.

The paper names three ways (Schwartz et al., How important is recall…, §1): pooling counts what was found;
extrapolation goes on from how the count grows with the depth; capture and recapture goes by how many
passages the lists of several retrievers share. A passage is captured by a list when it is relevant and the
list holds it.

- Chapman (1951) for two lists of a query: (n1 + 1)(n2 + 1) / (m + 1) − 1, m = passages of both; unbiased
  where n1 + n2 is at least what there is, and the lists capture independently of each other.
- Chao (1987), lower bound for any number of lists: seen + f1(f1 − 1) / (2(f2 + 1)), f1, f2 = passages of
  exactly one and of exactly two lists.
- Log-linear models for three lists or more (Fienberg 1972): the log of the number of passages with each
  history of captures, all queries together, is a sum of a term per list and of terms per pair of lists; the
  pairs of least AIC are taken. Nobody has seen the history "in none", which is e to the first term.
- Extrapolation: a list holds N·k / (k + h) relevant passages by depth k, N and h by least squares over all
  queries. It says what deeper lists of the same retrievers would hold, not what they never rank.

Retrievers find easy passages together. Then captures depend on each other, and what two lists say is too low:
a lower bound. With three or more lists the dependence shows: the odds of a passage of one list to be in
another, among the passages of a third (Mantel and Haenszel 1959).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from core.stats.intervals import SEED, Floats, resample_weights

MOST_LISTS = 4
RESAMPLES = 1000
_STEPS, _CLOSE = 50, 1e-9
_HALF = np.geomspace(0.25, 1000, 200)  # Depths tried at which half of all is found
Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Total:
    """An estimate of how many relevant passages there are over all queries, at least as many as were seen."""

    value: float
    low: float  # lower end of the 95 % bootstrap interval over queries, of the share that was seen
    high: float  # upper end


@dataclass(frozen=True, slots=True)
class Dependence:
    """Odds ratio of two lists among the relevant passages of the others; 1 = independent."""

    pair: Pair  # places of the lists
    odds: float  # NaN = cannot be told
    low: float  # lower end of the 95 % bootstrap interval over queries
    high: float  # upper end

    @property
    def depends(self) -> bool:
        """Whether the interval leaves out independence."""
        return bool(self.low > 1 or self.high < 1)


def histories(captured: NDArray[np.bool_], query: NDArray[np.int64], queries: int) -> Floats:
    """Count relevant passages by the lists that hold them.

    Args:
        captured: [passages, lists], which list holds each relevant passage that some list holds.
        query: [passages], the query of each.

    Returns:
        [queries, 2^lists]; bit l of the column is list l. Column 0 stays 0.
    """
    lists = captured.shape[1]
    cell = captured @ (1 << np.arange(lists))
    counts = np.bincount(query * 2**lists + cell, minlength=queries * 2**lists)
    return counts.reshape(queries, 2**lists).astype(np.float64)


def chapman(cells: Floats) -> Total:
    """Return chapman's estimate of every query, for two lists."""
    return _by_query(cells, _chapman)


def chao(cells: Floats) -> Total:
    """Return chao's lower bound of every query."""
    return _by_query(cells, _chao)


def log_linear(cells: Floats, pairs: Sequence[Pair] | None = None) -> tuple[Total, tuple[Pair, ...]]:
    """Estimate by a log-linear model.

    Args:
        cells: Of `histories`, for three lists or more.
        pairs: The pairs of lists that depend on each other; None = those of least AIC.

    Returns:
        The estimate and the pairs.
    """
    together = cells.sum(axis=0)
    taken = tuple(_chosen(together) if pairs is None else pairs)
    design = _design(cells.shape[1], taken)
    every = np.vstack([together, resample_weights(len(cells), RESAMPLES, SEED) @ cells])
    found = every.sum(axis=1)
    return _total(found + _unseen(every, design), found), taken


def extrapolated(found: Floats) -> Total:
    """Estimate from how the number of relevant passages grows with the depth.

    Args:
        found: [queries, depth], how many a list holds by each depth.
    """
    depth = np.arange(1, found.shape[1] + 1)
    shapes = depth / (depth + _HALF[:, None])  # [tried, depth]
    every = np.vstack([found.sum(axis=0), resample_weights(len(found), RESAMPLES, SEED) @ found])
    return _total(_asymptotes(every, shapes), every[:, -1])


def dependences(cells: Floats) -> list[Dependence]:
    """Return how much every two of three lists or more depend on each other."""
    lists = cells.shape[1].bit_length() - 1
    drawn = resample_weights(len(cells), RESAMPLES, SEED)
    return [_dependence(cells, pair, drawn) for pair in combinations(range(lists), 2)]


def seen(cells: Floats) -> Floats:
    """Return how many relevant passages of each query some list holds."""
    return np.asarray(cells.sum(axis=-1))


def of_lists(cells: Floats, kept: Sequence[int]) -> Floats:
    """Return the histories of some of the lists; what those do not hold is not counted."""
    lists = cells.shape[1].bit_length() - 1
    column = np.arange(2**lists)
    into = sum(((column >> place) & 1) << new for new, place in enumerate(kept))
    fewer = np.zeros((len(cells), 2 ** len(kept)))
    for cell in column:
        fewer[:, np.asarray(into)[cell]] += cells[:, cell]
    fewer[:, 0] = 0
    return fewer


def _chapman(cells: Floats) -> Floats:
    first, second, both = cells[:, 1] + cells[:, 3], cells[:, 2] + cells[:, 3], cells[:, 3]
    return np.asarray((first + 1) * (second + 1) / (both + 1) - 1)


def _chao(cells: Floats) -> Floats:
    times = np.array([cell.bit_count() for cell in range(cells.shape[1])])
    once, twice = cells[:, times == 1].sum(axis=1), cells[:, times == 2].sum(axis=1)
    return np.asarray(seen(cells) + once * (once - 1) / (2 * (twice + 1)))


def _by_query(cells: Floats, estimate: Callable[[Floats], Floats]) -> Total:
    drawn = np.vstack([np.ones(len(cells)), resample_weights(len(cells), RESAMPLES, SEED)])
    return _total(drawn @ np.maximum(estimate(cells), seen(cells)), drawn @ seen(cells))


def _total(estimates: Floats, found: Floats) -> Total:
    """Return from the estimate and what was seen: first of all queries, then of every resample."""
    most = np.maximum(estimates, found)
    shares = np.divide(most[1:], found[1:], out=np.ones(len(found) - 1), where=found[1:] > 0)
    low, high = found[0] * np.percentile(shares, [2.5, 97.5])
    return Total(float(most[0]), float(low), float(high))


def _design(columns: int, pairs: Sequence[Pair]) -> Floats:
    """Return terms of every history that can be seen: [histories, 1 + lists + pairs]."""
    lists = columns.bit_length() - 1
    held = (np.arange(1, columns)[:, None] >> np.arange(lists) & 1).astype(np.float64)
    both = [held[:, first] * held[:, second] for first, second in pairs]
    return np.column_stack([np.ones(columns - 1), held, *both])


def _chosen(cells: Floats) -> tuple[Pair, ...]:
    """Return the pairs of least AIC; at least one history stays to check the model by."""
    lists = len(cells).bit_length() - 1
    every = list(combinations(range(lists), 2))
    most = min(len(every), len(cells) - 1 - 1 - lists - 1)
    offered = [some for size in range(most + 1) for some in combinations(every, size)]
    return min(offered, key=lambda some: _aic(cells, _design(len(cells), some)))


def _aic(cells: Floats, design: Floats) -> float:
    expected = np.exp(np.clip(design @ _fitted(cells[None, 1:], design)[0], -30, 30))
    return float(2 * design.shape[1] - 2 * (cells[1:] * np.log(expected) - expected).sum())


def _unseen(cells: Floats, design: Floats) -> Floats:
    """Return expected passages in no list [samples]."""
    return np.asarray(np.exp(np.clip(_fitted(cells[:, 1:], design)[:, 0], -30, 30)))


def _fitted(counts: Floats, design: Floats) -> Floats:
    """Return Poisson regressions with a log link, by Newton's steps: counts [samples, histories] to terms."""
    terms: Floats = np.asarray(np.linalg.lstsq(design, np.log(counts + 0.5).T, rcond=None)[0].T, np.float64)
    ridge = _CLOSE * np.eye(design.shape[1])
    for _ in range(_STEPS):
        expected = np.exp(np.clip(terms @ design.T, -30, 30))
        slope = (counts - expected) @ design
        curve = np.einsum("sh,hi,hj->sij", expected, design, design) + ridge
        step = np.clip(np.linalg.solve(curve, slope[..., None])[..., 0], -2, 2)
        terms = np.asarray(terms + step, dtype=np.float64)
        if np.abs(step).max() < 1e-8:
            break
    return terms


def _asymptotes(found: Floats, shapes: Floats) -> Floats:
    """Return least squares of N·shape over the shapes: [samples, depth] to [samples]."""
    totals = found @ shapes.T / (shapes**2).sum(axis=1)  # [samples, tried]
    lost = (totals**2) * (shapes**2).sum(axis=1) - 2 * totals * (found @ shapes.T)
    return np.asarray(np.take_along_axis(totals, lost.argmin(axis=1)[:, None], axis=1)[:, 0])


def _dependence(cells: Floats, pair: Pair, drawn: Floats) -> Dependence:
    lists = cells.shape[1].bit_length() - 1
    strata = [cell for cell in range(1, 2**lists) if not any(cell >> place & 1 for place in pair)]
    first, second = (1 << place for place in pair)
    agree = apart = np.zeros(len(drawn) + 1)
    every = np.vstack([np.ones(len(cells)), drawn]) @ cells
    for stratum in strata:
        both, one, other, none = (every[:, stratum + bits] for bits in (first + second, first, second, 0))
        size = np.maximum(both + one + other + none, 1)
        agree, apart = agree + both * none / size, apart + one * other / size
    with np.errstate(divide="ignore", invalid="ignore"):
        odds = agree / apart
    known = odds[1:][~np.isnan(odds[1:])]
    told = np.isfinite(odds[0]) and len(known)
    # The odds of a resample may be infinite, between which nothing can be interpolated.
    low, high = np.percentile(known, [2.5, 97.5], method="nearest") if told else (np.nan, np.nan)
    return Dependence(pair, float(odds[0]), float(low), float(high))
