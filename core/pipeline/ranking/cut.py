"""Dynamic cutoffs: how many passages of a ranking to keep, by its scores alone.

The methods come from the thesis on RAG methods, §3.4. Each sees the scores s₁ ≥ s₂ ≥ … ≥ sₙ of one query
and answers with the number of passages to keep, 1 to n. What they share:

* Scores that are all equal, and a single score, show no place to cut: everything is kept. So is a list in
  which a method finds none: with no bend (knee, second-derivative), or shorter than three (second-derivative,
  knee).
* Of several equally good places the first is taken, the one that keeps least. Differences below a
  billionth of the range are rounding, not places.
* Shifting all scores, or multiplying them by a positive number, changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.errors import ClqError, InputError
from core.extras import RUN_REQUIREMENTS, obstacle
from core.params import Method, Param, read_method
from core.records import JsonMap

Scores = NDArray[np.float64]

_ROUNDING = 1e-9

_VARIANCE = 1e-6
"""Least variance of a component, for scores from 1 down to 0: equal scores have no variance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut(Method):
    """A way to cut."""

    place: Callable[[Scores, JsonMap], int]  # how many of scores from 1 down to 0 to keep
    package: str = "numpy"  # required package, which a base installation may lack

    @property
    def missing(self) -> ClqError | None:
        """Return the error that names the package to install before this can be used; None = nothing."""
        return obstacle(self.package, RUN_REQUIREMENTS, f"The cutoff {self.name}")


def _percentile(scores: Scores, options: JsonMap) -> int:
    threshold = np.percentile(scores, options["percentile"])
    return int(np.count_nonzero(scores >= threshold - _ROUNDING))


def _max_gap(scores: Scores, _: JsonMap) -> int:
    return _first_of_the_largest(-np.diff(scores)) + 1


def _knee(scores: Scores, options: JsonMap) -> int:
    from kneed import KneeLocator  # noqa: PLC0415 - loads scipy.signal, not needed to plan

    # Online, it continues after the first knee: a list that starts flat has one at its very start.
    located = KneeLocator(
        np.arange(len(scores)),
        scores,
        S=options["sensitivity"],
        curve="convex",
        direction="decreasing",
        online=True,
    )
    return next((int(knee) for knee in located.all_knees if knee > 0), len(scores))


def _second_derivative(scores: Scores, _: JsonMap) -> int:
    if len(scores) < 3:
        return len(scores)
    bend = np.diff(scores, n=2)
    return len(scores) if bend.max() <= _ROUNDING else _first_of_the_largest(bend) + 1


def _otsu(scores: Scores, _: JsonMap) -> int:
    count = np.arange(1, len(scores))
    upper = np.cumsum(scores)[:-1]
    apart = upper / count - (scores.sum() - upper) / (len(scores) - count)
    return _first_of_the_largest(count * (len(scores) - count) * apart**2) + 1


def _gmm(scores: Scores, options: JsonMap) -> int:
    from sklearn.mixture import GaussianMixture  # noqa: PLC0415 - a second to load, not needed to plan

    # Otsu's two classes are where the fit starts, so that nothing is drawn at random.
    split = _otsu(scores, options)
    classes = scores[:split], scores[split:]
    mixture = GaussianMixture(
        2,
        reg_covar=_VARIANCE,
        max_iter=1000,
        random_state=0,
        weights_init=[len(kind) / len(scores) for kind in classes],
        means_init=[[kind.mean()] for kind in classes],
        precisions_init=[[[1 / (kind.var() + _VARIANCE)]] for kind in classes],
    ).fit(scores[:, np.newaxis])
    upper = int(np.argmax(mixture.means_[:, 0]))
    likely = mixture.predict_proba(scores[:, np.newaxis])[:, upper] >= 0.5
    # Far above its own mean a narrow upper component loses to a wide lower one: it doesn't end there.
    likely |= scores >= mixture.means_[upper, 0]
    return len(scores) if likely.all() else int(np.argmin(likely))


def _first_of_the_largest(values: Scores) -> int:
    return int(np.argmax(values >= values.max() - _ROUNDING * max(1.0, values.max())))


