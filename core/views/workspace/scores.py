"""Per-query scores of runs, what the measures say about them, and what holes could do to a score."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl

from core.decide.rules import Decision
from core.errors import InputError
from core.metrics import Extra, Measure, aggregate, na_reason, score_all, score_at, to_depth
from core.metrics.info import Counts, Need
from core.metrics.inputs import ABSENT, count_grades
from core.metrics.rates import ANY
from core.metrics.robust import chosen
from core.store import Graded, Snapshot
from core.store.read.memory import Memory
from core.views import text
from core.views.workspace.answers import graded as graded_answers
from core.views.workspace.perturbed import perturbed_grades
from core.views.workspace.scope import Quality

_KEPT = Memory(256 * 2**20)
Floats = npt.NDArray[np.float64]
Grades = npt.NDArray[np.int8]
Whole = TypeVar("Whole", np.int8, np.int32)
EMPTY_SLOT = -1


@dataclass(frozen=True)
class Evidence:
    """Rankings and candidate pools of some runs as grades, ready for every measure."""

    run_ids: tuple[str, ...]  # the runs, in the order of axis 0
    query_ids: tuple[str, ...]  # the judged queries, in the order of axis 1
    grades: Grades  # int8 [runs, queries, depth]: 1..5 judged, 0 unjudged, -1 empty slot
    pool_grades: Grades  # the same for the candidate pool; the final ranking itself where a run has no pool
    # int32 [queries, 5]: passages with grade 1..5 in the golden set; [runs, queries, 5] where runs of several
    # chunkings are judged by grades that were anchored to the documents
    pool_counts: npt.NDArray[np.int32]
    unjudged_queries: npt.NDArray[np.int32]  # int32 [runs]: ranked queries without any judgement, left out
    # What only some measures need: gains always, sources where they were asked for
    extra: Extra = field(default_factory=Extra)
    # Correctness of the answers [runs, queries, K] by what a measure says of them, where it was asked for
    answers: Mapping[str, Floats] = field(default_factory=dict)

    @cached_property
    def candidates(self) -> Counts:
        """int32 [runs, queries, 5]: passages with grade 1..5 in each candidate pool; counted once."""
        return count_grades(self.pool_grades)

    def score(self, measures: Iterable[Measure], depth: int | None = None) -> dict[Measure, Floats]:
        """Measures at every K.

        Args:
            measures: Which; their own cutoffs do not matter here.
            depth: Largest K; None for the deepest final rank.

        Returns:
            Per measure float64 [runs, queries, K]; NaN where it is not applicable.
        """
        wanted = tuple(measures)
        extra = self.extra
        if any(measure.info.needs_pool for measure in wanted):
            extra = replace(extra, candidates=self.candidates)
        scored: dict[Measure, Floats] = {}
        told = dict.fromkeys(filter(None, map(_about, wanted)))
        for about in told or ("",):  # answers of several readers are scored apart
            same = [measure for measure in wanted if (_about(measure) or next(iter(told), "")) == about]
            own = replace(extra, answers=self.answers.get(about))
            scored |= score_all(
                same, self.grades, self.pool_counts, pool_grades=self.pool_grades, depth=depth, extra=own
            )
        return {measure: scored[measure] for measure in wanted}

    def rescored(self, measure: Measure, grades: Grades, counts: Counts) -> Floats:
        """A measure at its cutoff, were slots graded otherwise; NaN where pools would differ."""
        if not measure.info.needs <= {"answers"}:
            return np.full(grades.shape[:2], np.nan)
        return score_at(
            measure, grades, counts, extra=replace(self.extra, answers=self.answers.get(_about(measure)))
        )

    def among(self, queries: Container[str]) -> Evidence:
        """The same with some of the queries only."""
        places = [place for place, query_id in enumerate(self.query_ids) if query_id in queries]
        extra: dict[str, Any] = {
            each.name: getattr(self.extra, each.name).take(places, axis=-2)
            for each in fields(self.extra)
            if isinstance(getattr(self.extra, each.name), np.ndarray)
        }
        if self.extra.perturbed is not None:
            taken = {name: each.take(places, axis=1) for name, each in self.extra.perturbed.items()}
            extra["perturbed"] = taken
        return replace(
            self,
            query_ids=tuple(self.query_ids[place] for place in places),
            grades=self.grades.take(places, axis=1),
            pool_grades=self.pool_grades.take(places, axis=1),
            pool_counts=self.pool_counts.take(places, axis=-2),
            extra=replace(self.extra, **extra),
            answers={about: values.take(places, axis=1) for about, values in self.answers.items()},
        )

    @property
    def depth(self) -> int:
        """The deepest final rank."""
        return int(self.grades.shape[2])

    def counts_of(self, run: int) -> npt.NDArray[np.int32]:
        """Passages with grade 1..5 that the run with this position could find: int32 [queries, 5]."""
        return self.pool_counts if self.pool_counts.ndim == 2 else self.pool_counts[run]


def evidence(
    snapshot: Snapshot,
    run_ids: Sequence[str],
    golden_set_id: str,
    measures: Iterable[Measure | None] = (),
    *,
    only: Container[str] | None = None,
) -> Evidence:
    """Join the rankings of some runs with the judgements of a golden set.

    Args:
        measures: What will be scored, so that whatever they need is read as well.
        only: The queries that count; None for every judged one.

    Returns:
        The grades of the final rankings and of the candidate pools.

    Raises:
        UnknownNameError: If the golden set or a run does not exist.
        InputError: If the runs searched differently chunked passages and the judgements are tied to passages.
    """
    _require_one_passage_set(snapshot, run_ids, golden_set_id)
    final = snapshot.graded(run_ids, golden_set_id, stage="final")
    pool = snapshot.graded(run_ids, golden_set_id, stage="pool")
    # What the store joined is one object for as long as it is kept there.
    found = _KEPT.once((final, pool), lambda: of_graded(final, pool), _size)
    wanted = [measure for measure in measures if measure]
    needs = frozenset(need for measure in wanted for need in measure.info.needs)
    if not needs <= {"pool"}:
        found = replace(found, extra=_extra(snapshot, golden_set_id, final, pool, needs))
    if "perturbed" in needs:
        perturbed = perturbed_grades(snapshot, golden_set_id, final, wanted)
        found = replace(found, extra=replace(found.extra, perturbed=perturbed))
    if "answers" in needs:
        about = {_about(measure): measure for measure in wanted if "answers" in measure.info.needs}
        answers = {key: _answers(snapshot, final, measure) for key, measure in about.items()}
        found = replace(found, answers=answers)
    return found if only is None else found.among(only)


def _about(measure: Measure) -> str:
    """Whose answers a measure is about, and what scores them; empty where it needs none."""
    if "answers" not in measure.info.needs:
        return ""
    own = dict(measure.params)
    return f"{own.get('reader', ANY)},{own.get('scorer', ANY)}"


def _size(found: Evidence) -> int:
    """Bytes that it holds, with what it is made from and the counts of candidates."""
    pools = 0 if found.pool_grades is found.grades else 2 * found.pool_grades.nbytes
    return found.grades.nbytes + pools + 20 * len(found.run_ids) * len(found.query_ids)


def of_graded(final: Graded, pool: Graded) -> Evidence:
    """Rankings and candidate pools of the same runs, joined with the same judgements."""
    return Evidence(
        run_ids=final.run_ids,
        query_ids=final.query_ids,
        grades=final.grades,
        pool_grades=_pools(final, pool),
        pool_counts=final.pool_counts,
        unjudged_queries=final.unjudged_queries,
        extra=Extra(gains=final.gains),
    )


def _extra(
    snapshot: Snapshot, golden_set_id: str, final: Graded, pool: Graded, needs: frozenset[Need]
) -> Extra:
    made = Extra(gains=final.gains)
    if "sources" in needs:
        depth = final.grades.shape[2]
        own = snapshot.sources(final.run_ids, golden_set_id, depth=depth)
        made = replace(made, sources=own.codes, facets=own.facets)
        if "pool" in needs:
            offered = snapshot.sources(final.run_ids, golden_set_id, stage="pool", depth=pool.grades.shape[2])
            made = replace(made, pool_sources=_either(pool, own.codes, offered.codes))
    return made


def _answers(snapshot: Snapshot, final: Graded, measure: Measure) -> Floats:
    """Correctness 0..1 of the answer from the first K passages [runs, queries, K]; NaN where none is."""
    rows = (
        graded_answers(snapshot, final.run_ids, measure)
        .filter(pl.col("query_id").is_in(final.query_ids))
        .drop_nulls("correct")
    )
    deepest = rows["k"].max()
    made = np.full((*final.grades.shape[:2], deepest if isinstance(deepest, int) else 0), np.nan)
    run, query = (
        rows[name].replace_strict(list(ids), range(len(ids)), return_dtype=pl.Int64).to_numpy()
        for name, ids in (("run_id", final.run_ids), ("query_id", final.query_ids))
    )
    made[run, query, rows["k"].to_numpy() - 1] = rows["correct"].to_numpy()
    return made


def _require_one_passage_set(snapshot: Snapshot, run_ids: Sequence[str], golden_set_id: str) -> None:
    """Judgements tied to passages cannot judge two sets of passages: those of one would all be unjudged."""
    judges, searched = snapshot.judging(run_ids, golden_set_id), snapshot.searched(run_ids)
    tied = sorted({searched[run_id] for run_id, name in judges.items() if name == golden_set_id})
    if len(tied) > 1:
        raise InputError(
            f"These runs searched differently cut passages ({', '.join(tied)}), and the golden set "
            f"{golden_set_id} is tied to passages, so that it can judge one of these sets only.",
            do="Choose runs of one chunking, or anchor the grades to characters of the documents (spans).",
        )


def _pools(final: Graded, pool: Graded) -> Grades:
    """The pool of each run; a run that stored none could choose from its final ranking only."""
    return _either(pool, final.grades, pool.grades)


def _either(pool: Graded, own: npt.NDArray[Whole], offered: npt.NDArray[Whole]) -> npt.NDArray[Whole]:
    """Per run what belongs to its stored pool, or else to its final ranking."""
    stored = (pool.grades != EMPTY_SLOT).any(axis=(1, 2))
    if not stored.any():
        return own
    depth = max(own.shape[2], offered.shape[2])
    return np.where(stored[:, None, None], to_depth(offered, depth), to_depth(own, depth))


def at_cutoff(found: Evidence, measure: Measure) -> Floats:
    """A measure at its own cutoff."""
    if measure.k is None:
        raise InputError(f"{measure} has no cutoff.", do=f"Write {measure.at(10)}, for example.")
    return found.score([measure], depth=measure.k)[measure][..., measure.k - 1]


def mean(values: Floats) -> tuple[Floats, npt.NDArray[np.int64]]:
    """Macro-average over queries."""
    means, n = aggregate(values[..., None])
    return means[..., 0], n[..., 0]


def unperturbed(found: Evidence, measure: Measure) -> list[str]:
    """Say of each run which perturbed runs a measure lacks; empty where it lacks none."""
    alone = chosen(measure.values) if "perturbed" in measure.info.needs else ()
    lacking = {
        name: (each == ABSENT).all(axis=(1, 2)) for name, each in (found.extra.perturbed or {}).items()
    }
    told = []
    for run in range(len(found.run_ids)):
        names = [name for name in alone if lacking[name][run]]
        told.append(f"needs a run of the stack with {' and one with '.join(names)}" if names else "")
    return told


def applies_to_none(found: Evidence, measure: Measure) -> str:
    """Why no query has a value."""
    said = f"applies to none of the {text.count(len(found.query_ids), 'judged query', 'judged queries')}"
    counts = found.pool_counts.reshape(-1, 5).sum(axis=0)
    grades = [grade for grade, count in enumerate(counts, 1) if count]
    if not grades or na_reason(measure, counts) is None:
        return said
    best = np.zeros_like(counts)
    best[4] = counts[grades[-1] - 1]
    if na_reason(measure, best) is not None:
        return said
    return (
        f"{said}: the grades found are {', '.join(map(str, grades))} of 1 to 5, too low for it; if the "
        "judges counted otherwise, import the judgements again with another mapping (--grades)"
    )


_HOLE, _WORST, _BEST = 0, 1, 5


def bounds(found: Evidence, measure: Measure) -> tuple[Floats, Floats]:
    """Mean score of every run if all its holes were of the worst, or of the best, grade."""
    top = found.grades[:, :, : measure.k]
    ends = [mean(_scored(found, top, measure, grade))[0] for grade in (_WORST, _BEST)]
    return np.fmin(*ends), np.fmax(*ends)


def _scored(found: Evidence, top: Grades, measure: Measure, grade: int) -> Floats:
    holes = top == _HOLE
    counts = np.broadcast_to(found.pool_counts, (*top.shape[:2], 5)).copy()
    counts[..., grade - 1] += holes.sum(axis=2, dtype=counts.dtype)
    grades = np.where(holes, np.int8(grade), top)
    return found.rescored(measure, grades, counts)


def overturned(table: pl.DataFrame, decision: Decision, quality: Quality) -> str | None:
    """Say when holes could overturn a decision."""
    if decision.chosen is None:
        return None
    chosen = table.row(decision.chosen, named=True)
    if chosen["hole_low"] is None or chosen["quality"] is None:
        return None
    up = decision.quality.higher_is_better
    sign, reach, worst = (1, "hole_high", "hole_low") if up else (-1, "hole_low", "hole_high")
    rivals = table.filter(
        pl.Series(decision.feasible)
        & (pl.col("run_id") != chosen["run_id"])
        & (sign * pl.col("quality") < sign * chosen["quality"])
        & (sign * pl.col(reach) > sign * chosen[worst])
    )
    if rivals.is_empty():
        return None
    nearest = rivals.sort(reach, descending=up).row(0, named=True)
    others = text.count(rivals.height, "other feasible stack")
    return (
        f"Judging more could overturn the choice: {others} could overtake it if every unjudged passage "
        f"in the Top-{quality.k} were of grade 5 (reaching at {'most' if up else 'least'} "
        f"{text.score(nearest[reach])}: {nearest['name']}, {text.percent(nearest['hole'])} unjudged)."
    )
