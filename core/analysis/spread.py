"""Spread of a collection's own stacks from question to question, for planning further questions."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
import polars as pl

from core.analysis.cache import cached
from core.analysis.workspace.query_sets import ENOUGH
from core.analysis.workspace.scope import Scope, audits
from core.analysis.workspace.scores import evidence
from core.analysis.workspace.stacks import runs_in
from core.errors import ClqError
from core.metrics import Measure
from core.store import Snapshot

_MEASURE, _K = Measure("RR"), 10
_MOST = 40  # Maximum number of stacks to pair: more pairs take too long for a plan


@dataclass(frozen=True, slots=True)
class Spread:
    """Standard deviation of the difference of two stacks in a question's RR@10, the median over pairs."""

    sd: float  # 0..1
    stacks: int = 0  # number of differing stacks it was measured on; 0 = elsewhere
    questions: int = 0


MEASURED = Spread(0.36)  # On two public collections (docs/questions.md)


@cached(entries=8)
def spread_of(snapshot: Snapshot, collection_id: str) -> Spread:
    """Measure the spread on the stored rankings and judgements of a collection.

    Returns:
        `MEASURED` if no two stacks differ on `ENOUGH` questions of the set that judges most of them.
    """
    if collection_id not in snapshot.collections()["collection_id"]:
        return MEASURED
    known = snapshot.golden_sets(collection_id)
    whole = known.filter(~pl.col("golden_set_id").is_in(list(audits(snapshot, collection_id))))
    golden = next(iter(whole.sort("queries", descending=True)["golden_set_id"]), None)
    runs = runs_in(snapshot, Scope(collection_id, golden)).filter("has_rankings").head(_MOST)
    if golden is None or runs.height < 2:
        return MEASURED
    try:
        scored = evidence(snapshot, runs["run_id"].to_list(), golden, [_MEASURE]).score([_MEASURE], _K)
    except ClqError:  # stacks with different chunks, judged by passages
        return MEASURED
    values = scored[_MEASURE][:, :, -1]
    # Stacks that do not differ in any question count as one
    values = np.unique(values[:, ~np.isnan(values).any(axis=0)], axis=0)
    stacks, questions = values.shape
    if questions < ENOUGH or stacks < 2:
        return MEASURED
    sds = [np.std(one - other, ddof=1) for one, other in combinations(values, 2)]
    return Spread(float(np.median(sds)), stacks, questions)
