"""The arrays that measures compute with: one block of runs and queries, cutoffs first.

Inside this package an array of values has the shape [K, runs, queries]. With cutoffs on the first axis, every
step of a running sum is one addition of two long rows, and a query's own figures (a weight, the number of
relevant passages) meet the values as a row. This is several times faster than cutoffs on the last axis, where
every row of a hundred cutoffs is a separate loop.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from core.arrays import Floats, Grades, Mask
from core.errors import InputError
from core.metrics.info import Counts, MeasureInfo, Scores, Values, depths_of, repeated, sets_of

Tally = NDArray[np.integer[Any]]  # A running number of passages at every K. Shape [K, runs, queries].
Codes = NDArray[np.int32]

Scalar = TypeVar("Scalar", bound=np.generic)
Kept = TypeVar("Kept")

_STEP = 8
ABSENT = -2  # Grade in every slot of a perturbed ranking that does not exist
LINEAR = (1.0, 2.0, 3.0, 4.0, 5.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Extra:
    """Inputs that only some measures need."""

    # Gains of grades 1..5 for nDCG: the grades as the judges gave them, if the golden set's scale is not 1..5
    gains: tuple[float, float, float, float, float] = LINEAR
    # Integers [..., Q, 5], grade counts of the candidate pools; saves counting `pool_grades`
    candidates: Counts | None = None
    sources: Codes | None = None  # int32 [..., Q, D], code of the source (facet) of the passage in each slot
    pool_sources: Codes | None = None  # int32 [..., Q, P], the same for the slots of `pool_grades`
    # int8 [..., Q, D], the highest grade for the query of any judged passage of the slot's source
    source_grades: Grades | None = None
    # Integers [..., Q, 32], how many sources have judged passages with exactly the grades of a set, where bit
    # g − 1 stands for grade g; see `core.metrics.info`
    facets: Counts | None = None
    # Integers [..., Q, most · 5], how many sources have at least a given number of judged passages of at
    # least a given grade; see `core.metrics.info.depths_by_row`
    depths: Counts | None = None
    # int8 [..., Q, D] by perturbation ("noise 4", "noise 4 typo 1"), the rankings of perturbed queries;
    # `ABSENT` = not run
    perturbed: Mapping[str, Grades] | None = None
    # uint64 [..., Q, D], the nuggets of the query that the passage in each slot supports, one bit each
    nuggets: NDArray[np.uint64] | None = None
    nuggets_listed: NDArray[np.uint64] | None = None  # uint64 [..., Q, 2], all its nuggets, the vital ones
    # uint64 [..., Q, N], the nuggets of each passage that supports any: nuggets then replace sources as the
    # facets of passages; and the nuggets of the slots of `pool_grades`
    nuggets_known: NDArray[np.uint64] | None = None
    pool_nuggets: NDArray[np.uint64] | None = None
    # int8 [..., Q, D], whether the question's filter allows the passage in each slot, a state of
    # `core.metrics.access`; -1 = an empty slot
    states: Grades | None = None
    # int32 [..., Q, 2], the rank from which on leaks of the run are unknown (0: the question has no filter),
    # and how many passages exact filtered search returns (-1 = unknown)
    filtered: NDArray[np.int32] | None = None
    # float64 [..., Q, D], correctness 0..1 of the answer from the first K passages; NaN = none
    answers: Floats | None = None


class _Kept:
    """A cache of arrays that are made once under a key and never written to again."""

    def __init__(self) -> None:
        self._kept: dict[Hashable, Any] = {}

    def once(self, key: Hashable, make: Callable[[], Kept]) -> Kept:
        """Return the value made under this key, making it if necessary."""
        kept: Kept | None = self._kept.get(key)
        if kept is None:
            kept = self._kept[key] = make()
        return kept


class Judged(_Kept):
    """Judgements of a block's queries; shared by all blocks of runs on the same queries.

    Attributes:
        counts: Integers [5, 1 or runs, queries], judged passages with grade 1..5.
        facets: Integers [32, 1 or runs, queries], or None.
        depths: Integers [most · 5, 1 or runs, queries], or None.
        nuggets: uint64 [passages, 1 or runs, queries], or None.
        gains: Gain of grade 1..5 for nDCG.
        depth: Largest K.
        cutoffs: float64 [K, 1, 1], the numbers 1..depth.
        slots: The cutoffs as small integers.
    """

    def __init__(
        self,
        counts: Counts,
        depth: int,
        *,
        facets: Counts | None = None,
        depths: Counts | None = None,
        nuggets: NDArray[np.uint64] | None = None,
        gains: tuple[float, ...] = LINEAR,
    ) -> None:
        super().__init__()
        self.counts = counts
        self.facets = facets
        self.depths = depths
        self.nuggets = nuggets
        self.gains = gains
        self.depth = depth
        self.cutoffs = np.arange(1, depth + 1, dtype=np.float64).reshape(-1, 1, 1)
        self.slots = np.arange(1, depth + 1).reshape(-1, 1, 1).astype(tally_type(depth))

    def at_least(self, grade: int) -> Floats:
        """Count the judged passages with at least a grade: float64 [1 or runs, queries]."""
        return self.once(("at least", grade), lambda: self.counts[grade - 1 :].sum(axis=0).astype(np.float64))

    def or_nan(self, grade: int) -> Floats:
        """Return `at_least` as a divisor: NaN if it is 0, so that a quotient by it is not applicable."""
        return self.once(("or nan", grade), lambda: or_nan(self.at_least(grade)))


class Inputs(_Kept):
    """One block of rankings with its grades.

    Args:
        grades: int8 [runs, queries, D].
        judged: Judgements of these queries.
        ahead: How deep the measures look, in multiples of K.
        pool_grades: int8 [runs, queries, P].
        candidates: Integers [runs, queries, 5].
        sources: int32 [runs, queries, D].
        pool_sources: int32 [runs, queries, P].
        source_grades: int8 [runs, queries, D].
        answers: float64 [runs, queries, D].
        nuggets: uint64 [runs, queries, D].
        nuggets_listed: uint64 [runs, queries, 2].
        pool_nuggets: uint64 [runs, queries, P].
        states: int8 [runs, queries, D].
        filtered: int32 [runs, queries, 2].
        perturbed: int8 [runs, queries, D] by perturbation.

    Attributes:
        judged: As given.
        shape: (K, runs, queries), the shape of every array of values.
        grades: int8 [K, runs, queries].
        scratch: float64 of that shape that a measure may overwrite.
    """

    def __init__(
        self,
        grades: Grades,
        judged: Judged,
        *,
        ahead: int = 1,
        pool_grades: Grades | None = None,
        candidates: Counts | None = None,
        sources: Codes | None = None,
        pool_sources: Codes | None = None,
        source_grades: Grades | None = None,
        answers: Floats | None = None,
        nuggets: NDArray[np.uint64] | None = None,
        nuggets_listed: NDArray[np.uint64] | None = None,
        pool_nuggets: NDArray[np.uint64] | None = None,
        states: Grades | None = None,
        filtered: NDArray[np.int32] | None = None,
        perturbed: Mapping[str, Grades] | None = None,
    ) -> None:
        super().__init__()
        self._states, self._filtered = states, filtered
        self.judged = judged
        self.shape = (judged.depth, *grades.shape[:2])
        self._times, self._perturbed = ahead, perturbed
        self._ahead = cutoffs_first(grades, judged.depth * ahead, -1)
        self.grades = self._ahead[: judged.depth]
        self.scratch: Floats = np.empty(self.shape)
        self._buffer: Scores = np.empty(self.shape)
        self._pool_grades, self._candidates = pool_grades, candidates
        self._sources, self._pool_sources, self._answers = sources, pool_sources, answers
        self._source_grades = source_grades
        self._nuggets, self._nuggets_listed, self._pool_nuggets = nuggets, nuggets_listed, pool_nuggets

    def value(self, info: MeasureInfo, values: Values, out: Scores | None = None) -> Scores:
        """Return a measure's value at every K, put into `out` if given."""
        key = (info.name, *values.items())
        scores: Scores | None = self._kept.get(key)
        if scores is None:
            # Computed in a separate block, which stays in the cache, and copied at the end.
            scores = np.empty(self.shape) if out is None else self._buffer
            info.score(self, values, scores)
            self._kept[key] = scores if out is None else out
        if out is not None:
            np.copyto(out, scores)
            scores = out
        return scores

    def found(self, low: int, high: int = 5) -> Tally:
        """Count the passages of Top(K) with a grade from `low` to `high` (0 = unjudged), at every K."""
        if low == high:
            return self.exactly(low)
        if high - low > 2:
            within = ("within", low, high)
            return self.once(within, lambda: running_count((self.grades >= low) & (self.grades <= high)))
        return self.once(("found", low, high), lambda: self.found(low, high - 1) + self.exactly(high))

    def exactly(self, grade: int) -> Tally:
        """Count the passages of Top(K) with exactly this grade (0 = unjudged), at every K."""
        return self.once(("exactly", grade), lambda: running_count(self.grades == grade))

    def found_ahead(self, low: int) -> Tally:
        """Count the passages of Top(2K) with at least grade `low`, at every K."""
        twice = self._ahead[: 2 * self.judged.depth]
        return self.once(("ahead", low), lambda: running_count(twice >= low)[1::2])

    def candidate_counts(self) -> Counts:
        """Grade counts [5, runs, queries] of each candidate pool."""

        def count() -> Counts:
            if self._candidates is not None:
                return np.ascontiguousarray(np.moveaxis(self._candidates, -1, 0))
            if self._pool_grades is None:
                raise InputError(
                    "This measure needs the candidate pool of the run.", do="Give its pool stage."
                )
            pool = cutoffs_first(self._pool_grades, self._pool_grades.shape[-1], -1)
            return np.stack([count_marks(pool == grade) for grade in range(1, 6)])

        return self.once("candidates", count)

    def reachable(self, low: int) -> Tally:
        """Count the passages with at least grade `low` among the best K candidates, at every K."""

        def best() -> Tally:
            present: Counts = self.candidate_counts()[low - 1 :].sum(axis=0)
            return np.asarray(np.minimum(self.judged.slots, clipped(present, self.judged.depth)))

        return self.once(("reachable", low), best)

    def first_of_source(self, grade: int) -> Tally:
        """Count the passages of Top(K) that have a grade and are the first of their source, at every K."""
        repeats = self._repeats()
        return self.once(("first", grade), lambda: running_count((self.grades == grade) & ~repeats))

    def sources_found(self, low: int) -> Tally:
        """Count the sources in Top(K) that have any passage of at least grade `low`, at every K."""
        if self._source_grades is None:
            raise InputError("This measure needs the source of every passage.", do="Give the passages.")
        # A passage that the collection does not hold has only its own grade
        best = np.maximum(cutoffs_first(self._source_grades, self.judged.depth, -1), self.grades)
        repeats = self._repeats()
        return self.once(("sources", low), lambda: running_count((best >= low) & ~repeats))

    def _repeats(self) -> Mask:
        sources = self._codes()
        return self.once("repeats", lambda: repeated(sources))

    def seen_of_source(self, low: int) -> Tally:
        """Count, for each slot, the earlier passages of the same source with at least grade `low`."""
        sources = self._codes()
        return self.once(("seen", low), lambda: _earlier(sources, self.grades >= low))

    def _codes(self) -> Codes:
        if self._sources is None:
            raise InputError("This measure needs the source of every passage.", do="Give the passages.")
        sources = self._sources
        return self.once("sources", lambda: cutoffs_first(sources, self.judged.depth, -1))

    def candidate_facets(self) -> Counts:
        """Count the sources of each candidate pool by their sets of grades: integers [32, runs, queries]."""
        return self.once("facets", lambda: np.moveaxis(sets_of(*self._pool()), -1, 0))

    def candidate_depths(self) -> Counts:
        """Count the sources of each candidate pool as `depths_of` does: [most · 5, runs, queries]."""
        return self.once("depths", lambda: np.moveaxis(depths_of(*self._pool()), -1, 0))

    def _pool(self) -> tuple[Grades, Codes]:
        if self._pool_grades is None or self._pool_sources is None:
            raise InputError(
                "This measure needs the candidate pool with the source of every passage.",
                do="Give the pool stage and the passages.",
            )
        return self._pool_grades, self._pool_sources

    def is_perturbed(self, name: str) -> bool:
        """Return whether rankings of queries perturbed in this way were given."""
        return name in (self._perturbed or {})

    def perturbed(self, name: str) -> Inputs:
        """Return the inputs of the same runs for perturbed queries."""
        given = (self._perturbed or {}).get(name)
        if given is None:
            problem = f"This measure needs rankings of perturbed queries ({name})."
            raise InputError(
                problem, do="Run the stacks with noise, typo, accents, case or names in the sweep."
            )
        return self.once(("perturbed", name), lambda: Inputs(given, self.judged, ahead=self._times))

    def nuggets(self) -> NDArray[np.uint64]:
        """Return the nuggets that each passage supports, as bits."""
        given = self._nuggets
        if given is None:
            raise InputError("This measure needs nuggets.", do="Import them, or write them in judging.")
        return self.once("nuggets", lambda: cutoffs_first(given, self.judged.depth, 0))

    def nuggets_found(self) -> NDArray[np.uint64]:
        """Return the nuggets that Top(K) supports, at every K."""
        given = self.nuggets()
        return self.once("nuggets found", lambda: np.bitwise_or.accumulate(given, axis=0))

    def nuggets_listed(self) -> NDArray[np.uint64]:
        """Return all nuggets of each query, and its vital ones: [2, runs, queries]."""
        if self._nuggets_listed is None:
            raise InputError("This measure needs nuggets.", do="Import them, or write them in judging.")
        return np.moveaxis(self._nuggets_listed, -1, 0)

    def candidate_nuggets(self) -> NDArray[np.uint64]:
        """Return the nuggets that each passage of the candidate pool supports: [P, runs, queries]."""
        given = self._pool_nuggets
        if given is None:
            raise InputError("This measure needs the candidate pool of the run.", do="Give its pool stage.")
        return cutoffs_first(given, given.shape[-1], 0)

    def states(self) -> Grades:
        """Return whether the question's filter allows each passage: a state of `core.metrics.access`."""
        given = self._states
        if given is None:
            raise _no_filters()
        return self.once("states", lambda: cutoffs_first(given, self.judged.depth, -1))

    def filtered(self) -> NDArray[np.int32]:
        """Return from which rank a run is unknown, and what exact search returns: [2, runs, queries]."""
        if self._filtered is None:
            raise _no_filters()
        return np.moveaxis(self._filtered, -1, 0)

    def answers(self) -> Floats:
        """Return the correctness of the answer from the first K passages, NaN if not recorded."""
        if self._answers is None:
            raise InputError("This measure needs answers with grades.", do="Import them with the run.")
        return cutoffs_first(self._answers, self.judged.depth, np.nan)


