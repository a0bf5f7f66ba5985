"""Measures for contrast: sources found (Source-Recall), redundancy (alpha-nDCG, NRBP) and distraction (UDCG).

The CLQ paper keeps both out of RA-nWG and names these beside it (arXiv:2511.09545 §2.3, §2.5, §6). Subtopics
are the nuggets that passages support, if the golden set has nuggets: a passage may have several, or none.
Otherwise they are sources (facets), as for Novelty-RA-nWG: every passage belongs to exactly one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.arrays import Floats, Ints, Mask
from core.metrics.classical import discounted_best, discounts, least
from core.metrics.info import Counts, MeasureInfo, Scores, Values, rel_param
from core.metrics.inputs import Inputs, Judged, or_nan, running
from core.params import Param

_NONE = "No judged passage of the query is relevant."
_ONE = (
    "ndeval reads subtopics from the judgements, several a passage; here these are the nuggets that a "
    "passage supports, or else a passage's source, its only one."
)
_NUGGET_BITS = 64


def _present(counts: Counts | None, low: int) -> Counts:
    """Count the sources with at least 1, 2, … passages of a minimum grade: [most, runs, queries]."""
    return np.zeros((1, 1, 1), dtype=np.int64) if counts is None else counts[low - 1 :: 5]


def _fading(values: Values, number: int) -> Floats:
    """Return the worth of the first, second, … relevant passage of a source."""
    return np.asarray((1.0 - float(values["alpha"])) ** np.arange(number))


def _worth(inputs: Inputs, values: Values, discount: Floats, out: Scores) -> None:
    """Sum the discounted worth of the passages in Top(K), each reduced by earlier ones of the same facets."""
    fading = _fading(values, inputs.judged.depth + 1)
    if inputs.judged.nuggets is not None:
        _worth_of_nuggets(inputs.nuggets(), fading, out)
    else:
        low = least(values)
        fading.take(inputs.seen_of_source(low), out=out, mode="clip")
        out *= inputs.grades >= low
    out *= discount
    running(out)


def _worth_of_nuggets(sets: NDArray[np.uint64], fading: Floats, out: Scores) -> None:
    """Fill in each slot's worth: the sum of its nuggets, worth less the more earlier slots support them."""
    out[:] = 0
    for held in _each_nugget(sets):
        seen: Ints = np.cumsum(held, axis=0) - held
        out += held * fading.take(seen)


def _each_nugget(sets: NDArray[np.uint64]) -> Iterator[Mask]:
    """Yield, for every nugget that occurs in any set, a mask of the sets that contain it."""
    union = int(np.bitwise_or.reduce(sets, axis=None)) if sets.size else 0
    for number in range(_NUGGET_BITS):
        if union >> number & 1:
            yield (sets >> np.uint64(number) & np.uint64(1)).astype(np.bool_)


def _best_of_nuggets(sets: NDArray[np.uint64], values: Values, discount: Floats, out: Scores) -> None:
    """Sum the discounted worth of passages [P, runs, queries] in greedy order, the largest gain next."""
    out[:] = 0
    nuggets = list(_each_nugget(sets))
    if nuggets:
        held = np.stack(nuggets, axis=-1).astype(np.float64)
        left = np.ones((*held.shape[1:3], held.shape[3]))
        for rank in range(min(len(out), len(held))):
            worth = np.einsum("prqn,rqn->prq", held, left)
            best = worth.argmax(axis=0)[None, ..., None]
            out[rank] = worth.max(axis=0)
            left *= np.where(np.take_along_axis(held, best, axis=0)[0] > 0, 1.0 - float(values["alpha"]), 1.0)
            np.put_along_axis(held, best, 0.0, axis=0)
    out *= discount
    running(out)


def _best_worth(counts: Counts, values: Values, discount: Floats, out: Scores) -> None:
    """Sum the discounted worth of the best ordering of passages, given counts of their sources."""
    present = _present(counts, least(values))
    discounted_best(present, _fading(values, len(present)), discount, out)


def _ideal(judged: Judged, values: Values) -> Floats:
    def make() -> Floats:
        if judged.nuggets is not None:
            ideal = np.empty((judged.depth, *judged.nuggets.shape[1:]))
            _best_of_nuggets(judged.nuggets, values, discounts(judged), ideal)
            return or_nan(ideal)
        depths = judged.depths if judged.depths is not None else np.zeros((5, *judged.counts.shape[1:]), int)
        ideal = np.empty((judged.depth, *depths.shape[1:]))
        _best_worth(depths, values, discounts(judged), ideal)
        return or_nan(ideal)

    return judged.once(("alpha-DCG", *values.items()), make)


def _alpha_ndcg(inputs: Inputs, values: Values, out: Scores) -> None:
    _worth(inputs, values, discounts(inputs.judged), out)
    out /= _ideal(inputs.judged, values)


def _best_candidates(inputs: Inputs, values: Values, discount: Floats, out: Scores) -> None:
    if inputs.judged.nuggets is not None:
        _best_of_nuggets(inputs.candidate_nuggets(), values, discount, out)
    else:
        _best_worth(inputs.candidate_depths(), values, discount, out)


def _alpha_ceiling(inputs: Inputs, values: Values, out: Scores) -> None:
    _best_candidates(inputs, values, discounts(inputs.judged), out)
    out /= _ideal(inputs.judged, values)


