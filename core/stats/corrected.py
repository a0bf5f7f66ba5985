"""Means of scores that a judge gave to every question, corrected by the few questions that people graded.

Prediction-powered inference (Angelopoulos et al. 2023, Science 382; power-tuned: Angelopoulos, Duchi and
Zrnic 2023, "PPI++", arXiv:2311.01453): the mean of the people's grades, moved by the distance of the judge's
mean over all questions from its mean over the graded ones, times the weight that minimises the variance.
With one judge that is the regression estimator of two-phase sampling (Cochran 1977, Sampling Techniques,
ch. 12). Here the weight is a least-squares fit over questions, so that one formula covers a mean, the
difference of two stacks whose graded questions overlap in part, and several judges. Graded questions have to
be drawn at random.

Rogan and Gladen (1978, Am. J. Epidemiol. 107) for yes and no, with the interval over test and calibration
data of Lee et al. (2025, arXiv:2511.21140), serve stacks that nobody graded, provided that the judge errs
on them as on others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import gammaincinv, ndtri, stdtrit

from core.arrays import Floats, Mask
from core.stats.intervals import CLUSTERS, Labels, columns_of

FEW = 10
"""Graded questions below which nothing is corrected."""
_TINY = 1e-12
_END = 0.5  # Answers that are added at either end of the possible range: Jeffreys' prior of a share
_EVEN = 1e-3  # Skewness from which on a distribution does not count as normal
_SHIFT = 0.5  # The most that the interval moves for the skewness, as a share of its half width


@dataclass(frozen=True, slots=True)
class ScoredLabels:
    """Scores by people and by judges of one stack's answers, per question; NaN = not graded or scored."""

    graded: Floats  # [Q], by people, 0..1
    judged: Floats  # [Q] or [Q, J], by one judge or several, 0..1
    clusters: Labels | None = None  # [Q], a number per question, equal within a document; None = each its own

    def columns(self) -> Floats:
        """Return the judges' scores [Q, J]."""
        return self.judged.reshape(len(self.graded), -1)

    def units(self) -> Labels:
        """Return the cluster of each question, numbered from 0 [Q]."""
        every = len(self.graded)
        return np.arange(every) if self.clusters is None else columns_of(self.clusters, every)


@dataclass(frozen=True, slots=True)
class Corrected:
    """A mean, or a difference of two, corrected by people's grades."""

    value: float
    low: float  # ends of the interval; NaN if too few are graded
    high: float
    alone: float  # the mean of the people's grades alone, with its interval
    alone_low: float
    alone_high: float
    judged: float  # the mean of the judge's scores
    graded: int  # questions that people graded; for a difference, the smaller of the two stacks' counts
    questions: int  # that the judge scored
    effective: float  # number of grades that would be as certain without a judge
    influence: Floats  # [Q], influence of each question; the squares of clusters' sums add up to the variance
    left: float = 0.0  # share of that variance that no further grade takes away
    units: int = 0  # clusters that the graded questions come from; their number if each is its own

    @property
    def enough(self) -> bool:
        """Whether people graded enough questions, of enough clusters, for an interval."""
        return self.graded >= FEW and self.units >= min(CLUSTERS, FEW)

    @property
    def moved(self) -> float:
        """How far the correction moved the judge's figure."""
        return self.value - self.judged

    def width(self, more: int = 0) -> float:
        """Return the width of the interval, or its expected width with more grades drawn at random."""
        rest = (1 - self.left) * self.graded / (self.graded + more) + self.left
        return float((self.high - self.low) * np.sqrt(rest))


