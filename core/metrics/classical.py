"""The measures of trec_eval's world: set-based and rank-based over relevant passages.

Relevant is what has at least grade `rel`, 1 to 5 after the golden set's mapping: with binary judgements
(0→1, 1→5) any `rel` from 2 to 5 is trec_eval's relevance. Unjudged passages are not relevant. Where nothing
is relevant a share of the relevant passages is not applicable; trec_eval scores 0 there.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from core.metrics.gain import best_of
from core.metrics.info import Counts, MeasureInfo, Scores, Values, rel_param
from core.metrics.inputs import Floats, Inputs, Judged, Tally, count_marks, or_nan, running
from core.params import Param

TREC_EVAL = "trec_eval 9; ir-measures 0.4"
_NONE = "No judged passage of the query is relevant."
_ZERO = "trec_eval scores 0 where no passage of the query is relevant; here the query is left out."

Fill = Callable[[Inputs, Values, Scores], None]
FromTally = Callable[[Tally, Inputs, Values, Scores], None]


def least(values: Values) -> int:
    """The relevance threshold."""
    return int(values["rel"])


def _of_found(fill: FromTally) -> Fill:
    """A measure that depends on the number of relevant passages in Top(K) only."""
    return lambda inputs, values, out: fill(inputs.found(least(values)), inputs, values, out)


def _of_reachable(fill: FromTally) -> Fill:
    """What it reaches with the candidates in their best order."""
    return lambda inputs, values, out: fill(inputs.reachable(least(values)), inputs, values, out)


def _precision(found: Tally, inputs: Inputs, _values: Values, out: Scores) -> None:
    np.divide(found, inputs.judged.cutoffs, out=out)


def _recall(found: Tally, inputs: Inputs, values: Values, out: Scores) -> None:
    np.divide(found, inputs.judged.or_nan(least(values)), out=out)


def _f1(found: Tally, inputs: Inputs, values: Values, out: Scores) -> None:
    np.divide(found, 0.5 * (inputs.judged.cutoffs + inputs.judged.or_nan(least(values))), out=out)


def _success(found: Tally, _inputs: Inputs, _values: Values, out: Scores) -> None:
    np.greater(found, 0, out=out)


def _reciprocal_rank(found: Tally, _inputs: Inputs, _values: Values, out: Scores) -> None:
    first = 1.0 + count_marks(found == 0)
    np.multiply(found > 0, 1.0 / first, out=out)


def _average_precision(inputs: Inputs, values: Values, out: Scores) -> None:
    relevant = (inputs.grades >= least(values)).view(np.int8)
    np.divide(inputs.found(least(values)) * relevant, inputs.judged.cutoffs, out=out)
    running(out)
    out /= inputs.judged.or_nan(least(values))


def _best_bias(found: Tally, _inputs: Inputs, values: Values, out: Scores) -> None:
    """All relevant candidates first: 1 − p to the power of their number."""
    np.subtract(1.0, np.power(float(values["p"]), found), out=out)


def _rank_biased(inputs: Inputs, values: Values, out: Scores) -> None:
    persistence = float(values["p"])
    looked_at = (1.0 - persistence) * persistence ** (inputs.judged.cutoffs - 1.0)
    np.multiply(inputs.grades >= least(values), looked_at, out=out)
    running(out)


P = MeasureInfo(
    name="P",
    text="Precision: share of the first K slots that hold a relevant passage.",
    formula="#{Top(K): relevant} / K",
    section=TREC_EVAL,
    score=_of_found(_precision),
    ceiling=_of_reachable(_precision),
    params=(rel_param(),),
)
R = MeasureInfo(
    name="R",
    text="Recall: share of all relevant passages that the first K hold.",
    formula="#{Top(K): relevant} / Np, Np = relevant judged passages",
    section=TREC_EVAL,
    score=_of_found(_recall),
    ceiling=_of_reachable(_recall),
    na=_NONE,
    params=(rel_param(),),
    differs=_ZERO,
)
F1 = MeasureInfo(
    name="F1",
    text="Harmonic mean of precision and recall at K.",
    formula="2·#{Top(K): relevant} / (K + Np)",
    section="van Rijsbergen 1979; trec_eval's set_F over the first K",
    score=_of_found(_f1),
    ceiling=_of_reachable(_f1),
    na=_NONE,
    params=(rel_param(),),
    differs=f"{_ZERO} set_F divides by the length of a ranking that is shorter than K; here by K.",
)
SUCCESS = MeasureInfo(
    name="Success",
    text="1 when the first K passages hold a relevant one, else 0.",
    formula="1 if #{Top(K): relevant} > 0 else 0",
    section=TREC_EVAL,
    score=_of_found(_success),
    ceiling=_of_reachable(_success),
    params=(rel_param(),),
)
RR = MeasureInfo(
    name="RR",
    text="Reciprocal rank of the first relevant passage, 0 when the first K hold none; its mean is MRR.",
    formula="1 / rank of the first relevant passage if that rank ≤ K else 0",
    section=TREC_EVAL,
    score=_of_found(_reciprocal_rank),
    ceiling=_of_reachable(_success),
    params=(rel_param(),),
)
AP = MeasureInfo(
    name="AP",
    text="Average precision: precision at the rank of every relevant passage, averaged; its mean is MAP.",
    formula="1/Np · sum over ranks i ≤ K with a relevant passage of #{Top(i): relevant} / i",
    section=TREC_EVAL,
    score=_average_precision,
    ceiling=_of_reachable(_recall),
    na=_NONE,
    params=(rel_param(),),
    differs=_ZERO,
)
RBP = MeasureInfo(
    name="RBP",
    text="Rank-biased precision: a reader goes on from each passage to the next with probability p.",
    formula="(1 − p) · sum over ranks i ≤ K with a relevant passage of p^(i − 1)",
    section="Moffat and Zobel 2008",
    score=_rank_biased,
    ceiling=_of_reachable(_best_bias),
    params=(
        Param(name="p", default=0.8, low=0, high=0.999, step=0.05, text="Persistence of the reader"),
        rel_param(),
    ),
)


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
