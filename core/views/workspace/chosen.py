"""The runs of a workspace, before anything is read about them."""

from __future__ import annotations

import polars as pl

from core.errors import UnknownNameError
from core.store import Snapshot
from core.views.workspace.scope import Scope


def chosen_runs(snapshot: Snapshot, scope: Scope) -> pl.DataFrame:
    """The runs that a workspace shows."""
    runs = snapshot.runs(scope.collection_id)
    if scope.run_ids:
        absent = set(scope.run_ids) - set(runs["run_id"])
        if absent:
            raise UnknownNameError("run", min(absent), runs["run_id"])
        runs = runs.filter(pl.col("run_id").is_in(list(scope.run_ids)))
    if scope.apart:
        runs = runs.filter(~pl.col("run_id").is_in(list(scope.apart.run_ids)))
    return runs
