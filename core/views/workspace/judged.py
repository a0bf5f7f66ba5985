"""Queries judged well enough to compare on: where the rankings have few holes, or in every golden set.

A hole (an unjudged passage in the Top-K) counts as 0, so that a stack whose passages nobody judged looks
worse than it may be. Queries without holes are free of that. They are no random sample though: judged is what
some stack brought to the judges, so that stacks like those fare better on them.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import polars as pl

from core.store import Snapshot
from core.views.workspace.scores import Evidence

_HOLE = 0
ANY = "any"
LEAST: Mapping[str, float] = {"half": 0.5, "most": 0.8, "all": 1.0}
"""Share of a Top-K that is judged at least, by the word for it in the sidebar, the link and the commands."""
WORDS: Mapping[float, str] = {share: word for word, share in LEAST.items()}
ONE_SET, EVERY_SET = "this set", "every set"
Mask = npt.NDArray[np.bool_]


def holes(found: Evidence, k: int) -> npt.NDArray[np.int64]:
    """Unjudged passages in the Top-K: [runs, queries]."""
    return np.asarray((found.grades[:, :, :k] == _HOLE).sum(axis=2, dtype=np.int64))


def well_judged(found: Evidence, k: int, least: float) -> Mask:
    """Queries of which no run has more holes than it may."""
    return np.asarray((holes(found, k) <= k * (1 - least) + 1e-9).all(axis=0))


def judged_everywhere(snapshot: Snapshot, collection_id: str) -> frozenset[str]:
    """The queries that every golden set of a collection judges; empty where there is none."""
    sets = snapshot.golden_sets(collection_id).filter(pl.col("judgements") + pl.col("spans") > 0)
    judged = [_queries(snapshot, name) for name in sets["golden_set_id"]]
    return frozenset.intersection(*judged) if judged else frozenset()


def _queries(snapshot: Snapshot, golden_set_id: str) -> frozenset[str]:
    tables = snapshot.judgements(golden_set_id), snapshot.spans(golden_set_id)
    return frozenset(query for rows in tables for query in rows["query_id"].unique())
