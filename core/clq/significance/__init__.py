"""Is a difference between stacks more than chance? Bootstrap, randomisation test, effect size, power.

Everything compares the same queries: one set of resamples and one set of swaps is drawn from the seed and
applied to every stack as a matrix product, so that statements about several stacks hold jointly.
"""

from core.clq.significance.bootstrap import Method, interval, resampled, share_best, weights
from core.clq.significance.effect import TOLERANCE, detectable, outcomes, queries_needed
from core.clq.significance.family import holm
from core.clq.significance.paired import Setup, compare
from core.clq.significance.randomisation import Swaps, swap_test
from core.clq.significance.sample import Sample, paired_rows

__all__ = [
    "TOLERANCE",
    "Method",
    "Sample",
    "Setup",
    "Swaps",
    "compare",
    "detectable",
    "holm",
    "interval",
    "outcomes",
    "paired_rows",
    "queries_needed",
    "resampled",
    "share_best",
    "swap_test",
    "weights",
]
