"""Cost of recorded usage: $ per 1,000 queries by run and stage, and in total (CLQ paper §3.2.1).

Cost = 1000 · sum of units × price of a unit. An unknown price or usage makes the cost of its stage
unknown: null with the reason, never 0. The cost of the other stages is then the lower bound of the total.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from core.prices import CURRENCY, MS_PER_HOUR, PRICED_AS, PriceBook
from core.prices.calculator import CostInputs
from core.records import JsonMap
from core.tables import schema

NOT_RECORDED = "usage not recorded"
QUERY_TOKENS = CostInputs().query_tokens
"""Tokens of a query if a source recorded none; stated wherever it is used."""

DOLLARS = "usd"  # Unit of amounts recorded in dollars by a source, which need no price

STAGE_COST = schema("run_id stage usd_per_1k:float basis reason")
"""Columns of `cost_per_1k`."""
TOTAL_COST = schema("run_id usd_per_1k:float least:float missing basis reason stages:texts")
"""Columns of `totals`."""

_STAGE_WORDS = {
    "embed": "embedding",
    "retrieve": "retrieval",
    "rerank": "reranking",
    "generate": "generation",
}
# The weakest evidence among the parts counts for the whole.
_WEAKEST_LAST = ("measured", "imported", "published", "modelled")


def cost_per_1k(usage: pl.DataFrame, book: PriceBook) -> pl.DataFrame:
    """Price the usage of every run and stage.

    Args:
        usage: Rows of the table "usage"; a query's mean amounts count, see `mean_usage`.
        book: Prices; the newest of an item counts.

    Returns:
        Columns of `STAGE_COST`, one row per run and stage, sorted. usd_per_1k is null with a reason if any
        part of the stage has no amount or no price.
    """
    priced = priced_usage(usage, book)
    known = pl.col("reason").is_null().all()
    return (
        priced.group_by("run_id", "stage")
        .agg(
            pl.when(known).then(pl.col("usd").sum()).alias("usd_per_1k"),
            _weakest_basis(),
            pl.col("reason").drop_nulls().unique(maintain_order=True).str.join("; ").alias("reason"),
        )
        .with_columns(pl.when(pl.col("reason") != "").then(pl.col("reason")).alias("reason"))
        .select([pl.col(name).cast(dtype) for name, dtype in STAGE_COST.items()])
        .sort("run_id", "stage")
    )


def priced_usage(usage: pl.DataFrame, book: PriceBook) -> pl.DataFrame:
    """Price the average usage of a query, every item separately.

    Args:
        usage: Rows of the table "usage".
        book: Prices; the newest of an item counts.

    Returns:
        run_id, stage, item, unit, priced_unit, amount (in priced units), basis, each, currency, usd (per
        1,000 queries) and reason (why usd is null), sorted.
    """
    in_hours, dollars = pl.col("unit").is_in(list(PRICED_AS)), pl.col("unit") == DOLLARS
    unit_price = (pl.col("price") / pl.col("per")).alias("each")
    prices = book.frame().select("item", "unit", unit_price, "currency")
    return (
        mean_usage(usage)
        .with_columns(
            pl.col("unit").replace(PRICED_AS).alias("priced_unit"),
            pl.when(in_hours).then(pl.col("amount") / MS_PER_HOUR).otherwise(pl.col("amount")),
        )
        .join(prices, left_on=["item", "priced_unit"], right_on=["item", "unit"], how="left")
        .with_columns(
            pl.when(dollars).then(1.0).otherwise("each").alias("each"),
            pl.when(dollars).then(pl.lit(CURRENCY)).otherwise("currency").alias("currency"),
        )
        .with_columns((1000 * pl.col("amount") * pl.col("each")).alias("usd"), _reason(book.name))
        .sort("run_id", "stage", "item", "unit")
    )


def mean_usage(usage: pl.DataFrame) -> pl.DataFrame:
    """Average the usage of a query, by run, stage, item and unit.

    Usage with a query is averaged over the queries that have it (a query that skipped a stage records 0);
    usage without a query already is the mean over the run.

    Args:
        usage: Rows of the table "usage".

    Returns:
        run_id, stage, item, unit, amount (null if any part of it was not recorded), basis (the weakest).
    """
    # in order: the last digit of a mean depends on the order of its parts, and a choice may depend on it
    amount, key = pl.col("amount"), ("run_id", "stage", "item", "unit")
    whole = ~amount.has_nulls()  # a missing amount makes the rest unknown; polars would skip it
    per_query = usage.group_by(*key, "query_id", maintain_order=True)
    summed = per_query.agg(pl.when(whole).then(amount.sum()).alias("amount"), _weakest_basis())
    of_runs = summed.group_by(key, maintain_order=True)
    return of_runs.agg(pl.when(whole).then(amount.mean()).alias("amount"), _weakest_basis())


def _weakest_basis() -> pl.Expr:
    order = pl.Enum(_WEAKEST_LAST)
    return pl.col("basis").cast(order, strict=False).max().cast(pl.String).alias("basis")


def _reason(book: str) -> pl.Expr:
    return (
        pl.when(pl.col("amount").is_null() | pl.col("amount").is_nan())
        .then(pl.format("{} of {} not recorded", "unit", "item"))
        .when(pl.col("each").is_null())
        .then(pl.format("no price for {} ({}) in {}", "item", "priced_unit", pl.lit(book)))
        .when(pl.col("currency") != CURRENCY)
        .then(pl.format("{} is priced in {}", "item", "currency"))
        .alias("reason")
    )


def query_embedding(usage: pl.DataFrame, embedders: Mapping[str, str]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Model the embedding of the query if a source left it out: `QUERY_TOKENS` tokens.

    Args:
        usage: Rows of the table "usage".
        embedders: The embedder of every run whose queries a model embeds, by run_id.

    Returns:
        The recorded usage, in which unknown tokens of the embedding are modelled, and further rows of the
        same columns for the runs that recorded nothing about it.
    """
    unknown = (pl.col("stage") == "embed") & (pl.col("unit") == "input_tokens") & pl.col("amount").is_null()
    recorded = usage.with_columns(
        pl.when(unknown).then(QUERY_TOKENS).otherwise(pl.col("amount")).alias("amount"),
        pl.when(unknown).then(pl.lit("modelled")).otherwise(pl.col("basis")).alias("basis"),
    )
    have = set(usage.filter(pl.col("stage") == "embed")["run_id"].unique())
    lacking = {run: item for run, item in embedders.items() if run not in have}
    further = pl.DataFrame(list(lacking.items()), schema=schema("run_id item"), orient="row").with_columns(
        stage=pl.lit("embed"),
        unit=pl.lit("input_tokens"),
        amount=pl.lit(QUERY_TOKENS),
        basis=pl.lit("modelled"),
    )
    return recorded, pl.concat([usage.clear(), further], how="diagonal_relaxed").select(usage.columns)


