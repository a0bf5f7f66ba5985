"""``prices list|check|import|set``: price books, missing or old prices, prices from LiteLLM, of a stack."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated

import polars as pl
import typer

from core.cli.base import Context, complain, require_collection
from core.cli.context import CollectionOption, Format, FormatOption, emit
from core.errors import InputError
from core.prices import DEFAULT_BOOK, PriceBook, own_folder
from core.prices.litellm import BOOK, read_litellm
from core.prices.stacks import set_prices
from core.prices.write import FINDINGS, OLD_AFTER_DAYS, Used, check_book, write_book
from core.store import Snapshot

app = typer.Typer(
    help="List price books, check them, import prices, or say what a stack costs.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

BookOption = Annotated[str | None, typer.Option("--book", help="Only this price book.", show_default=False)]
_NONE = (None, "", "none")
_STAGES: Mapping[str, str] = {"embedder": "embed", "reranker": "rerank"}
"""Models that a stack names, with the stage that they are used in."""
_SHOWN = ("book", "item", "provider", "unit", "price", "per", "currency", "looked_up", "confirmed")


@app.command("list")
def list_(
    ctx: typer.Context,
    book: BookOption = None,
    item: Annotated[str, typer.Option(help="Only items with this in their name.")] = "",
    form: FormatOption = Format.TABLE,
) -> None:
    """List the prices of all books, the user's own among them."""
    rows = _price_rows(_books(ctx.obj, book), item)
    emit(rows.select(_SHOWN) if form is Format.TABLE else rows, form, empty="No price.")


@app.command("check")
def check(
    ctx: typer.Context,
    book: Annotated[str, typer.Option(help="The price book.")] = DEFAULT_BOOK,
    days: Annotated[int, typer.Option(min=0, help="A price is old after so many days.")] = OLD_AFTER_DAYS,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 where something is found.")] = False,
    form: FormatOption = Format.TABLE,
) -> None:
    """Find prices that are old, and models in the store that have none."""
    context: Context = ctx.obj
    used = _used_items(context.store().read())
    findings = [
        check_book(each_book, used, today=_today(), old_after=days) for each_book in _books(context, book)
    ]
    rows = pl.concat([FINDINGS.to_frame(), *findings])
    emit(rows, form, empty=f"Nothing: every model in the store has a price, none older than {days} days.")
    if strict and rows.height:
        raise typer.Exit(1)


@app.command("import")
def import_(
    ctx: typer.Context,
    path: Annotated[
        Path, typer.Argument(help="LiteLLM's model_prices_and_context_window.json.", show_default=False)
    ],
    *,
    book: Annotated[str, typer.Option(help="Name of your book.")] = BOOK,
    provider: Annotated[
        list[str] | None, typer.Option(help="Only this provider, as the file names it; may be repeated.")
    ] = None,
    extends: Annotated[
        str, typer.Option(help="The book that prices what the file does not; empty = none.")
    ] = DEFAULT_BOOK,
    fetched: Annotated[str, typer.Option(help="The day it was fetched, 2026-01-31; by default today.")] = "",
    replace: Annotated[bool, typer.Option("--replace", help="Replace your book of that name.")] = False,
    form: FormatOption = Format.TABLE,
) -> None:
    """Import prices from the table that LiteLLM publishes into a price book of your own."""
    context: Context = ctx.obj
    table = read_litellm(path, looked_up=_day(fetched), providers=provider or ())
    folder = own_folder(context.store().path)
    written = write_book(folder, book, table.prices, extends=extends or None, replace=replace)
    rows = [("taken", len(table.prices), f"prices, into {written}")]
    rows += [("left out", count, f"models: {reason}") for reason, count in table.skipped.items()]
    emit(pl.DataFrame(rows, schema=["status", "count", "detail"], orient="row"), form)
    complain("None of them is confirmed: compare those that you rely on with the vendor's price page.")


