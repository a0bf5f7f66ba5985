"""RA-nWG, the rarity-aware weighted gain, and its Novelty form (Dallaire 2025, arXiv:2511.09545, §2.4)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from core.arrays import Floats
from core.errors import InputError
from core.metrics.info import SETS, Counts, MeasureInfo, Scores, Values
from core.metrics.inputs import Inputs, Judged, Tally, clipped, or_nan, tally_type
from core.params import Param

Five = tuple[float, float, float, float, float]
SECTION = "arXiv:2511.09545 §2.4"


@dataclass(frozen=True, slots=True)
class Weighting:
    """How grades become weights (§2.4).

    Raises:
        InputError: If a tuple has not five numbers, a number is negative, or grade 5 has no base utility.
    """

    alpha: float = 1.0  # exponent of the grade's share in the pool; 0 ignores rarity
    cap4: float = 1.0  # largest weight of grade 4
    cap3: float = 0.25  # largest weight of grade 3
    # Base utility of grades 1..5; only grades 3, 4 and 5 count, and the utility of grade 5 is above 0
    b: Five = (0.0, 0.0, 0.1, 0.5, 1.0)
    fallback: Five = (0.0, 0.0, 0.2, 1.0, 1.0)  # weights of grades 1..5 for a query whose pool has no grade 5

    def __post_init__(self) -> None:
        if not len(self.b) == len(self.fallback) == 5 or not self.b[4] > 0:
            raise InputError("A weighting needs five numbers in b and in fallback, b5 above 0.")
        if not min(self.alpha, self.cap4, self.cap3, *self.b, *self.fallback) >= 0:
            raise InputError("A weighting has no negative numbers.")

    @classmethod
    def from_values(cls, values: Values) -> Weighting:
        """Build the weighting from a measure's parameters; unrelated parameters are ignored."""
        named = ("alpha", "cap4", "cap3", "b3", "b4", "fallback3", "fallback4")
        number = {name: float(values[name]) for name in named}
        return cls(
            alpha=number["alpha"],
            cap4=number["cap4"],
            cap3=number["cap3"],
            b=(0.0, 0.0, number["b3"], number["b4"], 1.0),
            fallback=(0.0, 0.0, number["fallback3"], number["fallback4"], 1.0),
        )


def weights(pool_counts: Counts, weighting: Weighting) -> Floats:
    """Return the weights of grades 1..5 for every query (§2.4).

    w5 = 1; w4 and w3 are min(r_g / r5, cap_g), where r_g = b_g / p_g^alpha, so that r_g / r5 is
    (b_g / b5)·(n5 / n_g)^alpha; a grade that the pool lacks weighs 0; w2 = w1 = 0. Without grade 5
    the fallback is used unchanged.

    Args:
        pool_counts: Integers [..., 5], passages with grade 1..5 in the golden set.

    Returns:
        float64 [..., 5]; between 0 and 1 if caps and fallback are.
    """
    counts = pool_counts.astype(np.float64)
    weighed = np.zeros_like(counts)
    weighed[..., 4] = 1.0
    for index, cap in ((3, weighting.cap4), (2, weighting.cap3)):
        present = counts[..., index]
        shares = np.divide(counts[..., 4], present, out=np.zeros_like(present), where=present > 0)
        rarity = weighting.b[index] / weighting.b[4] * shares**weighting.alpha
        weighed[..., index] = np.where(present > 0, np.minimum(rarity, cap), 0.0)
    weighed[counts[..., 4] == 0] = weighting.fallback
    return weighed


def ideal_gain(counts: Counts, grade_weights: Floats, depth: int) -> Scores:
    """Sum the K largest weights among passages with the given grade counts, at every K = 1..depth.

    The order is by weight, not by grade: a rare grade 3 can outweigh a very common grade 4.

    Args:
        counts: Integers [..., Q, 5], how many passages of each grade are available.
        grade_weights: float64 [Q, 5].

    Returns:
        float64 [..., Q, depth].
    """
    gains = np.empty((depth, *counts.shape[:-1]))
    by_grade = np.moveaxis(grade_weights, -1, 0)
    collect(best_of(np.moveaxis(counts, -1, 0), by_grade, depth), by_grade, gains, np.empty_like(gains))
    return np.moveaxis(gains, 0, -1)


