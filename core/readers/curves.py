"""Score against k: the points of every reader's curve, gains over the closed book, slices by gold passages.

Rows are those of the table "answer_scores". Scores are scaled to 0 to 100 points; passes and judges of one
answer are averaged first, so that an interval over queries is one over queries. A row without a query is an
imported mean without its answers: it is used unchanged, and only if there are no answers.

It also gives dollars per correct answer, by the number of passages sent (metrics.md §11).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple
from typing import Literal

import numpy as np
import polars as pl

from core.answers import CLOSED_BOOK, TOP_K, share
from core.errors import InputError
from core.readers.depth import DELTA, EPSILON, PLATEAU, depth_of
from core.stats.intervals import Alike, singly
from core.stats.means import Of, mean_interval
from core.tables import schema

CURVE = ("run_id", "reader", "prompt", "temperature")  # The key of a curve
POINT = (*CURVE, "mode", "k")  # The key of a point of a curve

_BASE = "closed_book"
_WHO = CURVE[1:]
_MEAN = (pl.col("value").alias("mean"), pl.col("low").alias("mean_low"), pl.col("high").alias("mean_high"))
FIGURES = schema(
    "k_star:int32 best:float rss:float rss_fewer:float rss_more:float rss_reason rsc:float "
    "rsc_before_stop:float k_last:int32 k_last_before_stop:int32 start_k:int32 shape wanted"
)
"""The figures that `depths` computes for a curve: the fields of `Depth`, wanted as text."""
BINARY = frozenset({"exact_match", "substring"})
"""Scorers whose mean is the share of correct answers at any threshold."""


def by_query(scores: pl.DataFrame, scorer: str) -> pl.DataFrame:
    """Average the passes and judges of each answer; keep a mean without its answers if there are none.

    Args:
        scores: Rows of "answer_scores".

    Returns:
        The columns of a point, query_id, value (points), n (number of scores), low and high; if query_id is
        null, the value is a mean over n queries.
    """
    rows = scores.filter(pl.col("scorer") == scorer).with_columns(pl.col("mode").fill_null(TOP_K))
    scaled = rows.with_columns(value=100 * share()).filter(pl.col("value").is_not_null())
    single = pl.col("query_id").is_not_null()
    answers = (
        scaled.filter(single)
        .group_by(*POINT, "query_id")
        .agg(pl.col("value").mean(), pl.len().cast(pl.Int64).alias("n"))
        .with_columns(low=pl.lit(None, pl.Float64), high=pl.lit(None, pl.Float64))
    )
    ends, one = ("low", "high"), pl.when(pl.len() == 1)
    means = (
        scaled.filter(~single)
        .with_columns((100 * share(end)).alias(end) for end in ends)
        .group_by(*POINT, "query_id")
        .agg(
            pl.col("value").mean(),
            pl.col("n").max().cast(pl.Int64),
            *(one.then(pl.col(end).first()).alias(end) for end in ends),
        )
        .join(answers, on=POINT, how="anti", nulls_equal=True)
    )
    return pl.concat([answers, means], how="diagonal").sort(*POINT, "query_id")


def points(
    scores: pl.DataFrame, scorer: str, *, only: pl.DataFrame | None = None, alike: Alike = singly
) -> pl.DataFrame:
    """Return the score at every k of every curve, with its 95 % interval over queries.

    Args:
        scores: Rows of "answer_scores", of any runs.
        only: run_id, query_id and k of the answers that count, as from `slices`; None = all.
        alike: Numbers the queries by their groups, which intervals treat as one.

    Returns:
        run_id, reader, prompt, temperature, mode, k, value, low, high (points 0..100), n (scores), queries. A
        mean imported without its answers keeps its own interval and number of queries.
    """
    rows = by_query(scores, scorer)
    if only is not None:
        rows = rows.join(only, on=["run_id", "query_id", "k"], how="semi")
    return _means(rows, of="points", alike=alike)


def gains(
    scores: pl.DataFrame, scorer: str, *, only: pl.DataFrame | None = None, alike: Alike = singly
) -> pl.DataFrame:
    """Return the gain of passages over the closed book: score(k) − score(0), over the queries that have both.

    Returns:
        As in `points`, with differences in points as values; a difference of two means has no interval.
    """
    return _means(_paired(scores, scorer, only), of="differences", alike=alike)


def gains_over_k(scores: pl.DataFrame, scorer: str, alike: Alike = singly) -> pl.DataFrame:
    """Average the gains over all k of a curve, over the questions that have every k (RAGGED, Table 4).

    Returns:
        `CURVE`, mean, mean_low, mean_high (points) and queries.
    """
    gained = _paired(scores, scorer, None).filter(pl.col("mode") == TOP_K, pl.col("k") > 0)
    return _over_k(gained, alike).select(*CURVE, *_MEAN, "queries")


def stack_differences(
    scores: pl.DataFrame, scorer: str, of: str, base: str, alike: Alike = singly
) -> pl.DataFrame:
    """Subtract one stack's scores from another's, reader by reader (RAGGED §7.1, Table 8).

    Args:
        of: The run_id whose scores are better if a difference is positive.
        base: The run_id that is subtracted.
        alike: As in `points`.

    Returns:
        reader, prompt, temperature, of readers that answered from both: mean, mean_low, mean_high over the k
        that both have, k_star and base_k_star, best, best_low and best_high (the difference of both at their
        own best k), in points, paired by question, and queries.
    """
    rows = by_query(scores, scorer).filter(pl.col("mode") == TOP_K, pl.col("k") > 0)
    own, other = (rows.filter(pl.col("run_id") == run_id) for run_id in (of, base))
    ks = depths(points(scores.filter(pl.col("run_id").is_in([of, base])), scorer)).select(*CURVE, "k_star")
    at_best = [
        part.join(ks, left_on=[*CURVE, "k"], right_on=[*CURVE, "k_star"], how="semi", nulls_equal=True)
        for part in (own, other)
    ]
    apart = _less(*(part.with_columns(k=pl.lit(None, pl.Int32)) for part in at_best))
    best = _means(apart, of="differences", alike=alike)
    stars = [ks.filter(pl.col("run_id") == run_id).select(*_WHO, "k_star") for run_id in (of, base)]
    told = _over_k(_less(own, other), alike).select(*_WHO, *_MEAN, "queries")
    named = {"value": "best", "low": "best_low", "high": "best_high"}
    for part in (best.select(*_WHO, *(pl.col(old).alias(new) for old, new in named.items())), stars[0],
                 stars[1].rename({"k_star": "base_k_star"})):  # fmt: skip
        told = told.join(part, on=_WHO, how="left", nulls_equal=True, maintain_order="left")
    return told


def _less(own: pl.DataFrame, other: pl.DataFrame) -> pl.DataFrame:
    """Subtract another run's rows of `by_query`, if both have the reader, question and k."""
    on = [*_WHO, "k", "query_id"]
    both = own.join(other.select(*on, base="value", base_n="n"), on=on, nulls_equal=True)
    without = pl.lit(None, pl.Float64)
    fewer = pl.min_horizontal("n", "base_n")
    less = both.with_columns(pl.col("value") - pl.col("base"), n=fewer, low=without, high=without)
    return less.drop("base", "base_n")


