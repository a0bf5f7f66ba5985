"""Values of every query at every cutoff as one table, for whoever wants to go on from there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from core.errors import InputError
from core.metrics import Measure
from core.store import Snapshot
from core.views.workspace.query_sets import Mask, asked_in
from core.views.workspace.scores import Evidence, evidence

_ROWS = 4_000_000
"""Rows of a table that `in_parts` holds at a time, unless a single run has more."""


def every_k(
    found: Evidence,
    measures: Iterable[Measure],
    *,
    depth: int | None = None,
    asked: Mask | None = None,
) -> pl.DataFrame:
    """Values per cutoff, run and query."""
    scored = found.score(dict.fromkeys(measure.at(None) for measure in measures), depth)
    deepest = found.depth if depth is None else depth
    runs, queries = len(found.run_ids), len(found.query_ids)
    columns = {
        "k": pl.Series(np.repeat(np.arange(1, deepest + 1, dtype=np.int32), runs * queries)),
        "run": _named(found.run_ids, np.tile(np.repeat(np.arange(runs, dtype=np.uint32), queries), deepest)),
        "query_id": _named(found.query_ids, np.tile(np.arange(queries, dtype=np.uint32), deepest * runs)),
    }
    for measure, values in scored.items():
        # Cutoffs are first in memory: in this order the values are taken as they lie.
        columns[str(measure)] = pl.Series(np.moveaxis(values, -1, 0).reshape(-1))
    made = pl.DataFrame(columns).with_columns(pl.col(pl.Float64).fill_nan(None))
    if asked is None or asked.all():
        return made
    known = pl.Series(np.tile(asked.ravel(), deepest))
    return made.with_columns(pl.when(known).then(pl.col(pl.Float64)))


def _named(names: Sequence[str], places: np.ndarray) -> pl.Series:
    """Names by their places, as an enumeration: a name is stored once."""
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
    """`every_k` for some runs at a time, so that any number of them fits in memory.

    Args:
        depth: Largest K; None for the deepest final rank of the runs that are read together.
        asked_only: Whether a judged query that a run was not asked is unknown; else it counts as 0.

    Raises:
        UnknownNameError: If the golden set or a run does not exist.
        InputError: If the runs searched differently chunked passages and the judgements are tied to passages.
    """
    some = 1
    first = 0
    while first < len(run_ids):
        found = evidence(snapshot, run_ids[first : first + some], golden_set_id, measures)
        asked = asked_in(found, snapshot.timings) if asked_only else None
        yield every_k(found, measures, depth=depth, asked=asked)
        first += some
        cells = len(found.query_ids) * max(1, found.depth if depth is None else depth)
        some = max(1, _ROWS // max(1, cells))


def write_parquet(parts: Iterable[pl.DataFrame], path: Path) -> int:
    """Write tables of `every_k` to one Parquet file, one after the other.

    Returns:
        How many rows were written; without any there is no file.

    Raises:
        InputError: If the file is there already or cannot be written.
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
