"""Measures that turn grades into numbers, with NumPy only and one file per family."""

from core.arrays import Grades
from core.metrics.engine import aggregate, na_reason, score, score_all, score_at, to_depth
from core.metrics.gain import Weighting, ideal_gain, weights
from core.metrics.info import Counts, MeasureInfo, Scores
from core.metrics.inputs import Extra
from core.metrics.measure import REGISTRY, Measure, parse_list, split_list, translated, understood
from core.metrics.rates import ratio_of_means, shares_of_means

__all__ = [
    "REGISTRY",
    "Counts",
    "Extra",
    "Grades",
    "Measure",
    "MeasureInfo",
    "Scores",
    "Weighting",
    "aggregate",
    "ideal_gain",
    "na_reason",
    "parse_list",
    "ratio_of_means",
    "score",
    "score_all",
    "score_at",
    "shares_of_means",
    "split_list",
    "to_depth",
    "translated",
    "understood",
    "weights",
]
