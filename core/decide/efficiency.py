"""The efficiency scalar of the CLQ paper (§3.3, Table 9): for shortlisting only, it favours small K."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from core.errors import InputError

COMPONENTS = (("N-Recall4+", 10), ("RA-nWG", 10), ("N-Recall4+", 30), ("RA-nWG", 30))
"""The measures and cutoffs whose mean is the paper's average performance."""


def efficiency(quality: float | Sequence[float], latency_ms: float) -> float:
    """Average quality per second of latency.

    Args:
        quality: The four components of `COMPONENTS`, or their average; 0..1. NaN = unknown.
        latency_ms: Median reranker latency (or the whole path's, for the end-to-end variant); ms, above 0.

    Returns:
        Mean quality / latency in seconds; NaN if a component is unknown.

    Raises:
        InputError: If the latency is not above 0.
    """
    if latency_ms <= 0:
        raise InputError(f"A latency of {latency_ms} ms has no efficiency.", do="Give a latency above 0 ms.")
    return float(np.mean(quality)) / (latency_ms / 1000)
