"""Amounts of a move that vary with the queries: what staying and switching cost a month, and the payback."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from core.analysis.workspace.clusters import groups
from core.analysis.workspace.figures.costs import retrieval
from core.analysis.workspace.query_sets import scores_by_query
from core.analysis.workspace.view import View
from core.arrays import Floats
from core.decide.axes import COST
from core.decide.joint import means_drawn
from core.decide.switching import LEVEL, payback
from core.prices.cost import cost_per_1k
from core.stats.intervals import RESAMPLES, query_weights

_ALIKE = 1e-6  # Share of a cost by which the mean over queries may differ from it


@dataclass(frozen=True, slots=True, eq=False)
class Monthly:
    """Dollars a month of staying and of switching, less what the quality gained is worth."""

    stay: float
    switch: float
    stays: Floats  # [R], the same in resamples of the queries
    switches: Floats  # [R]

    def payback(self, once_usd: float | None) -> tuple[float, float] | None:
        """Return the 95 % interval of the months until a move has paid for itself; infinite = never.

        It is None if the one-time cost is unknown or nothing, or if nothing varies with the queries.
        """
        saved = self.stays - self.switches
        if not once_usd or np.ptp(saved) == 0:
            return None
        months = [payback(once_usd, float(each)) for each in saved]
        low, high = np.quantile(np.array(months), [LEVEL, 1 - LEVEL], method="inverted_cdf").tolist()
        return float(low), float(high)

    def band(self, months: Floats, once_usd: float, *, moved: bool) -> tuple[Floats, Floats]:
        """Return the ends of the 95 % interval of the dollars spent by each month."""
        low, high = np.quantile(self.switches if moved else self.stays, [LEVEL, 1 - LEVEL])
        return once_usd * moved + low * months, once_usd * moved + high * months


def monthly(
    view: View, now: Mapping[str, Any], to: Mapping[str, Any], *, saved_usd: float, difference: float
) -> Monthly:
    """Return what staying and switching cost a month, and how that varies with the queries.

    Args:
        view: The workspace, with queries per month among its terms.
        now: Row of the stack table: the running stack, whose cost is known.
        to: Row of the stack that would replace it.
        saved_usd: What it saves a month, but for quality.
        difference: By how much its quality is better; NaN = unknown, which counts for nothing.
    """
    per = (view.terms.queries_per_month or 0.0) / 1000
    worth = 1000 * per * (view.terms.value_usd or 0.0)  # of a whole point of quality, in a month
    stay = per * now[COST.column]
    switch = stay - saved_usd - worth * (0.0 if np.isnan(difference) else difference)
    query_ids, values = _drawn_from(view, (now, to))
    if len(query_ids) < 2:
        return Monthly(stay, switch, np.array([stay]), np.array([switch]))
    labels = groups(view.snapshot, view.scope).labels(query_ids)
    told = np.array([now[COST.column], to[COST.column], 0.0, difference if worth else 0.0])
    means = means_drawn(values, told, query_weights(len(query_ids), RESAMPLES, view.seed, labels))
    embedding = saved_usd - per * (now[COST.column] - to[COST.column])
    gained = np.nan_to_num(means[3] - means[2])
    return Monthly(stay, switch, per * means[0], per * means[1] - embedding - worth * gained)


def _drawn_from(view: View, pair: tuple[Mapping[str, Any], Mapping[str, Any]]) -> tuple[list[str], Floats]:
    """Return queries, and on them the costs of two stacks and the merits of both [4, Q]; NaN = unknown."""
    known = [_by_query(view, row) for row in pair]
    both = pl.DataFrame([dict(row) for row in pair], schema=view.table.schema)
    scores = None
    if view.terms.value_usd:
        scores = scores_by_query(view.snapshot, both, view.scope, view.quality)
    sign = 1 if view.quality.higher_is_better else -1
    for row in pair:
        merits: dict[str, float] = {}
        if scores is not None and row["run_id"] in scores.run_ids:
            line = sign * scores.values[list(scores.run_ids).index(row["run_id"])]
            merits = dict(zip(scores.query_ids, line.tolist(), strict=True))
        known.append(merits)
    every = sorted(set().union(*known))
    values = [[row.get(query_id, np.nan) for query_id in every] for row in known]
    return every, np.array(values, dtype=np.float64)


def _by_query(view: View, row: Mapping[str, Any]) -> dict[str, float]:
    """Return the cost of each query of a stack, $ per 1,000; empty if its cost does not come from usage."""
    runs = view.snapshot.runs(view.scope.collection_id).filter(run_id=row["run_id"])
    usage = retrieval(runs, view.snapshot.usage([row["run_id"]])).drop_nulls("query_id")
    priced = cost_per_1k(usage.with_columns(run_id="query_id"), view.book)
    whole = pl.when(~pl.col("usd_per_1k").has_nulls()).then(pl.col("usd_per_1k").sum())
    costs = priced.group_by("run_id").agg(whole).drop_nulls()
    mean = costs["usd_per_1k"].mean()
    apart = None if mean is None else abs(float(mean) - row[COST.column])  # type: ignore[arg-type]
    if apart is None or apart > _ALIKE * abs(row[COST.column]):
        return {}
    return dict(costs.iter_rows())
