"""Dose and response of harmful passages: the effect of each further one on an answer, question by question.

RAGGED (§9) and the CLQ paper (limitations) call for it; the estimate is ours. Answers to one question from
several contexts are compared with one another, so that a question's difficulty cancels out: least squares
of the score on the contents of the context, with an intercept per question and curve.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from core.answers import GOLD, GOLD_ONLY, HARM_AFTER, HARM_BEFORE, NO_GOLD, TOP_K
from core.arrays import Floats
from core.stats.intervals import CLUSTERS, Alike, singly, weights

HARMFUL = 2
"""Highest grade of a passage that can mislead (CLQ paper, §2.4)."""
WHOLE, BEFORE, AFTER, LOWEST, LOW = "any", "before the gold", "after the gold", "grade 1", "grade 2"
_KINDS = {
    WHOLE: ("harm",),
    "by place": ("harm_before", "harm_after"),
    "by grade": ("harm_1", "harm_2"),
}
_NAMES = {"harm": WHOLE, "harm_before": BEFORE, "harm_after": AFTER, "harm_1": LOWEST, "harm_2": LOW}
_ALSO = ("has_gold", "more_gold", "others")
MOST = 10  # Number of harmful passages from which on all counts are merged
_RIDGE = 1e-9


def composed(sent: pl.DataFrame) -> pl.DataFrame:
    """Count what contexts hold.

    Args:
        sent: query_id, context (a name), place (from 1) and grade (null = unjudged) of every passage sent.

    Returns:
        query_id, context, and the counts harm, harm_before, harm_after (of the first gold passage; without
        one all come before), harm_1, harm_2, has_gold, more_gold (beyond the first) and others.
    """
    grade, gold = pl.col("grade"), pl.col("grade") >= 4
    harmful = grade <= HARMFUL
    first = pl.when(gold).then("place").min()
    before = harmful & (pl.col("place") < pl.col("first").fill_null(1 << 30))
    rows = sent.with_columns(first.over("query_id", "context").alias("first"))
    counts = rows.group_by("query_id", "context").agg(
        harmful.sum().alias("harm"),
        before.sum().alias("harm_before"),
        (grade == 1).sum().alias("harm_1"),
        (grade == HARMFUL).sum().alias("harm_2"),
        gold.sum().alias("gold"),
        pl.len().alias("sent"),
    )
    return counts.select(
        "query_id",
        "context",
        *(pl.col(name).cast(pl.Float64) for name in ("harm", "harm_before", "harm_1", "harm_2")),
        harm_after=(pl.col("harm") - pl.col("harm_before")).cast(pl.Float64),
        has_gold=(pl.col("gold") > 0).cast(pl.Float64),
        more_gold=(pl.col("gold").cast(pl.Float64) - 1).clip(0),
        others=(pl.col("sent") - pl.col("harm") - pl.col("gold")).cast(pl.Float64),
    )


def sent_passages(
    asked: pl.DataFrame, ranked: pl.DataFrame, grades: pl.DataFrame, pool: pl.DataFrame
) -> pl.DataFrame:
    """Rebuild the passages that stored answers were written from.

    Args:
        asked: query_id, mode and k of answers of one run.
        ranked: query_id, rank and passage_id of its final ranking.
        grades: query_id, passage_id and grade of its golden set.
        pool: query_id, rank and passage_id of its candidates, from which harmful passages are added.

    Returns:
        query_id, mode, k, place and grade of every passage, for modes that can be rebuilt.
    """
    keys = ["query_id", "passage_id"]
    known = grades.select(*keys, "grade").unique(keys)
    final, offered = (rows.join(known, on=keys, how="left") for rows in (ranked, pool))
    gold = known.filter(pl.col("grade") >= 4).sort(
        "query_id", "grade", "passage_id", descending=[False, True, False]
    )
    gold = gold.with_columns(rank=pl.int_range(1, pl.len() + 1).over("query_id"))
    harmful = offered.filter(pl.col("grade") <= HARMFUL).sort("query_id", "rank")
    harmful = harmful.with_columns(rank=pl.int_range(1, pl.len() + 1).over("query_id"))
    parts = []
    for (mode,), some in asked.unique(["query_id", "mode", "k"]).group_by("mode"):
        if mode in (TOP_K, GOLD_ONLY, NO_GOLD):
            within = some.join(final, on="query_id").filter(pl.col("rank") <= pl.col("k"))
            is_gold = (pl.col("grade") >= 4).fill_null(value=False)
            kept = {TOP_K: pl.lit(value=True), GOLD_ONLY: is_gold, NO_GOLD: ~is_gold}[str(mode)]
            parts.append(within.filter(kept).select("query_id", "mode", "k", "rank", "grade"))
        elif mode in (GOLD, HARM_BEFORE, HARM_AFTER):
            base = some.join(gold, on="query_id")
            added = some.join(harmful, on="query_id").filter(pl.col("rank") <= pl.col("k").fill_null(0))
            shift = (-1 if mode == HARM_BEFORE else 1) * 1_000_000
            both = [base, added.with_columns(pl.col("rank") + shift)] if mode != GOLD else [base]
            parts += [rows.select("query_id", "mode", "k", "rank", "grade") for rows in both]
    schema = {"query_id": pl.String, "mode": pl.String, "k": pl.Int32, "rank": pl.Int64, "grade": pl.Int64}
    typed = [part.cast(schema) for part in parts]  # type: ignore[arg-type]
    rows = pl.concat([pl.DataFrame(schema=schema), *typed])
    order = pl.col("rank").rank("ordinal").over("query_id", "mode", "k")
    return rows.with_columns(place=order.cast(pl.Int64)).drop("rank")


class Effect(NamedTuple):
    """Effect of one more passage of a kind on the score, in its unit."""

    kind: str
    value: float | None  # None if no question is informative
    low: float | None
    high: float | None
    queries: int  # questions whose contexts differ in it
    answers: int


def effects(rows: pl.DataFrame, seed: int, alike: Alike = singly) -> list[Effect]:
    """Estimate the effect of one more harmful passage, overall, by position and by grade.

    Args:
        rows: group (an intercept each), query_id, value, and the counts of `composed`.
        alike: Numbers the queries by their groups, which are drawn whole.
    """
    made = []
    for wanted in _KINDS.values():
        values, low, high = _slopes(rows, [*wanted, *_ALSO], seed, alike)
        for at, name in enumerate(wanted):
            varies = rows.filter(pl.col(name).n_unique().over("group") > 1)
            told = varies.height > 0 and np.isfinite(low[at])
            value, least, most = (float(each[at]) if told else None for each in (values, low, high))
            asked, answers = varies["query_id"].n_unique(), varies.height
            made.append(Effect(_NAMES[name], value, least, most, asked, answers))
    return made


def response(rows: pl.DataFrame, seed: int, alike: Alike = singly) -> pl.DataFrame:
    """Estimate the score at every number of harmful passages against none, all else equal.

    Args:
        rows: As in `effects`, like the rest.

    Returns:
        harm (0 = none, `MOST` = that many or more), value, low, high, answers.
    """
    capped = rows.with_columns(pl.col("harm").clip(0, MOST).cast(pl.Int64).alias("dose"))
    counts = dict(capped.group_by("dose").len().iter_rows())
    doses = [dose for dose in sorted(counts) if dose > 0]
    dummies = capped.with_columns(
        (pl.col("dose") == dose).cast(pl.Float64).alias(f"d{dose}") for dose in doses
    )
    values, low, high = _slopes(dummies, [*(f"d{dose}" for dose in doses), *_ALSO], seed, alike)
    table = {"harm": [0, *doses], "answers": [counts.get(dose, 0) for dose in (0, *doses)]}
    ends = {
        name: [0.0, *each[: len(doses)].tolist()]
        for name, each in (("value", values), ("low", low), ("high", high))
    }
    return pl.DataFrame({**table, **ends}).fill_nan(None)


def _slopes(
    rows: pl.DataFrame, names: Sequence[str], seed: int, alike: Alike
) -> tuple[Floats, Floats, Floats]:
    """Return slopes [P] within groups and the ends of their bootstrap intervals over queries; NaN = none."""
    nothing = np.full(len(names), np.nan)
    queries, which = np.unique(rows["query_id"].to_numpy(), return_inverse=True)
    labels = alike(queries.tolist())
    which, units = (which, len(queries)) if labels is None else (labels[which], int(labels.max()) + 1)
    if units < (3 if labels is None else CLUSTERS):
        return nothing, nothing, nothing
    within = rows.select(
        pl.col(name) - pl.col(name).mean().over("group") for name in ("value", *names)
    ).to_numpy()
    y, x = within[:, 0], within[:, 1:]
    alive = np.abs(x).max(axis=0) > _RIDGE
    if not alive.any():
        return nothing, nothing, nothing
    x = x[:, alive]
    squares, products = np.zeros((units, x.shape[1], x.shape[1])), np.zeros((units, x.shape[1]))
    np.add.at(squares, which, x[:, :, None] * x[:, None, :])
    np.add.at(products, which, x * y[:, None])
    drawn = np.concatenate([np.ones((1, units)), weights(units, seed=seed)])
    left, right = np.einsum("rq,qij->rij", drawn, squares), drawn @ products
    solved = np.einsum("rij,rj->ri", np.linalg.pinv(left, rcond=1e-8, hermitian=True), right)
    values, low, high = nothing.copy(), nothing.copy(), nothing.copy()
    values[alive] = solved[0]
    low[alive], high[alive] = np.quantile(solved[1:], [0.025, 0.975], axis=0)
    return values, low, high


def bearable(loss: float | None, tolerance: float) -> int | None:
    """Return how many harmful passages cost no more than `tolerance`, at `loss` each; None = no limit."""
    return None if loss is None or loss <= 0 else int(tolerance / loss + 1e-9)


def price(usd_per_correct: float, correct: float, loss: float) -> float | None:
    """Return the extra dollars per correct answer if `loss`, a share of the answers, is lost."""
    left = correct - loss
    return None if left <= 0 else usd_per_correct * (correct / left - 1)
