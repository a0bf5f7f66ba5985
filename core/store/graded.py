"""The join of rankings with judgements, as arrays ready for the measures.

The database joins by text ids and answers with integer codes; scattering those into a dense array takes a
tenth of the join's time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt

from core.store.engine import ENGINE

EMPTY = -1
"""Grade of a slot without a passage."""

UNJUDGED = 0
"""Grade of a passage without a judgement."""


@dataclass(frozen=True, slots=True)
class Graded:
    """Rankings of several runs with the grades of one golden set.

    Attributes:
        run_ids: The runs, in the order asked for; first axis of `grades`.
        query_ids: Every query with at least one judgement, sorted; second axis.
        grades: int8 [runs, queries, depth]; 1..5 judged, 0 unjudged, -1 empty slot (ranking shorter, or the
            query not ranked at all).
        pool_counts: int32 [queries, 5], judged passages with grade 1..5 in the golden set (read-only). Where
            runs of several chunkings have grades of their own, [runs, queries, 5]: each run's are those of
            its chunking, and a query may be judged in some of them only.
        unjudged_queries: int32 [runs], queries that the run ranks but nobody judged (left out).
    """

    run_ids: tuple[str, ...]
    query_ids: tuple[str, ...]
    grades: npt.NDArray[np.int8]
    pool_counts: npt.NDArray[np.int32]
    unjudged_queries: npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Judges:
    """A golden set and the runs that it judges.

    Attributes:
        golden_set_id: The golden set, whole or part.
        run_ids: The runs.
        rankings: Parquet files with the runs' rankings.
        judgements: Parquet files with the golden set's judgements.
    """

    golden_set_id: str
    run_ids: tuple[str, ...]
    rankings: Sequence[str]
    judgements: Sequence[str]


_POOL = """
SELECT query_id, count_if(grade = 1), count_if(grade = 2), count_if(grade = 3), count_if(grade = 4),
       count_if(grade = 5)
FROM read_parquet($judgements) WHERE golden_set_id = $golden_set GROUP BY query_id ORDER BY query_id
"""
_JOIN = """
WITH judged AS (
         SELECT query_id, passage_id, grade FROM read_parquet($judgements) WHERE golden_set_id = $golden_set),
     query AS (SELECT unnest($queries) AS query_id, unnest(range(len($queries)))::INTEGER AS code),
     run AS (SELECT unnest($runs) AS run_id, unnest(range(len($runs)))::INTEGER AS code)