def correct(one: ScoredLabels, other: ScoredLabels | None = None, *, level: float = 0.95) -> Corrected:
    """Correct a stack's mean, or its lead over another stack's mean on the same questions.

    Args:
        one: The stack's scores.
        other: The scores of the stack that is subtracted; None = correct the mean itself.
        level: Coverage in (0, 1).

    Returns:
        Figures in 0..1, or in -1..1 for a difference. The ends are NaN below `FEW` grades of either stack,
        and if these come from fewer than `CLUSTERS` clusters. The interval is Student's, moved for the
        skewness of the disagreements (Hall 1992). If all grades are yes or no, people's grades alone get
        Wilson's interval, and the corrected mean that of the Bayesian bootstrap (Rubin 1981) of the
        disagreements with Jeffreys' half an answer at either end. Questions in clusters get Student's
        interval of the sums of clusters.
    """
    parts = [(_moments(one), 1.0)] + ([(_moments(other), -1.0)] if other is not None else [])
    alone = sum(sign * part.alone for part, sign in parts)
    judged = sum(sign * part.judged for part, sign in parts)
    base = np.sum([sign * part.base for part, sign in parts], axis=0)
    levers = np.concatenate([sign * part.levers for part, sign in parts], axis=1)
    shifts = np.concatenate([sign * part.shifts for part, sign in parts])
    n, units = min(part.graded for part, _ in parts), min(part.units for part, _ in parts)
    plain = _wider(base, units, 0)
    fitted, tuned = _fit(base, levers, units)
    shares = other is None and one.clusters is None and _yes_or_no(one.graded)
    value = float(alone - shifts @ fitted)
    if shares:
        ends = _wilson(alone, plain, n, level)
        better, rare = _bootstrapped(value, tuned, fitted, parts[0][0], level)
    else:
        rare = float(sum(part.guess for part, _ in parts))
        ends = _student(alone, plain, 0.0, units, level)
        better = _student(value, tuned, rare, units, level, skewed=one.clusters is None)
    if not fitted.any() or better[1] - better[0] >= ends[1] - ends[0]:  # the judge is of no use
        fitted, tuned, rare, better, value = np.zeros_like(fitted), plain, 0.0, ends, float(alone)
    unsure = [float(np.sum(some**2)) + more for some, more in ((plain, 0.0), (tuned, rare))]
    more = np.sqrt(1 + rare / float(np.sum(tuned**2))) if tuned.any() else 1.0
    told = Corrected(
        value=value,
        low=better[0],
        high=better[1],
        alone=float(alone),
        alone_low=ends[0],
        alone_high=ends[1],
        judged=float(judged),
        graded=n,
        questions=max(part.questions for part, _ in parts),
        effective=n * unsure[0] / unsure[1] if unsure[1] > _TINY else float(n),
        influence=_spread(tuned * more, one, other),
        left=_left(parts, fitted, unsure[1]),
        units=units,
    )
    unknown = np.nan
    few = replace(told, low=unknown, high=unknown, alone_low=unknown, alone_high=unknown)
    return told if told.enough else few


def by_question(of: ScoredLabels) -> Floats:
    """Return values per question whose mean is the corrected mean and whose scatter shows its uncertainty.

    Returns:
        [Q]; single values may lie outside 0..1. NaN if neither judge nor people scored, and everywhere
        below `FEW` grades.
    """
    told = correct(of)
    known = _known(of)
    if not told.enough:
        return np.full(len(of.graded), np.nan)
    return np.where(known, told.value + known.sum() * told.influence, np.nan)


def _known(of: ScoredLabels) -> Mask:
    return np.asarray(~(np.isnan(of.graded) & np.isnan(of.columns()).any(axis=1)))


def _spread(influence: Floats, one: ScoredLabels, other: ScoredLabels | None) -> Floats:
    """Spread the influence of each cluster over its questions that somebody scored [Q]."""
    counted = _known(one) if other is None else _known(one) | _known(other)
    size = np.bincount(one.units(), counted, minlength=len(influence))
    return np.asarray((influence / np.maximum(size, 1))[one.units()] * counted)


@dataclass(frozen=True, slots=True)
class Errors:
    """Error rates of a binary judge, measured against people's grades of the same answers."""

    right_yes: int  # the judge says yes, and so do people
    yes: int  # people say yes
    right_no: int
    no: int

    @classmethod
    def of(cls, graded: Mask, judged: Mask) -> Errors:
        """Count the errors over answers that both people and the judge rated [n]."""
        return cls(
            int((graded & judged).sum()),
            int(graded.sum()),
            int((~graded & ~judged).sum()),
            int((~graded).sum()),
        )

    @property
    def sensitivity(self) -> float:
        """Share of the good answers that the judge calls good, or NaN if there are none."""
        return self.right_yes / self.yes if self.yes else np.nan

    @property
    def specificity(self) -> float:
        """Share of the bad answers that the judge calls bad, or NaN if there are none."""
        return self.right_no / self.no if self.no else np.nan


