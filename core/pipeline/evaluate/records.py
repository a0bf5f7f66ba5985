"""Turns what was measured into the records of the store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from core.pipeline.evaluate.asking import clipped, reranked
from core.pipeline.evaluate.measure import Results
from core.pipeline.evaluate.steps import Route, Step
from core.pipeline.ranking.hits import Hits
from core.prices.calculator import search_units
from core.providers.base import Amount
from core.records import Basis
from core.tables import frame

LOCAL = "local-cpu"


def pools(route: Route, results: Results) -> list[Hits]:
    """The candidate pool of a stack, per query."""
    return [clipped(hits, route.depth) for hits in results.values[route.pool]]


def finals(route: Route, results: Results) -> list[Hits]:
    """The final ranking of a stack, per query."""
    ranked = pools(route, results)
    if route.rerank is not None:
        found = results.values[route.rerank]
        ranked = [reranked(*each, route.depth) for each in zip(ranked, found, strict=True)]
    if route.cut is not None:
        kept = results.values[route.cut]
        ranked = [clipped(*each) for each in zip(ranked, kept, strict=True)]
    return ranked if route.sent is None else [clipped(hits, route.sent) for hits in ranked]


def rankings(
    run_id: str, route: Route, results: Results, query_ids: pl.Series, passage_ids: pl.Series
) -> pl.DataFrame:
    """Rows of the table "rankings": the final ranking, and the pool where something chose from it."""
    parts = [_ranked(finals(route, results), query_ids, passage_ids, run_id=run_id, stage="final")]
    if route.keeps_pool:
        parts.append(_ranked(pools(route, results), query_ids, passage_ids, run_id=run_id, stage="pool"))
    return pl.concat(parts)


def _ranked(
    hits: Sequence[Hits], query_ids: pl.Series, passage_ids: pl.Series, **constants: str
) -> pl.DataFrame:
    lengths = np.array([len(found.passages) for found in hits])
    columns = pl.DataFrame(
        {
            "query_id": query_ids.gather(np.repeat(np.arange(len(hits)), lengths)),
            "rank": np.concatenate([np.arange(1, length + 1) for length in lengths]),
            "passage_id": passage_ids.gather(np.concatenate([found.passages for found in hits])),
            "score": np.concatenate([found.scores for found in hits]),
        }
    ).with_columns(pl.col("score").fill_nan(None))
    return _declared("rankings", columns, **constants)


def timings(run_id: str, route: Route, results: Results, query_ids: pl.Series) -> pl.DataFrame:
    """Rows of the table "timings": every step in every pass.

    None where a part of the path has no time (nothing was measured; scores of a deeper pool were used):
    the others would pass for the whole.
    """
    if route.replayed or not all(results.blocks.get(step) for step in route.steps):
        return frame("timings", [])
    parts = []
    for step in route.steps:
        blocks = results.blocks[step]
        for repeat, of in enumerate(sorted(blocks), 1):
            columns = pl.DataFrame({"query_id": query_ids, "ms": blocks[of].ms})
            columns = columns.with_columns(repeat=pl.lit(repeat))
            parts.append(_declared("timings", columns, run_id=run_id, stage=step.stage))
    return _by_stage(pl.concat(parts), "ms")


def _by_stage(rows: pl.DataFrame, amount: str) -> pl.DataFrame:
    """Add up the steps of one stage, of which several queries bring several; unknown stays unknown."""
    keys = [name for name in rows.columns if name not in (amount, "basis")]
    known = pl.when(~pl.col(amount).has_nulls()).then(pl.col(amount).sum()).alias(amount)
    rest = [pl.col("basis").first()] if "basis" in rows.columns else []
    return rows.group_by(keys, maintain_order=True).agg(known, *rest).select(rows.columns)


def usage(
    run_id: str, route: Route, results: Results, query_ids: pl.Series, lengths: NDArray[np.int64]
) -> pl.DataFrame:
    """Rows of the table "usage": what vendors billed, and processor time of what runs here."""
    parts = [frame("usage", [])]
    for step in route.steps:
        constants = {"run_id": run_id, "stage": step.stage}
        here = [block.cpu_ms for block in results.blocks.get(step, {}).values() if block.cpu_ms is not None]
        if here:
            columns = pl.DataFrame({"query_id": query_ids, "amount": np.median(np.stack(here), axis=0)})
            measured = {"item": LOCAL, "unit": "cpu_ms", "basis": str(Basis.MEASURED)}
            parts.append(_declared("usage", columns, **constants, **measured))
        rows = _billed(_used(route, step, results, lengths), query_ids.to_list())
        if rows:
            parts.append(_declared("usage", pl.DataFrame(rows), **constants))
    return _by_stage(pl.concat(parts), "amount")


def _used(
    route: Route, step: Step, results: Results, lengths: NDArray[np.int64]
) -> Sequence[Sequence[Amount]]:
    """What a step used per query; of a deeper pool the part that this stack's depth would have used."""
    used = results.usage[step]
    if not (route.replayed and step is route.rerank):
        return used
    shares = []
    for hits, amounts in zip(results.values[route.pool], used, strict=True):
        read = lengths[hits.passages[: step.params["depth"]]]
        share = float(read[: route.depth].sum() / read.sum()) if read.sum() else 1.0
        shares.append([_share(each, share, min(route.depth, len(read))) for each in amounts])
    return shares


def _share(amount: Amount, share: float, documents: int) -> Amount:
    if amount.unit == "search_units":
        units = None if amount.amount is None else min(amount.amount, search_units(documents))
        return Amount(amount.item, amount.unit, units, Basis.MODELLED)
    if amount.unit not in ("input_tokens", "output_tokens"):
        return amount
    part = None if amount.amount is None else amount.amount * share
    return Amount(amount.item, amount.unit, part, Basis.MODELLED)


def _billed(used: Sequence[Sequence[Amount]], query_ids: Sequence[str]) -> list[dict[str, Any]]:
    """Every kind of usage for every query; a query that skipped the step used nothing."""
    kinds = dict.fromkeys((each.item, each.unit) for amounts in used for each in amounts)
    rows = []
    for item, unit in kinds:
        for query_id, amounts in zip(query_ids, used, strict=True):
            found = next((each for each in amounts if (each.item, each.unit) == (item, unit)), None)
            amount, basis = (0.0, Basis.MEASURED) if found is None else (found.amount, found.basis)
            rows.append(
                {"query_id": query_id, "item": item, "unit": unit, "amount": amount, "basis": str(basis)}
            )
    return rows


def _declared(table: str, columns: pl.DataFrame, **constants: str) -> pl.DataFrame:
    return frame(
        table, columns.with_columns(**{name: pl.lit(text) for name, text in constants.items()}).to_dict()
    )