SELECT run.code AS run, query.code AS query, ranking.rank AS rank, coalesce(judged.grade, 0)::TINYINT AS grade
FROM read_parquet($rankings) AS ranking
JOIN run ON run.run_id = ranking.run_id
JOIN query ON query.query_id = ranking.query_id
LEFT JOIN judged ON judged.query_id = ranking.query_id AND judged.passage_id = ranking.passage_id
WHERE ranking.stage = $stage AND ranking.rank <= $depth
"""
_UNJUDGED = """
SELECT run_id, count(DISTINCT query_id) FROM read_parquet($rankings) AS ranking
ANTI JOIN (SELECT unnest($queries) AS query_id) AS judged ON judged.query_id = ranking.query_id
WHERE stage = $stage AND run_id IN (SELECT unnest($runs))
GROUP BY run_id
"""
_UNLIMITED = 2**31 - 1


def join(
    cursor: duckdb.DuckDBPyConnection,
    groups: Sequence[Judges],
    *,
    run_ids: Sequence[str],
    stage: str,
    depth: int | None,
) -> Graded:
    """Join rankings with the judgements of the golden set that judges each run.

    Args:
        cursor: Any connection.
        groups: Who judges which runs; every run is in one of them.
        run_ids: The runs, in the order of the answer.
        stage: "final" or "pool".
        depth: Ranks to keep; None keeps all.

    Returns:
        Over the queries that any of the golden sets judges.
    """
    if len(groups) == 1:
        return _join(cursor, groups[0], stage, depth, None)
    judged = {query for group in groups for query in _pool(group.golden_set_id, tuple(group.judgements))[0]}
    # Of a golden set without any judgement there is no file; in another's no row is its own.
    some = next((group.judgements for group in groups if group.judgements), ())
    parts = [
        _join(cursor, replace(group, judgements=group.judgements or some), stage, depth, sorted(judged))
        for group in groups
    ]
    wide = max(part.grades.shape[2] for part in parts)
    grades = np.full((len(run_ids), len(judged), wide), EMPTY, dtype=np.int8)
    counts = np.zeros((len(run_ids), len(judged), 5), dtype=np.int32)
    unjudged = np.zeros(len(run_ids), dtype=np.int32)
    position = {run_id: index for index, run_id in enumerate(run_ids)}
    for part in parts:
        rows = [position[run_id] for run_id in part.run_ids]
        grades[rows, :, : part.grades.shape[2]] = part.grades
        counts[rows] = part.pool_counts
        unjudged[rows] = part.unjudged_queries
    counts.flags.writeable = False
    return Graded(tuple(run_ids), tuple(sorted(judged)), grades, counts, unjudged)


def _join(
    cursor: duckdb.DuckDBPyConnection,
    judges: Judges,
    stage: str,
    depth: int | None,
    query_ids: Sequence[str] | None,
) -> Graded:
    """Join the rankings of runs with the judgements of one golden set.

    Args:
        cursor: Any connection.
        judges: Who judges which runs.
        stage: "final" or "pool".
        depth: Ranks to keep; None keeps all.
        query_ids: The queries to answer for, sorted, with the judged ones among them; None for those.
    """
    run_ids, rankings, judgements = judges.run_ids, judges.rankings, judges.judgements
    own, counts = _pool(judges.golden_set_id, tuple(judgements))
    queries = own if query_ids is None else tuple(query_ids)
    if queries != own:
        counts = _spread(own, counts, queries)
    asked: dict[str, Any] = {
        "rankings": list(rankings),
        "runs": list(run_ids),
        "queries": list(queries),
        "stage": stage,
    }
    unjudged = np.zeros(len(run_ids), dtype=np.int32)
    if not (queries and rankings):
        grades = np.full((len(run_ids), len(queries), depth or 0), EMPTY, dtype=np.int8)
    else:
        hits = cursor.execute(
            _JOIN,
            {
                **asked,
                "judgements": list(judgements),
                "golden_set": judges.golden_set_id,
                "depth": _UNLIMITED if depth is None else depth,
            },
        ).fetchnumpy()
        wide = int(hits["rank"].max(initial=0)) if depth is None else depth
        grades = np.full((len(run_ids), len(queries), wide), EMPTY, dtype=np.int8)
        grades[hits["run"], hits["query"], hits["rank"] - 1] = hits["grade"]
    if rankings:
        position = {run_id: index for index, run_id in enumerate(run_ids)}
        for run_id, count in cursor.execute(_UNJUDGED, {**asked, "queries": list(own)}).fetchall():
            unjudged[position[run_id]] = count
    return Graded(run_ids, queries, grades, counts, unjudged)


def _spread(
    judged: tuple[str, ...], counts: npt.NDArray[np.int32], query_ids: Sequence[str]
) -> npt.NDArray[np.int32]:
    """Counts of the judged queries among more queries; those of the others are 0."""
    spread = np.zeros((len(query_ids), 5), dtype=np.int32)
    position = {query_id: index for index, query_id in enumerate(query_ids)}
    spread[[position[query_id] for query_id in judged]] = counts
    spread.flags.writeable = False
    return spread


@lru_cache(maxsize=64)
def _pool(golden_set_id: str, judgements: tuple[str, ...]) -> tuple[tuple[str, ...], npt.NDArray[np.int32]]:
    """The judged queries and their counts per grade; kept, for files of a store never change."""
    asked = {"judgements": list(judgements), "golden_set": golden_set_id}
    found = ENGINE.cursor().execute(_POOL, asked).fetchall() if judgements else []
    counts = np.array([row[1:] for row in found], dtype=np.int32).reshape(len(found), 5)
    counts.flags.writeable = False
    return tuple(row[0] for row in found), counts
