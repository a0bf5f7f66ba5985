"""Set-based and rank-based measures over relevant passages, as trec_eval defines them.

A passage is relevant from grade `rel` on, 1 to 5 after the golden set's mapping: with binary judgements
(0→1, 1→5) any `rel` from 2 to 5 is trec_eval's relevance. Unjudged passages are not relevant. If nothing
is relevant, a share of the relevant passages is not applicable; trec_eval scores 0 in that case.

F, F_e, T and T_u weigh precision against recall in one number, knowing all relevant passages or not:
Schwartz, Vasilyev and Sawaya, How important is recall for measuring retrieval quality?, §2.1. np is the
number of relevant passages in Top(K), nn = K − np that of its other slots (including unjudged or empty ones),
and Np that of all relevant passages.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.arrays import Floats, Mask
from core.metrics.gain import best_of
from core.metrics.info import Counts, Fill, MeasureInfo, Scores, Values, rel_param
from core.metrics.inputs import Inputs, Judged, Tally, count_marks, or_nan, running
from core.params import Param

TREC_EVAL = "trec_eval 9; ir-measures 0.4"
_RECALL = "Schwartz et al., How important is recall…, §2.1"
_NONE = "No judged passage of the query is relevant."
_ZERO = "trec_eval scores 0 where no passage of the query is relevant; here the query is left out."


@dataclass(frozen=True, slots=True)
class Relevant:
    """The relevant passages that a measure counts."""

    found: Tally  # how many of them are in Top(K), or in the best K candidates, at every K
    judged: Judged  # judgements of the queries
    least: int  # the grade from which on a passage is relevant
    values: Values  # values of the measure's parameters

    @property
    def slots(self) -> Floats:
        """K, at every K."""
        return self.judged.cutoffs

    @property
    def known(self) -> Floats:
        """How many relevant passages are judged in all, as a divisor."""
        return self.judged.or_nan(self.least)


MeasureValue = Callable[[Relevant], NDArray[Any]]  # A measure's value at every K


def least(values: Values) -> int:
    """Return the relevance threshold."""
    return int(values["rel"])


def counting(value: MeasureValue, *, grade: int | None = None) -> tuple[Fill, Fill]:
    """Return score and ceiling of a measure that counts relevant passages.

    The score counts those in Top(K), the ceiling those in the best order of the candidates.

    Args:
        grade: The grade from which on a passage is relevant; None = the parameter `rel`.
    """

    def score(inputs: Inputs, values: Values, out: Scores) -> None:
        low = grade or least(values)
        out[...] = value(Relevant(inputs.found(low), inputs.judged, low, values))

    def ceiling(inputs: Inputs, values: Values, out: Scores) -> None:
        low = grade or least(values)
        out[...] = value(Relevant(inputs.reachable(low), inputs.judged, low, values))

    return score, ceiling


def _measure(value: MeasureValue, **declared: Any) -> MeasureInfo:  # noqa: ANN401 - fields of `MeasureInfo`
    """Return a measure that counts relevant passages, by default one of trec_eval's."""
    score, ceiling = counting(value)
    usual: dict[str, Any] = {
        "section": TREC_EVAL,
        "params": (rel_param(),),
        "score": score,
        "ceiling": ceiling,
    }
    return MeasureInfo(**{**usual, **declared})


def _recall(of: Relevant) -> Floats:
    return of.found / of.known


def _success(of: Relevant) -> Mask:
    return of.found > 0


def _reciprocal_rank(of: Relevant) -> Floats:
    return _success(of) * (1.0 / (1.0 + count_marks(of.found == 0)))


def _average_precision(inputs: Inputs, values: Values, out: Scores) -> None:
    relevant = (inputs.grades >= least(values)).view(np.int8)
    np.divide(inputs.found(least(values)) * relevant, inputs.judged.cutoffs, out=out)
    running(out)
    out /= inputs.judged.or_nan(least(values))


_EPSILON = 1e-5  # trec_eval's constant, which keeps rates from being 0 / 0


