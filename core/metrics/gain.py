"""RA-nWG: the rarity-aware, per query normalised weighted gain (Dallaire 2025, arXiv:2511.09545, §2.4)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.errors import InputError
from core.metrics.info import Counts, Inputs, MeasureInfo, Param, Scores, Values, clipped, or_nan

Five = tuple[float, float, float, float, float]


@dataclass(frozen=True, slots=True)
class Weighting:
    """How grades become weights (§2.4).

    Attributes:
        alpha: Exponent of the grade's share in the pool; 0 ignores rarity.
        cap4: Largest weight of grade 4.
        cap3: Largest weight of grade 3.
        b: Base utility of grades 1..5; only those of 3, 4 and 5 count, and that of 5 is above 0.
        fallback: Weights of grades 1..5 for a query whose pool has no grade 5.

    Raises:
        InputError: If a tuple has not five numbers, a number is negative, or grade 5 has no base utility.
    """

    alpha: float = 1.0
    cap4: float = 1.0
    cap3: float = 0.25
    b: Five = (0.0, 0.0, 0.1, 0.5, 1.0)
    fallback: Five = (0.0, 0.0, 0.2, 1.0, 1.0)

    def __post_init__(self) -> None:
        if not len(self.b) == len(self.fallback) == 5 or not self.b[4] > 0:
            raise InputError("A weighting needs five numbers in b and in fallback, b5 above 0.")
        if not min(self.alpha, self.cap4, self.cap3, *self.b, *self.fallback) >= 0:
            raise InputError("A weighting has no negative numbers.")

    @classmethod
    def from_values(cls, values: Values) -> Weighting:
        """Make it from the parameter values of a measure."""
        number = {name: float(value) for name, value in values.items()}
        return cls(
            alpha=number["alpha"],
            cap4=number["cap4"],
            cap3=number["cap3"],
            b=(0.0, 0.0, number["b3"], number["b4"], 1.0),
            fallback=(0.0, 0.0, number["fallback3"], number["fallback4"], 1.0),
        )


def weights(pool_counts: Counts, weighting: Weighting) -> NDArray[np.float64]:
    """Weights of grades 1..5 for every query (§2.4).

    w5 = 1; w4 and w3 are min(r_g / r5, cap_g), where r_g = b_g / p_g^alpha, so that r_g / r5 is
    (b_g / b5)·(n5 / n_g)^alpha; a grade that the pool does not have weighs 0; w2 = w1 = 0. Without grade 5
    the fallback is used as it is.

    Args:
        pool_counts: Integers [..., 5], passages with grade 1..5 in the golden set.
        weighting: The parameters.

    Returns:
        float64 [..., 5]; between 0 and 1 for caps and fallback between 0 and 1.
    """
    counts = pool_counts.astype(np.float64)
    made = np.zeros_like(counts)
    made[..., 4] = 1.0
    for index, cap in ((3, weighting.cap4), (2, weighting.cap3)):
        present = counts[..., index]
        shares = np.divide(counts[..., 4], present, out=np.zeros_like(present), where=present > 0)
        rarity = weighting.b[index] / weighting.b[4] * shares**weighting.alpha
        made[..., index] = np.where(present > 0, np.minimum(rarity, cap), 0.0)
    made[counts[..., 4] == 0] = weighting.fallback
    return made


def ideal_gain(counts: Counts, grade_weights: NDArray[np.float64], depth: int) -> Scores:
    """Sum of the K largest weights among passages with the given grade counts, at every K = 1..depth.

    The order is by weight, not by grade: a rare grade 3 can outweigh a very common grade 4.

    Args:
        counts: Integers [..., Q, 5], how many passages of each grade there are to choose from.
        grade_weights: float64 [Q, 5].
        depth: Largest K.

    Returns:
        float64 [..., Q, depth].
    """
    order = np.argsort(-grade_weights, axis=-1, kind="stable")
    available = np.take_along_axis(counts, np.broadcast_to(order, counts.shape), axis=-1)
    ends = clipped(np.cumsum(available, axis=-1), depth)
    cutoffs = np.arange(1, depth + 1, dtype=np.int16)
    # The K-th best passage is in the group after those that end before K; after the fifth there is none.
    group = np.zeros((*counts.shape[:-1], depth), dtype=np.int8)
    for index in range(5):
        group += cutoffs > ends[..., index, None]
    best_first = np.take_along_axis(grade_weights, order, axis=-1)
    return _accumulate(group, np.concatenate([best_first, np.zeros((len(order), 1))], axis=-1))


def _accumulate(slots: NDArray[np.int8], table: NDArray[np.float64]) -> Scores:
    """Running sum of table[query, slot] along the last axis: int8 [..., Q, D] to float64 alike."""
    queries, width = table.shape
    # One gather from the flat table; each query has its own stretch of it.
    gained = table.ravel().take(slots + (np.arange(queries, dtype=np.intp) * width)[:, None])
    return np.cumsum(gained, axis=-1, out=gained)


def _share(gain: Scores, inputs: Inputs, grade_weights: NDArray[np.float64]) -> Scores:
    gain /= or_nan(ideal_gain(inputs.pool_counts, grade_weights, inputs.depth))
    # Both sums add the same weights in another order, so the quotient can pass 1 by a rounding error.
    return np.minimum(gain, 1.0, out=gain)


def _score(inputs: Inputs, values: Values) -> Scores:
    grade_weights = weights(inputs.pool_counts, Weighting.from_values(values))
    # Columns: empty slot and unjudged passage weigh nothing, then grades 1..5.
    table = np.concatenate([np.zeros((len(grade_weights), 2)), grade_weights], axis=-1)
    return _share(_accumulate(inputs.grades + np.int8(1), table), inputs, grade_weights)


def _ceiling(inputs: Inputs, values: Values) -> Scores:
    grade_weights = weights(inputs.pool_counts, Weighting.from_values(values))
    return _share(ideal_gain(inputs.candidate_counts(), grade_weights, inputs.depth), inputs, grade_weights)


RA_NWG = MeasureInfo(
    name="RA-nWG",
    text="Share of the best possible evidence that the first K hold; rare good passages count more.",
    formula=(
        "G_obs(K) / G_ideal(K); G_obs = sum of w over Top(K), G_ideal = sum of the K largest w in the pool; "
        "w5 = 1, w4 = min(r4/r5, cap4), w3 = min(r3/r5, cap3), w2 = w1 = 0, r_g = b_g / (n_g/N)^alpha; "
        "without grade 5: w4 = fallback4, w3 = fallback3"
    ),
    section="arXiv:2511.09545 §2.4",
    score=_score,
    ceiling=_ceiling,
    na="No judged passage of the query carries weight.",
    params=(
        Param(name="alpha", default=1.0, low=0, high=4, text="Exponent of rarity; 0 ignores it"),
        Param(name="cap4", default=1.0, low=0, high=1, text="Largest weight of grade 4"),
        Param(name="cap3", default=0.25, low=0, high=1, text="Largest weight of grade 3"),
        Param(name="b4", default=0.5, low=0, high=1, text="Base utility of grade 4, that of grade 5 being 1"),
        Param(name="b3", default=0.1, low=0, high=1, text="Base utility of grade 3, that of grade 5 being 1"),
        Param(name="fallback4", default=1.0, low=0, high=1, text="Weight of grade 4 without any grade 5"),
        Param(name="fallback3", default=0.2, low=0, high=1, text="Weight of grade 3 without any grade 5"),
    ),
)
