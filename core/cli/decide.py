"""``decide``: the stack to ship under an SLA, a budget and a quality floor, with what could overturn it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import polars as pl
import typer

from core.cli.context import Context, golden_set_of
from core.cli.output import Format, FormatOption, complain, emit
from core.clq.intervals import SEED
from core.clq.prices import DEFAULT_BOOK
from core.clq.rules import JITTER_MS, Constraints
from core.clq.significance.bootstrap import RESAMPLES
from core.errors import InputError, UnknownNameError
from core.importers.text import shown
from core.metrics import Measure
from core.records import Origin
from core.store import Snapshot
from core.views.scope import Latency, Quality, Scope

if TYPE_CHECKING:
    from core.views.decision import Asked
    from core.views.verdict import Verdict

_SHOWN = 20
"""Rows of a table; JSON and CSV have all."""
_LINE = 2000


class On(StrEnum):
    """Which percentile of the latency decides."""

    P50 = "p50"
    P95 = "p95"


class Best(StrEnum):
    """What is best among the stacks within the limits."""

    QUALITY = "quality"
    COST = "cost"
    LATENCY = "latency"


class Of(StrEnum):
    """Which latency decides."""

    PATH = "path"
    RERANK = "rerank"


def run(
    ctx: typer.Context,
    measure: Annotated[str, typer.Option(help="Quality with its cutoff.")] = "RA-nWG@10",
    *,
    sla_ms: Annotated[float | None, typer.Option(min=0, help="Highest latency; ms.")] = None,
    on: Annotated[On, typer.Option("--on", help="Percentile of the latency.")] = On.P50,
    latency: Annotated[Of, typer.Option(help="The whole retrieval path, or the reranker alone.")] = Of.PATH,
    budget: Annotated[float | None, typer.Option(min=0, help="Highest cost; $ per 1,000 queries.")] = None,
    min_quality: Annotated[float | None, typer.Option(min=0, max=1, help="Lowest quality.")] = None,
    rule: Annotated[Best, typer.Option(help="What is best within the limits.")] = Best.QUALITY,
    jitter_ms: Annotated[float, typer.Option(min=0, help="Latencies this close are alike.")] = JITTER_MS,
    prices: Annotated[str, typer.Option(help="Price book.")] = DEFAULT_BOOK,
    origin: Annotated[
        list[Origin] | None, typer.Option(help="Only runs of this origin; may be repeated.")
    ] = None,
    collection: Annotated[str | None, typer.Option(help="By default the only one with such runs.")] = None,
    golden_set: Annotated[str | None, typer.Option(help="By default the only one of the collection.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the resampling.")] = SEED,
    form: FormatOption = Format.TABLE,
) -> None:
    """Say which stack to ship, the runner-up, the frontier, why the others are out, and how sure this is."""
    # Here because the frontier's library takes long to load, which no other command should wait for.
    from core.views.decision import Asked, record, status_rows  # noqa: PLC0415
    from core.views.verdict import verdict  # noqa: PLC0415

    context: Context = ctx.obj
    books = context.books()
    if prices not in books:
        raise UnknownNameError("price book", prices, books)
    snapshot = context.store().read()
    scope = workspace(snapshot, collection, golden_set, origin or ())
    limits = Constraints(sla_ms=sla_ms, budget=budget, floor=min_quality, jitter_ms=jitter_ms)
    asked = Asked(limits, rule.value, quality_of(measure), Latency(on.value, latency.value))
    found = verdict(snapshot, scope, asked, books[prices], seed=seed)
    if form is Format.JSON:
        made = record(found.table, found.decision, asked, chances=found.chances)
        source = {"collection": scope.collection_id, "golden_set": scope.golden_set_id, "prices": prices}
        sureness = {"seed": seed, "resamples": RESAMPLES, "revision": snapshot.revision}
        whole = {**made, **source, **sureness}
        typer.echo(json.dumps(whole, ensure_ascii=False, indent=2, allow_nan=False))
        return
    rows = status_rows(found.sure_table, found.decision)
    if form is Format.CSV:
        emit(rows, form)
    else:
        _print(found, asked, rows, seed)


def _print(found: Verdict, asked: Asked, rows: pl.DataFrame, seed: int) -> None:
    from core.views.decide import answer  # noqa: PLC0415
    from core.views.decision import CHANCES, warnings  # noqa: PLC0415

    said = answer(found.table, found.decision, asked.constraints, asked.quality, asked.latency)
    for words in (said.sentence, said.reason):
        typer.echo(shown(words, _LINE))
    known = [name for name in rows.columns if not (name in CHANCES and rows[name].is_null().all())]
    emit(rows.select(known).head(_SHOWN), Format.TABLE, empty="No stacks.")
    if rows.height > _SHOWN:
        typer.echo(f"{rows.height - _SHOWN:,} more with --format json or csv.")
    if "p_best" not in known:
        typer.echo("How sure this is, is unknown: there are no results per query.")
    else:
        typer.echo(
            f"p_…: shares of {RESAMPLES:,} resamples of the queries, seed {seed}; p_best without ties."
        )
    for words in warnings(found.sure_table, found.decision, asked):
        complain(f"warning: {shown(words, _LINE)}")


def quality_of(text: str) -> Quality:
    """The measure and cutoff that the user wrote; one that the product cannot compute is read as reported.

    Raises:
        InputError: If there is no cutoff of at least 1.
    """
    try:
        measure = Measure.parse(text)
    except UnknownNameError:
        bare, _, cutoff = text.strip().rpartition("@")
        if bare and cutoff.isdecimal() and int(cutoff) > 0:
            return Quality(bare, int(cutoff))
        raise
    if measure.k is None:
        raise InputError(f"{measure} has no cutoff.", do=f"Write {measure.at(10)}, for example.")
    return Quality(str(measure.at(None)), measure.k)


def workspace(
    snapshot: Snapshot, collection: str | None, golden_set: str | None, origins: Sequence[Origin]
) -> Scope:
    """The collection, golden set and runs that were asked for, or the only ones there are.

    Args:
        snapshot: Where to read.
        collection: Its id; None = the only one that has such runs.
        golden_set: Its id; None = the only one of the collection.
        origins: Only runs of these; empty = all.

    Raises:
        UnknownNameError: If a name does not exist.
        InputError: If there are several to choose from, or no run.
    """
    known = snapshot.collections()["collection_id"].to_list()
    if collection is not None and collection not in known:
        raise UnknownNameError("collection", collection, known)
    runs = snapshot.runs(collection)
    if origins:
        runs = runs.filter(pl.col("origin").is_in([origin.value for origin in origins]))
    found = runs["collection_id"].unique().sort().to_list()
    if len(found) != 1:
        what = f"{len(found)} collections have such runs: {', '.join(found)}" if found else "No such run"
        raise InputError(f"{what}.", do="Choose one with --collection." if found else "Import results first.")
    ids = tuple(runs["run_id"]) if origins else ()
    return Scope(found[0], golden_set_of(snapshot, found[0], golden_set), ids)
