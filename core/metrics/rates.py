"""Shares of the first K slots: good, harmful and unjudged passages (arXiv:2511.09545 §2.4).

The divisor is K even when the ranking is shorter: an empty slot is neither good, nor harmful, nor a hole.
"""

from __future__ import annotations

from core.metrics.info import Inputs, MeasureInfo, Scores, Tally, Values

SECTION = "arXiv:2511.09545 §2.4"


def _precision(inputs: Inputs, _values: Values) -> Scores:
    return _share(inputs.found(4), inputs)


def _precision_ceiling(inputs: Inputs, _values: Values) -> Scores:
    return _share(inputs.reachable(4), inputs)


def _share(count: Tally, inputs: Inputs) -> Scores:
    share: Scores = count / inputs.cutoffs
    return share


def _harm(inputs: Inputs, _values: Values) -> Scores:
    return _share(inputs.found(1, 2), inputs)


def _harm_upper(inputs: Inputs, _values: Values) -> Scores:
    return _share(inputs.found(1, 2) + inputs.found(0, 0), inputs)


def _hole(inputs: Inputs, _values: Values) -> Scores:
    return _share(inputs.found(0, 0), inputs)


PRECISION4 = MeasureInfo(
    name="Precision4+",
    text="Share of the first K slots that hold a passage with grade 4 or 5.",
    formula="#{Top(K): grade 4 or 5} / K",
    section=SECTION,
    score=_precision,
    ceiling=_precision_ceiling,
)
HARM = MeasureInfo(
    name="Harm",
    text="Share of the first K slots that hold a passage judged 1 or 2, which can mislead the generator.",
    formula="#{Top(K): judged, grade 1 or 2} / K",
    section=SECTION,
    score=_harm,
    higher_is_better=False,
)
HARM_UPPER = MeasureInfo(
    name="HarmUpper",
    text="Upper bound of Harm: every unjudged passage counted as harmful.",
    formula="Harm@K + Hole@K",
    section=SECTION,
    score=_harm_upper,
    higher_is_better=False,
)
HOLE = MeasureInfo(
    name="Hole",
    text="Share of the first K slots that hold an unjudged passage; the less, the sounder the other numbers.",
    formula="#{Top(K): unjudged} / K",
    section=SECTION,
    score=_hole,
    higher_is_better=False,
)
