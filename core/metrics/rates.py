"""Shares of the first K slots: good, harmful and unjudged passages (arXiv:2511.09545 §2.4).

The divisor is K even when the ranking is shorter: an empty slot is neither good, nor harmful, nor a hole.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from core.metrics.info import MeasureInfo, Scores, Values
from core.metrics.inputs import Inputs, Tally

SECTION = "arXiv:2511.09545 §2.4"


def _share(count: Callable[[Inputs], Tally]) -> Callable[[Inputs, Values, Scores], None]:
    def fill(inputs: Inputs, _values: Values, out: Scores) -> None:
        np.divide(count(inputs), inputs.judged.cutoffs, out=out)

    return fill


PRECISION4 = MeasureInfo(
    name="Precision4+",
    text="Share of the first K slots that hold a passage with grade 4 or 5.",
    formula="#{Top(K): grade 4 or 5} / K",
    section=SECTION,
    score=_share(lambda inputs: inputs.found(4)),
    ceiling=_share(lambda inputs: inputs.reachable(4)),
)
HARM = MeasureInfo(
    name="Harm",
    text="Share of the first K slots that hold a passage judged 1 or 2, which can mislead the generator.",
    formula="#{Top(K): judged, grade 1 or 2} / K",
    section=SECTION,
    score=_share(lambda inputs: inputs.found(1, 2)),
    higher_is_better=False,
)
HARM_UPPER = MeasureInfo(
    name="HarmUpper",
    text="Upper bound of Harm: every unjudged passage counted as harmful.",
    formula="Harm@K + Hole@K",
    section=SECTION,
    score=_share(lambda inputs: inputs.found(0, 2)),
    higher_is_better=False,
)
HOLE = MeasureInfo(
    name="Hole",
    text="Share of the first K slots that hold an unjudged passage; the less, the sounder the other numbers.",
    formula="#{Top(K): unjudged} / K",
    section=SECTION,
    score=_share(lambda inputs: inputs.found(0, 0)),
    higher_is_better=False,
)
