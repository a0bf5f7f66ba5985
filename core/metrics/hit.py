"""Hit: whether the first K passages hold everything that is good (arXiv:2511.09545 §2.4)."""

from __future__ import annotations

import numpy as np

from core.metrics.info import Inputs, MeasureInfo, Scores, Tally, Values


def _complete(found: Tally, inputs: Inputs) -> Scores:
    needed = inputs.pool_counts[:, 3:].sum(axis=-1)[:, None]
    return np.where(needed > 0, found >= needed, np.nan)


def _score(inputs: Inputs, _values: Values) -> Scores:
    return _complete(inputs.found(4), inputs)


def _ceiling(inputs: Inputs, _values: Values) -> Scores:
    return _complete(inputs.reachable(4), inputs)


HIT = MeasureInfo(
    name="Hit",
    text="1 when the first K passages hold every passage with grade 4 or 5, else 0.",
    formula="1 if #{Top(K): grade 4 or 5} = n4 + n5 else 0",
    section="arXiv:2511.09545 §2.4",
    score=_score,
    ceiling=_ceiling,
    na="No judged passage of the query has grade 4 or 5.",
)
