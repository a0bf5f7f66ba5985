"""Rates of the first K slots: shares, N-Recall and Hit (arXiv:2511.09545 §2.4).

The divisor is K even if the ranking is shorter: an empty slot is neither good, nor harmful, nor unjudged.

PROC is what the best ordering of the candidate pool reaches, and %PROC the share of it that is reached.

PROC is a pool-restricted oracle ceiling (arXiv:2511.09545 §5.1, A.8). Its denominator is the ideal of the
whole golden set. So PROC below 1 is evidence that retrieval never offered, and PROC above the actual value is
evidence that was offered but ordered too low:
1 = actual + ordering headroom (PROC − actual) + retrieval headroom (1 − PROC).
The convention of the pool ("dense@50", "rrf100@100", …) is part of the number.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from core.arrays import Floats
from core.metrics.classical import MeasureValue, Relevant, counting
from core.metrics.info import Fill, MeasureInfo, Scores, Values, rel_param
from core.metrics.inputs import Inputs, or_nan
from core.params import Param

_PROC_SECTION = "arXiv:2511.09545 §5.1, A.8"


def with_ceiling(info: MeasureInfo) -> tuple[MeasureInfo, ...]:
    """Return the measure and, if it has a ceiling, its PROC, its %PROC and its %PROC per query."""
    ceiling = info.ceiling
    if ceiling is None:
        return (info,)

    def share_of_proc(inputs: Inputs, values: Values, out: Scores) -> None:
        np.divide(inputs.value(info, values), or_nan(inputs.value(ceiling_info, values)), out=out)

    name = f"PROC[{info.name}]"
    ceiling_info = replace(
        info,
        name=name,
        text=f"{info.name} of the best ordering of the run's candidate pool.",
        formula=f"{info.name}@K of the candidates in their best order, over the whole golden set's ideal",
        section=_PROC_SECTION,
        score=ceiling,
        ceiling=None,
        needs=info.needs | {"pool"},
        differs="",
    )
    share_info = replace(
        ceiling_info,
        name=f"%{name}",
        text="Share of its ceiling that a ranking reaches; above 1 only with passages from outside the pool.",
        formula=f"mean({info.name}@K) / mean({name}@K) over queries",
        score=share_of_proc,
        na=" ".join(part for part in (info.na, "The ceiling is 0 at this K.") if part),
        high=math.inf,
        by_query=f"%PROC-per-query[{info.name}]",
    )
    by_query = replace(
        share_info,
        name=share_info.by_query,
        text="Share of its ceiling that the ranking of a query reaches, averaged over queries.",
        formula=f"mean over queries of {info.name}@K / {name}@K",
        by_query="",
    )
    return info, ceiling_info, share_info, by_query


def ratio_of_means(actual: Scores, ceiling: Scores) -> Floats:
    """Return %PROC as published: mean(actual) / mean(ceiling) over the queries that have both.

    Args:
        actual: [..., Q, D].
        ceiling: [..., Q, D] of the same shape.

    Returns:
        [..., D]; NaN if no query applies or the mean ceiling is 0.
    """
    both = ~(np.isnan(actual) | np.isnan(ceiling))
    reached = np.sum(actual, axis=-2, where=both)
    return np.asarray(reached / or_nan(np.sum(ceiling, axis=-2, where=both)))


def shares_of_means(actual: Scores, ceiling: Scores) -> Scores:
    """Return each query's contribution to a ratio of means; the average of contributions is the ratio.

    It is linear in the query (Cochran, Sampling Techniques, §6.4): ratio + (actual − ratio · ceiling) / mean
    ceiling. Its mean over the queries is `ratio_of_means`, and its spread the ratio's.

    Args:
        actual: [..., Q, D]; NaN = not applicable.
        ceiling: [..., Q, D] of the same shape.
    """
    both = ~(np.isnan(actual) | np.isnan(ceiling))
    ratio = ratio_of_means(actual, ceiling)[..., None, :]
    total = np.sum(ceiling, axis=-2, where=both, keepdims=True)
    usual = total / or_nan(np.count_nonzero(both, axis=-2, keepdims=True))
    return np.where(both, ratio + (actual - ratio * ceiling) / or_nan(usual), np.nan)


SECTION = "arXiv:2511.09545 §2.4"
HOLES = 0.05
"""Share of unjudged passages in any stack's Top-K from which on all stacks use the upper bound of Harm."""


def _relevant(value: MeasureValue, grade: int | None = None, **declared: str) -> MeasureInfo:
    score, ceiling = counting(value, grade=grade)
    params = () if grade else (rel_param(),)
    return MeasureInfo(section=SECTION, score=score, ceiling=ceiling, params=params, **declared)  # type: ignore[arg-type]


