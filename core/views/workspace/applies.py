"""Why a measure applies to no query at all, and what to do where the scale of the grades is why."""

from __future__ import annotations

import numpy as np

from core.metrics import Measure, na_reason
from core.views import text
from core.views.workspace.scores import Evidence


def applies_to_none(found: Evidence, measure: Measure) -> str:
    """Why no query has a value."""
    said = f"applies to none of the {text.count(len(found.query_ids), 'judged query', 'judged queries')}"
    counts = found.pool_counts.reshape(-1, 5).sum(axis=0)
    grades = [grade for grade, count in enumerate(counts, 1) if count]
    if not grades or na_reason(measure, counts) is None:
        return said
    best = np.zeros_like(counts)
    best[4] = counts[grades[-1] - 1]
    if na_reason(measure, best) is not None:
        return said
    return (
        f"{said}: the grades found are {', '.join(map(str, grades))} of 1 to 5, too low for it; if the "
        "judges counted otherwise, import the judgements again with another mapping (--grades)"
    )
