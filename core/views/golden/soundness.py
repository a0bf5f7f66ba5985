"""Soundness of judgements: mix of grades, copies and golden sets that contradict each other, pool bias.

A person's order of passages is also compared with the golden set's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from core.analysis.workspace.clusters import EACH, groupings
from core.analysis.workspace.scores import Evidence, at_cutoff, mean
from core.golden.book import PAIR, Item, Queue
from core.golden.by_hand import OF_FIVE
from core.metrics import Measure
from core.stats.correlation import order_agreement
from core.stats.means import mean_interval
from core.store import Snapshot
from core.tables import schema
from core.views import text

GRADES = (5, 4, 3, 2, 1)
GOOD = "4+5"  # The row of `summary` for the good grades together
MAX_RUNS = 200
"""Maximum runs compared; every further one makes the judgements of the others less unique."""


def per_query(judgements: pl.DataFrame) -> pl.DataFrame:
    """Return a query's number of passages per grade."""
    counts = [(pl.col("grade") == grade).sum().alias(f"grade {grade}") for grade in GRADES]
    return (
        judgements.group_by("query_id")
        .agg(pl.len().alias("judged"), *counts)
        .with_columns((pl.col("grade 5") == 0).alias("fallback"))
        .sort("query_id")
    )


def summary(queries: pl.DataFrame) -> pl.DataFrame:
    """Return the mix over all queries."""
    rows = [_row(queries, pl.col(f"grade {grade}"), str(grade)) for grade in GRADES]
    good = _row(queries, pl.col("grade 5") + pl.col("grade 4"), GOOD)
    return pl.concat([*rows, good, _row(queries, pl.col("judged"), "all")])


def _row(queries: pl.DataFrame, held: pl.Expr, name: str) -> pl.DataFrame:
    return queries.select(
        pl.lit(name).alias("grade"),
        held.sum().alias("total"),
        (held.sum() / pl.col("judged").sum()).alias("share"),
        held.median().alias("median"),
        held.mean().alias("mean"),
        held.max().alias("most"),
        (held / pl.col("judged")).median().alias("prevalence"),
        (held > 0).mean().alias("present"),
    )


def duplicates(passages: pl.DataFrame) -> pl.DataFrame:
    """Return passages with the same text except for letter case and white space."""
    bare = pl.col("text").str.to_lowercase().str.replace_all(r"\s+", " ").str.strip_chars()
    return (
        passages.select("passage_id", "text", bare=bare)
        .filter(pl.col("bare") != "")
        .filter(pl.len().over("bare") > 1)
        .with_columns(pl.col("passage_id").min().over("bare").alias("group"))
        .select("group", "passage_id", "text")
        .sort("group", "passage_id")
    )


def graded_apart(copies: pl.DataFrame, judgements: pl.DataFrame) -> pl.DataFrame:
    """Return copies of one passage with different grades for one query."""
    return (
        copies.join(judgements, on="passage_id")
        .sort("passage_id")
        .group_by("query_id", "group")
        .agg(
            pl.col("passage_id").alias("passages"),
            pl.col("grade").cast(pl.Int64).alias("grades"),
            (pl.col("grade").max() - pl.col("grade").min()).alias("spread"),
        )
        .filter(pl.col("spread") > 0)
        .sort("spread", "query_id", "group", descending=[True, False, False])
    )


def disagreements(judgements: pl.DataFrame, others: pl.DataFrame) -> pl.DataFrame:
    """Return pairs that another golden set of the collection grades differently."""
    return (
        judgements.select(*PAIR, "grade")
        .join(
            others.select(*PAIR, pl.col("golden_set_id").alias("other_set"), other_grade=pl.col("grade")),
            on=PAIR,
        )
        .with_columns((pl.col("grade") - pl.col("other_grade")).abs().alias("by"))
        .filter(pl.col("by") > 0)
        .sort("by", "other_set", *PAIR, descending=[True, False, False, False])
    )


def others_of(
    snapshot: Snapshot, collection_id: str, golden_set_id: str | None, judgements: pl.DataFrame
) -> pl.DataFrame:
    """Return the judgements of a collection's other golden sets, with the columns of this one's."""
    known = snapshot.golden_sets(collection_id, parts=True)["golden_set_id"]
    others = [snapshot.within(name) for name in known if name != golden_set_id]
    return pl.concat([judgements.clear(), *others])


