"""``prices list|check|import``: the price books, what is missing or old in them, and prices from LiteLLM."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated

import polars as pl
import typer

from core.cli.context import Context
from core.cli.output import Format, FormatOption, complain, emit
from core.errors import InputError, UnknownNameError
from core.prices import DEFAULT_BOOK, PriceBook, own_folder
from core.prices.check import FINDINGS, OLD_AFTER_DAYS, check_book
from core.prices.litellm import BOOK, read_litellm
from core.prices.write import write_book
from core.views.cost.price_books import price_rows, used_items

app = typer.Typer(
    help="List price books, check them, or import prices.", no_args_is_help=True, rich_markup_mode=None
)

BookOption = Annotated[str | None, typer.Option("--book", help="Only this price book.", show_default=False)]
_SHOWN = ("book", "item", "provider", "unit", "price", "per", "currency", "looked_up", "confirmed")


@app.command("list")
def list_(
    ctx: typer.Context,
    book: BookOption = None,
    item: Annotated[str, typer.Option(help="Only items with this in their name.")] = "",
    form: FormatOption = Format.TABLE,
) -> None:
    """List the prices of all books, the user's own among them."""
    rows = price_rows(_books(ctx.obj, book), item)
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
    used = used_items(context.store().read())
    found = [check_book(each, used, today=_today(), old_after=days) for each in _books(context, book)]
    rows = pl.concat([FINDINGS.to_frame(), *found])
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
    found = read_litellm(path, looked_up=_day(fetched), providers=provider or ())
    folder = own_folder(context.store().path)
    written = write_book(folder, book, found.prices, extends=extends or None, replace=replace)
    rows = [("taken", len(found.prices), f"prices, into {written}")]
    rows += [("left out", count, f"models: {reason}") for reason, count in found.skipped.items()]
    emit(pl.DataFrame(rows, schema=["status", "count", "detail"], orient="row"), form)
    complain("None of them is confirmed: compare those that you rely on with the vendor's price page.")


def _books(context: Context, name: str | None) -> list[PriceBook]:
    books = context.books()
    if name is None:
        return [books[key] for key in sorted(books, key=lambda key: (key != DEFAULT_BOOK, key))]
    if name not in books:
        raise UnknownNameError("price book", name, books)
    return [books[name]]


def _today() -> date:
    return datetime.now(UTC).date()


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text) if text else _today()
    except ValueError:
        raise InputError(f"{text!r} is not a day.", where="--fetched", do="Write it 2026-01-31.") from None
