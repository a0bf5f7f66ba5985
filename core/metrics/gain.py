"""RA-nWG: the rarity-aware, per query normalised weighted gain (Dallaire 2025, arXiv:2511.09545, §2.4)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.errors import InputError
from core.metrics.info import Counts, Inputs, MeasureInfo, Param, Scores, Values, or_nan

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
    best_first = np.take_along_axis(grade_weights, order, axis=-1)
    available = np.take_along_axis(counts, np.broadcast_to(order, counts.shape), axis=-1)
    cutoffs = np.arange(1, depth + 1, dtype=np.float64)
    left = np.broadcast_to(cutoffs, (*counts.shape[:-1], depth)).copy()
    total = np.zeros_like(left)
    for index in range(5):
        taken = np.minimum(left, available[..., index, None])
        left -= taken
        taken *= best_first[..., index, None]
        total += taken
    return total


def observed_gain(inputs: Inputs, grade_weights: NDArray[np.float64]) -> Scores:
    """Sum of the weights of Top(K) at every K; unjudged passages and empty slots weigh nothing."""
    queries = len(grade_weights)
    # Row q holds the weights of grades -1, 0, 1..5; a slot's weight is one gather from the flat table.
    table = np.concatenate([np.zeros((queries, 2)), grade_weights], axis=-1).ravel()
    slots = inputs.grades + (np.arange(queries, dtype=np.int32) * 7 + 1)[:, None]
    gained = table[slots]
    return np.cumsum(gained, axis=-1, out=gained)


def _share(gain: Scores, inputs: Inputs, grade_weights: NDArray[np.float64]) -> Scores:
    gain /= or_nan(ideal_gain(inputs.pool_counts, grade_weights, inputs.depth))
    # Both sums add the same weights in another order, so the quotient can pass 1 by a rounding error.
    return np.minimum(gain, 1.0, out=gain)


def _score(inputs: Inputs, values: Values) -> Scores:
    grade_weights = weights(inputs.pool_counts, Weighting.from_values(values))
    return _share(observed_gain(inputs, grade_weights), inputs, grade_weights)


def _ceiling(candidates: Counts, inputs: Inputs, values: Values) -> Scores:
    grade_weights = weights(inputs.pool_counts, Weighting.from_values(values))
    return _share(ideal_gain(candidates, grade_weights, inputs.depth), inputs, grade_weights)


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