def _inferred_precision(inputs: Inputs, values: Values, out: Scores) -> None:
    """Sum the precision expected at each relevant passage from the judged passages above it."""
    low = least(values)
    relevant = (inputs.grades >= low).view(np.int8)
    found = inputs.found(low) - relevant  # above the rank
    others = inputs.found(1, low - 1) if low > 1 else 0
    sampled = found + others + (inputs.found(0, 0) if values["unjudged"] == POOL else 0)
    np.divide(found + _EPSILON, found + others + 2 * _EPSILON, out=out)
    out *= sampled
    out += 1.0
    out *= relevant
    out /= inputs.judged.cutoffs
    running(out)
    out /= inputs.judged.or_nan(low)


def _rank_biased(inputs: Inputs, values: Values, out: Scores) -> None:
    persistence = float(values["p"])
    looked_at = (1.0 - persistence) * persistence ** (inputs.judged.cutoffs - 1.0)
    np.multiply(inputs.grades >= least(values), looked_at, out=out)
    running(out)


P = _measure(
    lambda of: of.found / of.slots,
    name="P",
    text="Precision: share of the first K slots that hold a relevant passage.",
    formula="#{Top(K): relevant} / K",
    differs="set_P divides by the length of a ranking that is shorter than K; here by K.",
)
R = _measure(
    _recall,
    name="R",
    text="Recall: share of all relevant passages that the first K hold.",
    formula="#{Top(K): relevant} / Np, Np = relevant judged passages",
    na=_NONE,
    differs=_ZERO,
)
F1 = _measure(
    lambda of: of.found / (0.5 * (of.slots + of.known)),
    name="F1",
    text="Harmonic mean of precision and recall at K.",
    formula="2·#{Top(K): relevant} / (K + Np)",
    section="van Rijsbergen 1979; trec_eval's set_F over the first K",
    na=_NONE,
    differs=f"{_ZERO} set_F divides by the length of a ranking that is shorter than K; here by K.",
)
SUCCESS = _measure(
    _success,
    name="Success",
    binary=True,
    text="1 when the first K passages hold a relevant one, else 0.",
    formula="1 if #{Top(K): relevant} > 0 else 0",
)
RR = _measure(
    _reciprocal_rank,
    name="RR",
    text="Reciprocal rank of the first relevant passage, 0 when the first K hold none; its mean is MRR.",
    formula="1 / rank of the first relevant passage if that rank ≤ K else 0",
    ceiling=SUCCESS.ceiling,
)
AP = _measure(
    _recall,
    name="AP",
    text="Average precision: precision at the rank of every relevant passage, averaged; its mean is MAP.",
    formula="1/Np · sum over ranks i ≤ K with a relevant passage of #{Top(i): relevant} / i",
    score=_average_precision,
    na=_NONE,
    differs=_ZERO,
)
OUTSIDE, POOL = "outside", "pool"
INF_AP = _measure(
    _recall,
    name="infAP",
    text="AP that is expected where a random sample of a pool is judged: unjudged passages are no misses.",
    formula=(
        "1/Np · sum over ranks i ≤ K with a relevant passage of (1 + s·(r + ε)/(r + n + 2ε)) / i; r, n = "
        "relevant and other judged passages above it; s = r + n, and the unjudged ones where they are of the "
        "pool; ε = 0.00001"
    ),
    section=f"Yilmaz and Aslam 2006; {TREC_EVAL}",
    score=_inferred_precision,
    ceiling=None,
    na=_NONE,
    params=(
        rel_param(),
        Param(
            name="unjudged",
            default=OUTSIDE,
            choices=(OUTSIDE, POOL),
            text="Where unjudged passages are from: outside of the pool that was sampled, or of it",
        ),
    ),
    differs=f"{_ZERO} trec_eval tells both kinds of unjudged apart, passage by passage (−1 in the qrels).",
)


def _gains(judged: Judged, values: Values) -> Floats:
    linear = np.array(judged.gains, dtype=np.float64)
    return np.exp2(linear) - 1.0 if values["gain"] == "exp" else linear


def discounts(judged: Judged) -> Floats:
    """Return 1 / log2(rank + 1): [K, 1, 1]."""
    return judged.once("discounts", lambda: 1.0 / np.log2(judged.cutoffs + 1.0))


