"""Discounted cumulative gain: nDCG as in trec_eval, and the binary one of Schwartz et al."""

from __future__ import annotations

import numpy as np

from core.metrics.classical import TREC_EVAL, least
from core.metrics.gain import best_of
from core.metrics.info import Counts, MeasureInfo, Scores, Values, rel_param
from core.metrics.inputs import Floats, Inputs, Judged, or_nan, running
from core.params import Param


def _gains(judged: Judged, values: Values) -> Floats:
    """Gain of grades 1..5."""
    linear = np.array(judged.gains, dtype=np.float64)
    return np.exp2(linear) - 1.0 if values["gain"] == "exp" else linear


def _discounts(judged: Judged) -> Floats:
    """1 / log2(rank + 1): [K, 1, 1]."""
    made: Floats = judged.once("discounts", lambda: 1.0 / np.log2(judged.cutoffs + 1.0))
    return made


def _best(counts: Counts, gains: Floats, judged: Judged, out: Scores) -> None:
    """DCG of the best ordering of passages with some grade counts [5, runs, queries], at every K."""
    best = best_of(counts, gains.reshape(5, 1, 1), judged.depth)
    out[...] = 0.0
    for kind, gain in enumerate(gains):
        if gain:
            tally = best(kind)
            # What the tally grows by at a cutoff is what stands at that rank: 0 or 1.
            out[:1] += gain * tally[:1]
            out[1:] += gain * (tally[1:] - tally[:-1])
    out *= _discounts(judged)
    running(out)


def _ideal(judged: Judged, values: Values) -> Floats:
    def make() -> Floats:
        made = np.empty((judged.depth, *judged.counts.shape[1:]))
        _best(judged.counts, _gains(judged, values), judged, made)
        return or_nan(made)

    made: Floats = judged.once(("dcg", values["gain"]), make)
    return made


def _score(inputs: Inputs, values: Values, out: Scores) -> None:
    # The last element stands for -1, the empty slot.
    table = np.concatenate([[0.0], _gains(inputs.judged, values), [0.0]])
    table.take(inputs.grades.astype(np.intp), out=out, mode="wrap")
    out *= _discounts(inputs.judged)
    running(out)
    out /= _ideal(inputs.judged, values)


def _ceiling(inputs: Inputs, values: Values, out: Scores) -> None:
    _best(inputs.candidate_counts(), _gains(inputs.judged, values), inputs.judged, out)
    out /= _ideal(inputs.judged, values)


def _of_retrieved(inputs: Inputs, values: Values, out: Scores) -> None:
    discounts = _discounts(inputs.judged)
    np.multiply(inputs.grades >= least(values), discounts, out=out)
    running(out)
    best = np.concatenate([[1.0], np.cumsum(discounts.ravel())])  # nothing found: 0 / 1
    out /= best.take(inputs.found(least(values)).astype(np.intp))


NDCG = MeasureInfo(
    name="nDCG",
    text="Discounted cumulative gain of the first K over that of the best ordering of all judged passages.",
    formula=(
        "DCG(K) / ideal DCG(K); DCG = sum over ranks i ≤ K of gain / log2(i + 1); gain = the grade as the "
        "judges gave it (linear) or 2^grade − 1 (exp), 0 for unjudged and for grades below 0"
    ),
    section=f"Järvelin and Kekäläinen 2002; {TREC_EVAL}",
    score=_score,
    ceiling=_ceiling,
    na="No judged passage of the query has a gain.",
    params=(Param(name="gain", default="linear", choices=("linear", "exp"), text="Grade, or 2^grade − 1"),),
    differs="trec_eval scores 0 where no judged passage has a gain; here the query is left out.",
)
NDCG_FOUND = MeasureInfo(
    name="nDCG-found",
    text="Binary nDCG against the best ordering of what was found: order only, whatever is missing.",
    formula=(
        "DCG(K) / DCG of the np relevant passages of Top(K) put first; DCG = sum over ranks i ≤ K with a "
        "relevant passage of 1 / log2(i + 1); 0 where np = 0"
    ),
    section="Schwartz et al., How important is recall…, §2.1",
    score=_of_retrieved,
    params=(rel_param(),),
    differs="nDCG has the ideal of all judged passages; this one has the ideal of those that were retrieved.",
)
