"""The cost of every run: per query, per query with its answer, or per correct answer."""

from __future__ import annotations

import json

import polars as pl

from core.analysis.workspace.answers import MADE_UP, answer_usage, made_up, shares, taken
from core.analysis.workspace.query_sets import among
from core.analysis.workspace.scope import Scope
from core.metrics import Measure
from core.prices import PRICED_AS, PriceBook
from core.prices.book import PriceKey
from core.prices.cost import QUERY_TOKENS, cost_per_1k, query_embedding, scope_of, totals
from core.prices.stacks import stack_costs
from core.records import BASES, Origin
from core.stats.latency import TOTAL
from core.store import Snapshot
from core.tables import GENERATE

_ASSUMED = f"the query's embedding is modelled at {QUERY_TOKENS:g} tokens"
_WITHOUT = "generation not in the reported cost"
_ADDED = "the reported cost and that of the answers"
_DIVIDED = ("cost", "cost_least")


def run_totals(
    runs: pl.DataFrame, usage: pl.DataFrame, book: PriceBook, also: tuple[str, ...] = ()
) -> pl.DataFrame:
    """Price runs; `also` are stages that every bill must cover, beside retrieval."""
    recorded, further = with_embedding(runs, usage)
    retrieved = set(recorded.filter(~pl.col("stage").is_in(also))["run_id"])
    scopes = {}
    for run_id, manifest, spec in runs.select("run_id", "manifest", "spec").iter_rows():
        covered = scope_of(json.loads(manifest), json.loads(spec))
        if covered is None and also and run_id not in retrieved:
            covered = ("retrieve",)  # for which nothing is known
        scopes[run_id] = covered if covered is None else (*covered, *also)
    whole = totals(
        cost_per_1k(recorded, book), runs["run_id"].to_list(), scopes, further=cost_per_1k(further, book)
    )
    modelled = pl.col("run_id").is_in(further["run_id"].implode())
    return whole.with_columns(pl.when(modelled).then(pl.lit(_ASSUMED)).alias("assumed"))


def used_by(snapshot: Snapshot, table: pl.DataFrame) -> frozenset[PriceKey]:
    """Sum up the usage of the runs of a stack table, by item and priced unit."""
    ids = table["run_id"].to_list()
    runs = snapshot.runs().filter(pl.col("run_id").is_in(ids))
    parts = [part.select("item", "unit") for part in with_embedding(runs, snapshot.usage(ids))]
    return frozenset(pl.concat(parts).unique().with_columns(pl.col("unit").replace(PRICED_AS)).iter_rows())


def assumed_prices(snapshot: Snapshot, table: pl.DataFrame, book: PriceBook) -> bool:
    """Return whether a price behind the costs of a stack table was neither confirmed nor set by the user."""
    prices = (book.find(*key) for key in used_by(snapshot, table))
    return not all(price.confirmed or price.was is not None for price in prices if price is not None)


