"""Value of judging: which passages' grades could change the choice, and how many queries each is worth.

An unjudged passage counts as 0, its minimum. Its likely grade is estimated from judged passages at
similar ranks of the same stacks. Worlds are drawn: other queries (bootstrap), and a grade for
every unjudged passage. A passage's chance is how often the best stack changes if its grade alone
is redrawn. Its value is this chance times the queries saved: how many further queries would narrow the
differences between the choice and its rivals as much (the grade's variance over that between queries).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from core.arrays import Floats, Grades, Rows
from core.stats.intervals import Labels, query_weights
from core.stats.judge_noise import Scoring

GRADES = 5
WORLDS = 300
BINS = (1, 3, 6, 10, 20)  # Last ranks of the bins of similar ranks
_PRIOR = 5.0
"""Weight, in passages, of all stacks' grades at the same ranks, for stacks with few judged there."""
_CELLS = 1 << 21
_EMPTY = -1
_TIE = 1e-12
_PAIR = ("query_id", "passage_id")


@dataclass(frozen=True, slots=True, eq=False)
class StackContest:
    """The Top-K of S stacks on Q queries, with the grades of what is judged."""

    stacks: tuple[str, ...]  # Their ids
    queries: tuple[str, ...]  # The queries' ids
    pairs: pl.DataFrame  # query_id, passage_id and query (its number) of P passages in any Top-K
    grades: Grades  # int8 [S, Q, K]; 0 = unjudged, −1 = empty
    slots: Rows  # [S, Q, K], index of the pair; −1 = empty
    counts: NDArray[np.int32]  # int32 [Q, 5], judged passages of each grade, ranked or not
    clusters: Labels | None = None  # [Q], equal for queries of a group, drawn together; None = each alone

    def alike(self) -> Rows:
        """Return for each stack the first one with the same Top-K on every query [S]."""
        slots = self.slots.reshape(len(self.stacks), -1)
        _, first, which = np.unique(slots, axis=0, return_index=True, return_inverse=True)
        return np.asarray(first[which.reshape(-1)])

    def distinct(self) -> StackContest:
        """Drop stacks whose Top-K equals another's on every query: either of them may be the best."""
        rows = np.unique(self.alike())
        stacks = tuple(self.stacks[row] for row in rows)
        return replace(self, stacks=stacks, grades=self.grades[rows], slots=self.slots[rows])

    def held(self) -> Grades:
        """Return the grade of each pair [P]; 0 = unjudged."""
        grades = np.zeros(self.pairs.height, dtype=np.int8)
        there = self.slots >= 0
        grades[self.slots[there]] = self.grades[there]
        return grades

    def unjudged(self, stacks: Sequence[str]) -> int:
        """Count the unjudged passages shown by some stacks."""
        slots = self.slots[[self.stacks.index(name) for name in stacks if name in self.stacks]]
        return int((self.held()[np.unique(slots[slots >= 0])] == 0).sum())

    def means(self, scoring: Scoring) -> Floats:
        """Return each stack's mean from existing judgements [S]; NaN if the measure applies to no query."""
        values = scoring(self.grades, self.counts)
        applies = ~np.isnan(values)
        sums, n = np.where(applies, values, 0.0).sum(axis=1), applies.sum(axis=1)
        return np.asarray(np.divide(sums, n, out=np.full(len(n), np.nan), where=n > 0))


@dataclass(frozen=True, slots=True, eq=False)
class Worth:
    """The possible gains from judging."""

    best: Floats  # [S], share of the worlds in which each stack is the best; equal bests share one
    means: Floats  # [S, W], each stack's mean in every world; NaN if the measure applies to no query
    # The unjudged passages, the most valuable first: query_id, passage_id, stacks (ranking it in Top-K), rank
    # (its best), likely (the expected grade), chance (that its grade changes the best), saved (queries) and
    # value (the product of the last two)
    rows: pl.DataFrame


