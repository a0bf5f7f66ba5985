"""Replays fusions of stored rankings: other weights, constants and depths of all queries at once.

It gives what `core.pipeline.ranking.pool.fuse` gives query by query.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from core.arrays import Floats, Mask
from core.pipeline.ranking.pool import LEGS, fusion_options
from core.records import JsonMap, canonical_json

CONSTANTS = (1, 5, 10, 20, 60, 100)
WEIGHTS = ((3, 1), (2, 1), (1.5, 1), (1.3, 1), (1, 1), (1, 1.3), (1, 1.5), (1, 2), (1, 3))
ALPHAS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
DEPTHS = (20, 50, 100)


@dataclass(frozen=True, slots=True, eq=False)
class Legs:
    """The rankings that a fusion merges, the sparse one first: a column per passage in corpus order."""

    ranks: Floats  # [LEGS, queries, passages], from 1; infinite = not found
    scores: Floats  # [LEGS, queries, passages]; NaN = not found, or unknown

    @property
    def scored(self) -> bool:
        """Whether every found passage has a score, which sums of scores need."""
        return bool(np.isfinite(self.scores[np.isfinite(self.ranks)]).all())


def grid(depth: int, *, scored: bool, whole: bool = False) -> list[JsonMap]:
    """List the fusions to replay, the usual one first.

    Args:
        depth: How many passages of each leg are stored; no fusion merges more.
        scored: Whether they have scores.
        whole: Whether fusions read all that is stored, as a shallower search would find other passages.
    """
    depths = [one for one in DEPTHS if one <= depth and not whole] or [depth]
    fusions: list[JsonMap] = [{"method": "rrf", "depth": depths[-1]}]
    fusions += [
        {"method": "rrf", "constant": constant, "depth": one, "weights": list(weights)}
        for constant, weights, one in product(CONSTANTS, WEIGHTS, depths)
    ]
    if scored:
        fusions += [
            {"method": "convex", "alpha": alpha, "depth": one} for alpha, one in product(ALPHAS, depths)
        ]
    read = map(fusion_options, fusions)
    return list({canonical_json(fusion): fusion for fusion in read}.values())


def fused(legs: Legs, fusion: JsonMap, k: int) -> NDArray[np.intp]:
    """Fuse both legs of every query.

    Args:
        fusion: See `fusion_options`; its method is one of `grid`.
        k: How many passages to keep.

    Returns:
        Their columns, best first [queries, k]; −1 = the legs found no more.
    """
    options = fusion_options(fusion)
    found = legs.ranks <= options["depth"]
    totals = np.where(found.any(axis=0), _SUMS[options["method"]](legs, found, options), -np.inf)
    best = np.argsort(-totals, axis=1, kind="stable")[:, :k]
    return np.where(np.isfinite(np.take_along_axis(totals, best, axis=1)), best, -1)


def _reciprocal(legs: Legs, found: Mask, options: JsonMap) -> Floats:
    weights = np.reshape(options.get("weights", [1.0] * LEGS), (LEGS, 1, 1))
    shares = np.where(found, weights / (options["constant"] + legs.ranks), 0.0)
    totals: Floats = shares.sum(axis=0)
    return totals


def _convex(legs: Legs, found: Mask, options: JsonMap) -> Floats:
    """Sum scores that were brought to 0 to 1 in each leg; one that a leg lacks counts 0."""
    low = np.where(found, legs.scores, np.inf).min(axis=2, keepdims=True, initial=np.inf)
    high = np.where(found, legs.scores, -np.inf).max(axis=2, keepdims=True, initial=-np.inf)
    spread = np.where(high > low, high - low, 1.0)
    scaled = np.where(high > low, (np.where(found, legs.scores, 0.0) - low) / spread, 1.0)
    weights = np.reshape([1 - options["alpha"], options["alpha"]], (LEGS, 1, 1))
    totals: Floats = (weights * np.where(found, scaled, 0.0)).sum(axis=0)
    return totals


_SUMS: Mapping[str, Callable[[Legs, Mask, JsonMap], Floats]] = MappingProxyType(
    {"rrf": _reciprocal, "convex": _convex}
)
