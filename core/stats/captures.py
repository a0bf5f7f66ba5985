"""Estimates the number of relevant passages when only those found by some retrievers were judged.

The paper names three ways (Schwartz et al., How important is recall…, §1): pooling counts what was found;
extrapolation follows the growth of the count with the depth; capture and recapture follows the number of
passages the lists of several retrievers share. A passage is captured by a list when it is relevant and the
list holds it.

- Chapman (1951) for two lists of a query: (n1 + 1)(n2 + 1) / (m + 1) − 1, m = passages in both; unbiased
  if n1 + n2 is at least the number that exists, and the lists capture independently of each other.
- Chao (1987), lower bound for any number of lists: seen + Σ f_i f_j / (f2 + 1) over the pairs of lists, f_i =
  passages in list i alone, f2 = passages in exactly two lists. If t lists reach equally far, this is Chao's
  (t − 1) / t · f1² / (2 f2); written by pairs, the bound also holds if one list reaches further. For two
  lists it is Chapman's estimate.
- Log-linear models for three lists or more (Fienberg 1972): the log of the number of passages with each
  history of captures, all queries together, is a sum of a term per list and of terms per pair of lists.
  Every set of pairs is a model, including none and all of them. They are averaged by their Akaike weights
  (Burnham and Anderson 2002, §4.2), averaged over resamples: trusting a single model covers 68 % instead of
  95. Nobody has seen the history "in none"; its expected count is e to the power of the first term.
- Extrapolation: a list holds N·k / (k + h) relevant passages by depth k, N and h by least squares over all
  queries. It says what deeper lists of the same retrievers would hold, not what they would never rank.

If retrievers find the same easy passages, the estimate from two lists is too low; if they complement each
other (words and meaning), it is too high. Three or more lists show the dependence and its sign: the odds that
a passage of one list is in another, among the passages of a third (Mantel and Haenszel 1959).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from core.arrays import Floats, Ints, Mask
from core.stats.intervals import CLUSTERS, SEED, Labels, query_weights

MOST_LISTS = 4
RESAMPLES = 1000
FEW = 40
"""Passages in the lists below which log-linear models tell nothing, because their intervals are unbounded."""
_STEPS, _CLOSE, _NEAR = 30, 1e-6, 1e-5
_FAR = 15.0  # Log of a number of passages beyond which it counts as none, or as unbounded
_HALF = np.geomspace(0.25, 1000, 200)  # Depths that are tried as the one at which half of all is found
Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Total:
    """An estimate of how many relevant passages there are over all queries, at least as many as were seen."""

    value: float
    low: float  # lower end of the 95 % bootstrap interval over queries, for the share that was seen
    high: float  # upper end


@dataclass(frozen=True, slots=True)
class Dependence:
    """Odds ratio of two lists among the relevant passages of the others; 1 = independent."""

    pair: Pair  # numbers of the two lists
    odds: float  # NaN = cannot be estimated
    low: float  # lower end of the 95 % bootstrap interval over queries
    high: float  # upper end

    @property
    def sign(self) -> int:
        """1 = the lists find the same passages, -1 = they complement each other, 0 = neither is certain."""
        return int(self.low > 1) - int(self.high < 1)


def histories(captured: Mask, query: Ints, queries: int) -> Floats:
    """Count relevant passages by the lists that hold them.

    Args:
        captured: [passages, lists], which lists hold each relevant passage; each is in at least one.
        query: [passages], each passage's query.

    Returns:
        [queries, 2^lists]; bit l of the column is list l. Column 0 stays 0.
    """
    lists = captured.shape[1]
    cell = captured @ (1 << np.arange(lists))
    counts = np.bincount(query * 2**lists + cell, minlength=queries * 2**lists)
    return counts.reshape(queries, 2**lists).astype(np.float64)


def chapman(cells: Floats, clusters: Labels | None = None) -> Total:
    """Return Chapman's estimate for two lists, query by query; clusters as in `log_linear`."""
    return _by_query(cells, _chapman, clusters)


def chao(cells: Floats, clusters: Labels | None = None) -> Total:
    """Return Chao's lower bound, query by query; clusters as in `log_linear`."""
    return _by_query(cells, _chao, clusters)


def log_linear(cells: Floats, clusters: Labels | None = None) -> Total | None:
    """Estimate the total by an average of log-linear models.

    Args:
        cells: The result of `histories`, for three lists or more.
        clusters: [queries], the same number within a group, which is resampled whole; None = no groups.

    Returns:
        None if the lists hold fewer than `FEW` passages, or there are fewer than `CLUSTERS` groups.
    """
    drawn = _drawn(len(cells), clusters)
    if cells.sum() < FEW or np.isnan(drawn).any():
        return None
    every = np.vstack([cells.sum(axis=0), drawn @ cells])
    found = every.sum(axis=1)
    models = [_design(cells.shape[1], pairs) for pairs in _pairs(cells.shape[1])]
    fits = [_modelled(every, each) for each in models]
    unseen, misfit = (np.stack(parts) for parts in zip(*fits, strict=True))
    weight = np.exp((misfit.min(axis=0) - misfit) / 2)
    trusted = (weight / weight.sum(axis=0)).mean(axis=1)  # [models]
    shares = np.divide(unseen, found, out=np.zeros_like(unseen), where=found > 0)
    low, high = found[0] * (1 + _weighed(shares[:, 1:], trusted, (0.025, 0.975)))
    return Total(float(found[0] + trusted @ unseen[:, 0]), float(low), float(high))


