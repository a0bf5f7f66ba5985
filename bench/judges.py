"""Simulates judges and people: how often the corrected interval holds the truth, and how wide it is.

    python -m bench.judges [--trials N] [--seed N]

A table in Markdown; docs/readers.md prints that of 1,000 trials. The interval was chosen by other shares of
good answers and other seeds than these.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.stats.corrected import Corrected, Scored, correct

Floats = NDArray[np.float64]
GRADED, RIGHT, GOOD = (40, 100, 400), (0.6, 0.75, 0.95), (0.25, 0.55, 0.85)
QUESTIONS = 1000
FAVOUR = 0.8  # How much oftener a judge who likes a stack errs to its good than otherwise, 0..1
GAP = 0.1  # By how much the first of two stacks is better


@dataclass(frozen=True, slots=True)
class Case:
    """What is simulated: answers of which kind, how many are good, how often the judge is right."""

    kind: str
    good: float
    right: float
    graded: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of it, over the trials."""

    held: float  # share of the intervals that hold the truth
    alone_held: float  # the same of people's grades alone
    width: float  # mean width of the interval, as share of that of people's grades alone
    widest: float  # largest such share


def _judge(random: np.random.Generator, truth: Floats, right: float, favour: float) -> Floats:
    """Say yes or no; a judge who likes a stack errs rather to its good."""
    err = (1 - right) * np.where(truth > 0, 1 - favour, 1 + favour)
    return np.where(random.random(len(truth)) < err, 1 - truth, truth)


def _some(random: np.random.Generator, values: Floats, graded: int) -> Floats:
    """Give what people graded, drawn at random; the rest is NaN."""
    kept = random.permutation(len(values))[:graded]
    shown = np.full(len(values), np.nan)
    shown[kept] = values[kept]
    return shown


def _share(random: np.random.Generator, case: Case) -> tuple[Corrected, float]:
    truth = (random.random(QUESTIONS) < case.good).astype(np.float64)
    judged = _judge(random, truth, case.right, FAVOUR)
    return correct(Scored(_some(random, truth, case.graded), judged)), case.good


def _levels(random: np.random.Generator, case: Case) -> tuple[Corrected, float]:
    """Grade from 1 to 5 by the binomial distribution, so that the mean is known; the judge guesses else."""
    truth = random.binomial(4, case.good, QUESTIONS) / 4
    guess = random.integers(0, 6, QUESTIONS) / 5
    judged = np.where(random.random(QUESTIONS) < case.right, truth, guess)
    return correct(Scored(_some(random, truth, case.graded), judged)), case.good


def _difference(random: np.random.Generator, case: Case) -> tuple[Corrected, float]:
    """Compare two stacks whose answers go together, of which the judge likes the one and not the other."""
    hard = random.random(QUESTIONS)
    own = np.where(random.random(QUESTIONS) < 0.7, hard, random.random(QUESTIONS))
    both = (hard < case.good).astype(np.float64), (own < case.good - GAP).astype(np.float64)
    one, other = (
        Scored(_some(random, truth, case.graded), _judge(random, truth, case.right, favour))
        for truth, favour in zip(both, (FAVOUR, -FAVOUR), strict=True)
    )
    return correct(one, other), GAP


KINDS: dict[str, Callable[[np.random.Generator, Case], tuple[Corrected, float]]] = {
    "yes or no": _share,
    "grades 1 to 5": _levels,
    "difference, one stack favoured": _difference,
}


def cases() -> Iterator[Case]:
    """List every case."""
    for kind in KINDS:
        for graded in GRADED:
            for right in RIGHT:
                yield from (Case(kind, good, right, graded) for good in GOOD)


def simulate(case: Case, trials: int, seed: int = 1) -> Outcome:
    """Draw questions, answers, a judge and people's grades, many times."""
    random = np.random.default_rng([seed, case.graded, round(100 * case.right), round(100 * case.good)])
    held = np.zeros((trials, 2))
    widths = np.empty(trials)
    for trial in range(trials):
        told, truth = KINDS[case.kind](random, case)
        held[trial] = told.low <= truth <= told.high, told.alone_low <= truth <= told.alone_high
        widths[trial] = (told.high - told.low) / (told.alone_high - told.alone_low)
    return Outcome(*held.mean(axis=0).tolist(), float(widths.mean()), float(widths.max()))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--kind", action="append", choices=KINDS, help="one of the tables alone")
    told = parser.parse_args()
    trials = told.trials
    print("| score | graded | judge right | held, % | people alone held, % | width beside alone | widest |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for kind in told.kind or KINDS:
        for graded in GRADED:
            for right in RIGHT:
                some = [simulate(Case(kind, good, right, graded), trials, told.seed) for good in GOOD]
                held, alone = (
                    " / ".join(f"{100 * getattr(one, name):.1f}" for one in some)
                    for name in ("held", "alone_held")
                )
                width = " / ".join(f"{one.width:.2f}" for one in some)
                widest = max(one.widest for one in some)
                print(
                    f"| {kind} | {graded} | {100 * right:.0f} % | {held} | {alone} | {width} | {widest:.2f} |"
                )


if __name__ == "__main__":
    main()
