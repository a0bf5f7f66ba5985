"""Scores of result files as they are, without a store.

It also returns values of every query at every cutoff as one table, for further analysis.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from core.analysis.scoring.table import Over, counted, labelled, require_cutoffs, scored_rows, unjudged
from core.analysis.workspace.pools import EMPTY_SLOT, deeper
from core.analysis.workspace.query_sets import asked_in
from core.analysis.workspace.scores import Evidence, deepened, evidence, of_graded
from core.arrays import Ints, Mask
from core.errors import InputError, UnknownNameError
from core.importers import Import
from core.metrics import Measure
from core.records import canonical_json
from core.store import Graded, Snapshot, gains_of
from core.tables import frame

_ROWS = 4_000_000  # Rows of a table that `in_parts` holds at a time, unless a single run has more
_KEY = ["query_id", "passage_id"]


def every_k(
    graded: Evidence, measures: Iterable[Measure], *, depth: int | None = None, asked: Mask | None = None
) -> pl.DataFrame:
    """Return values per cutoff, run and query."""
    scored = graded.score(dict.fromkeys(measure.by_query.at(None) for measure in measures), depth)
    deepest = graded.depth if depth is None else depth
    runs, queries = len(graded.run_ids), len(graded.query_ids)
    columns = {
        "k": pl.Series(np.repeat(np.arange(1, deepest + 1, dtype=np.int32), runs * queries)),
        "run": _named(graded.run_ids, np.tile(np.repeat(np.arange(runs, dtype=np.uint32), queries), deepest)),
        "query_id": _named(graded.query_ids, np.tile(np.arange(queries, dtype=np.uint32), deepest * runs)),
    }
    for measure, values in scored.items():
        # Cutoffs are the first axis in memory: in this order the values are taken without a copy.
        columns[str(measure)] = pl.Series(np.moveaxis(values, -1, 0).reshape(-1))
    cells = pl.DataFrame(columns).with_columns(pl.col(pl.Float64).fill_nan(None))
    if asked is None or asked.all():
        return cells
    known = pl.Series(np.tile(asked.ravel(), deepest))
    return cells.with_columns(pl.when(known).then(pl.col(pl.Float64)))


def _named(names: Sequence[str], places: np.ndarray) -> pl.Series:
    """Return names by position, as an enumeration: each name is stored once."""
    return pl.Series(places).cat.to(pl.Enum(list(names)))


def in_parts(
    snapshot: Snapshot,
    run_ids: Sequence[str],
    golden_set_id: str,
    measures: Sequence[Measure],
    *,
    depth: int | None = None,
    asked_only: bool = False,
) -> Iterator[pl.DataFrame]:
    """Yield `every_k` for some runs at a time, so that any number of them fits in memory.

    Args:
        depth: Largest K; None for the deepest final rank of the runs read together.
        asked_only: Whether a judged query that a run was not run on is unknown; otherwise it counts as 0.

    Raises:
        UnknownNameError: If the golden set or a run does not exist.
        InputError: If the runs searched differently chunked passages and the judgements are tied to passages.
    """
    some = 1
    first = 0
    while first < len(run_ids):
        graded = evidence(snapshot, run_ids[first : first + some], golden_set_id, measures)
        asked = asked_in(graded, snapshot.timings) if asked_only else None
        yield every_k(graded, measures, depth=depth, asked=asked)
        first += some
        cells = len(graded.query_ids) * max(1, graded.depth if depth is None else depth)
        some = max(1, _ROWS // max(1, cells))


def write_parquet(parts: Iterable[pl.DataFrame], path: Path) -> int:
    """Write tables of `every_k` to one Parquet file, one after the other.

    Returns:
        The number of rows written; without any there is no file.

    Raises:
        InputError: If the file exists already or cannot be written.
    """
    if path.exists():
        raise InputError("There is such a file already.", where=str(path), do="Name a new one.")
    rows, writer = 0, None
    try:
        for part in parts:
            table = part.cast({"run": pl.String, "query_id": pl.String}).to_arrow()
            writer = writer or pq.ParquetWriter(path, table.schema, compression="zstd")
            writer.write_table(table)
            rows += part.height
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"The file cannot be written: {error}", where=str(path)) from error
    finally:
        if writer is not None:
            writer.close()
    return rows


def score_files(
    imported: Import,
    measures: Sequence[Measure],
    *,
    golden_set_id: str | None = None,
    per_query: bool = False,
    over: Over | None = Over.ALL,
    tell: Callable[[str], None] | None = None,
) -> pl.DataFrame:
    """Score the runs of an import that is in no store.

    Args:
        imported: What was read, rankings and judgements among it.
        golden_set_id: The judgements, if there are several sets of them.
        per_query: One row per query instead of the mean.
        over: Which judged queries count; see `core.analysis.scoring.table.counted`.
        tell: Receives a note if runs were not run on every judged query.

    Returns:
        As `score_table`.

    Raises:
        InputError: If there are no rankings or no judgements, a measure has no cutoff, or it needs more than
            rankings and judgements.
        UnknownNameError: If there is no golden set of that name.
    """
    require_cutoffs(measures)
    graded = evidence_of(imported, golden_set_id)
    timed = imported.frames.get("timings", frame("timings", [])).lazy().select("run_id", "query_id")
    seen = counted(graded, lambda run_ids: timed.filter(pl.col("run_id").is_in(run_ids)).collect(), over)
    names = {run.run_id: run.label for run in imported.runs}
    for words in (seen.said, unjudged(graded, measures, names)):
        if tell and words:
            tell(words)
    labels = pl.DataFrame(list(names.items()), schema=["run", "stack"], orient="row")
    return labelled(scored_rows(seen, measures, per_query=per_query), labels, per_query=per_query)


def evidence_of(imported: Import, golden_set_id: str | None = None) -> Evidence:
    """Join the rankings of an import with its judgements."""
    if "rankings" not in imported.frames:
        raise InputError("There are no rankings among these files.", do="Add the files of the runs.")
    chosen = _golden_set(imported, golden_set_id)
    judged = imported.frames["judgements"].lazy().filter(golden_set_id=chosen).collect()
    ranked = imported.frames["rankings"].lazy().select("run_id", "stage", "rank", *_KEY)
    graded = ranked.join(judged.lazy().select(*_KEY, "grade"), on=_KEY, how="left").drop("passage_id")
    rows = graded.collect()
    final, pool = (_graded(rows, imported, judged, stage) for stage in ("final", "pool"))
    own = of_graded(final, pool)
    return deepened(own, own, deeper(_runs(imported)))


def _runs(imported: Import) -> pl.DataFrame:
    """Return an import's runs in the form of a store's list, with the columns that pools need."""
    rows = [
        (
            run.run_id,
            run.collection_id,
            run.chunking,
            canonical_json(run.stack.spec),
            canonical_json(run.manifest),
        )
        for run in imported.runs
    ]
    columns = ("run_id", "collection_id", "chunking", "spec", "manifest")
    return pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.String), orient="row")


def _golden_set(imported: Import, asked: str | None) -> str:
    known = [golden_set.golden_set_id for golden_set in imported.golden_sets]
    if "judgements" not in imported.frames:
        raise InputError(
            "There are no judgements among these files.", do="Add a qrels file, for example with --qrels."
        )
    if asked is not None and asked not in known:
        raise UnknownNameError("golden set", asked, known)
    if asked is None and len(known) > 1:
        raise InputError(f"There are {len(known)} golden sets: {', '.join(known)}.", do="Choose one.")
    return asked or known[0]


def _graded(rows: pl.DataFrame, imported: Import, judged: pl.DataFrame, stage: str) -> Graded:
    rows = rows.filter(stage=stage)
    runs = tuple(run.run_id for run in imported.runs)
    queries = tuple(judged["query_id"].unique().sort())
    run, query = _places(rows["run_id"], runs), _places(rows["query_id"], queries)
    rank = rows["rank"].to_numpy() - 1
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


def _places(names: pl.Series, known: Sequence[str]) -> Ints:
    """Return the position of each name; -1 if it is unknown."""
    places = names.cast(pl.Enum(list(known)), strict=False).to_physical()
    return places.cast(pl.Int64).fill_null(-1).to_numpy()