def best_of(counts: Counts, worth: Floats, depth: int) -> Callable[[int], Tally]:
    """Return how many passages of each kind are among the K most valuable ones, at every K = 1..depth."""
    shape = np.broadcast_shapes(counts.shape, worth.shape)
    order = np.broadcast_to(np.argsort(-worth, axis=0, kind="stable"), shape)
    ends = np.cumsum(np.take_along_axis(np.broadcast_to(counts, shape), order, axis=0), axis=0)
    after = np.empty(shape, dtype=ends.dtype)
    np.put_along_axis(after, order, ends, axis=0)
    cutoffs = np.arange(1, depth + 1, dtype=tally_type(depth)).reshape(-1, *[1] * (len(shape) - 1))

    def tally(kind: int) -> Tally:
        taken = np.minimum(cutoffs, clipped(after[kind], depth))
        taken -= np.minimum(cutoffs, clipped(after[kind] - counts[kind], depth))
        return taken

    return tally


def collect(tally: Callable[[int], Tally], worth: Floats, out: Scores, scratch: Scores) -> None:
    """Fill `out` with the total worth of the tallied passages.

    The same passages give the same sum to the last bit, whether they are ranked or chosen as the best, so
    that a perfect ranking scores exactly 1.
    """
    started = False
    for kind, weight in enumerate(worth):
        if not weight.any():
            continue
        if not started:
            np.multiply(tally(kind), weight, out=out)
            started = True
        elif (weight == 1).all():
            out += tally(kind)
        else:
            np.multiply(tally(kind), weight, out=scratch)
            out += scratch
    if not started:
        out[...] = 0.0


def grade_weights_of(judged: Judged, values: Values) -> Floats:
    """Return the weights [5, 1 or runs, queries] of a block's queries."""
    weighting = Weighting.from_values(values)

    def make() -> Floats:
        return np.ascontiguousarray(np.moveaxis(weights(np.moveaxis(judged.counts, 0, -1), weighting), -1, 0))

    return judged.once(weighting, make)


def _ideal(judged: Judged, values: Values) -> Floats:
    """Return g_ideal at every K as a divisor: [K, 1 or runs, queries], NaN if it is 0."""

    def make() -> Floats:
        worth = grade_weights_of(judged, values)
        ideal = np.empty((judged.depth, *worth.shape[1:]))
        collect(best_of(judged.counts, worth, judged.depth), worth, ideal, np.empty_like(ideal))
        return or_nan(ideal)

    return judged.once(("ideal", Weighting.from_values(values)), make)


def _score(inputs: Inputs, values: Values, out: Scores) -> None:
    worth = grade_weights_of(inputs.judged, values)
    collect(lambda kind: inputs.exactly(kind + 1), worth, out, inputs.scratch)
    _normalise(out, _ideal(inputs.judged, values))


def _normalise(out: Scores, ideal: Floats) -> None:
    out /= ideal
    # Grades of equal weight can replace one another; their sums may differ by a rounding error.
    np.minimum(out, 1.0, out=out)


def _ceiling(inputs: Inputs, values: Values, out: Scores) -> None:
    worth = grade_weights_of(inputs.judged, values)
    best = best_of(inputs.candidate_counts(), worth, inputs.judged.depth)
    collect(best, worth, out, inputs.scratch)
    _normalise(out, _ideal(inputs.judged, values))


