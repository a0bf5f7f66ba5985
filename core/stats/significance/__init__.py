"""Is a difference between stacks more than chance? Bootstrap, randomisation test, effect size, power.

Everything compares the same queries: one set of resamples and one set of swaps is drawn from the seed and
applied to every stack as a matrix product, so that statements about several stacks hold jointly.
"""

from core.stats.significance.bootstrap import Method, interval, resampled, share_best, weights
from core.stats.significance.paired import (
    TOLERANCE,
    Setup,
    compare,
    detectable,
    holm,
    outcomes,
    queries_needed,
)
from core.stats.significance.randomisation import Swaps, swap_test
from core.stats.significance.sample import Sample, paired_rows

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
