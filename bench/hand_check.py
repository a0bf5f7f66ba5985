"""Simulates the check of grades by hand: how often it finds bad grades, and how often it condemns good ones.

    python -m bench.hand_check [--trials N] [--seed N] [--store STORE]

The population is the demo's `docs-search`: its questions, with each stack's RA-nWG@10 on each. People grade
some of them, drawn with replacement. By their grades the chosen stack and its rivals differ on each question
as measured, but for a shift: none; to 0 on average, for each rival; or the runner-up's to a stated lead. The
check fails where the lower end of a rival's lead by Student's interval, as on the pages, is above 0: of each
pair alone at 95 %, or of all pairs of these stacks together (Bonferroni, as "surely" there). Prints Markdown.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import core as clq
from bench.demo import demo
from core.stats.significance import student_ends
from core.views.words.judging import QUESTIONS

Floats = NDArray[np.float64]
TRIALS, SLA_MS, LEVEL = 4000, 20.0, 0.95
ASKED = (QUESTIONS, 60, 150)
BETTER = (0.02, 0.05, 0.1)


def leads(store: str) -> Floats:
    """Return by how much each rival leads the chosen stack on each question [S, Q], the runner-up first.

    Stacks with the same score on every question count once.
    """
    view = clq.open(Path(store)).workspace("docs-search").decide(sla_ms=SLA_MS).view
    paired, decision = view.paired, view.decision
    assert paired is not None  # its results are per query
    assert decision.chosen is not None
    places = paired.places(view.table["run_id"])
    others = np.flatnonzero(decision.feasible)
    others = others[others != decision.chosen]
    gaps = np.unique(paired.values[places[others]] - paired.values[places[decision.chosen]], axis=0)
    gaps = gaps[np.any(gaps != 0, axis=1)]
    return np.asarray(gaps[np.argsort(-gaps.mean(axis=1))])


def shifted(gaps: Floats, better: float | None) -> Floats:
    """Return leads by people's grades: as measured, or with the first rival truly better by an amount."""
    if better is None:
        return gaps
    first = gaps[:1] - gaps[:1].mean() + better
    return np.concatenate([first, gaps[1:]])


def level(gaps: Floats) -> Floats:
    """Return leads by people's grades that are 0 on average, for every rival."""
    return np.asarray(gaps - gaps.mean(axis=1, keepdims=True))


def fails(gaps: Floats, questions: int, *, trials: int, seed: int, together: bool) -> float:
    """Return how often the check of so many questions fails.

    Args:
        gaps: [S, Q], the leads of the rivals that people grade too.
        questions: How many they grade, drawn with replacement.
        trials: How often it is drawn.
        seed: Of the draws.
        together: Whether the intervals hold for all pairs together.
    """
    drawn = np.random.default_rng([seed, questions]).integers(gaps.shape[1], size=(trials, questions))
    tail = (1 - LEVEL) / 2 / (len(gaps) * (len(gaps) + 1) / 2 if together else 1)
    low = np.array([student_ends(gap[drawn], tail)[0] for gap in gaps])
    return float(np.mean((low > 0).any(axis=0)))


def rows(gaps: Floats, *, trials: int, seed: int) -> Iterator[tuple[str, int, str, list[float]]]:
    """Yield what is graded, how many questions, which intervals, and the shares of the checks that fail."""
    cases = [gaps, level(gaps), *(shifted(gaps, better) for better in BETTER)]
    for questions in ASKED:
        for rivals, together in ((1, False), (len(gaps), False), (len(gaps), True)):
            shares = [
                fails(case[:rivals], questions, trials=trials, seed=seed, together=together) for case in cases
            ]
            graded = "the runner-up" if rivals == 1 else f"all {rivals} rivals"
            yield graded, questions, "all pairs together" if together else "each pair alone", shares


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.hand_check", description=__doc__)
    parser.add_argument("--trials", type=int, default=TRIALS)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--store", help="a store that holds the demo; without it one is written")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        gaps = leads(given.store or demo(Path(folder)))
    better = " | ".join(f"+{amount:g}" for amount in BETTER)
    print(f"| judged besides the chosen | questions | interval | as measured | all level | {better} |")
    print(f"|---|--:|---|{'--:|' * (2 + len(BETTER))}")
    for graded, questions, interval, shares in rows(gaps, trials=given.trials, seed=given.seed):
        print(f"| {graded} | {questions} | {interval} | {' | '.join(f'{100 * one:.1f}' for one in shares)} |")


if __name__ == "__main__":
    main()