def _over_k(rows: pl.DataFrame, alike: Alike) -> pl.DataFrame:
    """Average the values of each question over k, for questions that have every k of their curve."""
    whole = rows.filter(pl.len().over(*CURVE, "query_id") == pl.col("k").n_unique().over(CURVE))
    without = pl.lit(None, pl.Float64)
    single = whole.group_by(*CURVE, "query_id", maintain_order=True).agg(
        pl.col("value").mean(), pl.col("n").min()
    )
    placed = single.with_columns(mode=pl.lit(TOP_K), k=pl.lit(None, pl.Int32), low=without, high=without)
    return _means(placed, of="differences", alike=alike)


def _paired(scores: pl.DataFrame, scorer: str, only: pl.DataFrame | None) -> pl.DataFrame:
    """Subtract each question's closed book from its score; as in `by_query`, with gains as values."""
    rows = by_query(scores, scorer)
    closed = rows.filter(pl.col("mode") == CLOSED_BOOK).select(
        *CURVE, "query_id", "k", pl.col("value").alias(_BASE)
    )
    base = closed.filter(pl.col("k") == 0).drop("k")
    sent = rows.filter(pl.col("mode") != CLOSED_BOOK)
    if only is not None:
        sent = sent.join(only, on=["run_id", "query_id", "k"], how="semi")
    on = [*CURVE, "query_id"]
    # A published slice changes with k, and so does its closed book
    paired = sent.join(base, on=on, how="left", nulls_equal=True).join(
        closed, on=[*on, "k"], how="left", nulls_equal=True, suffix="_of_k"
    )
    without = pl.lit(None, pl.Float64)
    difference = pl.col("value") - pl.coalesce(f"{_BASE}_of_k", _BASE)
    paired = paired.with_columns(difference, low=without, high=without).filter(pl.col("value").is_not_null())
    return paired.drop(_BASE, f"{_BASE}_of_k")