PARAMS = (
    Param(name="alpha", default=1.0, low=0, high=4, step=0.05, text="Exponent of rarity; 0 ignores it"),
    Param(name="cap4", default=1.0, low=0, high=1, step=0.05, text="Largest weight of grade 4"),
    Param(name="cap3", default=0.25, low=0, high=1, step=0.01, text="Largest weight of grade 3"),
    Param(name="b4", default=0.5, low=0, high=1, text="Base utility of grade 4, that of grade 5 being 1"),
    Param(name="b3", default=0.1, low=0, high=1, text="Base utility of grade 3, that of grade 5 being 1"),
    Param(name="fallback4", default=1.0, low=0, high=1, text="Weight of grade 4 without any grade 5"),
    Param(name="fallback3", default=0.2, low=0, high=1, text="Weight of grade 3 without any grade 5"),
)
NA = "No judged passage of the query carries weight."

RA_NWG = MeasureInfo(
    name="RA-nWG",
    text="Rarity-aware normalised weighted gain: share of the best possible evidence in K passages.",
    formula=(
        "G_obs(K) / G_ideal(K); G_obs = sum of w over Top(K), G_ideal = sum of the K largest w of all judged "
        "passages; w5 = 1, w4 = min(r4/r5, cap4), w3 = min(r3/r5, cap3), w2 = w1 = 0, "
        "r_g = b_g / (n_g/N)^alpha; without grade 5: w4 = fallback4, w3 = fallback3; n_g of the query's N "
        "judged passages have grade g"
    ),
    section=SECTION,
    score=_score,
    ceiling=_ceiling,
    na=NA,
    params=PARAMS,
)


def _worth(judged: Judged, values: Values) -> Floats:
    """Return the worth of each of ten kinds: grades 1..5 as the first of their source, then as repeats."""
    firsts = grade_weights_of(judged, values)
    return np.concatenate([firsts, float(values["beta"]) * firsts])


def _kinds(counts: Counts, facets: Counts, firsts_worth: Floats) -> Counts:
    """Count passages of the ten kinds: the best passage of every source is its first one, the rest repeat."""
    shape = np.broadcast_shapes(facets.shape[1:], counts.shape[1:], firsts_worth.shape[1:])
    firsts = np.zeros((5, *shape), dtype=np.int64)
    for grades in range(1, SETS):
        members = [grade for grade in range(5) if grades >> grade & 1]
        best = np.argmax(firsts_worth[members], axis=0)
        for place, grade in enumerate(members):
            firsts[grade] += facets[grades] * (best == place)
    return np.concatenate([firsts, np.broadcast_to(counts, firsts.shape) - firsts])


def _novel_ideal(judged: Judged, values: Values) -> Floats:
    facets = judged.facets
    if facets is None:
        raise InputError("This measure needs the source of every judged passage.", do="Give the passages.")

    def make() -> Floats:
        worth = _worth(judged, values)
        kinds = _kinds(judged.counts, facets, worth[:5])
        ideal = np.empty((judged.depth, *kinds.shape[1:]))
        collect(best_of(kinds, worth, judged.depth), worth, ideal, np.empty_like(ideal))
        return or_nan(ideal)

    return judged.once(("novel ideal", *values.items()), make)


def _novel_score(inputs: Inputs, values: Values, out: Scores) -> None:
    def tally(kind: int) -> Tally:
        first = inputs.first_of_source(kind % 5 + 1)
        return first if kind < 5 else inputs.exactly(kind - 4) - first

    collect(tally, _worth(inputs.judged, values), out, inputs.scratch)
    out /= _novel_ideal(inputs.judged, values)
    np.minimum(out, 1.0, out=out)


def _novel_ceiling(inputs: Inputs, values: Values, out: Scores) -> None:
    worth = _worth(inputs.judged, values)
    kinds = _kinds(inputs.candidate_counts(), inputs.candidate_facets(), worth[:5])
    collect(best_of(kinds, worth, inputs.judged.depth), worth, out, inputs.scratch)
    out /= _novel_ideal(inputs.judged, values)
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
    score=_novel_score,
    ceiling=_novel_ceiling,
    na=NA,
    params=(
        *PARAMS,
        Param(name="beta", default=0.5, low=0, high=1, step=0.05, text="What a repeated source still counts"),
    ),
    needs=frozenset({"sources"}),
)
