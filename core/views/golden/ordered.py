"""Passages that a person put in order, against the order that a golden set has them in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from core.golden.judging.book import Item, Queue
from core.golden.judging.sampling import OF_FIVE
from core.stats.agreement import order_agreement
from core.stats.intervals import bootstrap_means
from core.store import Snapshot
from core.tables import TABLES
from core.views import text

_PAIR = ["query_id", "passage_id"]


@dataclass(frozen=True)
class Compared:
    """How a judge's orders go with the golden set's."""

    rows: pl.DataFrame  # query_id, passages (best first, as the judge has them), tau (null where not defined)
    against: str  # what they are compared with, in words
    tau: float | None  # mean over queries; None where it is not defined
    low: float | None  # 95 % bootstrap interval over queries
    high: float | None


def compare(snapshot: Snapshot, queue: Queue, items: Sequence[Item]) -> Compared:
    """Compare the batches of a queue with the refined order of its golden set, else with its grades."""
    orders = snapshot.orders(queue.base) if queue.base else pl.DataFrame(schema=TABLES["orders"])
    if orders.is_empty():
        against = f"the grades of {queue.base}"
        known = snapshot.judgements(queue.base).select(*_PAIR, merit="grade")
    else:
        against = f"the refined order of {queue.base}"
        known = orders.select(*_PAIR, merit=-pl.col("rank"))
    merits = {(query, passage): float(merit) for query, passage, merit in known.iter_rows()}
    rows = []
    for begin in range(0, len(items), OF_FIVE):
        five = items[begin : begin + OF_FIVE]
        if any(each.at is None or each.position is None for each in five):
            continue
        ours = np.array([-(each.position or 0) for each in five], dtype=np.float64)
        theirs = np.array([merits.get((each.query_id, each.passage_id), np.nan) for each in five])
        best_first = sorted(five, key=lambda each: each.position or 0)
        rows.append(
            (five[0].query_id, [each.passage_id for each in best_first], order_agreement(ours, theirs))
        )
    schema: Mapping[str, pl.DataType] = {
        "query_id": pl.String(),
        "passages": pl.List(pl.String()),
        "tau": pl.Float64(),
    }
    made = pl.DataFrame(rows, schema=dict(schema), orient="row").with_columns(pl.col("tau").fill_nan(None))
    of_query = (
        made.drop_nulls("tau").group_by("query_id", maintain_order=True).agg(pl.col("tau").mean())["tau"]
    )
    if of_query.is_empty():
        return Compared(made, against, None, None, None)
    (low,), (high,) = bootstrap_means(of_query.to_numpy())
    ends = (None, None) if np.isnan(low) else (float(low), float(high))
    return Compared(made, against, float(of_query.to_numpy().mean()), *ends)


def sentence(found: Compared) -> str:
    """How a judge's orders go with the golden set's, in a sentence."""
    n = text.count(found.rows["tau"].count(), "batch", "batches")
    if found.tau is None:
        return f"No batch can be compared with {found.against} yet."
    bounds = text.interval(found.low, found.high)
    return f"Kendall's tau-b with {found.against} is {text.signed(found.tau)}{bounds}, n = {n} of five."
