"""PROC and %PROC: what the best ordering of the candidate pool reaches, and how much of it is reached.

Pool-restricted oracle ceiling (arXiv:2511.09545 §5.1, A.8). The denominator stays the ideal of the whole
golden set. So PROC below 1 is evidence that retrieval never offered, and PROC above the actual value is
evidence that was offered but ordered too low:
1 = actual + ordering headroom (PROC − actual) + retrieval headroom (1 − PROC).
The convention of the pool ("dense@50", "rrf100@100", …) is part of the number.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from core.metrics.info import MeasureInfo, Scores, Values
from core.metrics.inputs import Inputs, or_nan

SECTION = "arXiv:2511.09545 §5.1, A.8"


def with_ceiling(info: MeasureInfo) -> tuple[MeasureInfo, ...]:
    """The measure and, where a ceiling is defined for it, its PROC and its %PROC."""
    ceiling = info.ceiling
    if ceiling is None:
        return (info,)

    def share_of_proc(inputs: Inputs, values: Values, out: Scores) -> None:
        np.divide(inputs.value(info, values), or_nan(inputs.value(ceiling_info, values)), out=out)

    name = f"PROC[{info.name}]"
    ceiling_info = replace(
        info,
        name=name,
        text=f"{info.name} of the best ordering of the run's candidate pool.",
        formula=f"{info.name}@K of the candidates in their best order, over the whole golden set's ideal",
        section=SECTION,
        score=ceiling,
        ceiling=None,
        needs=info.needs | {"pool"},
        differs="",
    )
    share_info = replace(
        ceiling_info,
        name=f"%{name}",
        text="Share of its ceiling that a ranking reaches; above 1 only with passages from outside the pool.",
        formula=f"{info.name}@K / {name}@K per query; published as mean({info.name}@K) / mean({name}@K)",
        score=share_of_proc,
        na=" ".join(part for part in (info.na, "The ceiling is 0 at this K.") if part),
        high=math.inf,
    )
    return info, ceiling_info, share_info


def ratio_of_means(actual: Scores, ceiling: Scores) -> NDArray[np.float64]:
    """%PROC as published: mean(actual) / mean(ceiling) over queries, NA of either left out of both.

    Args:
        actual: [..., Q, D].
        ceiling: [..., Q, D] of the same shape.

    Returns:
        [..., D]; NaN where no query applies or the mean ceiling is 0.
    """
    both = ~(np.isnan(actual) | np.isnan(ceiling))
    reached = np.sum(actual, axis=-2, where=both)
    return np.asarray(reached / or_nan(np.sum(ceiling, axis=-2, where=both)))
