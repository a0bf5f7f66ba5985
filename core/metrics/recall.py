"""N-Recall: what Top(K) holds of the good passages that fit in K (arXiv:2511.09545 §2.4)."""

from __future__ import annotations

import numpy as np

from core.metrics.info import Inputs, MeasureInfo, Scores, Tally, Values, or_nan


def _info(name: str, grade: int, what: str, count: str) -> MeasureInfo:
    def share(found: Tally, inputs: Inputs) -> Scores:
        present = inputs.pool_counts[:, grade - 1 :].sum(axis=-1)[:, None]
        return found / or_nan(np.minimum(inputs.cutoffs, present))

    def score(inputs: Inputs, _values: Values) -> Scores:
        return share(inputs.found(grade), inputs)

    def ceiling(inputs: Inputs, _values: Values) -> Scores:
        return share(inputs.reachable(grade), inputs)

    return MeasureInfo(
        name=name,
        text=f"Share of the passages with {what}, as many as fit in K, that the first K hold.",
        formula=f"#{{Top(K): {what}}} / min(K, {count})",
        section="arXiv:2511.09545 §2.4",
        score=score,
        ceiling=ceiling,
        na=f"No judged passage of the query has {what}.",
    )


N_RECALL4 = _info("N-Recall4+", 4, "grade 4 or 5", "n4 + n5")
N_RECALL5 = _info("N-Recall5", 5, "grade 5", "n5")