def discounted_best(counts: Counts, gains: Floats, discount: Floats, out: Scores) -> None:
    """Compute the discounted gain of the best ordering of passages of several kinds, at every K.

    Args:
        counts: Integers [kinds, runs, queries].
        gains: The gain of a passage of each kind, float64 [kinds].
        discount: The weight of each rank, falling with the rank, float64 [K, 1, 1].
    """
    best = best_of(counts, gains.reshape(-1, 1, 1), len(out))
    out[...] = 0.0
    for kind, gain in enumerate(gains):
        if gain:
            tally = best(kind)
            # The tally grows at a cutoff by the value at that rank: 0 or 1.
            out[:1] += gain * tally[:1]
            out[1:] += gain * (tally[1:] - tally[:-1])
    out *= discount
    running(out)


def _ideal(judged: Judged, values: Values) -> Floats:
    def make() -> Floats:
        ideal = np.empty((judged.depth, *judged.counts.shape[1:]))
        discounted_best(judged.counts, _gains(judged, values), discounts(judged), ideal)
        return or_nan(ideal)

    return judged.once(("dcg", values["gain"]), make)


def _score(inputs: Inputs, values: Values, out: Scores) -> None:
    # The last element stands for -1, the empty slot.
    table = np.concatenate([[0.0], _gains(inputs.judged, values), [0.0]])
    table.take(inputs.grades.astype(np.intp), out=out, mode="wrap")
    out *= discounts(inputs.judged)
    running(out)
    out /= _ideal(inputs.judged, values)


def _ceiling(inputs: Inputs, values: Values, out: Scores) -> None:
    judged = inputs.judged
    discounted_best(inputs.candidate_counts(), _gains(judged, values), discounts(judged), out)
    out /= _ideal(inputs.judged, values)


def _of_retrieved(inputs: Inputs, values: Values, out: Scores) -> None:
    discount = discounts(inputs.judged)
    np.multiply(inputs.grades >= least(values), discount, out=out)
    running(out)
    best = np.concatenate([[1.0], np.cumsum(discount.ravel())])  # nothing found: 0 / 1
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


def _satisfied(judged: Judged, values: Values) -> Floats:
    """Return the chance that a passage of grade 1..5 satisfies the reader."""
    above = np.maximum(np.array(judged.gains, dtype=np.float64) - judged.gains[0], 0.0)
    most = float(values["most"]) or float(above.max())
    return np.asarray(np.minimum((np.exp2(above) - 1.0) / 2.0**most, 1.0))


def _cascade(stops: Floats, judged: Judged, out: Scores) -> None:
    """Sum over the ranks the chance that the reader stops at a rank, divided by the rank."""
    np.divide(stops, judged.cutoffs, out=out)
    out[1:] *= np.cumprod(1.0 - stops, axis=0)[:-1]
    running(out)


def _expected_rank(inputs: Inputs, values: Values, out: Scores) -> None:
    # The last element stands for -1, the empty slot.
    table = np.concatenate([[0.0], _satisfied(inputs.judged, values), [0.0]])
    _cascade(table.take(inputs.grades.astype(np.intp), mode="wrap"), inputs.judged, out)


def _best_expected(inputs: Inputs, values: Values, out: Scores) -> None:
    chances = _satisfied(inputs.judged, values)
    best = best_of(inputs.candidate_counts(), chances.reshape(-1, 1, 1), len(out))
    stops = np.zeros(inputs.shape)
    for kind, chance in enumerate(chances):
        stops += chance * np.diff(best(kind), axis=0, prepend=0)
    _cascade(stops, inputs.judged, out)


