"""``cost``: what a stack and its generator cost per query, per thousand and per month, by stage."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Literal

import polars as pl
import typer

from core.analysis.workspace.scope import Scope, resolve_runs
from core.cli.base import Context
from core.cli.context import Format, FormatOption, emit, lay
from core.cli.options import options
from core.errors import UnknownNameError
from core.prices import DEFAULT_BOOK, PriceBook
from core.prices.calculator import INDEX_KINDS, NO_INDEX, USUAL, CostInputs

if TYPE_CHECKING:
    from core.analysis.stack_cost import CostStart
    from core.views.cost.sections import Priced

Paper = Literal["rerank", "generator"]  # Tables of the CLQ paper (§3.2.1)


@options(CostInputs, "given", USUAL)
def run(
    ctx: typer.Context,
    given: dict[str, Any],
    *,
    run_: Annotated[
        str | None, typer.Option("--run", help="Begin with what this run recorded, by id or label.")
    ] = None,
    prices: Annotated[str, typer.Option(help="Price book.")] = DEFAULT_BOOK,
    price: Annotated[
        list[str] | None,
        typer.Option(help="What if: ITEM:UNIT=AMOUNT for the book's number of units; may be repeated."),
    ] = None,
    swing: Annotated[
        float | None, typer.Option(min=1, max=99, help="Instead: what ± so many % of each input does.")
    ] = None,
    table: Annotated[Paper | None, typer.Option(help="Instead: a table of the CLQ paper.")] = None,
    form: FormatOption = Format.TABLE,
) -> None:
    """Work out a bill: units, price and dollars by stage, each with how its amount is known."""
    # Imported here as the charting library is slow to load, and no other command should wait for it.
    from core.analysis import stack_cost as stack  # noqa: PLC0415
    from core.report.plain import pieces  # noqa: PLC0415
    from core.views.cost import bill, sections  # noqa: PLC0415

    context: Context = ctx.obj
    books = context.books()
    if table is not None:
        paper = bill.paper_rerank if table == "rerank" else bill.paper_generator
        emit(paper(books[bill.PAPER_BOOK]), form)
        return
    book = context.book(prices).derived(price or ())
    _known(given, {**stack.models(books.values()), "index": (*INDEX_KINDS, NO_INDEX)})
    start = known = None
    if run_ is not None:
        start, known = _recorded(context, run_, book)
    priced = sections.Priced(stack.filled(start, given), book, start, known)
    if swing is not None and form is not Format.TABLE:
        emit(bill.swings(priced.inputs, book, share=swing / 100).rows, form)
    elif swing is not None:
        lay(pieces(sections.swings(priced, swing / 100)))
    elif form is Format.TABLE:
        lay(pieces((*sections.costs(priced), *priced.said)))
    else:
        _emit(priced, form)


def _known(given: Mapping[str, object], offered: Mapping[str, tuple[str, ...]]) -> None:
    """Refuse models without a price in any book: a typing error would otherwise become an unknown cost."""
    for kind, names in offered.items():
        value = given.get(kind, NO_INDEX)
        if isinstance(value, str) and value not in (*names, NO_INDEX):
            raise UnknownNameError(kind, value, names)


def _recorded(context: Context, name: str, book: PriceBook) -> tuple[CostStart, pl.DataFrame]:
    """Return the calculator's inputs from a run, and its recorded usage, priced."""
    from core.analysis.stack_cost import recorded, start_from  # noqa: PLC0415
    from core.analysis.workspace.stacks import runs_in  # noqa: PLC0415

    snapshot = context.store().read()
    runs = snapshot.runs()
    (run_id,) = resolve_runs(runs, [name])
    collection = runs.row(by_predicate=pl.col("run_id") == run_id, named=True)["collection_id"]
    (row,) = runs_in(snapshot, Scope(collection, run_ids=(run_id,))).iter_rows(named=True)
    return start_from(snapshot, row), recorded(snapshot, run_id, book)


def _emit(priced: Priced, form: Format) -> None:
    from core.views.cost import words  # noqa: PLC0415

    cost = priced.cost
    if form is Format.CSV:
        emit(cost.bill, form)
        return
    details = [*words.caveats(priced.inputs, priced.book, cost).values(), *(one.words for one in priced.said)]
    whole = {
        "answer": words.answer(cost),
        "details": list(filter(None, details)),
        "inputs": asdict(priced.inputs),
        "prices": priced.book.name,
        "lines": cost.bill.to_dicts(),
        "total": _total(cost.bill),
    }
    typer.echo(json.dumps(whole, ensure_ascii=False, indent=2, default=str))


def _total(bill: pl.DataFrame) -> dict[str, float | None]:
    """Return the dollars of all stages; a sum with an unknown part is unknown."""
    known = {name: bill[name] for name in ("usd_per_query", "usd_per_1k", "usd_per_month")}
    return {name: None if column.null_count() else float(column.sum()) for name, column in known.items()}
