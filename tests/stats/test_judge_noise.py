"""Judge noise: what it comes to where truth is known."""

from __future__ import annotations

import numpy as np
import pytest

from core.metrics import Measure, score_at
from core.stats.judge_noise import JudgedSample, audited, places, posterior, replicates

MEASURE = Measure.parse("RA-nWG@10")
N, K, STACKS = 40, 10, 5
CUTS = (0.3, 0.9, 1.4, 1.9)


class World:
    """Queries whose passages have a true worth, stacks that see it in noise, a judge who errs."""

    def __init__(self, seed: int, queries: int, *, error: float = 0.5) -> None:
        random = np.random.default_rng(seed)
        worth = random.normal(0, 1, (queries, N)) + random.normal(0, 0.5, (queries, 1))
        self.true = self._grades(worth)
        self.machine = self._grades(worth + random.normal(0, error, (queries, N)))
        shared = random.normal(0, 1, (queries, N))
        spread = np.linspace(0.8, 2.0, STACKS)[:, None, None]
        own = random.normal(0, 1, (STACKS, queries, N))
        order = np.argsort(-(worth + spread * (0.6 * shared + 0.8 * own)), axis=2)
        self.top, self.rank = order[..., :K], np.argsort(order, axis=2) + 1
        self.random, self.queries = random, queries

    @staticmethod
    def _grades(worth: np.ndarray) -> np.ndarray:
        return (1 + (worth[..., None] > CUTS).sum(axis=-1)).astype(np.int8)

    def values(self, grades: np.ndarray) -> np.ndarray:
        """The measure [S, Q] on a table of grades."""
        counts = np.stack([(grades == each).sum(axis=1) for each in range(1, 6)], axis=1)
        return score_at(MEASURE, grades[np.arange(self.queries)[:, None], self.top], counts.astype(np.int32))

    def audit(self, per_grade: int) -> np.ndarray:
        """Draw as many passages of each of the machine's grades: their true grades, else 0."""
        seen, known = self.machine.ravel(), np.zeros(self.machine.size, dtype=np.int8)
        for grade in range(1, 6):
            at = np.flatnonzero(seen == grade)
            at = self.random.choice(at, min(per_grade, len(at)), replace=False)
            known[at] = self.true.ravel()[at]
        return known

    def judged(self, known: np.ndarray) -> JudgedSample:
        return JudgedSample(
            query=np.repeat(np.arange(self.queries), N),
            grade=self.machine.ravel(),
            known=known,
            place=places(self.rank.reshape(STACKS, -1)),
            slots=self.top + np.arange(self.queries)[:, None] * N,
        )

    def drawn(self, resamples: int) -> np.ndarray:
        shares = np.ones(self.queries) / self.queries
        return self.random.multinomial(self.queries, shares, resamples).astype(float)


def scoring(grades: np.ndarray, counts: np.ndarray) -> np.ndarray:
    return score_at(MEASURE, grades, counts)


def mean_of(values: np.ndarray, drawn: np.ndarray) -> np.ndarray:
    there = ~np.isnan(values)
    return (np.where(there, values, 0.0) @ drawn.T) / (there @ drawn.T)


def test_a_set_that_was_audited_whole_is_the_reference_itself() -> None:
    world = World(3, 12)
    known, drawn = world.true.ravel(), world.drawn(7)
    judged = world.judged(known)
    found = replicates(judged, audited(judged.grade, known), scoring, drawn, seed=1)
    assert found == pytest.approx(mean_of(world.values(world.true), drawn))


def test_a_judge_who_never_errs_changes_nothing() -> None:
    world = World(4, 12)
    counts = np.eye(5) * 1e6
    drawn = world.drawn(7)
    found = replicates(world.judged(np.zeros(12 * N, dtype=np.int8)), counts, scoring, drawn, seed=1)
    assert found == pytest.approx(mean_of(world.values(world.machine), drawn), abs=1e-3)


def test_the_same_seed_draws_the_same_and_a_resample_does_not_depend_on_their_number() -> None:
    world = World(5, 10)
    known = world.audit(20)
    judged, drawn = world.judged(known), world.drawn(4)
    counts = audited(judged.grade, known)
    whole = replicates(judged, counts, scoring, drawn, seed=2)
    assert (replicates(judged, counts, scoring, drawn[:2], seed=2) == whole[:, :2]).all()
    assert (replicates(judged, counts, scoring, drawn, seed=3) != whole).any()