def leave_one_out(
    graded: Evidence,
    rankings: pl.DataFrame,
    judgements: pl.DataFrame,
    measure: Measure,
    systems: pl.DataFrame,
) -> pl.DataFrame:
    """Score every run without the judgements of passages that no other system ranks (leave one system out).

    A passage is judged because some run found it. A run that contributed to the pool is judged on all that it
    finds, a new one isn't; leaving out one at a time shows the size of this advantage. Variants of a system
    find the same passages and are left out with it; systems has run_id and system.
    """
    unique = _unique(rankings, judgements, systems)
    grades = graded.grades[:, :, : measure.k].copy()
    counts = np.broadcast_to(graded.pool_counts, (*grades.shape[:2], 5)).copy()
    run, query = _places(unique["run_id"], graded.run_ids), _places(unique["query_id"], graded.query_ids)
    np.subtract.at(counts, (run, query, unique["grade"].to_numpy() - 1), 1)
    shown = (unique["rank"] <= grades.shape[2]).fill_null(False).to_numpy()
    grades[run[shown], query[shown], unique["rank"].to_numpy()[shown].astype(np.int64) - 1] = 0
    columns = {
        "run_id": graded.run_ids,
        "unique": np.bincount(run, minlength=len(graded.run_ids)),
        "score": mean(at_cutoff(graded, measure))[0],
        "without": mean(graded.rescored(measure, grades, counts))[0],
    }
    rows = pl.DataFrame(columns).with_columns(pl.col("score", "without").fill_nan(None))
    return rows.with_columns(bias=pl.col("score") - pl.col("without")).sort(
        "bias", "run_id", descending=[True, False], nulls_last=True
    )


def _unique(rankings: pl.DataFrame, judgements: pl.DataFrame, systems: pl.DataFrame) -> pl.DataFrame:
    """Return run_id, query_id, passage_id, grade, final rank (or null) of passages only its system finds."""
    alone = (
        rankings.join(systems, on="run_id")
        .group_by(PAIR)
        .agg(pl.col("system").n_unique().alias("systems"), pl.col("system").first())
        .filter(pl.col("systems") == 1)
        .join(judgements.select(*PAIR, "grade"), on=PAIR)
        .join(systems, on="system")
    )
    final = rankings.filter(pl.col("stage") == "final").select("run_id", *PAIR, "rank")
    return alone.join(final, on=["run_id", *PAIR], how="left")


def _places(names: pl.Series, known: tuple[str, ...]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    places = {name: place for place, name in enumerate(known)}
    return np.array([places[name] for name in names], dtype=np.int64)


@dataclass(frozen=True)
class JudgesCompared:
    """Agreement of a judge's orders with the golden set's."""

    rows: pl.DataFrame  # query_id, passages (the judge's order, best first), tau (null if not defined)
    against: str  # the order they are compared with, in words
    tau: float | None  # mean over queries; None if not defined
    low: float | None  # 95 % bootstrap interval over queries
    high: float | None


def compare(snapshot: Snapshot, queue: Queue, items: Sequence[Item]) -> JudgesCompared:
    """Compare a queue's batches with the refined order of its golden set, otherwise with its grades."""
    orders = snapshot.orders(queue.base) if queue.base else pl.DataFrame()
    if orders.is_empty():
        against = f"the grades of {queue.base}"
        known = snapshot.judgements(queue.base).select(*PAIR, merit="grade")
    else:
        against = f"the refined order of {queue.base}"
        known = orders.select(*PAIR, merit=-pl.col("rank"))
    placed = [
        (place // OF_FIVE, item.query_id, item.passage_id, item.position if item.at else None)
        for place, item in enumerate(items)
    ]
    cards = pl.DataFrame(
        placed, schema=schema("batch:int64 query_id passage_id position:int64"), orient="row"
    )
    whole = cards.drop_nulls("position").filter(pl.len().over("batch") == OF_FIVE)
    batches = (
        whole.join(known, on=PAIR, how="left")
        .sort("batch", "position")
        .group_by("batch", maintain_order=True)
        .agg(pl.col("query_id").first(), passages="passage_id", merits=pl.col("merit").cast(pl.Float64))
    )
    best_first = -np.arange(float(OF_FIVE))
    taus = [
        order_agreement(best_first, np.array(merit, dtype=float)) for merit in batches["merits"].to_list()
    ]
    rows = batches.select("query_id", "passages", tau=pl.Series(taus, dtype=pl.Float64).fill_nan(None))
    of_query = rows.drop_nulls("tau").group_by("query_id", maintain_order=True).agg(pl.col("tau").mean())
    if of_query.is_empty():
        return JudgesCompared(rows, against, None, None, None)
    grouped = groupings(snapshot, queue.collection_id, queue.base or None)
    labels = next(iter(grouped.values()), EACH).labels(of_query["query_id"].to_list())
    values = of_query["tau"].to_numpy()
    (low,), (high,) = mean_interval(values, "differences", clusters=labels)
    ends = (None, None) if np.isnan(low) else (float(low), float(high))
    return JudgesCompared(rows, against, float(values.mean()), *ends)


def sentence(compared: JudgesCompared) -> str:
    """State the agreement of a judge's orders with the golden set's."""
    n = text.count(compared.rows["tau"].count(), "batch", "batches")
    if compared.tau is None:
        return f"No batch can be compared with {compared.against} yet."
    bounds = text.interval(compared.low, compared.high)
    return f"Kendall's tau-b with {compared.against} is {text.signed(compared.tau)}{bounds}, n = {n} of five."