def _share(low: int, high: int) -> Fill:
    """Compute the share of the slots with a grade from low to high (0 = unjudged)."""

    def fill(inputs: Inputs, _values: Values, out: Scores) -> None:
        np.divide(inputs.found(low, high), inputs.judged.cutoffs, out=out)

    return fill


def _n_recall(of: Relevant) -> Floats:
    """Compute the share of as many relevant passages as fit in K."""
    judged = of.judged
    return of.found / judged.once(("fitting", of.least), lambda: np.minimum(judged.cutoffs, of.known))


def _recall_info(name: str, grade: int | None, what: str, count: str) -> MeasureInfo:
    return _relevant(
        _n_recall,
        grade,
        name=name,
        text=f"Share of the passages with {what}, as many as fit in K, that the first K hold.",
        formula=f"#{{Top(K): {what}}} / min(K, {count})",
        na=f"No judged passage of the query has {what}.",
    )


N_RECALL4 = _recall_info("N-Recall4+", 4, "grade 4 or 5", "n4 + n5")
N_RECALL5 = _recall_info("N-Recall5", 5, "grade 5", "n5")
N_RECALL = _recall_info("N-Recall", None, "grade rel or more", "n_rel + … + n5")
PRECISION4 = _relevant(
    lambda of: of.found / of.slots,
    4,
    name="Precision4+",
    text="Share of the first K slots that hold a passage with grade 4 or 5.",
    formula="#{Top(K): grade 4 or 5} / K",
)
HARM = MeasureInfo(
    name="Harm",
    text="Share of the first K slots that hold a passage judged 1 or 2, which can mislead the generator.",
    formula="#{Top(K): judged, grade 1 or 2} / K",
    section=SECTION,
    score=_share(1, 2),
    higher_is_better=False,
)
HARM_UPPER = replace(
    HARM,
    name="HarmUpper",
    text="Upper bound of Harm: every unjudged passage counted as harmful.",
    formula="Harm@K + Hole@K",
    score=_share(0, 2),
)
HOLE = replace(
    HARM,
    name="Hole",
    text="Share of the first K slots that hold an unjudged passage; the less, the sounder the other numbers.",
    formula="#{Top(K): unjudged} / K",
    score=_share(0, 0),
)


def _judged(inputs: Inputs, _values: Values, out: Scores) -> None:
    np.subtract(1.0, inputs.found(0, 0) / inputs.judged.cutoffs, out=out)


JUDGED = MeasureInfo(
    name="Judged",
    text="1 − Hole: share of the first K slots that hold no unjudged passage.",
    formula="1 − #{Top(K): unjudged} / K",
    section=SECTION,
    score=_judged,
    differs="ir_measures counts an empty slot of a short ranking as not judged; here it is no hole.",
)
HIT = _relevant(
    # not applicable if nothing is needed
    lambda of: (of.found >= of.known) + 0.0 * of.known,
    name="Hit",
    text="1 when the first K passages hold every passage with grade 4 or 5, else 0.",
    formula="1 if #{Top(K): grade rel or more} = n_rel + … + n5 else 0",
    na="No judged passage of the query has grade 4 or 5 (rel or more).",
)


BESIDE, CORRECTED = "beside", "corrected"
ANY = "any"  # The reader, or the scorer, that the available answers suggest


def _accuracy(inputs: Inputs, values: Values, out: Scores) -> None:
    out[...] = np.nan
    np.copyto(out, inputs.answers(), where=inputs.value(HIT, values) == 1)


def _answered(inputs: Inputs, _values: Values, out: Scores) -> None:
    out[...] = inputs.answers()


ACC_HIT = MeasureInfo(
    name="Acc|Hit",
    text="Correctness of the answers from K passages, over the queries whose first K hold all that is good.",
    formula="mean of the answer's correctness (0 to 1) over the queries with Hit@K = 1",
    section=SECTION,
    score=_accuracy,
    na="The first K do not hold everything good, or no answer from K passages is graded.",
    params=(
        rel_param(),
        Param(
            name="scorer",
            default=ANY,
            free=True,
            text="What scores answers; any = a judged correctness, else F1, or what there is",
        ),
    ),
    needs=frozenset({"answers"}),
)
ANSWER = MeasureInfo(
    name="Answer",
    text="Mean score of a reader's answers from the first K passages: what the passages are worth to it.",
    formula="mean of the score (0 to 1) of the answer that was written from Top(K)",
    section="RAGGED §2",
    score=_answered,
    na="No answer from the first K passages has this score.",
    params=(
        Param(name="reader", default=ANY, free=True, text="Who answers; any = who did for most runs"),
        Param(name="scorer", default=ANY, free=True, text="What scores answers; any = F1, or what there is"),
        Param(
            name="people",
            default=BESIDE,
            choices=(BESIDE, CORRECTED),
            text="Grades of people: beside the scores, or correcting their mean (PPI++, arXiv:2311.01453)",
        ),
    ),
    needs=frozenset({"answers"}),
)