def contest(rankings: pl.DataFrame, judged: pl.DataFrame, stacks: tuple[str, ...], k: int) -> StackContest:
    """Arrange the rankings of some stacks and their judgements.

    Args:
        rankings: run_id, query_id, passage_id, rank; other stacks and ranks beyond `k` are left out.
        judged: query_id, passage_id, grade, without duplicates; only its queries count.
    """
    queries = tuple(judged["query_id"].unique().sort())
    of_stack, of_query = ({name: at for at, name in enumerate(names)} for names in (stacks, queries))
    shown = rankings.filter(
        pl.col("rank") <= k, pl.col("run_id").is_in(list(stacks)), pl.col("query_id").is_in(list(queries))
    ).with_columns(query=pl.col("query_id").replace_strict(of_query, return_dtype=pl.Int64))
    pairs = shown.select(*_PAIR, "query").unique(_PAIR).sort(_PAIR).with_row_index("pair")
    shown = shown.join(pairs.drop("query"), on=_PAIR).join(
        judged.select(*_PAIR, "grade"), on=_PAIR, how="left"
    )
    grades = np.full((len(stacks), len(queries), k), _EMPTY, dtype=np.int8)
    slots = np.full(grades.shape, _EMPTY, dtype=np.intp)
    run = shown["run_id"].replace_strict(of_stack, return_dtype=pl.Int64).to_numpy()
    at = (run, shown["query"].to_numpy(), shown["rank"].to_numpy() - 1)
    grades[at], slots[at] = shown["grade"].fill_null(0).to_numpy(), shown["pair"].to_numpy()
    counts = np.zeros((len(queries), GRADES), dtype=np.int32)
    query = judged["query_id"].replace_strict(of_query, return_dtype=pl.Int64).to_numpy()
    np.add.at(counts, (query, judged["grade"].to_numpy().astype(np.intp) - 1), 1)
    return StackContest(stacks, queries, pairs.drop("pair"), grades, slots, counts)


def overlaid(judged: pl.DataFrame, more: pl.DataFrame) -> pl.DataFrame:
    """Return judgements overridden by another golden set's.

    If both grade a passage, the overriding grade counts.
    """
    names = (*_PAIR, "grade")
    return pl.concat([judged.select(names).join(more, on=_PAIR, how="anti"), more.select(names)])


def worth(field: StackContest, scoring: Scoring, *, seed: int, worlds: int = WORLDS) -> Worth:
    """Rank the unjudged passages by the possible effects of their grades.

    Args:
        field: The candidate stacks.
    """
    open_ = np.flatnonzero(field.held() == 0)
    query = field.pairs["query"].to_numpy()[open_]
    shares = _shares(field)[open_]
    base = np.nan_to_num(scoring(field.grades, field.counts))
    gain = _gains(field, scoring, base, open_, query)
    random, queries = np.random.default_rng(seed), len(field.queries)
    drawn = query_weights(queries, worlds, seed, field.clusters)
    running = shares.cumsum(axis=1)[:, :-1]
    grade = (random.random((worlds, len(open_), 1)) > running).sum(axis=2)
    weight = drawn[:, query] / queries
    means = _means(field, scoring, (open_, query, grade), drawn)
    best = _winners(np.nan_to_num(means))
    mean_gain = np.einsum("ng,ngs->ns", shares, gain)
    expected = base.copy()
    np.add.at(expected.T, query, mean_gain)
    # The effect of one grade is assumed to be its effect with the others unjudged.
    chance = _chances(np.nan_to_num(means), gain, grade, shares, weight)
    saved = _saved(best, expected, gain, shares)
    return Worth(best, means.T, _rows(field, open_, shares, chance, saved))


def _means(field: StackContest, scoring: Scoring, waiting: tuple[Rows, Rows, Rows], drawn: Floats) -> Floats:
    """Return the means of the stacks in every world with its drawn grades [W, S].

    Args:
        waiting: The unjudged pairs [n], their queries [n] and their grades minus 1 [W, n].
        drawn: [W, Q], how often each query counts.
    """
    open_, query, grade = waiting
    values = scoring(field.grades, field.counts)
    sums, counts = (drawn @ part.T for part in (np.nan_to_num(values), ~np.isnan(values)))
    touched = np.unique(query)
    place = np.full(field.pairs.height + 1, _EMPTY)  # index among the unjudged pairs; the last is no pair
    place[open_] = np.arange(len(open_))
    slots, held = place[field.slots[:, touched]], field.grades[:, touched]
    at = np.searchsorted(touched, query)
    before = values[:, touched]
    step = max(1, _CELLS // max(1, slots.size))
    for start in range(0, len(drawn) if len(touched) else 0, step):
        part = slice(start, start + step)
        given = grade[part].astype(np.int8) + np.int8(1)
        worlds = len(given)
        grades = np.where(slots[:, None] >= 0, given[:, slots].swapaxes(0, 1), held[:, None])
        more = np.zeros((worlds, len(touched), GRADES), dtype=np.int32)
        np.add.at(more, (np.arange(worlds)[:, None], at[None], grade[part]), 1)
        pools = field.counts[touched] + more
        scored = scoring(grades.reshape(len(slots), -1, slots.shape[2]), pools.reshape(-1, GRADES))
        scored = scored.reshape(len(slots), worlds, len(touched))
        counted = drawn[part][:, touched]
        for total, new, old in (
            (sums, np.nan_to_num(scored), np.nan_to_num(before)),
            (counts, ~np.isnan(scored), ~np.isnan(before)),
        ):
            total[part] += np.einsum("wt,swt->ws", counted, new.astype(np.float64) - old[:, None])
    return np.asarray(np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0))


