"""Scores of files as they are offered, without a store."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from core.errors import InputError, UnknownNameError
from core.importers import Import
from core.metrics import Measure
from core.store import Graded, gains_of
from core.tables import frame
from core.views.scoring.table import COLUMNS, Over, counted, require_cutoffs, scored_rows
from core.views.workspace.scores import EMPTY_SLOT, Evidence, of_graded

_KEY = ["query_id", "passage_id"]


def score_files(
    made: Import,
    measures: Sequence[Measure],
    *,
    golden_set_id: str | None = None,
    per_query: bool = False,
    over: Over | None = Over.ALL,
    tell: Callable[[str], None] | None = None,
) -> pl.DataFrame:
    """Score the runs of an import that is in no store.

    Args:
        made: What was read, rankings and judgements among it.
        golden_set_id: The judgements, where there are several sets of them.
        per_query: One row per query instead of the mean.
        over: Which judged queries count; see `core.views.scoring.table.counted`.
        tell: Is told what was done where runs were not asked every judged query.

    Returns:
        As `score_table`.

    Raises:
        InputError: If there are no rankings or no judgements, a measure has no cutoff, or it needs more than
            rankings and judgements.
        UnknownNameError: If there is no golden set of that name.
    """
    require_cutoffs(measures)
    found = evidence_of(made, golden_set_id)
    seen = counted(found, lambda run_ids: _timings(made, run_ids), over)
    if tell and seen.said:
        tell(seen.said)
    rows = scored_rows(seen, measures, per_query=per_query)
    labels = pl.DataFrame(
        [(run.run_id, run.label) for run in made.runs], schema=["run", "stack"], orient="row"
    )
    table = rows.drop("stack").join(labels, on="run", how="left", maintain_order="left")
    return table.select(name for name in COLUMNS if per_query or name != "query_id")


def evidence_of(made: Import, golden_set_id: str | None = None) -> Evidence:
    """Join the rankings of an import with its judgements."""
    if "rankings" not in made.frames:
        raise InputError("There are no rankings among these files.", do="Add the files of the runs.")
    chosen = _golden_set(made, golden_set_id)
    judged = made.frames["judgements"].lazy().filter(golden_set_id=chosen).collect()
    ranked = made.frames["rankings"].lazy().select("run_id", "stage", "rank", *_KEY)
    graded = ranked.join(judged.lazy().select(*_KEY, "grade"), on=_KEY, how="left").drop("passage_id")
    rows = graded.collect()
    return of_graded(_graded(rows, made, judged, "final"), _graded(rows, made, judged, "pool"))


def _timings(made: Import, run_ids: Sequence[str]) -> pl.DataFrame:
    timed = made.frames.get("timings", frame("timings", []))
    return timed.lazy().filter(pl.col("run_id").is_in(list(run_ids))).select("run_id", "query_id").collect()


def _golden_set(made: Import, asked: str | None) -> str:
    known = [each.golden_set_id for each in made.golden_sets]
    if "judgements" not in made.frames:
        raise InputError(
            "There are no judgements among these files.", do="Add a qrels file, for example with --qrels."
        )
    if asked is not None and asked not in known:
        raise UnknownNameError("golden set", asked, known)
    if asked is None and len(known) > 1:
        raise InputError(f"There are {len(known)} golden sets: {', '.join(known)}.", do="Choose one.")
    return asked or known[0]


def _graded(rows: pl.DataFrame, made: Import, judged: pl.DataFrame, stage: str) -> Graded:
    """Rankings of one stage as arrays."""
    rows = rows.filter(stage=stage)
    runs = tuple(run.run_id for run in made.runs)
    queries = tuple(judged["query_id"].unique().sort())
    run, query, rank = (
        _places(rows["run_id"], runs),
        _places(rows["query_id"], queries),
        rows["rank"].to_numpy() - 1,
    )
    grades = np.full((len(runs), len(queries), int(rank.max(initial=-1)) + 1), EMPTY_SLOT, dtype=np.int8)
    known = query >= 0
    grades[run[known], query[known], rank[known]] = rows["grade"].fill_null(0).to_numpy()[known]
    strange = rows.filter(~known).select("run_id", "query_id").unique()
    grade = judged["grade"].to_numpy()
    at = _places(judged["query_id"], queries) * 5 + grade - 1
    return Graded(
        run_ids=runs,
        query_ids=queries,
        grades=grades,
        pool_counts=np.bincount(at, minlength=5 * len(queries)).reshape(-1, 5).astype(np.int32),
        unjudged_queries=np.bincount(_places(strange["run_id"], runs), minlength=len(runs)).astype(np.int32),
        gains=gains_of(grade, judged["raw"].fill_null(judged["grade"]).to_numpy()),
    )


def _places(names: pl.Series, known: Sequence[str]) -> npt.NDArray[np.int64]:
    """Position of each name; -1 where it is not among those known."""
    places = names.cast(pl.Enum(list(known)), strict=False).to_physical()
    return places.cast(pl.Int64).fill_null(-1).to_numpy()
