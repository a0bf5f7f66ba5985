"""Simulates judges and people: how often the corrected interval holds the truth, and how wide it is.

    python -m bench.judges [--trials N] [--seed N] [--kind KIND] [--choices]

Tables in Markdown; docs/readers.md says how many trials its own are of. The interval was chosen by other
shares of good answers and other seeds than these. With --choices, of two stacks one of which the judge likes:
how often the interval by which Decision tells stacks apart holds their difference, and how often the better
one is chosen.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from core.arrays import Floats
from core.stats.corrected import Corrected, ScoredLabels, by_question, correct
from core.stats.means import mean_interval

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
    return correct(ScoredLabels(_some(random, truth, case.graded), judged)), case.good


def _levels(random: np.random.Generator, case: Case) -> tuple[Corrected, float]:
    """Grade from 1 to 5 by the binomial distribution, so that the mean is known; the judge guesses else."""
    truth = random.binomial(4, case.good, QUESTIONS) / 4
    guess = random.integers(0, 6, QUESTIONS) / 5
    judged = np.where(random.random(QUESTIONS) < case.right, truth, guess)
    return correct(ScoredLabels(_some(random, truth, case.graded), judged)), case.good


def _two(random: np.random.Generator, case: Case, likes_better: float) -> tuple[ScoredLabels, ScoredLabels]:
    """Answer by two stacks whose answers go together, of which the judge likes the one and not the other."""
    hard = random.random(QUESTIONS)
    own = np.where(random.random(QUESTIONS) < 0.7, hard, random.random(QUESTIONS))
    both = (hard < case.good).astype(np.float64), (own < case.good - GAP).astype(np.float64)
    one, other = (
        ScoredLabels(_some(random, truth, case.graded), _judge(random, truth, case.right, favour))
        for truth, favour in zip(both, (likes_better, -likes_better), strict=True)
    )
    return one, other


def _difference(random: np.random.Generator, case: Case) -> tuple[Corrected, float]:
    return correct(*_two(random, case, FAVOUR)), GAP


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


def choose(case: Case, likes_better: float, trials: int, seed: int) -> dict[str, float]:
    """Decide between two stacks as Decision does: a bootstrap over questions of their corrected values.

    Returns:
        Shares of the trials: its interval holds the difference; corrected, people alone and the judge alone
        put the better stack first; the interval says so, or says the contrary.
    """
    random = np.random.default_rng([seed, case.graded, round(100 * case.right), round(10 + likes_better)])
    pairs = [_two(random, case, likes_better) for _ in range(trials)]
    apart = np.array([by_question(one) - by_question(other) for one, other in pairs])
    low, high = mean_interval(apart, "differences")
    means = {
        "corrected": apart.mean(axis=1),
        "people": np.array([np.nanmean(one.graded) - np.nanmean(other.graded) for one, other in pairs]),
        "judge": np.array([one.judged.mean() - other.judged.mean() for one, other in pairs]),
    }
    told = {name: float(np.mean((ahead > 0) + 0.5 * (ahead == 0))) for name, ahead in means.items()}
    held = float(np.mean((low <= GAP) & (high >= GAP)))
    return {"held": held, **told, "sure": float(np.mean(low > 0)), "misled": float(np.mean(high < 0))}


def choices(trials: int, seed: int) -> None:
    """Print the table of choices between two stacks."""
    print("| the judge likes | graded | judge right | held, % | better first: corrected | people alone |"
          " judge alone | told apart | the wrong way |")  # fmt: skip
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for likes, favour in (("the better", FAVOUR), ("the worse", -FAVOUR)):
        for graded in GRADED:
            for right in RIGHT:
                told = choose(Case("difference", GOOD[1], right, graded), favour, trials, seed)
                shown = " | ".join(f"{100 * share:.1f}" for share in told.values())
                print(f"| {likes} | {graded} | {100 * right:.0f} % | {shown} |", flush=True)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--kind", action="append", choices=KINDS, help="one of the tables alone")
    parser.add_argument("--choices", action="store_true", help="choices between two stacks instead")
    told = parser.parse_args()
    trials = told.trials
    if told.choices:
        choices(trials, told.seed)
        return
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