def with_embedding(runs: pl.DataFrame, usage: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the recorded usage, and the modelled usage of embedding the query if a bill lacks it.

    Only runs with a bill are extended: those that recorded usage, and those whose source says which
    stages its costs cover.
    """
    billed = set(usage["run_id"].unique())
    embedders = {}
    for run_id, manifest, text in runs.select("run_id", "manifest", "spec").iter_rows():
        spec = json.loads(text)
        dense = spec.get("mode") in ("dense", "hybrid") and isinstance(spec.get("embedder"), str)
        if dense and (run_id in billed or "cost_scope" in json.loads(manifest)):
            embedders[run_id] = spec["embedder"]
    return query_embedding(usage, embedders)


def repriced(
    snapshot: Snapshot, table: pl.DataFrame, book: PriceBook, asked: tuple[Scope, int] | None = None
) -> pl.DataFrame:
    """Return the stack table with costs under other prices; `asked` as in `costs`."""
    anew = costs(snapshot, table, book, asked)
    rest = table.drop([name for name in anew.columns if name != "run_id"])
    return rest.join(anew, on="run_id", how="left", maintain_order="left")


def costs(
    snapshot: Snapshot, runs: pl.DataFrame, book: PriceBook, asked: tuple[Scope, int] | None = None
) -> pl.DataFrame:
    """Return the cost of every run: set by hand, otherwise reported by its source or priced from its usage.

    Args:
        asked: The workspace, which determines the unit of a cost, and how many passages are sent; without it
            costs are per query.

    Returns:
        run_id, cost ($ per 1,000), cost_least, cost_missing, cost_basis, cost_note, cost_per (the unit,
        if it isn't a query) and correct (the share of correct answers, if the cost is divided by it).
    """
    ids, (scope, k) = runs["run_id"].to_list(), asked or (None, 0)
    usage, per = snapshot.usage(ids), "query" if scope is None else scope.answering.per
    sent = None if scope is None else scope.answering.sent(k)
    own = retrieval(runs, usage)
    usage = own if sent is None else with_answers(snapshot, runs, usage, book, sent)
    priced = run_totals(runs, usage, book, () if per == "query" else (GENERATE,))
    reported = (
        snapshot.aggregates(ids)
        .filter((pl.col("measure") == "usd_per_1k") & (pl.col("stage").fill_null(TOTAL) == TOTAL))
        .unique("run_id", keep="first")
        .select("run_id", pl.col("value").alias("reported"))
    )
    said = pl.DataFrame(list(stack_costs(book, ids).items()), schema=reported.schema, orient="row")
    reported = pl.concat([said, reported.join(said, on="run_id", how="anti")])
    beside = runs.select("run_id", answers=pl.lit(0.0))
    if per != "query":
        beside = _beside(runs, own, usage, book)
    costed = _with_reported(priced, reported, beside).with_columns(
        cost_per=pl.lit(None if per == "query" else per, pl.String), correct=pl.lit(None, pl.Float64)
    )
    return costed if scope is None or per != "correct answer" else _per_correct(snapshot, costed, scope, k)


def _beside(runs: pl.DataFrame, own: pl.DataFrame, usage: pl.DataFrame, book: PriceBook) -> pl.DataFrame:
    """Price answers beside a reported cost; nothing if its source billed generation itself."""
    billed = set(own.filter(pl.col("stage") == GENERATE)["run_id"])
    within = [
        run_id
        for run_id, manifest in runs.select("run_id", "manifest").iter_rows()
        if run_id in billed or json.loads(manifest).get("cost_scope") == GENERATE
    ]
    spent = cost_per_1k(usage.filter(pl.col("stage") == GENERATE), book).select(
        "run_id", pl.col("usd_per_1k").alias("answers")
    )
    answers = pl.when(pl.col("run_id").is_in(within)).then(0.0).otherwise("answers").alias("answers")
    return runs.select("run_id").join(spent, on="run_id", how="left").with_columns(answers)


def _with_reported(priced: pl.DataFrame, reported: pl.DataFrame, beside: pl.DataFrame) -> pl.DataFrame:
    """Prefer a source's reported cost to the priced one, adding the cost of its answers."""
    rows = priced.join(reported, on="run_id", how="left", maintain_order="left")
    rows = rows.join(beside, on="run_id", how="left", maintain_order="left")
    there = pl.col("reported").is_not_null()
    short = there & pl.col("answers").is_null()
    added = there & (pl.col("answers") > 0)
    return rows.select(
        "run_id",
        cost=pl.when(there).then(pl.col("reported") + pl.col("answers")).otherwise("usd_per_1k"),
        cost_least=pl.when(short).then("reported").when(~there).then("least"),
        cost_missing=pl.when(short).then(pl.lit(_WITHOUT)).when(~there).then("missing"),
        cost_basis=pl.when(there).then(pl.lit("imported")).otherwise("basis"),
        cost_note=pl.coalesce(
            pl.when(short).then(pl.lit(_WITHOUT)),
            pl.when(added).then(pl.lit(_ADDED)),
            pl.when(~there).then(pl.coalesce("reason", "assumed")),
        ),
    )


def retrieval(runs: pl.DataFrame, usage: pl.DataFrame) -> pl.DataFrame:
    """Return usage without that of readers here: stacks without answers would look cheaper.

    A generation that another tool billed with its flow stays.
    """
    own = runs.filter(pl.col("origin") == Origin.RUN.value)["run_id"].to_list()
    return usage.filter(~((pl.col("stage") == GENERATE) & pl.col("run_id").is_in(own)))


def with_answers(
    snapshot: Snapshot, runs: pl.DataFrame, usage: pl.DataFrame, book: PriceBook, measure: Measure
) -> pl.DataFrame:
    """Return usage including a measure's answers.

    A recorded bill for generation stays without them.

    A run with neither has a generation of unknown usage.
    """
    rows, usage = taken(snapshot, runs["run_id"].to_list(), measure), retrieval(runs, usage)
    generated = pl.col("stage") == GENERATE
    billed = usage.filter(generated)["run_id"].unique().to_list()
    answered = rows["run_id"].unique().to_list()
    own = runs.filter(pl.col("run_id").is_in(answered) | ~pl.col("run_id").is_in(billed))
    spent = answer_usage(rows, own.select("run_id", basis()), book)
    rest = usage.filter(~(generated & pl.col("run_id").is_in(answered)))
    return pl.concat([rest, spent.select(usage.columns)])


def _per_correct(snapshot: Snapshot, costed: pl.DataFrame, scope: Scope, k: int) -> pl.DataFrame:
    """Divide costs by the share of correct answers; unknown if no answer is scored, or correct."""
    rows = shares(snapshot, costed["run_id"].to_list(), scope.answering, among(snapshot, scope))
    note = pl.format(
        "{} % of {} answers from {} passages are correct ({} of {} or more)",
        (100 * pl.col("value")).round(1), "queries", "k", "scorer", pl.lit(f"{scope.answering.least:g}"),
    )  # fmt: skip
    right = rows.filter(pl.col("k") == k).select(
        "run_id", pl.col("value").alias("correct"), note.alias("told")
    )
    joined = costed.drop("correct").join(right, on="run_id", how="left", maintain_order="left")
    trials = pl.col("run_id").is_in(made_up(snapshot, costed["run_id"].to_list()))
    nothing = (
        pl.when(trials).then(pl.lit(MADE_UP)).otherwise(pl.lit(f"no answer from {k} passages is scored"))
    )
    note = pl.coalesce("told", nothing)
    return joined.with_columns(
        *(pl.when(pl.col("correct") > 0).then(pl.col(name) / pl.col("correct")) for name in _DIVIDED),
        pl.concat_str(note, "cost_note", separator="; ", ignore_nulls=True).alias("cost_note"),
    ).drop("told")


def basis() -> pl.Expr:
    """Return how a run's numbers were obtained, by the run's origin."""
    return pl.col("origin").replace_strict(BASES, return_dtype=pl.String).alias("basis")