_CUTS = (
    Cut(
        name="percentile",
        text="Keeps scores at or above a percentile of the list (linear interpolation).",
        place=_percentile,
        options=(
            Param(
                name="percentile",
                default=90.0,
                low=0.0,
                high=100.0,
                text="100 keeps the best score only, 0 keeps everything.",
            ),
        ),
    ),
    Cut(name="max-gap", text="Cuts before the largest drop between neighbours.", place=_max_gap),
    Cut(
        name="knee",
        text="Cuts before the knee, where the fall turns flat (Kneedle: Satopää et al., 2011).",
        place=_knee,
        package="kneed",
        options=(
            Param(
                name="sensitivity",
                default=1.0,
                low=0.0,
                high=100.0,
                text="How far the curve must flatten behind a knee, in steps of the list (S in the paper).",
            ),
        ),
    ),
    Cut(
        name="second-derivative",
        text="Cuts before the score at which the curve bends upwards most: sᵢ₋₁ − 2·sᵢ + sᵢ₊₁.",
        place=_second_derivative,
    ),
    Cut(
        name="otsu",
        text="Cuts into the two classes whose means lie furthest apart, weighted by size (Otsu, 1979).",
        place=_otsu,
    ),
    Cut(
        name="gmm",
        text="Cuts where the upper of two Gaussian components becomes the less likely one.",
        place=_gmm,
        package="sklearn",
    ),
)
CUTS: Mapping[str, Cut] = MappingProxyType({cut.name: cut for cut in _CUTS})


cut_options = partial(read_method, "cut", CUTS)
"""Check a cut and fill in the defaults."""


def keep(cut: JsonMap, scores: Sequence[float] | NDArray[np.floating]) -> int:
    """Return how many passages of a ranking to keep.

    Args:
        cut: See `cut_options`.
        scores: [n], descending.

    Returns:
        1 to n; 0 only if there is no score.

    Raises:
        UnknownNameError: If the method or an option is not declared.
        InputError: If an option is out of range, or the scores are not descending finite numbers.
    """
    options, values = cut_options(cut), np.asarray(scores, dtype=np.float64)
    if not np.isfinite(values).all() or (np.diff(values) > 0).any():
        problem = "The scores are not finite numbers in descending order."
        do = "Cut a ranking by the scores that it is ordered by."
        raise InputError(problem, where=f"cut {options['method']}", do=do)
    if len(values) < 2 or values[0] == values[-1]:
        return len(values)
    # On a scale of their own, so that neither engine nor rounding decides what is a difference.
    scaled = (values - values[-1]) / (values[0] - values[-1])
    return min(max(CUTS[options["method"]].place(scaled, options), 1), len(values))


@dataclass(frozen=True, slots=True)
class CutReport:
    """One value per query, float64 [..., queries]."""

    precision: Scores  # Share of the kept passages that are relevant; 0 if nothing is kept
    recall: Scores  # Share of the relevant passages that are kept; NaN if the query has none
    f1: Scores  # Their harmonic mean, 0 where both are 0; NaN if recall is
    kept: Scores  # How many passages are kept


def cut_report(
    kept: NDArray[np.integer[Any]],
    grades: NDArray[np.integer[Any]],
    relevant: NDArray[np.integer[Any]],
    *,
    threshold: int = 4,
) -> CutReport:
    """Score the passages kept of each ranking.

    Args:
        kept: [..., queries], how many passages each ranking keeps, 0 to depth.
        grades: [..., queries, depth], grade at each rank: 1..5 judged, 0 unjudged, -1 empty slot; leading
            axes may be left out if they are the same.
        relevant: [queries], how many passages of the golden set reach the threshold.
        threshold: Lowest grade that counts as relevant.
    """
    relevant_within = np.cumsum(grades >= threshold, axis=-1)
    relevant_within = np.broadcast_to(relevant_within, (*kept.shape, relevant_within.shape[-1]))
    at = np.maximum(kept, 1)[..., np.newaxis] - 1
    good = np.where(kept > 0, np.take_along_axis(relevant_within, at, axis=-1)[..., 0], 0)
    total = np.where(relevant > 0, relevant, np.nan)
    return CutReport(
        precision=good / np.maximum(kept, 1),
        recall=good / total,
        f1=2 * good / (kept + total),
        kept=kept.astype(np.float64),
    )