def _no_filters() -> InputError:
    do = "Import the metadata of passages and a filter for each question."
    return InputError("This measure needs filters of questions.", do=do)


def cutoffs_first(rows: NDArray[Scalar], depth: int, filler: float) -> NDArray[Scalar]:
    """Turn [runs, queries, D] into [depth, runs, queries]; missing ranks become the filler."""
    kept = min(depth, rows.shape[-1])
    turned = np.empty((depth, *rows.shape[:-1]), dtype=rows.dtype)
    turned[:kept] = np.moveaxis(rows[..., :kept], -1, 0)
    turned[kept:] = filler
    return turned


def tally_type(depth: int) -> type[np.int16 | np.int32]:
    """Return the smallest integer type that can count to a depth."""
    return np.int16 if depth <= np.iinfo(np.int16).max else np.int32


def count_marks(marked: Mask) -> Counts:
    """Count marks along the first axis; groups that fit into a byte are summed as bytes."""
    ones, group = marked.view(np.int8), np.iinfo(np.int8).max
    counts = np.zeros(marked.shape[1:], dtype=np.int32)
    for first in range(0, len(ones), group):
        counts += np.add.reduce(ones[first : first + group], axis=0, dtype=np.int8)
    return counts


def _earlier(sources: Codes, marked: Mask) -> Tally:
    """Count, for each slot, the marked slots of the same source before it along the first axis."""
    order = np.argsort(sources, axis=0, kind="stable")
    ordered = np.take_along_axis(sources, order, axis=0)
    marks = np.take_along_axis(marked, order, axis=0)
    before: Counts = np.cumsum(marks, axis=0) - marks
    starts = np.ones(sources.shape, dtype=np.bool_)
    starts[1:] = ordered[1:] != ordered[:-1]
    earlier = np.empty(sources.shape, dtype=tally_type(len(sources)))
    own = before - np.maximum.accumulate(np.where(starts, before, 0), axis=0)
    np.put_along_axis(earlier, order, own.astype(earlier.dtype), axis=0)
    return earlier