ERR = MeasureInfo(
    name="ERR",
    text="Expected reciprocal rank: a reader stops at each passage with a chance that rises with its grade.",
    formula=(
        "sum over ranks i ≤ K of R(i)/i · product over j < i of (1 − R(j)); R = min(1, (2^g − 1)/2^most), "
        "g = the grade as the judges gave it, counted from that of grade 1; 0 for unjudged"
    ),
    section="Chapelle et al. 2009",
    score=_expected_rank,
    ceiling=_best_expected,
    params=(
        Param(
            name="most",
            default=0,
            low=0,
            high=30,
            step=1,
            text="Highest grade of the scale, counted from 0; 0 = the highest that the judges gave",
        ),
    ),
    differs="gdeval and ir_measures take 4 for the highest grade, whatever the scale: ERR(most=4).",
)
RBP = _measure(
    lambda of: 1.0 - np.power(float(of.values["p"]), of.found),
    name="RBP",
    text="Rank-biased precision: a reader goes on from each passage to the next with probability p.",
    formula="(1 − p) · sum over ranks i ≤ K with a relevant passage of p^(i − 1)",
    section="Moffat and Zobel 2008",
    score=_rank_biased,
    params=(
        Param(name="p", default=0.8, low=0, high=0.999, step=0.05, text="Persistence of the reader"),
        rel_param(),
    ),
)


def _alpha(text: str) -> tuple[Param, Param]:
    return Param(name="alpha", default=0.5, low=0, high=1, step=0.05, text=text), rel_param()


def _f(of: Relevant) -> Floats:
    alpha = float(of.values["alpha"])
    return of.found / (alpha * of.slots + (1.0 - alpha) * of.known)


def _estimated(inputs: Inputs, values: Values, out: Scores) -> None:
    alpha = float(values["alpha"])
    np.multiply(inputs.found_ahead(least(values)), 1.0 - alpha, out=out)
    out += alpha * inputs.judged.cutoffs
    np.divide(inputs.found(least(values)), or_nan(out), out=out)


def _t(*, share: bool) -> Fill:
    """Return (1 − alpha)·np − alpha·nn, or with nn / K in place of nn if `share`."""

    def fill(inputs: Inputs, values: Values, out: Scores) -> None:
        alpha, relevant = float(values["alpha"]), inputs.found(least(values))
        np.subtract(relevant, inputs.judged.cutoffs, out=out)
        out *= alpha
        if share:
            out /= inputs.judged.cutoffs
        np.multiply(relevant, 1.0 - alpha, out=inputs.scratch)
        out += inputs.scratch

    return fill


_WEIGHT = _alpha("Weight of precision against recall")
_NEGATIVES = _alpha("Weight of passages that are not relevant against those that are")
F = _measure(
    _f,
    name="F",
    text="Weighted harmonic mean of precision (alpha) and recall (1 − alpha) at K.",
    formula="np / (alpha·K + (1 − alpha)·Np)",
    section=f"van Rijsbergen 1979; {_RECALL}",
    na=_NONE,
    params=_WEIGHT,
)
F_E = MeasureInfo(
    name="F_e",
    text="F without knowing all that is relevant: those in Top(2K) stand for it.",
    formula="np / (alpha·K + (1 − alpha)·#{Top(2K): relevant})",
    section=_RECALL,
    score=_estimated,
    na="alpha is 0 and nothing relevant is in Top(2K).",
    params=_WEIGHT,
    ahead=2,
)
T = MeasureInfo(
    name="T",
    text="Relevant passages in Top(K) minus the share of the others; needs no knowledge of what is missing.",
    formula="(1 − alpha)·np − alpha·nn / K",
    section=_RECALL,
    score=_t(share=True),
    params=_NEGATIVES,
    unit="passages",
    low=-1.0,
    high=math.inf,
)
T_U = replace(
    T,
    name="T_u",
    text="T without dividing the passages that are not relevant by K.",
    formula="(1 − alpha)·np − alpha·nn",
    score=_t(share=False),
    low=-math.inf,
)
NDCG_FOUND = MeasureInfo(
    name="nDCG-found",
    text="Binary nDCG against the best ordering of what was found: order only, whatever is missing.",
    formula=(
        "DCG(K) / DCG of the np relevant passages of Top(K) put first; DCG = sum over ranks i ≤ K with a "
        "relevant passage of 1 / log2(i + 1); 0 where np = 0"
    ),
    section=_RECALL,
    score=_of_retrieved,
    params=(rel_param(),),
    differs="nDCG has the ideal of all judged passages; this one has the ideal of those that were retrieved.",
)
