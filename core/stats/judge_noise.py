"""Judge noise: what a reference judge would have graded, drawn for every judged passage (metrics.md §7).

Estimand: a stack's mean over the population of queries on the reference's grades. A bootstrap of queries
alone ignores the judge's mistakes, which also shift the mean: a ranking sees them as chance,
so that a good stack scores too low. Each resample of the queries therefore also draws

1. the reference's grades given the judge's, P(reference | grade), each row from a Dirichlet: audited passages
   of that grade plus a prior of one passage that falls to a quarter per grade of distance, so
   that a row with few counts stays near its diagonal;
2. the grades at each place: a judge who does not see ranks errs alike on all of them, but good passages stand
   on top. The mix of grades at a stack's ranks is estimated from the grades seen there by expectation
   maximisation with the mistakes of 1. as given (Dawid & Skene 1979, Appl. Statist. 28, with known error
   rates), in a few latent classes of queries, since queries differ in how much good there is to find; what
   the reference graded counts as that grade;
3. a grade for every judged passage by Bayes' rule from both; a passage that the reference graded keeps it.

P(reference | grade) alone, the same at every rank, would move scores away from the truth.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from core.arrays import Floats, Grades, Ints, Mask, Rows
from core.stats.judges import GRADES

Scoring = Callable[[Grades, NDArray[np.int32]], Floats]
"""Values [n, Q] from grades of slots [n, Q, K] and counts of pools [n, Q, 5]; NaN = not applicable."""

REACHES = (1, 3, 6, 10, 20)
"""Last ranks of the places that are distinguished; deeper ranks and unranked passages are one more place."""
PLACES = len(REACHES) + 1
CLASSES = 4
TABLES = 2
"""Tables of grades per resample; their mean keeps the randomness of the drawing out of the interval."""
_PRIOR, _APART = 1.0, 4.0
_TILT = 0.8
_OWN = 3.0  # Weight, in passages, of the overall mix towards which a class or a place is drawn
_ROUNDS, _MORE_ROUNDS = 60, 6
"""Rounds of expectation maximisation, at first and then in every resample."""
_TINY = 1e-300
_CELLS = 150_000  # Ranks that are scored at a time


@dataclass(frozen=True, slots=True, eq=False)
class JudgedSample:
    """P judged passages of Q queries, and their places in S stacks."""

    query: Rows  # [P], number of the query, rising from 0; every query has a passage
    grade: Grades  # int8 [P], 1..5
    known: Grades  # int8 [P], the reference's grade; 0 = not audited
    place: Grades  # int8 [S, P], which of the `PLACES` the passage is in, see `places`
    slots: Rows  # [S, Q, K], the passage of each slot; P = an unjudged one, P + 1 = none


def places(rank: Ints) -> Grades:
    """Return the place of each rank; 0 = not ranked."""
    return np.where(rank > 0, np.searchsorted(REACHES, rank), PLACES - 1).astype(np.int8)


def audited(grade: Grades, known: Grades, place: Grades | None = None) -> Floats:
    """Count the audited passages [5, 5]: the judge's grade by row, the reference's by column.

    Args:
        grade: int8 [P], by the judge, 1..5.
        known: int8 [P], by the reference; 0 = not audited.
        place: int8 [P], from `places`, if passages were not drawn at random over the ranks: each then counts
            by how many passages of its grade and place there are per audited one (Horvitz & Thompson 1952),
            and a row by the effective sample size of its weights (Kish 1965).
    """
    both = known > 0
    weight = np.ones(int(both.sum()))
    if place is not None:
        cell = grade.astype(np.intp) * PLACES + place
        there, drawn = (np.bincount(of, minlength=(GRADES + 1) * PLACES) for of in (cell, cell[both]))
        weight = (there / np.maximum(drawn, 1))[cell[both]]
        row = grade[both].astype(np.intp)
        sums, squares = (np.bincount(row, of, minlength=GRADES + 1) for of in (weight, weight**2))
        weight *= (sums / np.maximum(squares, _TINY))[row]
    counts = np.zeros((GRADES, GRADES))
    np.add.at(counts, (grade[both].astype(np.intp) - 1, known[both].astype(np.intp) - 1), weight)
    return counts


def posterior(counts: Floats) -> Floats:
    """Return the Dirichlet of P(reference | grade), row by row [5, 5]: counts plus prior."""
    apart = np.abs(np.subtract.outer(np.arange(GRADES), np.arange(GRADES)))
    return np.asarray(counts + _PRIOR * _shares(_APART ** -apart.astype(np.float64)))


def replicates(
    judged: JudgedSample, counts: Floats, scoring: Scoring, drawn: Floats, *, seed: int, tables: int = TABLES
) -> Floats:
    """Return the mean of every stack on the reference's grades in every resample of the queries.

    Args:
        judged: The judged passages, and their places in stacks.
        counts: From `audited`; may count passages of other queries too.
        drawn: [R, Q], how often each query counts in a resample; a row of zeros gives NaN.
        seed: Seed of the drawing; each resample has its own generator.
        tables: How many tables of grades are drawn per resample.

    Returns:
        [S, R]; NaN if the measure applies to no query of a resample.
    """
    first, which = _alike(judged, scoring)
    judged = replace(judged, place=judged.place[first], slots=judged.slots[first])
    model = _Model(judged, posterior(counts))
    means = np.full((len(first), len(drawn)), np.nan)
    asked = np.flatnonzero(drawn.any(axis=1))
    together = max(1, _CELLS // max(1, tables * judged.slots.size))
    for begin in range(0, len(asked), together):  # scored together, because every call has a cost
        some = asked[begin : begin + together]
        made = [model.tables(np.random.default_rng((seed, place)), drawn[place], tables) for place in some]
        grades, pools = (np.concatenate(parts) for parts in zip(*made, strict=True))
        values = scoring(grades, pools).reshape(len(some), tables, len(first), -1)
        for place, scores in zip(some, values, strict=True):
            means[:, place] = _means(scores, drawn[place])
    return means[which]


def _alike(judged: JudgedSample, scoring: Scoring) -> tuple[Rows, Rows]:
    """Find stacks that the measure cannot tell apart: the first of each kind, and the kind of each stack [S].

    They hold the same passages, in the same order if the measure depends on it. If drawn separately,
    equal stacks would beat one another by chance.
    """
    _, queries, depth = judged.slots.shape
    probe = np.random.default_rng(0).integers(1, GRADES + 1, (1, queries, depth)).astype(np.int8)
    pools = np.full((2, queries, GRADES), 2 * depth, dtype=np.int32)
    values = scoring(np.concatenate([probe, np.sort(probe, axis=2)]), pools).reshape(2, -1)
    unordered = np.array_equal(values[0], values[1], equal_nan=True)
    held = np.sort(judged.slots, axis=2) if unordered else judged.slots
    rows = held.reshape(len(held), -1)
    _, first, which = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return first, which.reshape(-1)


def _means(values: Floats, weight: Floats) -> Floats:
    """Return the mean of every stack over queries, then over tables [tables, S, Q]."""
    there = ~np.isnan(values)
    sums, of = np.where(there, values, 0.0) @ weight, there @ weight
    means = np.divide(sums, of, out=np.full(of.shape, np.nan), where=of > 0)
    return np.asarray(means.mean(axis=0))


@dataclass(frozen=True, slots=True, eq=False)
class _LatentGrades:
    """Estimates of the true grades behind those seen, from which the next estimate starts."""

    sizes: Floats  # [C], shares of the classes of queries
    of_class: Floats  # [C, 5], shares of the reference's grades
    at_place: Floats  # [S, C, places, 5]


class _Model:
    """Parts of the model that stay the same from resample to resample."""

    def __init__(self, judged: JudgedSample, rows: Floats) -> None:
        stacks, queries, _ = judged.slots.shape
        self.judged, self.queries, self.rows = judged, queries, rows
        self.start = np.searchsorted(judged.query, np.arange(queries))
        seen = judged.grade.astype(np.intp) - 1
        known, sure = judged.known.astype(np.intp) - 1, judged.known > 0
        self.mix_seen, self.mix_sure = self._mixed(seen, ~sure), self._mixed(known, sure)
        self.mix = self.mix_seen + self._mixed(seen, sure)
        self.seen, self.sure = self._placed(seen, ~sure), self._placed(known, sure)
        cell = judged.place.astype(np.intp) * GRADES + seen
        self.cell = cell + np.arange(stacks)[:, None] * (CLASSES * PLACES * GRADES)
        self.slots = judged.slots.reshape(stacks, -1)
        self.slots = self.slots + np.arange(stacks)[:, None] * (len(judged.query) + 2)
        self.audited = np.flatnonzero(judged.known)
        tilt = np.linspace(-_TILT, _TILT, CLASSES)[:, None] * (np.arange(GRADES) - 1.0)
        whole = self._errors(_shares(rows), np.ones(queries))[1]
        of_class = _shares(whole * np.exp(tilt))
        at_place = np.broadcast_to(of_class[:, None], (stacks, CLASSES, PLACES, GRADES))
        first = _LatentGrades(np.full(CLASSES, 1 / CLASSES), of_class, at_place)
        self.first = self._fit(_shares(rows), np.ones(queries), first, _ROUNDS)[1]

    def _mixed(self, grade: Rows, of: Mask) -> Floats:
        """Count the passages of each grade in every query [Q, 5], over the selected passages."""
        mix = np.zeros((self.queries, GRADES))
        np.add.at(mix, (self.judged.query[of], grade[of]), 1.0)
        return mix

    def _placed(self, grade: Rows, of: Mask) -> Floats:
        """Count the passages of each grade at every place of every stack [S, Q, places x 5]."""
        stacks = len(self.judged.place)
        cell = self.judged.place[:, of].astype(np.intp) * GRADES + grade[of]
        flat = (np.arange(stacks)[:, None] * self.queries + self.judged.query[of]) * (PLACES * GRADES) + cell
        size = stacks * self.queries * PLACES * GRADES
        return np.bincount(flat.ravel(), minlength=size).reshape(stacks, self.queries, -1).astype(np.float64)

    def _errors(self, confusion: Floats, weight: Floats) -> tuple[Floats, Floats]:
        """Return P(grade | reference) [5, 5], and the frequency of the reference's grades over all [5]."""
        joint = _shares(weight @ self.mix)[:, None] * confusion
        overall = joint.sum(axis=0)
        return joint / np.maximum(overall, _TINY), overall

    def _fit(
        self, confusion: Floats, weight: Floats, start: _LatentGrades, rounds: int
    ) -> tuple[tuple[Floats, Floats], _LatentGrades]:
        """Return the errors, the probability of each class for each query [Q, C], and the latent grades."""
        errors, overall = self._errors(confusion, weight)
        sizes, of_class, at_place = start.sizes, start.of_class, start.at_place
        for _ in range(rounds):
            likely = self.mix_seen @ np.log(np.maximum(of_class @ errors.T, _TINY)).T + np.log(sizes)
            likely += self.mix_sure @ np.log(np.maximum(of_class, _TINY)).T
            member = _shares(np.exp(likely - likely.max(axis=1, keepdims=True)))
            mine = member * weight[:, None]
            sizes = _shares(mine.sum(axis=0) + 1)
            of_class = _better(errors, mine.T @ self.mix_seen, mine.T @ self.mix_sure, of_class, overall)
        seen, sure = (np.matmul(mine.T, mix).reshape(at_place.shape) for mix in (self.seen, self.sure))
        for _ in range(rounds):
            at_place = _better(errors, seen, sure, at_place, of_class[:, None])
        return (errors, member), _LatentGrades(sizes, of_class, at_place)

    def tables(
        self, random: np.random.Generator, weight: Floats, tables: int
    ) -> tuple[Grades, NDArray[np.int32]]:
        """Draw tables of grades in one resample: grades [tables x S, Q, K] and pools [tables x S, Q, 5]."""
        confusion = _shares(random.standard_gamma(self.rows) + _TINY)
        (errors, member), behind = self._fit(confusion, weight, self.first, _MORE_ROUNDS)
        running = _shares(errors * behind.at_place[..., None, :]).cumsum(axis=-1)[..., :-1]
        limits = np.ascontiguousarray(running.reshape(-1, GRADES - 1).T, dtype=np.float32)
        grades, counts = zip(*(self._table(random, limits, member) for _ in range(tables)), strict=True)
        return np.concatenate(grades), np.concatenate(counts)

    def _table(
        self, random: np.random.Generator, limits: NDArray[np.float32], member: Floats
    ) -> tuple[Grades, NDArray[np.int32]]:
        """Draw grades of the slots [S, Q, K] and counts of the pools [S, Q, 5], the same for all stacks."""
        judged = self.judged
        of_class = (random.random((self.queries, 1)) > member.cumsum(axis=1)[:, :-1]).sum(axis=1)
        cell = self.cell + (of_class * (PLACES * GRADES))[judged.query]
        chance = random.random(len(judged.query), dtype=np.float32)
        stacks, passages = cell.shape
        table = np.empty((stacks, passages + 2), dtype=np.int8)
        table[:, -2], table[:, -1] = 0, -1
        grade = table[:, :-2]
        grade[...] = 1
        for limit in limits:
            grade += chance > limit.take(cell)
        grade[:, self.audited] = judged.known[self.audited]
        counts = [
            np.add.reduceat(grade == value, self.start, axis=1, dtype=np.int32)
            for value in range(1, GRADES + 1)
        ]
        return table.take(self.slots).reshape(judged.slots.shape), np.stack(counts, axis=-1)


def _better(errors: Floats, seen: Floats, sure: Floats, shares: Floats, toward: Floats) -> Floats:
    """Run one round of expectation maximisation: shares of the grades behind those seen and known."""
    expected = shares * ((seen / np.maximum(shares @ errors.T, _TINY)) @ errors) + sure
    return _shares(expected + _OWN * toward)


def _shares(numbers: Floats) -> Floats:
    return np.asarray(numbers / np.maximum(numbers.sum(axis=-1, keepdims=True), _TINY))