def extrapolated(found: Floats, clusters: Labels | None = None) -> Total:
    """Estimate the total from how the number of relevant passages grows with the depth.

    Args:
        found: [queries, depth], how many relevant passages a list holds by each depth.
        clusters: As in `log_linear`.
    """
    depth = np.arange(1, found.shape[1] + 1)
    shapes = depth / (depth + _HALF[:, None])  # [tried, depth]
    every = np.vstack([found.sum(axis=0), _drawn(len(found), clusters) @ found])
    return _total(_asymptotes(every, shapes), every[:, -1])


def dependences(cells: Floats, clusters: Labels | None = None) -> list[Dependence]:
    """Return how much each pair of lists depends on each other, for three lists or more; see `log_linear`."""
    lists = cells.shape[1].bit_length() - 1
    drawn = _drawn(len(cells), clusters)
    return [_dependence(cells, pair, drawn) for pair in combinations(range(lists), 2)]


def seen(cells: Floats) -> Floats:
    """Count the relevant passages of each query that some list holds."""
    return np.asarray(cells.sum(axis=-1))


def of_lists(cells: Floats, kept: Sequence[int]) -> Floats:
    """Return the histories of some of the lists; passages that none of them holds are not counted."""
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
    alone, twice = cells[:, times == 1], cells[:, times == 2].sum(axis=1)
    apart = (alone.sum(axis=1) ** 2 - (alone**2).sum(axis=1)) / 2  # the products of all pairs
    return np.asarray(seen(cells) + apart / (twice + 1))


def _drawn(queries: int, clusters: Labels | None) -> Floats:
    """Return how often each query is drawn [resamples, queries]; NaN below `CLUSTERS` groups."""
    drawn = query_weights(queries, RESAMPLES, SEED, clusters)
    few = clusters is not None and len(np.unique(clusters)) < CLUSTERS
    return np.full_like(drawn, np.nan) if few else drawn


def _by_query(cells: Floats, estimate: Callable[[Floats], Floats], clusters: Labels | None) -> Total:
    drawn = np.vstack([np.ones(len(cells)), _drawn(len(cells), clusters)])
    return _total(drawn @ np.maximum(estimate(cells), seen(cells)), drawn @ seen(cells))


def _total(estimates: Floats, found: Floats) -> Total:
    """Make a total from estimates and numbers seen, whose first row is all queries and the rest resamples."""
    most = np.maximum(estimates, found)
    none = found[1:] == 0
    shares = np.divide(most[1:], found[1:], out=np.ones(len(found) - 1), where=~none)
    low, high = found[0] * np.percentile(shares, [2.5, 97.5])
    return Total(float(most[0]), float(low), float(high))


def _design(columns: int, pairs: Sequence[Pair]) -> Floats:
    """Return the terms of every history that can be seen: [histories, 1 + lists + pairs]."""
    lists = columns.bit_length() - 1
    held = (np.arange(1, columns)[:, None] >> np.arange(lists) & 1).astype(np.float64)
    both = [held[:, first] * held[:, second] for first, second in pairs]
    return np.column_stack([np.ones(columns - 1), held, *both])


def _pairs(columns: int) -> list[tuple[Pair, ...]]:
    every = list(combinations(range(columns.bit_length() - 1), 2))
    return [some for size in range(len(every) + 1) for some in combinations(every, size)]


def _modelled(cells: Floats, design: Floats) -> tuple[Floats, Floats]:
    """Return the expected number of passages in no list and Akaike's criterion: [samples] each."""
    terms = _fitted(cells[:, 1:], design)
    logs = np.clip(terms @ design.T, -_FAR, _FAR)
    misfit = 2 * design.shape[1] - 2 * (cells[:, 1:] * logs - np.exp(logs)).sum(axis=1)
    return np.exp(np.clip(terms[:, 0], -_FAR, _FAR)), misfit


def _weighed(values: Floats, weight: Floats, shares: Sequence[float]) -> Floats:
    """Return quantiles of values [models, samples], each model's row weighted."""
    order = np.argsort(values, axis=None, kind="stable")
    running = np.cumsum(np.repeat(weight, values.shape[1])[order])
    return np.asarray(values.ravel()[order][np.searchsorted(running, np.asarray(shares) * running[-1])])


def _fitted(counts: Floats, design: Floats) -> Floats:
    """Fit Poisson regressions with a log link by Newton's steps: counts [samples, histories] to terms."""
    logs = np.log(counts[:1] + 0.5)  # all start where the first does, since the rest are its resamples
    terms = np.repeat(np.linalg.lstsq(design, logs.T, rcond=None)[0].T, len(counts), axis=0)
    sides = design.shape[1]
    squares = (design[:, :, None] * design[:, None, :]).reshape(len(design), -1)
    ridge = _CLOSE * np.eye(sides)
    for _ in range(_STEPS):
        expected = np.exp(np.clip(terms @ design.T, -_FAR, _FAR))
        slope = (counts - expected) @ design
        curve = (expected @ squares).reshape(-1, sides, sides) + ridge
        step = np.clip(np.linalg.solve(curve, slope[..., None])[..., 0], -2, 2)
        terms = np.asarray(terms + step, dtype=np.float64)
        if np.abs(step).max() < _NEAR:
            break
    return terms


def _asymptotes(found: Floats, shapes: Floats) -> Floats:
    """Fit N in N·shape by least squares and keep the best of the shapes: [samples, depth] to [samples]."""
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
    # The odds of a resample may be infinite, and nothing can be interpolated between infinities.
    low, high = np.percentile(known, [2.5, 97.5], method="nearest") if told else (np.nan, np.nan)
    return Dependence(pair, float(odds[0]), float(low), float(high))
