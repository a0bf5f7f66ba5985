"""Hit: whether the first K passages hold everything that is good; Acc|Hit: how good answers are then."""

from __future__ import annotations

import numpy as np

from core.metrics.info import MeasureInfo, Scores, Values, rel_param
from core.metrics.inputs import Inputs, Tally

SECTION = "arXiv:2511.09545 §2.4"


def _complete(found: Tally, inputs: Inputs, values: Values, out: Scores) -> None:
    needed = inputs.judged.or_nan(int(values["rel"]))
    np.greater_equal(found, needed, out=out)
    out += 0.0 * needed  # not applicable where nothing is needed


def _score(inputs: Inputs, values: Values, out: Scores) -> None:
    _complete(inputs.found(int(values["rel"])), inputs, values, out)


def _ceiling(inputs: Inputs, values: Values, out: Scores) -> None:
    _complete(inputs.reachable(int(values["rel"])), inputs, values, out)


def _accuracy(inputs: Inputs, values: Values, out: Scores) -> None:
    answers = inputs.answers()
    out[...] = np.nan
    np.copyto(out, answers, where=inputs.value(HIT, values) == 1)


HIT = MeasureInfo(
    name="Hit",
    text="1 when the first K passages hold every passage with grade 4 or 5, else 0.",
    formula="1 if #{Top(K): grade rel or more} = n_rel + … + n5 else 0",
    section=SECTION,
    score=_score,
    ceiling=_ceiling,
    na="No judged passage of the query has grade 4 or 5 (rel or more).",
    params=(rel_param(),),
)
ACC_HIT = MeasureInfo(
    name="Acc|Hit",
    text="Correctness of the answers from K passages, over the queries whose first K hold all that is good.",
    formula="mean of the answer's correctness (0 to 1) over the queries with Hit@K = 1",
    section=SECTION,
    score=_accuracy,
    na="The first K do not hold everything good, or no answer from K passages is graded.",
    params=(rel_param(),),
    needs=frozenset({"answers"}),
)
