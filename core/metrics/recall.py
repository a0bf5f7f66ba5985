"""N-Recall: what Top(K) holds of the good passages that fit in K (arXiv:2511.09545 §2.4)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from core.metrics.info import MeasureInfo, Scores, Values, rel_param
from core.metrics.inputs import Floats, Inputs, Judged, Tally

SECTION = "arXiv:2511.09545 §2.4"


def _fitting(judged: Judged, grade: int) -> Floats:
    """min(K, good passages) as a divisor at every K."""
    made: Floats = judged.once(("fitting", grade), lambda: np.minimum(judged.cutoffs, judged.or_nan(grade)))
    return made


def _share(
    found: Callable[[Inputs, int], Tally], grade: int | None
) -> Callable[[Inputs, Values, Scores], None]:
    def fill(inputs: Inputs, values: Values, out: Scores) -> None:
        least = grade or int(values["rel"])
        np.divide(found(inputs, least), _fitting(inputs.judged, least), out=out)

    return fill


def _info(name: str, grade: int | None, what: str, count: str) -> MeasureInfo:
    return MeasureInfo(
        name=name,
        text=f"Share of the passages with {what}, as many as fit in K, that the first K hold.",
        formula=f"#{{Top(K): {what}}} / min(K, {count})",
        section=SECTION,
        score=_share(lambda inputs, least: inputs.found(least), grade),
        ceiling=_share(lambda inputs, least: inputs.reachable(least), grade),
        na=f"No judged passage of the query has {what}.",
        params=() if grade else (rel_param(),),
    )


N_RECALL4 = _info("N-Recall4+", 4, "grade 4 or 5", "n4 + n5")
N_RECALL5 = _info("N-Recall5", 5, "grade 5", "n5")
N_RECALL = _info("N-Recall", None, "grade rel or more", "n_rel + … + n5")