def running_count(marked: Mask) -> Tally:
    """Return the running number of marks along the first axis."""
    counts: Tally = marked.astype(tally_type(len(marked)))
    running(counts)
    return counts


def running(values: NDArray[Any]) -> None:
    """Turn values into their running sums along the first axis, in place.

    Sums run within groups of eight first, then from group to group, which takes a quarter of the calls; the
    sum up to K is made in the same order whatever the depth.
    """
    depth = len(values)
    whole = depth - depth % _STEP
    groups = values[:whole].reshape(whole // _STEP, _STEP, *values.shape[1:])
    rest = values[whole:]
    for place in range(1, _STEP):
        groups[:, place] += groups[:, place - 1]
    for place in range(1, len(rest)):
        rest[place] += rest[place - 1]
    for place in range(1, len(groups)):
        groups[place] += groups[place - 1, -1]
    if whole and len(rest):
        rest += values[whole - 1]


def count_grades(grades: Grades) -> Counts:
    """Count grades 1..5 along the last axis: int8 [..., P] to int32 [..., 5]."""
    counts = np.empty((*grades.shape[:-1], 5), dtype=np.int32)
    for grade in range(1, 6):
        counts[..., grade - 1] = count_marks(np.moveaxis(grades == grade, -1, 0))
    return counts


def clipped(counts: Counts, depth: int) -> Tally:
    """Return counts capped at `depth`, small enough for fast comparison with cutoffs."""
    return np.minimum(counts, depth).astype(tally_type(depth))


def or_nan(values: NDArray[Any]) -> Floats:
    """Return the values as divisors: zero becomes NaN, so that a quotient by it is NaN (not applicable)."""
    divisors = values.astype(np.float64)
    divisors[divisors == 0] = np.nan
    return divisors