def _means(rows: pl.DataFrame, *, of: Of, alike: Alike) -> pl.DataFrame:
    """Average over queries, with the interval; `of` as in `mean_interval`."""
    single = pl.col("query_id").is_not_null()
    n = pl.when(pl.col("n").is_not_null().any()).then(pl.col("n").sum())
    table = rows.group_by(*POINT, maintain_order=True).agg(
        pl.col("value").mean(),
        pl.col("low").first(),
        pl.col("high").first(),
        n.alias("n"),
        pl.when(single.any()).then(pl.col("query_id").n_unique()).otherwise(n).alias("queries"),
    )
    answers = rows.filter(single)
    if answers.is_empty():
        return table
    # All points share the same resamples of the queries.
    queries = answers["query_id"].unique().sort()
    row = table.select(*POINT).with_row_index("row")
    cell = answers.join(row, on=POINT, nulls_equal=True)
    values = np.full((table.height, len(queries)), np.nan)
    column = cell["query_id"].replace_strict(queries, np.arange(len(queries)), return_dtype=pl.Int64)
    values[cell["row"].to_numpy(), column.to_numpy()] = cell["value"].to_numpy()
    low, high = mean_interval(values, of, clusters=alike(queries.to_list()))
    return table.with_columns(
        pl.lit(pl.Series("low", low)).fill_nan(None).fill_null(pl.col("low")),
        pl.lit(pl.Series("high", high)).fill_nan(None).fill_null(pl.col("high")),
    )


def depths(
    curve_points: pl.DataFrame, *, delta: int = DELTA, epsilon: float = EPSILON, plateau: float = PLATEAU
) -> pl.DataFrame:
    """Compute the depth figures of every curve.

    Args:
        curve_points: As from `points`; the closed book is its row of mode "none".
        delta: As in `core.readers.depth.depth_of`, like the rest.

    Returns:
        A row per curve that has a score at some k ≥ 1: `CURVE`, closed_book (null = unknown) and `FIGURES`.
    """
    book = curve_points.filter(pl.col("mode") == CLOSED_BOOK, pl.col("k") == 0)
    top = curve_points.filter(pl.col("mode") == TOP_K, pl.col("k") > 0)
    top = top.join(book.select(*CURVE, closed_book="value"), on=CURVE, how="left", nulls_equal=True)
    rows = []
    for key, part in top.sort(*CURVE, "k").group_by(*CURVE, maintain_order=True):
        depth = depth_of(
            part["k"].to_list(), part["value"].to_list(), closed_book=part["closed_book"][0],
            delta=delta, epsilon=epsilon, plateau=plateau,
        )  # fmt: skip
        *figures, wanted = astuple(depth)
        rows.append((*key, part["closed_book"][0], *figures, ", ".join(map(str, wanted)) or None))
    kinds = {name: curve_points.schema[name] for name in CURVE}
    return pl.DataFrame(rows, schema={**kinds, "closed_book": pl.Float64, **FIGURES}, orient="row")


