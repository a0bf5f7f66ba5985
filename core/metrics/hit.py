"""Hit: whether the first K passages hold everything that is good (arXiv:2511.09545 §2.4)."""

from __future__ import annotations

import numpy as np

from core.metrics.info import Counts, Inputs, MeasureInfo, Scores, Values, or_nan


def _needed(inputs: Inputs) -> Scores:
    return or_nan(inputs.pool_counts[:, 3:].sum(axis=-1))[:, None]


def _complete(found: Scores, inputs: Inputs) -> Scores:
    # A quotient keeps NaN for a query that has nothing to find; a comparison would turn it into "no".
    return np.floor(found / _needed(inputs))


def _score(inputs: Inputs, _values: Values) -> Scores:
    return _complete(inputs.found(4), inputs)


def _ceiling(candidates: Counts, inputs: Inputs, _values: Values) -> Scores:
    reachable = candidates[..., 3:].sum(axis=-1)[..., None]
    return _complete(np.minimum(inputs.cutoffs, reachable), inputs)


HIT = MeasureInfo(
    name="Hit",
    text="1 when the first K passages hold every passage with grade 4 or 5, else 0.",
    formula="1 if #{Top(K): grade 4 or 5} = n4 + n5 else 0",
    section="arXiv:2511.09545 §2.4",
    score=_score,
    ceiling=_ceiling,
    na="No judged passage of the query has grade 4 or 5.",
)
