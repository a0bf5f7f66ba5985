"""What stacks rank for perturbed queries: the runs of their siblings, read beside their own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt
import polars as pl

from core.diagnostics.noise import CLEAN, kin, perturbed_runs
from core.metrics import Measure, to_depth
from core.metrics.inputs import ABSENT
from core.metrics.robust import chosen, together
from core.store import Graded, Snapshot

Grades = npt.NDArray[np.int8]
_EMPTY = -1


def perturbed_grades(
    snapshot: Snapshot, golden_set_id: str, final: Graded, measures: Iterable[Measure]
) -> dict[str, Grades]:
    """Read what the siblings of some runs rank for perturbed queries.

    Args:
        golden_set_id: The judgements, which are those of the clean queries.
        measures: Robust measures, which say how the queries are perturbed.

    Returns:
        int8 [runs, queries, depth] by perturbation ("noise 4"); `ABSENT` in every slot where a run has no
        sibling, or one that was not asked the query. Several perturbations at once are left out where no
        run has such a sibling.
    """
    values = [measure.values for measure in measures if "perturbed" in measure.info.needs]
    alone, others = ({name for each in values for name in some(each)} for some in (chosen, together))
    siblings = _siblings(snapshot, final.run_ids, alone | others)
    wanted = alone | {name for name in others if siblings[name]}
    return {name: _grades(snapshot, golden_set_id, final, siblings[name]) for name in sorted(wanted)}


def _grades(snapshot: Snapshot, golden_set_id: str, final: Graded, wanted: Mapping[str, str]) -> Grades:
    """Return the grades of each run's sibling."""
    there = sorted(set(wanted.values()))
    if not there:
        return np.full((*final.grades.shape[:2], 1), ABSENT, dtype=np.int8)
    graded = snapshot.graded(there, golden_set_id, stage="final")
    ranked = to_depth(graded.grades, max(graded.grades.shape[2], 1))
    timed = snapshot.timings(there).select("run_id", "query_id").unique()
    asked = ranked[..., 0] != _EMPTY
    places = {query_id: place for place, query_id in enumerate(graded.query_ids)}
    rows = {run_id: row for row, run_id in enumerate(graded.run_ids)}
    for run_id, query_id in timed.filter(pl.col("query_id").is_in(list(places))).iter_rows():
        asked[rows[run_id], places[query_id]] = True
    known = np.where(asked[..., None], ranked, np.int8(ABSENT))
    made = np.full((*final.grades.shape[:2], known.shape[2]), ABSENT, dtype=np.int8)
    both = [(place, places[query_id]) for place, query_id in enumerate(final.query_ids) if query_id in places]
    into, taken = (list(each) for each in zip(*both, strict=True))
    for row, run_id in enumerate(final.run_ids):
        if run_id in wanted:
            made[row, into] = known[rows[wanted[run_id]], taken]
    return made


def _siblings(
    snapshot: Snapshot, run_ids: tuple[str, ...], names: Iterable[str]
) -> dict[str, dict[str, str]]:
    """Return by perturbation the newest run of each run's stack that was asked queries perturbed so."""
    runs = snapshot.runs().filter("has_rankings").select("run_id", "collection_id", "spec", "manifest")
    of = runs.filter(pl.col("run_id").is_in(list(run_ids)))
    near = runs.join(of.select("collection_id").unique(), on="collection_id", maintain_order="left")
    place_of = dict(near.select("run_id", "collection_id").iter_rows())
    newest = {(place_of[run_id], key): run_id for run_id, key in kin(perturbed_runs(near)).items()}
    own = {run_id: (place_of[run_id], key) for run_id, key in kin(of).items()}
    clean = {run_id: key for run_id, key in own.items() if key[1].perturb == CLEAN}
    return {
        name: {
            run_id: newest[key]
            for run_id, (place, stack) in clean.items()
            if (key := (place, stack._replace(perturb=name))) in newest
        }
        for name in names
    }


def has_perturbed(runs: pl.DataFrame) -> bool:
    """Tell whether any of some runs was asked perturbed queries."""
    return not perturbed_runs(runs).is_empty()
