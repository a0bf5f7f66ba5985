"""Posterior means under a prior of any shape that is estimated from the estimates themselves.

The maximum-likelihood prior (Kiefer & Wolfowitz 1956, Ann. Math. Stat. 27) lives on a grid between the least
and the largest estimate. Expectation maximisation approaches it slowly, so it makes only the first few steps;
then each step solves the quadratic model of the likelihood over non-negative weights (Wang 2007, J. R. Stat.
Soc. B 69), which converges in a handful.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls

from core.arrays import Floats

_SPACING = 0.0005  # Distance between grid points of the prior
_PLACES = (100, 600)  # The fewest and the most grid points
_BEGUN = 50  # First steps, by expectation maximisation
_MOST = 100
_EXACT = 1e-7
"""Gain in log-likelihood per estimate below which no further grid point of the prior is worth adding."""
_HEAVY = 1e3  # Weight of the condition that the weights add up to 1
_SHORTEST = 1e-6


def posterior_means(means: Floats, variances: Floats) -> Floats:
    """Return the expected true value behind each estimate.

    Args:
        means: [S], the estimates.
        variances: [S], the variances of their noise.

    Returns:
        [S]; an estimate without noise stays as it is.
    """
    exact = variances <= 0
    if exact.any() or np.ptp(means) == 0:
        rest = ~exact
        expected = means.copy()
        if rest.any() and np.ptp(means[rest]) > 0:
            expected[rest] = posterior_means(means[rest], variances[rest])
        return expected
    places = int(np.clip(np.ceil(np.ptp(means) / _SPACING), *_PLACES))
    grid = np.linspace(means.min(), means.max(), places)
    exponent = -((means[:, None] - grid) ** 2) / (2 * variances[:, None])
    likelihood = np.exp(exponent - exponent.max(axis=1, keepdims=True))
    weighed = likelihood * _prior(likelihood)
    return np.asarray(weighed @ grid / weighed.sum(axis=1))


def _prior(likelihood: Floats) -> Floats:
    """Return the weights of the grid points [G] under which the estimates are likeliest."""
    weights = np.full(likelihood.shape[1], 1 / likelihood.shape[1])
    for _ in range(_BEGUN):
        weights = weights * _gradient(likelihood, weights)
    for _ in range(_MOST):
        gradient = _gradient(likelihood, weights)
        if gradient.max() <= 1 + _EXACT:
            break
        weights = _towards(likelihood, weights, _quadratic(likelihood, weights), weights * gradient)
        weights = weights * _gradient(likelihood, weights)  # no estimate is left without a place
    return weights


def _gradient(likelihood: Floats, weights: Floats) -> Floats:
    """Return the gradient of the likelihood in each grid point's weight [G]; at most 1 at the optimum."""
    return np.asarray(likelihood.T @ (1 / (likelihood @ weights)) / len(likelihood))


def _quadratic(likelihood: Floats, weights: Floats) -> Floats:
    """Return the weights [G] that maximise the quadratic model around the given ones."""
    rows, places = likelihood.shape
    scaled = likelihood / (likelihood @ weights)[:, None] / np.sqrt(rows)
    system = np.column_stack([scaled, np.full(rows, 2 / np.sqrt(rows))])
    if rows > places:
        system = np.asarray(np.linalg.qr(system, mode="r"))
    system = np.vstack([system, np.full(places + 1, _HEAVY)])
    try:
        best = nnls(system[:, :-1], system[:, -1])[0]
    except RuntimeError:  # it gave up: a step of expectation maximisation is taken in its place
        return weights
    return np.asarray(best / best.sum())


def _towards(likelihood: Floats, weights: Floats, aim: Floats, otherwise: Floats) -> Floats:
    """Move weights towards an aim as far as the likelihood rises; otherwise take a step that always rises."""
    now, share = np.log(likelihood @ weights).mean(), 1.0
    while share > _SHORTEST:
        there = weights + share * (aim - weights)
        if np.log(likelihood @ there).mean() > now:
            return np.asarray(there)
        share /= 2
    return otherwise
