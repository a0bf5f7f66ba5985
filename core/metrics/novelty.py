"""RA-nWG that discounts repeated sources (arXiv:2511.09545 §2.4, "Novelty discount").

The source of a passage is the document it was cut from; a passage without one is a source of its own.
"""

from __future__ import annotations

import numpy as np

from core.errors import InputError
from core.metrics.facets import SETS
from core.metrics.gain import NA, PARAMS, SECTION, best_of, collect, grade_weights_of
from core.metrics.info import Counts, MeasureInfo, Scores, Values
from core.metrics.inputs import Floats, Inputs, Judged, Tally, or_nan
from core.params import Param


def _worth(judged: Judged, values: Values) -> Floats:
    """What each of ten kinds is worth: grades 1..5 as the first of their source, then as repeats."""
    firsts = grade_weights_of(judged, values)
    return np.concatenate([firsts, float(values["beta"]) * firsts])


def _kinds(counts: Counts, facets: Counts, firsts_worth: Floats) -> Counts:
    """How many of the ten kinds there are: the best passage of every source is its first one."""
    shape = np.broadcast_shapes(facets.shape[1:], counts.shape[1:], firsts_worth.shape[1:])
    firsts = np.zeros((5, *shape), dtype=np.int64)
    for grades in range(1, SETS):
        members = [grade for grade in range(5) if grades >> grade & 1]
        best = np.argmax(firsts_worth[members], axis=0)
        for place, grade in enumerate(members):
            firsts[grade] += facets[grades] * (best == place)
    return np.concatenate([firsts, np.broadcast_to(counts, firsts.shape) - firsts])


def _ideal(judged: Judged, values: Values) -> Floats:
    facets = judged.facets
    if facets is None:
        raise InputError("This measure needs the source of every judged passage.", do="Give the passages.")

    def make() -> Floats:
        worth = _worth(judged, values)
        kinds = _kinds(judged.counts, facets, worth[:5])
        ideal = np.empty((judged.depth, *kinds.shape[1:]))
        collect(best_of(kinds, worth, judged.depth), worth, ideal, np.empty_like(ideal))
        return or_nan(ideal)

    made: Floats = judged.once(("novel ideal", *values.items()), make)
    return made


def _score(inputs: Inputs, values: Values, out: Scores) -> None:
    def tally(kind: int) -> Tally:
        first = inputs.first_of_source(kind % 5 + 1)
        return first if kind < 5 else inputs.exactly(kind - 4) - first

    collect(tally, _worth(inputs.judged, values), out, inputs.scratch)
    out /= _ideal(inputs.judged, values)
    np.minimum(out, 1.0, out=out)


def _ceiling(inputs: Inputs, values: Values, out: Scores) -> None:
    worth = _worth(inputs.judged, values)
    kinds = _kinds(inputs.candidate_counts(), inputs.candidate_facets(), worth[:5])
    collect(best_of(kinds, worth, inputs.judged.depth), worth, out, inputs.scratch)
    out /= _ideal(inputs.judged, values)
    np.minimum(out, 1.0, out=out)


NOVELTY = MeasureInfo(
    name="Novelty-RA-nWG",
    text="RA-nWG in which a passage of a source that was seen before counts only beta of its weight.",
    formula=(
        "G_nov(K) / its ideal; G_nov = sum of d·w over Top(K), d = 1 for the first passage of a source in "
        "the ranking and beta after; the ideal takes the K largest of w of the best passage of every "
        "source and beta·w of the others; w as in RA-nWG"
    ),
    section=SECTION,
    score=_score,
    ceiling=_ceiling,
    na=NA,
    params=(
        *PARAMS,
        Param(name="beta", default=0.5, low=0, high=1, step=0.05, text="What a repeated source still counts"),
    ),
    needs=frozenset({"sources"}),
)
