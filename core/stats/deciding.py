"""An interval of a mean difference that may be read after every judged question, and stops once it decides.

The questions are a finite list. Before a question is judged, the least and the most that its difference can
be are known: 0 if two stacks show the same passages. Questions are drawn one by one without
replacement, with a chance in proportion to the width of that range, so that the most informative come
first; weighing by the inverse of the chance keeps the estimate of the mean unbiased. A bet against every mean
that the differences could have grows where that mean is wrong, and reaches 1 / alpha with a chance of at most
alpha if it is right, however often one looks (Ville 1939). The means that no bet has ruled out are the
interval (Waudby-Smith and Ramdas 2024, J. R. Stat. Soc. B 86; weighted draws without replacement: Shekhar,
Xu, Lipton, Liang and Ramdas 2023, UAI).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core.arrays import Floats, Rows
from core.stats.intervals import SEED

ALPHA = 0.05
"""The chance, at most, that the true mean is ever outside the interval."""
_BETS = np.array([0.2, 0.5, 0.99])  # Shares of the capital that are staked, in equal parts
_MEANS = 800  # Means that are bet against; an end is no finer than the range divided by this number
_COARSE = 200  # The same for continuations
_FEW = 5  # Questions judged before anything is predicted
_AHEAD = 64  # Simulated continuations that predict how many more questions are needed


@dataclass(frozen=True, slots=True, eq=False)
class Draw:
    """A finite list of n questions, and the order in which they are judged."""

    low: Floats  # [n], the least that the difference of each may be
    high: Floats  # [n], the most
    order: Rows  # indices of the questions whose difference is not known yet, the first to judge first


@dataclass(frozen=True, slots=True, eq=False)
class Looks:
    """The interval of the mean difference before the first question and after each."""

    low: Floats  # [t + 1]
    high: Floats  # [t + 1]
    value: Floats  # [t + 1], the estimate; the middle of the range before the first question


def drawn(low: Floats, high: Floats, seed: int = SEED) -> Draw:
    """Draw the order in which questions are judged.

    Each next question is drawn from the rest with a chance in proportion to its range: exponential times are
    divided by the range, and the shortest come first.

    Args:
        low: The least that the difference of each question may be [n].
        high: The most [n].
        seed: Seed of the draw.
    """
    width = high - low
    times = np.random.default_rng(seed).exponential(size=len(width))
    unknown = np.flatnonzero(width > 0)
    return Draw(low, high, unknown[np.argsort(times[unknown] / width[unknown], kind="stable")])


def looks(draw: Draw, seen: Floats, *, alpha: float = ALPHA, means: int = _MEANS) -> Looks:
    """Return the interval of the mean over all n questions, at first and after each judged question.

    Args:
        draw: The questions.
        seen: Differences of the first t questions in the drawn order [t].
        alpha: The chance, at most, that the true mean is ever outside.
        means: Number of means that are bet against.
    """
    up = _Bets(draw, seen)
    down = _Bets(Draw(-draw.high, -draw.low, draw.order), -seen)
    sure_low, sure_high = up.least / up.n, (up.least + up.open) / up.n
    ends_low = np.clip(up.lower_end(alpha / 2, means), sure_low, sure_high)
    ends_high = np.clip(-down.lower_end(alpha / 2, means), ends_low, sure_high)
    return Looks(ends_low, ends_high, np.clip(up.estimates(), ends_low, ends_high))


def expected_more(draw: Draw, seen: Floats, margin: float, delta: float) -> int | None:
    """Predict how many further questions a decision takes, as the median of simulated continuations.

    A continuation draws the relative positions within the ranges from those seen so far.

    Returns:
        None if fewer than `_FEW` questions were judged.
    """
    if len(seen) < _FEW:
        return None
    middle, width = (draw.low + draw.high) / 2, draw.high - draw.low
    done, left = np.split(draw.order, [len(seen)])
    residuals = (seen - middle[done]) / width[done]
    rng = np.random.default_rng(SEED)
    needed = []
    for _ in range(_AHEAD):
        coming = middle[left] + width[left] * rng.choice(residuals, len(left))
        told = looks(draw, np.append(seen, coming), means=_COARSE)
        answers = decisions(told, margin, delta)
        needed.append(next((at for at, answer in enumerate(answers) if answer), len(draw.order)))
    return max(0, int(np.median(needed)) - len(seen))


def decisions(told: Looks, margin: float, delta: float) -> list[str | None]:
    """Return the decision at every look; see `decision`."""
    return [decision(*ends, margin, delta) for ends in zip(told.low, told.high, strict=True)]


def decision(low: float, high: float, margin: float, delta: float) -> str | None:
    """Return the decision that an interval allows: ``switch``, ``stay``, ``no difference``; None = none yet.

    Args:
        low: Lower end of the candidate's mean minus the incumbent's.
        high: Upper end.
        margin: The least gain that makes the candidate worth switching to.
        delta: The largest difference that does not matter.
    """
    if low > margin:
        return "switch"
    if high < 0:
        return "stay"
    if -delta <= low and high <= delta:
        return "no difference"
    return "stay" if high < margin else None


class _Bets:
    """Bets that the mean is higher than supposed, over the questions drawn so far.

    The place of a difference in its range goes from 0 (the least) to 1 (the most). Since a question is drawn
    in proportion to its range, the expected place follows from the supposed mean: the part of the open range
    that the undrawn differences must fill. If the supposed mean is too low, the places look high.
    """

    def __init__(self, draw: Draw, seen: Floats) -> None:
        low, high = draw.low, draw.high
        done, width = draw.order[: len(seen)], high - low
        self.n = len(low)
        self.places = (seen - low[done]) / width[done]  # [t]
        # Before each draw and after the last [t + 1]: the least possible sum, and the open range above it
        self.least = low.sum() + np.append(0.0, np.cumsum(seen - low[done]))
        self.open = np.maximum(width.sum() - np.append(0.0, np.cumsum(width[done])), 0.0)

    def estimates(self) -> Floats:
        """Return the mean of the unbiased estimates, which begins at the middle of the range [t + 1]."""
        each = (self.least[:-1] + self.open[:-1] * self.places) / self.n
        running = np.cumsum(each) / np.arange(1, len(each) + 1)
        return np.append((self.least[0] + self.open[0] / 2) / self.n, running)

    def lower_end(self, alpha: float, means: int) -> Floats:
        """Return the highest mean that bets have ruled out from below, after each draw [t + 1]."""
        supposed = self.least[0] + self.open[0] * np.arange(1, means) / means  # sums
        expected = (supposed - self.least[:-1, None]) / self.open[:-1, None]  # [t, means]
        open_to_bets = np.where(expected > 0, expected, 1.0)
        gains = np.where(expected > 0, self.places[:, None] / open_to_bets - 1, 0.0)
        logs = np.cumsum(np.log1p(_BETS[:, None, None] * gains), axis=1)
        capital = np.logaddexp.reduce(logs, axis=0) - np.log(len(_BETS))
        # A sum at or below the least possible one needs no bet.
        out = np.logical_or.accumulate((capital >= -np.log(alpha)) | (expected <= 0), axis=0)
        highest = np.where(out, supposed, self.least[0]).max(axis=1, initial=self.least[0])
        return np.append(self.least[0], highest) / self.n