def _rows(field: StackContest, open_: Rows, shares: Floats, chance: Floats, saved: Floats) -> pl.DataFrame:
    there = field.slots >= 0
    pair, rank = field.slots[there], np.nonzero(there)[2] + 1
    stacks = np.bincount(pair, minlength=field.pairs.height)
    first = np.full(field.pairs.height, np.iinfo(np.int64).max)
    np.minimum.at(first, pair, rank)
    return (
        field.pairs[open_]
        .select(_PAIR)
        .with_columns(
            stacks=pl.Series(stacks[open_], dtype=pl.Int64),
            rank=pl.Series(first[open_], dtype=pl.Int64),
            likely=pl.Series(shares @ np.arange(1.0, GRADES + 1)),
            chance=pl.Series(chance),
            saved=pl.Series(saved),
            value=pl.Series(chance * saved),
        )
        .sort("value", "chance", "stacks", *_PAIR, descending=[True, True, True, False, False])
    )


def _shares(field: StackContest) -> Floats:
    """Estimate each pair's chances of grades [P, 5], from judged pairs at similar ranks of its stacks."""
    stacks, _, k = field.grades.shape
    at = np.searchsorted(BINS, np.arange(1, k + 1))
    counts = np.zeros((stacks, len(BINS) + 1, GRADES))
    run, _, rank = np.nonzero(field.grades > 0)
    np.add.at(counts, (run, at[rank], field.grades[field.grades > 0].astype(np.intp) - 1), 1.0)
    overall = field.counts.sum(axis=0) + 1.0
    of_rank = counts.sum(axis=0) + _PRIOR * overall / overall.sum()
    counts += _PRIOR * of_rank / of_rank.sum(axis=1, keepdims=True)
    counts /= counts.sum(axis=2, keepdims=True)
    chances = np.zeros((field.pairs.height, GRADES))
    there = field.slots >= 0
    run, _, rank = np.nonzero(there)
    np.add.at(chances, field.slots[there], counts[run, at[rank]])
    return np.asarray(chances / np.maximum(chances.sum(axis=1, keepdims=True), _TIE))


def _gains(field: StackContest, scoring: Scoring, base: Floats, open_: Rows, query: Rows) -> Floats:
    """Compute what each grade of each passage adds to its query's value for every stack [n, 5, S]."""
    gains = np.empty((len(open_), GRADES, len(field.stacks)))
    step = max(1, _CELLS // (GRADES * field.grades.shape[0] * field.grades.shape[2]))
    for start in range(0, len(open_), step):
        part = slice(start, start + step)
        grades = np.repeat(field.grades[:, query[part], None], GRADES, axis=2)
        own = field.slots[:, query[part]] == open_[part, None]
        given = np.arange(1, GRADES + 1, dtype=np.int8)[:, None]
        grades = np.where(own[:, :, None], given, grades)
        counts = field.counts[query[part], None] + np.eye(GRADES, dtype=np.int32)
        values = scoring(grades.reshape(len(grades), -1, grades.shape[-1]), counts.reshape(-1, GRADES))
        values = np.nan_to_num(values).reshape(len(grades), -1, GRADES)
        gains[part] = np.moveaxis(values - base[:, query[part], None], 0, -1)
    return gains


def _winners(means: Floats) -> Floats:
    top = means >= means.max(axis=1, keepdims=True) - _TIE
    return np.asarray((top / top.sum(axis=1, keepdims=True)).mean(axis=0))


def _chances(means: Floats, gain: Floats, grade: Rows, shares: Floats, weight: Floats) -> Floats:
    """Return how often the best of a world changes if one grade is redrawn [n]."""
    worlds, stacks = means.shape
    won, chance = means.argmax(axis=1), np.zeros(len(gain))
    step = max(1, _CELLS // (worlds * GRADES * stacks))
    for start in range(0, len(gain), step):
        part = slice(start, start + step)
        now = gain[np.arange(len(gain))[part, None], grade[:, part].T]  # [n, worlds, S]
        moved = (gain[part, None] - now[:, :, None]) * weight[:, part].T[:, :, None, None]
        other = (means[:, None] + moved).argmax(axis=-1) != won[:, None]
        chance[part] = np.einsum("nwg,ng->n", other, shares[part]) / worlds
    return chance


def _saved(best: Floats, expected: Floats, gain: Floats, shares: Floats) -> Floats:
    """Return how many more queries would narrow the choice's differences as much as each grade does [n]."""
    choice = int(best.argmax())
    share = np.where(np.arange(len(best)) == choice, 0.0, best)
    # All rivals share one spread: those that barely differ from the choice would seem to save any number.
    spread = float(np.var(expected - expected[choice], axis=1) @ share)
    if spread <= _TIE:
        return np.ones(len(gain))
    apart = gain - gain[:, :, [choice]]
    middle = np.einsum("ng,ngs->ns", shares, apart)
    brought = np.einsum("ng,ngs->ns", shares, apart**2) - middle**2
    return np.asarray(brought @ share / spread)
