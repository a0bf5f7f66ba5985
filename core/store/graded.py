"""The join of rankings with judgements, as arrays ready for the measures.

The database joins by text ids and answers with integer codes; scattering those into a dense array takes a
tenth of the join's time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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
        pool_counts: int32 [queries, 5], judged passages with grade 1..5 in the golden set (read-only).
        unjudged_queries: int32 [runs], queries that the run ranks but nobody judged (left out).
    """

    run_ids: tuple[str, ...]
    query_ids: tuple[str, ...]
    grades: npt.NDArray[np.int8]
    pool_counts: npt.NDArray[np.int32]
    unjudged_queries: npt.NDArray[np.int32]


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
    *,
    run_ids: Sequence[str],
    golden_set_id: str,
    rankings: Sequence[str],
    judgements: Sequence[str],
    stage: str,
    depth: int | None,
) -> Graded:
    """Join rankings with judgements.

    Args:
        cursor: Any connection.
        run_ids: Distinct runs.
        golden_set_id: Whose grades.
        rankings: Parquet files with the runs' rankings.
        judgements: Parquet files with the golden set's judgements.
        stage: "final" or "pool".
        depth: Ranks to keep; None keeps all.
    """
    queries, counts = _pool(golden_set_id, tuple(judgements))
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
                "golden_set": golden_set_id,
                "depth": _UNLIMITED if depth is None else depth,
            },
        ).fetchnumpy()
        wide = int(hits["rank"].max(initial=0)) if depth is None else depth
        grades = np.full((len(run_ids), len(queries), wide), EMPTY, dtype=np.int8)
        grades[hits["run"], hits["query"], hits["rank"] - 1] = hits["grade"]
    if rankings:
        position = {run_id: index for index, run_id in enumerate(run_ids)}
        for run_id, count in cursor.execute(_UNJUDGED, asked).fetchall():
            unjudged[position[run_id]] = count
    return Graded(tuple(run_ids), queries, grades, counts, unjudged)


@lru_cache(maxsize=64)
def _pool(golden_set_id: str, judgements: tuple[str, ...]) -> tuple[tuple[str, ...], npt.NDArray[np.int32]]:
    """The judged queries and their counts per grade; kept, for files of a store never change."""
    asked = {"judgements": list(judgements), "golden_set": golden_set_id}
    found = ENGINE.cursor().execute(_POOL, asked).fetchall() if judgements else []
    counts = np.array([row[1:] for row in found], dtype=np.int32).reshape(len(found), 5)
    counts.flags.writeable = False
    return tuple(row[0] for row in found), counts
