"""Scores of stored runs, each collection by its own judgements."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from core.analysis.scoring.table import Over, score_table
from core.analysis.workspace.choices import wanted
from core.analysis.workspace.resolve import golden_set_of, longest_of, quality_of
from core.metrics import split_list
from core.store import Snapshot


def score_stored(
    snapshot: Snapshot,
    runs: pl.DataFrame,
    measures: str,
    *,
    golden_set: str | None = None,
    per_query: bool = False,
    over: Over | None = None,
    tell: Callable[[str], None] | None = None,
) -> pl.DataFrame:
    """Score runs of the store; for a measure that isn't computed, use each run's reported value.

    Args:
        runs: Rows of `Snapshot.runs`, of any collections.
        measures: With cutoffs, separated by commas: "RA-nWG@10,N-Recall4+@30"; those of sets need none.
        golden_set: The judgements; None = the only one of each collection.
        per_query: A row per query instead of the mean.
        over: Which judged queries count, see `score_table`.
        tell: Receives a note about queries that not every run was run on.

    Returns:
        As `score_table`; an empty frame without runs.
    """
    asked = [quality_of(part, lambda: longest_of(snapshot, runs)) for part in split_list(measures)]
    computed, reported = wanted(asked, snapshot, runs["run_id"].to_list())
    parts = [
        score_table(
            snapshot,
            of,
            golden_set_of(snapshot, str(name), golden_set),
            computed,
            reported=reported,
            per_query=per_query,
            over=over,
            tell=tell,
        )
        for (name,), of in runs.partition_by("collection_id", as_dict=True, maintain_order=True).items()
    ]
    return pl.concat(parts) if parts else pl.DataFrame()
