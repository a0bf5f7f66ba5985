"""Precision against recall in one number, with and without knowing all that is relevant.

Schwartz, Vasilyev and Sawaya, How important is recall for measuring retrieval quality?, §2.1. np are the
relevant passages of Top(K), nn = K − np the rest of its slots (unjudged or empty ones too), Np is all that is
relevant.
"""

from __future__ import annotations

import math

import numpy as np

from core.metrics.classical import least
from core.metrics.info import MeasureInfo, Scores, Values, rel_param
from core.metrics.inputs import Inputs, Tally, or_nan
from core.params import Param

SECTION = "Schwartz et al., How important is recall…, §2.1"


def _alpha(text: str) -> tuple[Param, Param]:
    return Param(name="alpha", default=0.5, low=0, high=1, step=0.05, text=text), rel_param()


def _f(found: Tally, inputs: Inputs, values: Values, out: Scores) -> None:
    alpha = float(values["alpha"])
    all_relevant = inputs.judged.or_nan(least(values))
    np.divide(found, alpha * inputs.judged.cutoffs + (1.0 - alpha) * all_relevant, out=out)


def _score(inputs: Inputs, values: Values, out: Scores) -> None:
    _f(inputs.found(least(values)), inputs, values, out)


def _ceiling(inputs: Inputs, values: Values, out: Scores) -> None:
    _f(inputs.reachable(least(values)), inputs, values, out)


def _estimated(inputs: Inputs, values: Values, out: Scores) -> None:
    alpha = float(values["alpha"])
    np.multiply(inputs.found_ahead(least(values)), 1.0 - alpha, out=out)
    out += alpha * inputs.judged.cutoffs
    np.divide(inputs.found(least(values)), or_nan(out), out=out)


def _t(inputs: Inputs, values: Values, out: Scores) -> None:
    _minus(inputs, values, out)
    out /= inputs.judged.cutoffs
    _plus(inputs, values, out)


def _unnormalised(inputs: Inputs, values: Values, out: Scores) -> None:
    _minus(inputs, values, out)
    _plus(inputs, values, out)


def _minus(inputs: Inputs, values: Values, out: Scores) -> None:
    """−alpha·nn."""
    np.subtract(inputs.found(least(values)), inputs.judged.cutoffs, out=out)
    out *= float(values["alpha"])


def _plus(inputs: Inputs, values: Values, out: Scores) -> None:
    """Add (1 − alpha)·np."""
    np.multiply(inputs.found(least(values)), 1.0 - float(values["alpha"]), out=inputs.scratch)
    out += inputs.scratch


_NEGATIVES = "Weight of passages that are not relevant against those that are"

F = MeasureInfo(
    name="F",
    text="Weighted harmonic mean of precision (alpha) and recall (1 − alpha) at K.",
    formula="np / (alpha·K + (1 − alpha)·Np)",
    section=f"van Rijsbergen 1979; {SECTION}",
    score=_score,
    ceiling=_ceiling,
    na="No judged passage of the query is relevant.",
    params=_alpha("Weight of precision against recall"),
)
F_E = MeasureInfo(
    name="F_e",
    text="F without knowing all that is relevant: those in Top(2K) stand for it.",
    formula="np / (alpha·K + (1 − alpha)·#{Top(2K): relevant})",
    section=SECTION,
    score=_estimated,
    na="alpha is 0 and nothing relevant is in Top(2K).",
    params=_alpha("Weight of precision against recall"),
    ahead=2,
)
T = MeasureInfo(
    name="T",
    text="Relevant passages in Top(K) minus the share of the others; needs no knowledge of what is missing.",
    formula="(1 − alpha)·np − alpha·nn / K",
    section=SECTION,
    score=_t,
    params=_alpha(_NEGATIVES),
    unit="passages",
    low=-1.0,
    high=math.inf,
)
T_U = MeasureInfo(
    name="T_u",
    text="T without dividing the passages that are not relevant by K.",
    formula="(1 − alpha)·np − alpha·nn",
    section=SECTION,
    score=_unnormalised,
    params=_alpha(_NEGATIVES),
    unit="passages",
    low=-math.inf,
    high=math.inf,
)