def rogan_gladen(judged: Floats, errors: Errors) -> tuple[float, float, float]:
    """Estimate the share of good answers from a judge with known error rates, with its interval.

    Args:
        judged: [n] 0 or 1, the judge's verdicts on answers without a human grade.
        errors: The judge's errors on other answers, assumed to be the same on these.

    Returns:
        The share and its ends in 0..1; NaN if the judge does no better than chance or a class has no grade.
    """
    n = len(judged)
    if not n or not errors.yes or not errors.no or errors.sensitivity + errors.specificity <= 1:
        return np.nan, np.nan, np.nan
    share = float(np.mean(judged))
    point = (share + errors.specificity - 1) / (errors.sensitivity + errors.specificity - 1)
    z = float(ndtri(0.975))
    of_test, of_bad, of_good = n + z**2, errors.no + 2, errors.yes + 2
    test, bad, good = (
        (n * share + z**2 / 2) / of_test,
        (errors.right_no + 1) / of_bad,
        (errors.right_yes + 1) / of_good,
    )
    smooth = (test + bad - 1) / (bad + good - 1)
    spread_bad, spread_good = bad * (1 - bad) / of_bad, good * (1 - good) / of_good
    shift = 2 * z**2 * (smooth * spread_good - (1 - smooth) * spread_bad)
    variance = test * (1 - test) / of_test + (1 - smooth) ** 2 * spread_bad + smooth**2 * spread_good
    reach = z * np.sqrt(variance) / (bad + good - 1)
    ends = np.clip([point, smooth + shift - reach, smooth + shift + reach], 0.0, 1.0)
    return float(ends[0]), float(ends[1]), float(ends[2])


@dataclass(frozen=True, slots=True)
class _Moments:
    """Influence of each of U clusters on a mean of grades, and on the shifts that judges' scores give it."""

    alone: float
    judged: float
    base: Floats  # [U]
    levers: Floats  # [U, J]
    every: Floats  # [U, J], the part of the levers that comes from the judge's mean over all questions
    shifts: Floats  # [J], a judge's mean over the graded questions less that over all
    seen: Floats  # [J], a judge's mean over the graded questions
    guess: float  # variance that one error of a judge adds who guesses among the grades
    graded: int
    units: int  # clusters that the grades come from
    questions: int


def _moments(of: ScoredLabels) -> _Moments:
    judged = of.columns()
    scored = np.asarray(~np.isnan(judged).any(axis=1))
    known = np.asarray(~np.isnan(of.graded))
    both = known & scored
    n, every = int(known.sum()), int(scored.sum())
    alone = float(of.graded[known].mean()) if n else np.nan
    base = np.where(known, of.graded - alone, 0.0) / max(n, 1)
    levers, every_part = np.zeros_like(judged), np.zeros_like(judged)
    shifts, of_graded = np.zeros(judged.shape[1]), np.zeros(judged.shape[1])
    if both.sum() > 1 and every > both.sum():
        filled = np.where(scored[:, None], judged, 0.0)
        of_graded, of_all = filled[both].mean(axis=0), filled[scored].mean(axis=0)
        levers += np.where(both[:, None], filled - of_graded, 0.0) / both.sum()
        every_part = np.where(scored[:, None], filled - of_all, 0.0) / every
        levers -= every_part
        shifts = of_graded - of_all
    mean = float(np.nanmean(judged[scored])) if every else np.nan
    told = of.graded[known]
    levels = (
        np.array([0.0, 1.0])
        if _yes_or_no(told)
        else np.unique(np.concatenate([told, judged[scored].ravel()]))
    )
    guess = float(np.mean((levels - alone) ** 2)) / n**2 if n else 0.0
    labels = of.units()
    base, levers, every_part = (_summed(part, labels) for part in (np.nan_to_num(base), levers, every_part))
    units = len(np.unique(labels[known]))
    return _Moments(alone, mean, base, levers, every_part, shifts, of_graded, guess, n, units, every)


def _summed(parts: Floats, labels: Labels) -> Floats:
    """Add up the rows of each cluster."""
    sums = np.zeros((int(labels.max(initial=-1)) + 1, *parts.shape[1:]))
    np.add.at(sums, labels, parts)
    return sums


def _left(parts: list[tuple[_Moments, float]], weights: Floats, variance: float) -> float:
    """Return the share of the variance that comes from the judge's mean over all questions."""
    every = np.concatenate([sign * part.every for part, sign in parts], axis=1) @ weights
    return min(1.0, float(np.sum(every**2)) / variance) if variance > _TINY else 0.0


