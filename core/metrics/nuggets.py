"""Measures of nuggets: facts that an answer should hold and that passages support (arXiv:2504.15068).

Grades cannot show that ten passages say the same thing. Top(K) supports a set of nuggets: each counts once,
however many passages hold it. Support is strict: partial support does not count.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from core.arrays import Floats
from core.metrics.info import MeasureInfo, Scores, Values
from core.metrics.inputs import Inputs, or_nan, running

_PAPER = "The Great Nugget Recall, Pradeep et al. 2025 (arXiv:2504.15068): "
_NONE = "The query has no nuggets."


def _count(sets: NDArray[np.uint64]) -> Floats:
    return np.asarray(np.bitwise_count(sets), dtype=np.float64)


def _covered(inputs: Inputs, out: Scores, which: int) -> None:
    """Fill in the share of the listed nuggets (0 = all, 1 = the vital ones) that Top(K) supports."""
    listed = inputs.nuggets_listed()[which]
    np.divide(_count(inputs.nuggets_found() & listed), or_nan(_count(listed)), out=out)


def _all(inputs: Inputs, values: Values, out: Scores) -> None:  # noqa: ARG001 - as every measure
    _covered(inputs, out, 0)


def _vital(inputs: Inputs, values: Values, out: Scores) -> None:  # noqa: ARG001 - as every measure
    _covered(inputs, out, 1)


def _number(inputs: Inputs, values: Values, out: Scores) -> None:  # noqa: ARG001 - as every measure
    listed = inputs.nuggets_listed()[0]
    np.add(_count(inputs.nuggets_found() & listed), 0 * or_nan(_count(listed)), out=out)


def _repeated(inputs: Inputs, values: Values, out: Scores) -> None:  # noqa: ARG001 - as every measure
    mentions = _count(inputs.nuggets())
    running(mentions)
    np.divide(mentions - _count(inputs.nuggets_found()), or_nan(mentions), out=out)


COVERAGE = MeasureInfo(
    name="NuggetCoverage",
    text="Share of a question's nuggets (facts of a good answer) that the first K passages support.",
    formula="#{nuggets that a passage of Top(K) supports} / #{nuggets}",
    section=f"{_PAPER}A_strict, of passages instead of an answer",
    score=_all,
    na=_NONE,
    needs=frozenset({"nuggets"}),
)
VITAL = MeasureInfo(
    name="VitalCoverage",
    text="The same of the vital nuggets alone: those that a good answer must hold.",
    formula="#{vital nuggets that a passage of Top(K) supports} / #{vital nuggets}",
    section=f"{_PAPER}V_strict, of passages instead of an answer",
    score=_vital,
    na="The query has no vital nuggets.",
    needs=frozenset({"nuggets"}),
)
FOUND = MeasureInfo(
    name="Nuggets",
    text="How many of a question's nuggets the first K passages support.",
    formula="#{nuggets that a passage of Top(K) supports}",
    section=f"{_PAPER}A_strict, not divided",
    score=_number,
    na=_NONE,
    unit="nuggets",
    high=math.inf,
    needs=frozenset({"nuggets"}),
)
REDUNDANCY = MeasureInfo(
    name="NuggetRedundancy",
    text="Of all times that the first K passages support a nugget, the share that an earlier one did before.",
    formula="1 − #{nuggets that Top(K) supports} / #{pairs of a passage of Top(K) and a nugget it supports}",
    section="This product: what the coverage of the same nuggets leaves out",
    score=_repeated,
    na="None of the first K passages supports a nugget.",
    higher_is_better=False,
    needs=frozenset({"nuggets"}),
)
