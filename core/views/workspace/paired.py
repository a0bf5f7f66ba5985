"""Quality per query of the stacks of a workspace, for telling ties from differences."""

from __future__ import annotations

import polars as pl

from core.decide.paired import Paired
from core.stats.intervals import SEED
from core.store import Snapshot
from core.views.workspace.query_sets import among
from core.views.workspace.scope import Quality, Scope
from core.views.workspace.scores import at_cutoff, evidence


def paired(
    snapshot: Snapshot, table: pl.DataFrame, scope: Scope, quality: Quality, *, seed: int = SEED
) -> Paired | None:
    """Read it.

    Args:
        snapshot: Where to read.
        table: The stack table.
        scope: The workspace.
        quality: Measure and cutoff.
        seed: Of the resampling.

    Returns:
        The values of the runs with rankings; None where there are none.
    """
    measure, golden = quality.measure, scope.golden_set_id
    ranked = table.filter("has_rankings")["run_id"].to_list()
    if measure is None or golden is None or not ranked:
        return None
    found = evidence(snapshot, ranked, golden, [measure], only=among(snapshot, scope))
    values = at_cutoff(found, measure)
    return Paired(found.run_ids, values, seed) if values.shape[1] else None