def _found_sources(inputs: Inputs, values: Values, out: Scores) -> None:
    low = least(values)
    np.divide(inputs.sources_found(low), or_nan(_present(inputs.judged.depths, low)[0]), out=out)


SOURCE_RECALL = MeasureInfo(
    name="Source-Recall",
    text="Share of the sources with a relevant passage of which the first K hold a passage, whichever it is.",
    formula=(
        "#{sources with a relevant judged passage and any passage in Top(K)} / "
        "#{sources with a relevant judged passage}"
    ),
    section="RAGGED, Table 9: recall at the unit of the page; KILT, Petroni et al. 2021",
    score=_found_sources,
    na=_NONE,
    params=(rel_param(),),
    needs=frozenset({"sources"}),
)


def _looked_at(judged: Judged, values: Values) -> Floats:
    """Return the chance that a reader reaches each rank: [K, 1, 1]."""
    return np.asarray(float(values["patience"]) ** (judged.cutoffs - 1.0))


def _per_facet(judged: Judged, values: Values) -> Floats:
    """Return (1 − (1 − alpha)·patience) over the number of facets with a relevant passage.

    The result is NaN if there is no such facet.
    """
    if judged.nuggets is not None:
        supported = np.bitwise_or.reduce(judged.nuggets, axis=0)
        present = or_nan(np.bitwise_count(supported))
    else:
        present = or_nan(_present(judged.depths, least(values))[0])
    return np.asarray((1.0 - (1.0 - float(values["alpha"])) * float(values["patience"])) / present)


def _nrbp(inputs: Inputs, values: Values, out: Scores) -> None:
    _worth(inputs, values, _looked_at(inputs.judged, values), out)
    out *= _per_facet(inputs.judged, values)


def _nrbp_ceiling(inputs: Inputs, values: Values, out: Scores) -> None:
    _best_candidates(inputs, values, _looked_at(inputs.judged, values), out)
    out *= _per_facet(inputs.judged, values)


_ALPHA = Param(
    name="alpha", default=0.5, low=0, high=1, step=0.05, text="What a facet loses with each passage"
)


def _diverse(**declared: Any) -> MeasureInfo:  # noqa: ANN401 - fields of `MeasureInfo`
    return MeasureInfo(na=f"{_NONE[:-1]}, or supports a nugget.", needs=frozenset({"facets"}), **declared)


ALPHA_NDCG = _diverse(
    name="alpha-nDCG",
    text="nDCG in which every passage of a nugget (else a source) is worth less than the one before it.",
    formula=(
        "alpha-DCG(K) / alpha-DCG of the best ordering of all judged passages; alpha-DCG = sum over ranks "
        "i ≤ K with a relevant passage of (1 − alpha)^c / log2(i + 1), c = relevant passages of its source "
        "before it; with nuggets, summed over those of the passage, c = passages before it that support them"
    ),
    section="Clarke et al. 2008, eq. 2–5; ndeval",
    score=_alpha_ndcg,
    ceiling=_alpha_ceiling,
    params=(_ALPHA, rel_param()),
    differs=f"{_ONE} Its greedy ideal, which is kept, is the best one of sources.",
)
NRBP = _diverse(
    name="NRBP",
    text="Rank-biased precision in which every passage of a nugget (else a source) counts less than before.",
    formula=(
        "(1 − (1 − alpha)·patience) / S · sum over ranks i ≤ K with a relevant passage of patience^(i − 1)·"
        "(1 − alpha)^c, S = sources with a relevant passage, c = relevant passages of its source before it; "
        "with nuggets, summed over those of the passage, S = supported nuggets"
    ),
    section="Clarke, Kolla and Vechtomova 2009, eq. 14; ndeval",
    score=_nrbp,
    ceiling=_nrbp_ceiling,
    params=(
        _ALPHA,
        Param(name="patience", default=0.5, low=0, high=1, step=0.05, text="Patience of the reader"),
        rel_param(),
    ),
    differs=f"{_ONE} ndeval sums over the whole ranking, here over the first K.",
)


def _udcg(inputs: Inputs, values: Values, out: Scores) -> None:
    found = inputs.found(least(values))
    ranked = inputs.found(0)
    np.subtract(ranked, found, out=out)
    out *= -float(values["distraction"]) * float(values["pull"])
    out += float(values["use"]) * found
    out /= np.maximum(ranked, 1)
    np.divide(ranked > 0, 1.0 + np.exp(-out), out=out)


UDCG = MeasureInfo(
    name="UDCG",
    text="Use of the relevant passages minus a third of the pull of the others, put between 0 and 1.",
    formula=(
        "1 / (1 + e^−u), u = (use·np − distraction·pull·nn) / (np + nn); np, nn = relevant and other "
        "passages of Top(K); 0 where nothing is ranked"
    ),
    section="Trappolini et al. 2025, arXiv:2510.21440, and its code",
    score=_udcg,
    params=(
        rel_param(),
        Param(
            name="use",
            default=1.0,
            low=0,
            high=1,
            text="Chance that a relevant passage alone is answered from",
        ),
        Param(
            name="pull", default=1.0, low=0, high=1, text="Chance that another passage alone is answered from"
        ),
        Param(name="distraction", default=1 / 3, low=0, high=1, text="Weight of the others, a third there"),
    ),
    differs=(
        "Its authors ask the reader about each passage alone and take 1 − the chance that it declines; here "
        "one chance for the relevant passages and one for the others, 1 by default."
    ),
)