def totals(
    costs: pl.DataFrame,
    run_ids: Sequence[str],
    scope: Mapping[str, Sequence[str] | None] | None = None,
    *,
    further: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Sum the cost per run: the stages in its scope, which must be known, and further ones if known.

    Args:
        costs: Columns of `STAGE_COST`.
        run_ids: Runs to report, in this order, whether they have usage or not.
        scope: The stages that a run's cost must cover; None = every stage. A run whose scope is empty has
            nothing of the kind to pay for.
        further: Columns of `STAGE_COST`: stages outside the scope that are added if a price is known.

    Returns:
        Columns of `TOTAL_COST`, one row per run. usd_per_1k is null with a reason if a stage in scope is
        unknown or nothing was recorded. If any stage is unknown, least is the cost of the others (null if
        none is known) and missing briefly names the unknown ones. stages = the stages that were added up.
    """
    scopes = {run: (scope or {}).get(run) for run in run_ids}
    parts = _parts(costs, scopes, further)
    known = pl.col("usd_per_1k").is_not_null()
    summed = parts.group_by("run_id").agg(
        pl.when((known | ~pl.col("needed")).all()).then(pl.col("usd_per_1k").sum()).alias("usd_per_1k"),
        pl.when(~known.all() & (known.any() | ~pl.col("needed").any()))
        .then(pl.col("usd_per_1k").sum())
        .alias("least"),
        _missing().filter(~known).sort().str.join(", ").alias("missing"),
        _weakest_basis(),
        pl.format("{}: {}", "stage", "reason").filter(~known).sort().str.join("; ").alias("reason"),
        pl.col("stage").sort().alias("stages"),
    )
    empty = pl.col("run_id").is_in(
        [run for run, stages in scopes.items() if stages is not None and not stages]
    )
    nothing = pl.col("stages").is_null()
    blank = pl.when(pl.col("reason") != "").then(pl.col("reason"))
    return (
        pl.DataFrame({"run_id": list(run_ids)}, schema={"run_id": pl.String})
        .join(summed, on="run_id", how="left", maintain_order="left")
        .with_columns(
            pl.when(empty & nothing).then(0.0).otherwise("usd_per_1k").alias("usd_per_1k"),
            pl.when(pl.col("missing") != "").then(pl.col("missing")).alias("missing"),
            pl.when(nothing & ~empty).then(pl.lit(NOT_RECORDED)).otherwise(blank).alias("reason"),
            pl.col("stages").fill_null([]),
        )
        .select([pl.col(name).cast(dtype) for name, dtype in TOTAL_COST.items()])
    )


def _parts(
    costs: pl.DataFrame, scopes: Mapping[str, Sequence[str] | None], further: pl.DataFrame | None
) -> pl.DataFrame:
    """Return the stages that count for every run, and whether its total requires each."""
    wanted = pl.DataFrame(
        [(run, stage) for run, stages in scopes.items() for stage in stages or ()],
        schema={"run_id": pl.String, "stage": pl.String},
        orient="row",
    )
    scoped = wanted.join(costs, on=["run_id", "stage"], how="left").with_columns(
        pl.when(pl.col("usd_per_1k").is_null()).then(pl.col("reason").fill_null(NOT_RECORDED)).alias("reason")
    )
    whole = costs.filter(pl.col("run_id").is_in([run for run, stages in scopes.items() if stages is None]))
    parts = [pl.concat([whole, scoped], how="diagonal").with_columns(needed=True)]
    if further is not None:
        parts.append(further.filter(pl.col("run_id").is_in(list(scopes))).with_columns(needed=False))
    return pl.concat(parts, how="diagonal")


def _missing() -> pl.Expr:
    """Describe briefly what is unknown about a stage: ``embedding not priced``."""
    recorded = pl.col("reason").str.contains("not recorded", literal=True)
    how = pl.when(recorded).then(pl.lit("not recorded")).otherwise(pl.lit("not priced"))
    return pl.format("{} {}", pl.col("stage").replace(_STAGE_WORDS), how)


def scope_of(manifest: JsonMap, spec: JsonMap) -> tuple[str, ...] | None:
    """Return the stages that a run's cost covers, from its manifest and its stack.

    Args:
        manifest: A run's manifest; "cost_scope" names one stage or is absent.
        spec: The specification of its stack; a stack without a reranker has no rerank stage to pay for.

    Returns:
        Stage names, () if the named stage does not exist in the stack, or None = every stage.
    """
    stage = manifest.get("cost_scope")
    if stage is None:
        return None
    if stage == "rerank" and spec.get("reranker", "none") == "none":
        return ()
    return (str(stage),)
