"""REBEL's scoring: relevance and secondary criteria in, one score and an order out (no model involved)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

HIGHEST_RELEVANCE = 10
HIGHEST_CRITERION = 5
WEIGHT = 0.5
THRESHOLD = 3
"""The paper's figures: §2.1, items 2 and 3 (w = 0.5 in all of its experiments); E.2, instruction 1."""
HIGHEST_WEIGHT = 1.0
"""Ours, for weights that a model chooses: twice the paper's, so that no quality outweighs relevance."""


@dataclass(frozen=True, slots=True)
class Criterion:
    """A quality of a passage beyond relevance, rated 0 to 5.

    Attributes:
        name: One to a few words.
        meaning: What a high and a low rating mean.
        weight: What a point of its rating adds to the score, 0 to `HIGHEST_WEIGHT`.
    """

    name: str
    meaning: str
    weight: float = WEIGHT


AUTHORITY = "Authority"
FIVE: tuple[Criterion, ...] = (
    Criterion("Depth", "5: treats the subject thoroughly, from several sides; 0: only touches it."),
    Criterion("Range of views", "5: gives several positions or sources; 0: knows only one side."),
    Criterion("Precision", "5: clear, concrete and to the point of the question; 0: vague or general."),
    Criterion(AUTHORITY, "5: a recognised, citable source speaks; 0: the source is unknown or doubtful."),
    Criterion("Currency", "5: current, refers to recent work, data or events; 0: outdated, or undated."),
)
"""The five fixed criteria (§2.1, item 1; appendix E.2): depth, diversity of perspectives, clarity and
specificity, authoritativeness, recency."""


def composite(
    relevance: float, ratings: Sequence[float], weights: Sequence[float], *, threshold: float = THRESHOLD
) -> float:
    """The final score of a passage: relevance + Σ weight · rating (§2.1, item 3).

    Args:
        relevance: 0 to 10.
        ratings: Of the secondary criteria, each 0 to 5; not looked at for a discarded passage.
        weights: Of the criteria, each ≥ 0, as many as there are ratings.
        threshold: A passage below it is discarded, one at it is kept.

    Returns:
        The score, 0 to 10 + 5 · Σ weight (22.5 for the five fixed criteria); −inf for a discarded passage.
    """
    if relevance < threshold:
        return -math.inf
    return relevance + math.fsum(weight * rating for weight, rating in zip(weights, ratings, strict=True))