def _fit(base: Floats, levers: Floats, n: int) -> tuple[Floats, Floats]:
    """Return the weights that minimise the variance, and each question's influence under them."""
    weights = np.linalg.lstsq(levers, base, rcond=1e-9)[0] if levers.any() else np.zeros(levers.shape[1])
    used = int(np.count_nonzero(np.abs(weights) > _TINY))
    if n <= used + 2:
        return np.zeros_like(weights), _wider(base, n, 0)
    return np.asarray(weights), _wider(base - levers @ weights, n, used)


def _wider(influence: Floats, n: int, used: int) -> Floats:
    """Widen the influences for what was fitted: a mean, and as many weights as are used."""
    return np.asarray(influence * np.sqrt(n / max(n - 1 - used, 1)))


def _yes_or_no(grades: Floats) -> bool:
    known = grades[~np.isnan(grades)]
    return bool(np.isin(known, (0.0, 1.0)).all())


def _freedom(influence: Floats, variance: float, rare: float, n: int) -> float:
    """Return the degrees of freedom that the spread of the influences supports (Satterthwaite 1946).

    Few questions on which judge and people differ say little about how many there are.
    """
    more = float(np.sum(influence**4)) + rare**2 - variance**2 / max(n, 1)
    return max(min(2 * variance**2 / more, n - 1.0) if more > 0 else n - 1.0, 1.0)


def _student(
    value: float, influence: Floats, rare: float, n: int, level: float, *, skewed: bool = False
) -> tuple[float, float]:
    """Return the ends of Student's interval.

    Args:
        rare: Variance from errors of the judge of a kind that was not seen.
        skewed: Whether to move the interval towards the few and large influences (Hall 1992).
    """
    variance = float(np.sum(influence**2)) + rare
    reach = float(stdtrit(_freedom(influence, variance, rare, n), (1 + level) / 2))
    spread = np.sqrt(variance)
    skewness = float(np.sum(influence**3)) / spread**3 if skewed and variance > _TINY else 0.0
    most = _SHIFT * reach
    middle = value + spread * float(np.clip(skewness * (1 + 2 * reach**2) / 6, -most, most))
    return float(middle - reach * spread), float(middle + reach * spread)


def _wilson(value: float, influence: Floats, n: int, level: float) -> tuple[float, float]:
    """Return the ends of Wilson's interval for a share."""
    variance = float(np.sum(influence**2))
    reach = float(stdtrit(_freedom(influence, variance, 0.0, n), (1 + level) / 2))
    even = value * (1 - value)
    worth = even / variance if variance > _TINY and even > _TINY else float(max(n, 1))
    middle = (value + reach**2 / (2 * worth)) / (1 + reach**2 / worth)
    half = reach / (1 + reach**2 / worth) * np.sqrt(even / worth + reach**2 / (4 * worth**2))
    return float(middle - half), float(middle + half)


def _bootstrapped(
    value: float, influence: Floats, weights: Floats, of: _Moments, level: float
) -> tuple[tuple[float, float], float]:
    """Return the ends of the Bayesian bootstrap of a share, and the variance that Jeffreys' answers add.

    People's grades minus the weighted judges' scores are resampled with Dirichlet weights; the two answers
    added are those on which the two can differ most. The first three moments are exact, and the ends are
    those of the Pearson type III distribution that has these moments.
    """
    n = of.graded
    rest = of.alone - float(weights @ of.seen)  # the mean disagreement
    most = np.array([1 - np.minimum(weights, 0).sum(), -np.maximum(weights, 0).sum()])
    far = (most - rest) / n
    drawn = n**2 / ((n + 1) * (n + 2))
    variance = drawn * float(np.sum(influence**2) + _END * np.sum(far**2))
    third = 2 * drawn * n / (n + 3) * float(np.sum(influence**3) + _END * np.sum(far**3))
    middle, spread = value + n * float(far.mean()) / (n + 1), np.sqrt(variance)
    low, high = middle + spread * _pearson(third / spread**3, level)
    return (max(float(low), 0.0), min(float(high), 1.0)), variance - float(np.sum(influence**2))


def _pearson(skewness: float, level: float) -> Floats:
    """Return the two ends of the Pearson type III distribution with mean 0 and deviation 1."""
    tails = np.array([1 - level, 1 + level]) / 2
    if abs(skewness) < _EVEN:
        return np.asarray(ndtri(tails))
    shape = 4 / skewness**2
    ends = np.asarray((gammaincinv(shape, tails) - shape) / np.sqrt(shape))
    return ends if skewness > 0 else -ends[::-1]