@app.command("set")
def set_(
    ctx: typer.Context,
    stack: Annotated[
        list[str], typer.Argument(help="Stored stacks, by id or label of their runs.", show_default=False)
    ],
    *,
    usd_per_query: Annotated[
        float | None, typer.Option(min=0, help="What a query costs.", show_default=False)
    ] = None,
    usd_per_hour: Annotated[
        float | None,
        typer.Option(
            min=0, help="What its machine costs, busy with one query at a time.", show_default=False
        ),
    ] = None,
    collection: CollectionOption = None,
    form: FormatOption = Format.TABLE,
) -> None:
    """Say what a query of stored stacks costs, in place of what is known of it; in every price book.

    By the hour it costs its share of the hour: the mean latency of the stack.
    """
    from core.analysis.hourly import usd_per_query as by_the_hour  # noqa: PLC0415
    from core.analysis.workspace.scope import resolve_runs  # noqa: PLC0415

    if (usd_per_query is None) == (usd_per_hour is None):
        raise typer.BadParameter(
            "Give one of --usd-per-query and --usd-per-hour.", param_hint="--usd-per-query"
        )
    store = ctx.obj.store()
    snapshot = store.read()
    require_collection(snapshot, collection)
    runs = snapshot.runs(collection)
    ids = resolve_runs(runs, stack)
    names = dict(runs.select("run_id", "label").iter_rows())
    if usd_per_hour is None:
        prices = dict.fromkeys(ids, usd_per_query or 0.0)
    else:
        prices = by_the_hour(snapshot, dict.fromkeys(ids, usd_per_hour))
    changed = set_prices(own_folder(store.path), prices, names=names, today=_today())
    rows = [(run, names[run], 1000 * prices[run], "set" if run in changed else "as before") for run in ids]
    emit(pl.DataFrame(rows, schema=["run_id", "label", "usd_per_1k", "status"], orient="row"), form)


def _books(context: Context, name: str | None) -> list[PriceBook]:
    if name is not None:
        return [context.book(name)]
    return sorted(context.books().values(), key=lambda book: (book.name != DEFAULT_BOOK, book.name))


def _today() -> date:
    return datetime.now(UTC).date()


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text) if text else _today()
    except ValueError:
        raise InputError(f"{text!r} is not a day.", where="--fetched", do="Write it 2026-01-31.") from None


def _price_rows(books: Iterable[PriceBook], contains: str = "") -> pl.DataFrame:
    """Return the newest prices of books whose item's name contains a text: book, then the book's columns."""
    rows = [book.frame().select(pl.lit(book.name).alias("book"), pl.all()) for book in books]
    wanted = pl.col("item").str.to_lowercase().str.contains(contains.lower(), literal=True)
    return pl.concat(rows).filter(wanted).with_columns(pl.col("valid_from", "looked_up").cast(pl.String))


def _used_items(snapshot: Snapshot) -> list[Used]:
    """Return the items that runs have used; for a stage without recorded usage, the model that it names."""
    runs = snapshot.runs()
    usage = snapshot.usage(runs["run_id"].to_list())
    recorded = usage.group_by("item", "unit").agg(pl.col("run_id").n_unique())
    used = [Used(item, unit, count) for item, unit, count in recorded.sort("item", "unit").iter_rows()]
    staged = set(usage.select("run_id", "stage").unique().iter_rows())
    named: Counter[str] = Counter()
    specs = runs.select("run_id", "stack_id").join(snapshot.stacks(), on="stack_id", how="left")
    for run_id, spec in specs.select("run_id", "spec").iter_rows():
        read = json.loads(spec) if isinstance(spec, str) else spec or {}
        named.update(
            str(read[axis]).rpartition(":")[2]
            for axis, stage in _STAGES.items()
            if read.get(axis) not in _NONE and (run_id, stage) not in staged
        )
    return used + [Used(item, None, count) for item, count in sorted(named.items())]