def slices(
    rankings: pl.DataFrame,
    gold: pl.DataFrame,
    ks: Sequence[int],
    *,
    need: Literal["any", "all"] = "any",
    asked: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Return for every query and k whether its gold passages are in Top(k) (RAGGED §6).

    Args:
        rankings: run_id, query_id, rank and passage_id of final rankings.
        gold: query_id and passage_id of the passages that answer.
        ks: Depths to check.
        need: "any" gold passage, or "all" of them, for questions over several documents.
        asked: run_id and query_id of the questions that count, found or not; None = the ranked ones.

    Returns:
        run_id, query_id, k, with_gold; queries without a gold passage are left out.
    """
    wanted = gold.select("query_id", "passage_id").unique()
    total = wanted.group_by("query_id").agg(pl.len().alias("all"))
    counted = (rankings if asked is None else asked).select("run_id", "query_id").unique()
    counted = counted.join(total, on="query_id")
    hits = rankings.join(wanted, on=["query_id", "passage_id"])
    every = counted.join(pl.DataFrame({"k": ks}, schema={"k": pl.Int32}), how="cross")
    seen = (
        every.join(hits.select("run_id", "query_id", "rank"), on=["run_id", "query_id"])
        .filter(pl.col("rank") <= pl.col("k"))
        .group_by("run_id", "query_id", "k")
        .agg(pl.len().alias("hits"))
    )
    least = pl.col("all") if need == "all" else pl.lit(1)
    return (
        every.join(seen, on=["run_id", "query_id", "k"], how="left")
        .select("run_id", "query_id", "k", (pl.col("hits").fill_null(0) >= least).alias("with_gold"))
        .sort("run_id", "query_id", "k")
    )


def correct(scores: pl.DataFrame, scorer: str, threshold: float, alike: Alike = singly) -> pl.DataFrame:
    """Return the share of answers that are correct, that is, whose score reaches the threshold.

    Args:
        scores: Rows of "answer_scores".
        threshold: A share of the scale, in (0, 1].
        alike: As in `points`.

    Returns:
        As in `core.readers.curves.points`, with shares 0..1 as values. A mean imported without its answers is
        left out, unless its scorer is binary.

    Raises:
        InputError: If the threshold is not in (0, 1].
    """
    if not 0 < threshold <= 1:
        raise InputError(f"The threshold {threshold:g} is not in (0, 1].", do="Give a share of the scale.")
    rows = scores.filter(pl.col("scorer") == scorer)
    answers = rows.filter(pl.col("query_id").is_not_null()).with_columns(share())
    graded = answers.filter(pl.col("value").is_not_null()).with_columns(
        (pl.col("value") >= threshold - 1e-9).cast(pl.Float64).alias("value"), pl.lit("0-1").alias("scale")
    )
    means = rows.filter(pl.col("query_id").is_null() & pl.lit(scorer in BINARY))
    shares = points(pl.concat([graded, means]), scorer, alike=alike)
    return shares.with_columns(pl.col("value", "low", "high") / 100)


def per_correct(shares: pl.DataFrame, costs: pl.DataFrame) -> pl.DataFrame:
    """Divide the cost of a query by the share of correct answers.

    Args:
        shares: As from `correct`.
        costs: "usd" per query, and the columns of a point that it depends on, such as run_id and k.

    Returns:
        The shares with usd, usd_per_correct, usd_low and usd_high: the interval of the share, the cost
        assumed exact. Null if the cost is unknown or no answer is correct.
    """
    on = [name for name in costs.columns if name in POINT]
    priced = shares.join(costs.select(*on, "usd"), on=on, how="left", nulls_equal=True)
    divided = {"usd_per_correct": "value", "usd_low": "high", "usd_high": "low"}
    return priced.with_columns(
        pl.when(pl.col(by) > 0).then(pl.col("usd") / pl.col(by)).alias(name) for name, by in divided.items()
    )
