"""Per-query scores of runs, reasons for missing ones, and the possible effect of holes on a score."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from core.analysis.workspace.answers import graded as graded_answers
from core.analysis.workspace.filters import arrays
from core.analysis.workspace.people import by_people, set_right
from core.analysis.workspace.pools import EMPTY_SLOT, begun, deeper
from core.arrays import Floats, Grades, Ints, Whole
from core.diagnostics.noise import CLEAN, kin, perturbed_runs
from core.errors import InputError
from core.metrics import Extra, Measure, aggregate, na_reason, score_all, score_at, shares_of_means, to_depth
from core.metrics.info import Counts, Need
from core.metrics.inputs import ABSENT, count_grades
from core.metrics.rates import ANY, CORRECTED
from core.metrics.robust import chosen, together
from core.number_format import count as counted
from core.store import Graded, Snapshot
from core.store.read.memory import Memory

_KEPT = Memory(256 * 2**20)
_CEILING = Measure("PROC[RA-nWG]")
_HOLE, _WORST, _BEST = 0, 1, 5


@dataclass(frozen=True)
class Evidence:
    """Rankings and candidate pools of some runs as grades, ready for every measure."""

    run_ids: tuple[str, ...]  # the runs, in the order of axis 0
    query_ids: tuple[str, ...]  # the judged queries, in the order of axis 1
    grades: Grades  # int8 [runs, queries, depth]: 1..5 judged, 0 unjudged, -1 empty slot
    pool_grades: Grades  # the same for the candidate pool; the final ranking itself if a run has no pool
    # int32 [queries, 5]: passages with grade 1..5 in the golden set; [runs, queries, 5] if runs of several
    # chunkings are judged by grades that were anchored to the documents
    pool_counts: npt.NDArray[np.int32]
    unjudged_queries: npt.NDArray[np.int32]  # int32 [runs]: ranked queries without any judgement, left out
    # Inputs of only some measures: gains always, sources if requested
    extra: Extra = field(default_factory=Extra)
    # Correctness of the answers [runs, queries, K] by a measure, if requested
    answers: Mapping[str, Floats] = field(default_factory=dict)
    # The runs that these candidate pools come from, run by run: see `core.analysis.workspace.pools`
    pool_runs: tuple[str, ...] = ()

    @cached_property
    def candidates(self) -> Counts:
        """int32 [runs, queries, 5]: passages with grade 1..5 in each candidate pool; counted once."""
        return count_grades(self.pool_grades)

    def score(
        self, measures: Iterable[Measure], depth: int | None = None, *, hidden: npt.ArrayLike = False
    ) -> dict[Measure, Floats]:
        """Return measures at every K.

        Args:
            measures: Their own cutoffs do not matter here.
            depth: Largest K; None for the deepest final rank.
            hidden: [runs, queries], values that do not count.

        Returns:
            Per measure float64 [runs, queries, K]; NaN if it is inapplicable, or hidden. For a ratio of
            means each query's contribution (`shares_of_means`), so that the mean is the ratio.
        """
        wanted = tuple(measures)
        parts = {
            measure: (measure.renamed(measure.inner or ""), measure.renamed(f"PROC[{measure.inner}]"))
            for measure in wanted
            if measure.info.by_query
        }
        single = [measure for measure in wanted if measure not in parts]
        scored = self._by_query(dict.fromkeys([*single, *chain.from_iterable(parts.values())]), depth)
        for values in scored.values():
            values[np.broadcast_to(hidden, values.shape[:2])] = np.nan
        scored |= {
            measure: shares_of_means(scored[own], scored[best]) for measure, (own, best) in parts.items()
        }
        return {measure: scored[measure] for measure in wanted}

    def _by_query(self, measures: Iterable[Measure], depth: int | None) -> dict[Measure, Floats]:
        wanted = tuple(measures)
        extra = self.extra
        if any(measure.info.needs_pool for measure in wanted):
            extra = replace(extra, candidates=self.candidates)
        scored: dict[Measure, Floats] = {}
        answered = dict.fromkeys(filter(None, map(_about, wanted)))
        for about in answered or ("",):  # answers of several readers are scored separately
            same = [measure for measure in wanted if (_about(measure) or next(iter(answered), "")) == about]
            own = replace(extra, answers=self.answers.get(about))
            scored |= score_all(
                same, self.grades, self.pool_counts, pool_grades=self.pool_grades, depth=depth, extra=own
            )
        return scored

    def rescored(self, measure: Measure, grades: Grades, counts: Counts) -> Floats:
        """Return a measure at its cutoff with slots regraded; NaN if pools would differ."""
        if not measure.info.needs <= {"answers"}:
            return np.full(grades.shape[:2], np.nan)
        return score_at(
            measure, grades, counts, extra=replace(self.extra, answers=self.answers.get(_about(measure)))
        )

    def among(self, queries: Container[str]) -> Evidence:
        """Return the evidence limited to some of the queries."""
        places = [place for place, query_id in enumerate(self.query_ids) if query_id in queries]
        extra: dict[str, Any] = {
            part.name: getattr(self.extra, part.name).take(places, axis=-2)
            for part in fields(self.extra)
            if isinstance(getattr(self.extra, part.name), np.ndarray)
        }
        if self.extra.perturbed is not None:
            taken = {name: grades.take(places, axis=1) for name, grades in self.extra.perturbed.items()}
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
        """Return passages with grade 1..5 that the run at this position could find: int32 [queries, 5]."""
        return self.pool_counts if self.pool_counts.ndim == 2 else self.pool_counts[run]


def evidence(
    snapshot: Snapshot,
    run_ids: Sequence[str],
    golden_set_id: str,
    measures: Iterable[Measure | None] = (),
    *,
    only: Container[str] | None = None,
    own_pools: bool = False,
) -> Evidence:
    """Join the rankings of some runs with the judgements of a golden set.

    Args:
        measures: The measures to score, so that their inputs are read as well.
        only: The queries that count; None for every judged one.
        own_pools: Whether ceilings use each run's own pool at its K, instead of the pool that its
            stack could choose from (`core.analysis.workspace.pools`).

    Raises:
        UnknownNameError: If the golden set or a run does not exist.
        InputError: If the runs searched differently chunked passages and the judgements are tied to passages.
    """
    _require_one_passage_set(snapshot, run_ids, golden_set_id)
    wanted = [measure for measure in measures if measure]
    needs = frozenset(need for measure in wanted for need in measure.info.needs)
    final, pool = _stored(snapshot, run_ids, golden_set_id)
    # The store's join is one object for as long as it is cached there.
    graded = own = _KEPT.once((final, pool), lambda: of_graded(final, pool), _size)
    others = deeper(snapshot.runs()) if "pool" in needs and not own_pools else {}
    if more := list(dict.fromkeys(other for run_id in run_ids for other in others.get(run_id, ()))):
        offered = _stored(snapshot, more, golden_set_id)
        graded = _KEPT.once(
            (final, pool, *offered), lambda: deepened(own, of_graded(*offered), others), _size
        )
    if not needs <= {"pool"}:
        graded = replace(graded, extra=_extra(snapshot, golden_set_id, graded, needs))
    if "perturbed" in needs:
        perturbed = _perturbed(snapshot, golden_set_id, final, wanted)
        graded = replace(graded, extra=replace(graded.extra, perturbed=perturbed))
    if "answers" in needs:
        about = {_about(measure): measure for measure in wanted if "answers" in measure.info.needs}
        answers = {key: _answers(snapshot, final, measure) for key, measure in about.items()}
        graded = replace(graded, answers=answers)
    return graded if only is None else graded.among(only)


def _about(measure: Measure) -> str:
    """Describe whose answers a measure is about, and their scorer, or return "" if it needs none."""
    if "answers" not in measure.info.needs:
        return ""
    own = dict(measure.params)
    return ",".join(str(own.get(name, "")) or ANY for name in ("reader", "scorer", "people"))


def _size(graded: Evidence) -> int:
    """Return the size of evidence in bytes, including its sources and the counts of candidates."""
    pools = 0 if graded.pool_grades is graded.grades else 2 * graded.pool_grades.nbytes
    return graded.grades.nbytes + pools + 20 * len(graded.run_ids) * len(graded.query_ids)


def _stored(snapshot: Snapshot, run_ids: Sequence[str], golden_set_id: str) -> tuple[Graded, Graded]:
    """Return the final rankings and the candidate pools of some runs."""
    final = snapshot.graded(run_ids, golden_set_id, stage="final")
    return final, snapshot.graded(run_ids, golden_set_id, stage="pool")


def of_graded(final: Graded, pool: Graded) -> Evidence:
    """Join rankings and candidate pools of the same runs, which share their judgements."""
    return Evidence(
        run_ids=final.run_ids,
        query_ids=final.query_ids,
        grades=final.grades,
        pool_grades=_either(pool, final.grades, pool.grades),
        pool_counts=final.pool_counts,
        unjudged_queries=final.unjudged_queries,
        extra=Extra(gains=final.gains),
        pool_runs=final.run_ids,
    )


def deepened(graded: Evidence, offered: Evidence, others: Mapping[str, Sequence[str]]) -> Evidence:
    """Give every run the pool that its stack could choose from, if another run kept it deeper.

    A deeper pool counts if its run was run on all queries of the run itself.

    Args:
        offered: For the runs in `others`.
        others: From `core.analysis.workspace.pools.deeper`.
    """
    asked, there = (begun(each.grades) | begun(each.pool_grades) for each in (graded, offered))
    place = {run_id: at for at, run_id in enumerate(offered.run_ids)}
    depth = max(graded.pool_grades.shape[2], offered.pool_grades.shape[2])
    pools, runs = to_depth(graded.pool_grades, depth).copy(), list(graded.pool_runs)
    deep = to_depth(offered.pool_grades, depth)
    for at, run_id in enumerate(graded.run_ids):
        same = (place[other] for other in others.get(run_id, ()) if other in place)
        taken = next((row for row in same if (there[row] >= asked[at]).all()), None)
        if taken is not None:
            pools[at] = np.where(asked[at][:, None], deep[taken], np.int8(EMPTY_SLOT))
            runs[at] = offered.run_ids[taken]
    return replace(graded, pool_grades=pools, pool_runs=tuple(runs))


def furthest(snapshot: Snapshot, run_ids: Sequence[str], golden_set_id: str | None) -> dict[str, str]:
    """Return for each run the one with its stack's longest ranking, for scores beyond its own K.

    It is another run only if nothing reads K: see `core.analysis.workspace.pools`.
    """
    if golden_set_id is None or not run_ids:
        return {}
    kept = evidence(snapshot, run_ids, golden_set_id, [_CEILING])
    return dict(zip(kept.run_ids, kept.pool_runs, strict=True))


def _extra(snapshot: Snapshot, golden_set_id: str, graded: Evidence, needs: frozenset[Need]) -> Extra:
    extra = graded.extra
    of_nuggets = not needs.isdisjoint({"nuggets", "facets"}) and snapshot.nuggets(golden_set_id).height > 0
    if "sources" in needs or ("facets" in needs and not of_nuggets):
        own = snapshot.sources(graded.run_ids, golden_set_id, depth=graded.depth)
        extra = replace(
            extra, sources=own.codes, source_grades=own.best, facets=own.facets, depths=own.depths
        )
        if "pool" in needs:
            extra = replace(extra, pool_sources=_pool_sources(snapshot, golden_set_id, graded))
    if "filters" in needs:
        states, filtered = arrays(snapshot, graded.run_ids, graded.query_ids, graded.depth)
        extra = replace(extra, states=states, filtered=filtered)
    if of_nuggets or "nuggets" in needs:
        extra = replace(extra, **_nuggets(snapshot, golden_set_id, graded, needs))
    return extra


def _nuggets(
    snapshot: Snapshot, golden_set_id: str, graded: Evidence, needs: frozenset[Need]
) -> dict[str, Any]:
    """Return the arrays of nuggets of `Extra`; as facets, with those of known and of pooled passages."""
    rows = snapshot.nuggets(golden_set_id).filter(pl.col("query_id").is_in(graded.query_ids))
    runs, asked = len(graded.run_ids), len(graded.query_ids)
    listed = np.zeros((asked, 2), dtype=np.uint64)
    bit = np.left_shift(np.uint64(1), rows["nugget"].to_numpy().astype(np.uint64))
    (query,) = places(rows, query_id=graded.query_ids)
    for column, kept in enumerate((np.full(rows.height, True), rows["vital"].to_numpy().astype(bool))):
        np.bitwise_or.at(listed[:, column], query[kept], bit[kept])
    told = rows.with_columns(bit=pl.Series(bit, dtype=pl.UInt64)).filter(pl.col("support") >= 1)

    def ranked(run_ids: Sequence[str], stage: str, depth: int) -> npt.NDArray[np.uint64]:
        rows = snapshot.rankings(run_ids, stage=stage).join(told, on=["query_id", "passage_id"])
        rows = rows.filter(pl.col("rank") <= depth)
        found = np.zeros((len(run_ids), asked, depth), dtype=np.uint64)
        run, query = places(rows, run_id=run_ids, query_id=graded.query_ids)
        np.bitwise_or.at(found, (run, query, rows["rank"].to_numpy() - 1), rows["bit"].to_numpy())
        return found

    made = {
        "nuggets": ranked(graded.run_ids, "final", graded.depth),
        "nuggets_listed": np.broadcast_to(listed, (runs, *listed.shape)),
    }
    if "facets" in needs:
        made["nuggets_known"] = _known(told, graded.query_ids)
        if "pool" in needs:
            made["pool_nuggets"] = _of_pools(
                snapshot,
                golden_set_id,
                graded,
                lambda ids, stage: ranked(ids, stage, graded.pool_grades.shape[2]),
            )
    return made


def _known(told: pl.DataFrame, query_ids: Sequence[str]) -> npt.NDArray[np.uint64]:
    """Return the nuggets of every passage that supports any: uint64 [queries, most passages].

    They are sorted by descending id, as ndeval takes the first of equal ones for its ideal.
    """
    place = pl.col("passage_id").rank("dense", descending=True).over("query_id").cast(pl.Int64) - 1
    rows = told.with_columns(place=place)
    most = rows["place"].max()
    known = np.zeros((len(query_ids), 1 + (most if isinstance(most, int) else 0)), dtype=np.uint64)
    (query,) = places(rows, query_id=query_ids)
    np.bitwise_or.at(known, (query, rows["place"].to_numpy()), rows["bit"].to_numpy())
    return known


def _of_pools(
    snapshot: Snapshot,
    golden_set_id: str,
    graded: Evidence,
    read: Callable[[Sequence[str], str], npt.NDArray[Whole]],
) -> npt.NDArray[Whole]:
    """Return data read for the slots of candidate pools, by runs and stage."""
    runs = list(dict.fromkeys(graded.pool_runs))
    pool = snapshot.graded(runs, golden_set_id, stage="pool")
    either = _either(pool, read(runs, "final"), read(runs, "pool"))
    return either[[runs.index(run_id) for run_id in graded.pool_runs]]


def _pool_sources(snapshot: Snapshot, golden_set_id: str, graded: Evidence) -> npt.NDArray[np.int32]:
    """Return the sources of the slots of the candidate pools; -1 = empty."""

    def codes_of(runs: Sequence[str], stage: str) -> npt.NDArray[np.int32]:
        depth = graded.pool_grades.shape[2]
        return snapshot.sources(runs, golden_set_id, stage=stage, depth=depth).codes

    codes = _of_pools(snapshot, golden_set_id, graded, codes_of)
    return np.where(graded.pool_grades == EMPTY_SLOT, np.int32(EMPTY_SLOT), codes)


def _answers(snapshot: Snapshot, final: Graded, measure: Measure) -> Floats:
    """Return correctness 0..1 of answers from the first K passages [runs, queries, K]; NaN if none."""
    rows = (
        graded_answers(snapshot, final.run_ids, measure)
        .filter(pl.col("query_id").is_in(final.query_ids))
        .drop_nulls("correct")
    )
    deepest = rows["k"].max()
    correct = np.full((*final.grades.shape[:2], deepest if isinstance(deepest, int) else 0), np.nan)
    _put(correct, rows, final)
    if measure.values.get("people") != CORRECTED:
        return correct
    people = np.full_like(correct, np.nan)
    graded_by_people = by_people(snapshot, final.run_ids, rows)
    _put(people, graded_by_people.filter(pl.col("query_id").is_in(final.query_ids)), final)
    return set_right(correct, people)


def _put(into: Floats, rows: pl.DataFrame, final: Graded) -> None:
    """Place the correctness of answers at their run, query and k."""
    run, query = places(rows, run_id=final.run_ids, query_id=final.query_ids)
    into[run, query, rows["k"].to_numpy() - 1] = rows["correct"].to_numpy()


def places(rows: pl.DataFrame, **known: Sequence[str]) -> list[Ints]:
    """Return the positions of the names in some columns among the known ones, column by column."""
    return [
        rows[column].replace_strict(list(names), range(len(names)), return_dtype=pl.Int64).to_numpy()
        for column, names in known.items()
    ]


def _require_one_passage_set(snapshot: Snapshot, run_ids: Sequence[str], golden_set_id: str) -> None:
    """Refuse passage judgements for two sets of passages: those of one would all be unjudged."""
    judges, searched = snapshot.judging(run_ids, golden_set_id), snapshot.searched(run_ids)
    tied = sorted({searched[run_id] for run_id, name in judges.items() if name == golden_set_id})
    if len(tied) > 1:
        raise InputError(
            f"These runs searched differently cut passages ({', '.join(tied)}), and the golden set "
            f"{golden_set_id} is tied to passages, so that it can judge one of these sets only.",
            do="Choose runs of one chunking, or anchor the grades to characters of the documents (spans).",
        )


def _either(pool: Graded, own: npt.NDArray[Whole], offered: npt.NDArray[Whole]) -> npt.NDArray[Whole]:
    """Return the values for each run's stored pool.

    A run without one could choose from its final ranking.
    """
    stored = (pool.grades != EMPTY_SLOT).any(axis=(1, 2))
    if not stored.any():
        return own
    depth = max(own.shape[2], offered.shape[2])
    return np.where(stored[:, None, None], to_depth(offered, depth), to_depth(own, depth))


def at_cutoff(graded: Evidence, measure: Measure) -> Floats:
    """Return a measure at its own cutoff."""
    if measure.k is None:
        raise InputError(f"{measure} has no cutoff.", do=f"Write {measure.at(10)}, for example.")
    return graded.score([measure], depth=measure.k)[measure][..., measure.k - 1]


def mean(values: Floats) -> tuple[Floats, Ints]:
    """Return macro-average over queries."""
    means, n = aggregate(values[..., None])
    return means[..., 0], n[..., 0]


def unperturbed(graded: Evidence, measure: Measure) -> list[str]:
    """Describe which perturbed runs a measure lacks for each run, or return "" if none."""
    alone = chosen(measure.values) if "perturbed" in measure.info.needs else ()
    lacking = {
        name: (grades == ABSENT).all(axis=(1, 2)) for name, grades in (graded.extra.perturbed or {}).items()
    }
    lacked = [[name for name in alone if lacking[name][run]] for run in range(len(graded.run_ids))]
    words = "needs a run of the stack with {}"
    return [words.format(" and one with ".join(names)) if names else "" for names in lacked]


def applies_to_none(graded: Evidence, measure: Measure) -> str:
    """Explain why no query has a value."""
    said = f"applies to none of the {counted(len(graded.query_ids), 'judged query', 'judged queries')}"
    counts = graded.pool_counts.reshape(-1, 5).sum(axis=0)
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


def bounds(graded: Evidence, measure: Measure) -> tuple[Floats, Floats]:
    """Return the mean score of every run if all its holes had the worst, or the best, grade."""
    top = graded.grades[:, :, : measure.k]
    holes, ends = top == _HOLE, []
    for grade in (_WORST, _BEST):
        counts = np.broadcast_to(graded.pool_counts, (*top.shape[:2], 5)).copy()
        counts[..., grade - 1] += holes.sum(axis=2, dtype=counts.dtype)
        grades = np.where(holes, np.int8(grade), top)
        ends.append(mean(graded.rescored(measure, grades, counts))[0])
    return np.fmin(*ends), np.fmax(*ends)


def _perturbed(
    snapshot: Snapshot, golden_set_id: str, final: Graded, measures: Iterable[Measure]
) -> dict[str, Grades]:
    """Read the siblings' rankings of perturbed queries: int8 [runs, queries, depth] by perturbation.

    `ABSENT` if a run has no sibling, or one that was not run on the query. Several perturbations at once
    are left out if no run has such a sibling.
    """
    values = [measure.values for measure in measures if "perturbed" in measure.info.needs]
    alone, others = ({name for value in values for name in some(value)} for some in (chosen, together))
    siblings = _siblings(snapshot, final.run_ids, alone | others)
    wanted = alone | {name for name in others if siblings[name]}
    return {name: _of_siblings(snapshot, golden_set_id, final, siblings[name]) for name in sorted(wanted)}


def _of_siblings(snapshot: Snapshot, golden_set_id: str, final: Graded, wanted: Mapping[str, str]) -> Grades:
    there = sorted(set(wanted.values()))
    if not there:
        return np.full((*final.grades.shape[:2], 1), ABSENT, dtype=np.int8)
    graded = snapshot.graded(there, golden_set_id, stage="final")
    ranked = to_depth(graded.grades, max(graded.grades.shape[2], 1))
    timed = snapshot.timings(there).select("run_id", "query_id").unique()
    timed = timed.filter(pl.col("query_id").is_in(graded.query_ids))
    asked = ranked[..., 0] != EMPTY_SLOT
    run, query = places(timed, run_id=graded.run_ids, query_id=graded.query_ids)
    asked[run, query] = True
    known = np.where(asked[..., None], ranked, np.int8(ABSENT))
    grades = np.full((*final.grades.shape[:2], known.shape[2]), ABSENT, dtype=np.int8)
    place_of = {query_id: place for place, query_id in enumerate(graded.query_ids)}
    into = [place for place, query_id in enumerate(final.query_ids) if query_id in place_of]
    taken = [place_of[final.query_ids[place]] for place in into]
    row_of = {run_id: row for row, run_id in enumerate(graded.run_ids)}
    for row, run_id in enumerate(final.run_ids):
        if run_id in wanted:
            grades[row, into] = known[row_of[wanted[run_id]], taken]
    return grades


def _siblings(
    snapshot: Snapshot, run_ids: tuple[str, ...], names: Iterable[str]
) -> dict[str, dict[str, str]]:
    """Return by perturbation the newest run of each run's stack on queries perturbed that way."""
    runs = snapshot.runs().filter("has_rankings").select("run_id", "collection_id", "spec", "manifest")
    of = runs.filter(pl.col("run_id").is_in(list(run_ids)))
    near = runs.join(of.select("collection_id").unique(), on="collection_id", maintain_order="left")
    place_of = dict(near.select("run_id", "collection_id").iter_rows())
    newest = {(place_of[run_id], key): run_id for run_id, key in kin(perturbed_runs(near)).items()}
    clean = {run: (place_of[run], key) for run, key in kin(of).items() if key.perturb == CLEAN}
    return {
        name: {
            run_id: newest[key]
            for run_id, (place, stack) in clean.items()
            if (key := (place, stack._replace(perturb=name))) in newest
        }
        for name in names
    }