def test_slots_that_nobody_judged_and_empty_ones_stay_what_they_are() -> None:
    seen = []

    def noted(grades: np.ndarray, counts: np.ndarray) -> np.ndarray:
        seen.append((grades, counts))
        return np.zeros(grades.shape[:2])

    judged = JudgedSample(
        query=np.array([0, 0, 1]),
        grade=np.array([5, 1, 3], dtype=np.int8),
        known=np.array([4, 0, 0], dtype=np.int8),
        place=places(np.array([[1, 0, 1]])),
        slots=np.array([[[0, 3, 4], [2, 4, 4]]]),
    )
    replicates(judged, np.eye(5), noted, np.ones((1, 2)), seed=0, tables=1)
    grades, counts = seen[-1]  # The first asks whether order counts.
    assert (grades[0, 0] == [4, 0, -1]).all()
    assert (grades[0, 1, 1:] == -1).all()
    assert (counts.sum(axis=-1) == [[2, 1]]).all()


def test_a_row_that_nobody_audited_stays_near_its_diagonal() -> None:
    rows = posterior(np.zeros((5, 5)))
    assert (rows.argmax(axis=1) == np.arange(5)).all()
    assert rows.sum(axis=1) == pytest.approx(1.0)
    assert rows[4, 4] > 3 * rows[4, 3] > 9 * rows[4, 2]


@pytest.mark.parametrize(
    ("ranks", "place"), [([0], 5), ([1], 0), ([2, 3], 1), ([10], 3), ([20], 4), ([21], 5)]
)
def test_places(ranks: list[int], place: int) -> None:
    assert (places(np.array(ranks)) == place).all()


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_the_interval_covers_the_true_mean_in_95_of_100_worlds() -> None:
    """48 passages audited of each grade, as in the demo; the judge gives 71 % of the true grades."""
    big = World(999, 6000)
    truth = np.nanmean(big.values(big.true), axis=1)
    covered, worlds = np.zeros((2, STACKS)), 100
    for seed in range(worlds):
        world = World(seed, 60)
        known, drawn = world.audit(48), world.drawn(100)
        judged = world.judged(known)
        noisy = replicates(judged, audited(judged.grade, known), scoring, drawn, seed=seed)
        for row, means in enumerate((mean_of(world.values(world.machine), drawn), noisy)):
            low, high = np.quantile(means, (0.025, 0.975), axis=1)
            covered[row] += (low <= truth) & (truth <= high)
    without, with_noise = covered.mean(axis=1) / worlds
    assert 0.93 <= with_noise <= 0.97
    assert without < 0.6


@pytest.mark.parametrize(("measure", "alike"), [("RA-nWG@10", True), ("nDCG@10", False)])
def test_stacks_that_hold_the_same_passages_tie_where_order_does_not_count(measure: str, alike: bool) -> None:
    world = World(5, 20)
    judged = world.judged(world.audit(20))
    judged.slots[1] = judged.slots[0, :, ::-1]

    def scored(grades: np.ndarray, counts: np.ndarray) -> np.ndarray:
        return score_at(Measure.parse(measure), grades, counts)

    counts = audited(judged.grade, judged.known)
    means = replicates(judged, counts, scored, world.drawn(30), seed=1)
    assert np.array_equal(means[0], means[1]) == alike
    assert not np.array_equal(means[0], means[2])


def test_an_audit_that_looks_at_the_top_is_weighed_by_grade_and_place():
    # of grade 5, ten stand on top and ninety below; five of either are audited, and only those on top hold
    grade = np.full(100, 5, dtype=np.int8)
    place = np.repeat(np.array([0, 4], dtype=np.int8), (10, 90))
    known = np.zeros(100, dtype=np.int8)
    known[:5], known[10:15] = 5, 1
    plain, weighed = audited(grade, known), audited(grade, known, place)
    assert plain[4].tolist() == [5, 0, 0, 0, 5]
    assert weighed[4, 0] / weighed[4].sum() == pytest.approx(0.9)
    assert weighed[4].sum() == pytest.approx(100**2 / (5 * 2**2 + 5 * 18**2)), (
        "as many as the weights are worth"
    )
    assert np.allclose(audited(grade, known, np.zeros(100, dtype=np.int8)), plain), "one place is no weight"
