"""``cost``: what a stack and its generator cost per query, per thousand and per month, by stage."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Literal

import polars as pl
import typer

from core.cli.context import Context, Format, FormatOption, emit
from core.errors import UnknownNameError
from core.importers.read.text import shown
from core.prices import DEFAULT_BOOK, PriceBook
from core.prices.calculator import INDEX_KINDS, NO_INDEX, CostInputs
from core.views.workspace.scope import resolve_runs

if TYPE_CHECKING:
    from core.views.cost.bill import CostView
    from core.views.cost.stack import Start

_USUAL = CostInputs(queries_per_month=1_000_000, chunks_sent=10, output_tokens=300)  # What is not given
_LINE = 2000
_SHOWN = (
    "stage",
    "item",
    "units_per_query",
    "unit",
    "unit_price",
    "usd_per_query",
    "usd_per_1k",
    "usd_per_month",
    "basis",
    "confirmed",
)


Paper = Literal["rerank", "generator"]  # Tables of the CLQ paper (§3.2.1)


def _amount(name: str, about: str, flag: str = "") -> Any:  # noqa: ANN401 - typer's options are
    """An option for an amount of `CostInputs`, with what holds where it is not given."""
    usual = f"{getattr(_USUAL, name):,.10g}"
    return typer.Option(*([flag] if flag else []), min=0, help=f"{about}; else {usual}.")


Model = Annotated[str | None, typer.Option(help="As a price book names it; left out: not part of it.")]


def run(
    ctx: typer.Context,
    *,
    embedder: Model = None,
    query_tokens: Annotated[float | None, _amount("query_tokens", "Sent to the embedder")] = None,
    reranker: Model = None,
    candidates: Annotated[float | None, _amount("candidates", "K, as the reranker sees them")] = None,
    tokens_per_candidate: Annotated[
        float | None, _amount("tokens_per_candidate", "Query + chunk + metadata, as billed")
    ] = None,
    generator: Model = None,
    chunks_sent: Annotated[float | None, _amount("chunks_sent", "To the generator", "--chunks")] = None,
    tokens_per_chunk: Annotated[float | None, _amount("tokens_per_chunk", "Length of a chunk")] = None,
    prompt_tokens: Annotated[float | None, _amount("prompt_tokens", "Sent beside the chunks")] = None,
    output_tokens: Annotated[float | None, _amount("output_tokens", "Of the answer")] = None,
    cpu_ms: Annotated[float | None, _amount("cpu_ms", "Your own CPU time per query")] = None,
    gpu_ms: Annotated[float | None, _amount("gpu_ms", "Your own GPU time per query")] = None,
    passages: Annotated[float | None, _amount("passages", "Of the corpus; 0 leaves it out")] = None,
    tokens_per_passage: Annotated[float | None, _amount("tokens_per_passage", "Length of one")] = None,
    spread_queries: Annotated[
        float | None, _amount("spread_queries", "Queries that embedding the corpus is spread over")
    ] = None,
    index: Annotated[str | None, typer.Option(help=f"{', '.join(INDEX_KINDS)} or {NO_INDEX}.")] = None,
    dim: Annotated[float | None, _amount("dim", "Of the vectors")] = None,
    copies: Annotated[float | None, _amount("copies", "Of the index in memory")] = None,
    queries_per_month: Annotated[
        float | None, _amount("queries_per_month", "Asked in a month", "--queries")
    ] = None,
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
    typed = {name: value for name, value in locals().items() if name in CostInputs.__dataclass_fields__}
    context: Context = ctx.obj
    books = context.books()
    if table is not None:
        _paper(table, books, form)
        return
    book = context.book(prices).derived(price or ())
    _known(typed, books)
    begun = None if run_ is None else _start(context, run_)
    amounts = {} if begun is None else {name: each.value for name, each in begun.amounts.items()}
    inputs = _inputs(amounts | {name: value for name, value in typed.items() if value is not None})
    if swing is not None:
        _swings(inputs, book, swing, form)
    else:
        _bill(inputs, book, begun, form)


def _inputs(given: Mapping[str, Any]) -> CostInputs:
    from core.views.cost.stack import NONE  # noqa: PLC0415

    models = {name: None for name, value in given.items() if value == NONE and name != "index"}
    return CostInputs(**{**asdict(_USUAL), **given, **models})


def _known(typed: Mapping[str, object], books: Mapping[str, PriceBook]) -> None:
    """Refuse models that no book prices: a typing error would else be an unknown cost."""
    from core.views.cost.stack import NONE, models  # noqa: PLC0415

    offered = {**models(books.values()), "index": (*INDEX_KINDS, NO_INDEX)}
    for kind, names in offered.items():
        value = typed[kind]
        if isinstance(value, str) and value not in (*names, NONE):
            raise UnknownNameError(kind, value, names)


def _start(context: Context, name: str) -> Start:
    from core.views.cost.stack import start_from  # noqa: PLC0415
    from core.views.workspace.scope import Scope  # noqa: PLC0415
    from core.views.workspace.stacks import runs_in  # noqa: PLC0415

    snapshot = context.store().read()
    runs = snapshot.runs()
    (run_id,) = resolve_runs(runs, [name])
    collection = runs.row(by_predicate=pl.col("run_id") == run_id, named=True)["collection_id"]
    (row,) = runs_in(snapshot, Scope(collection, run_ids=(run_id,))).iter_rows(named=True)
    return start_from(snapshot, row)


def _paper(table: Paper, books: Mapping[str, PriceBook], form: Format) -> None:
    from core.views.cost.bill import PAPER_BOOK, paper_generator, paper_rerank  # noqa: PLC0415

    made = paper_rerank if table == "rerank" else paper_generator
    emit(made(books[PAPER_BOOK]), form)


def _swings(inputs: CostInputs, book: PriceBook, percent: float, form: Format) -> None:
    from core.views.cost.bill import swings  # noqa: PLC0415

    found = swings(inputs, book, share=percent / 100)
    if form is Format.TABLE:
        typer.echo(shown(found.answer, _LINE))
    emit(found.rows, form, empty="")


def _bill(inputs: CostInputs, book: PriceBook, begun: Start | None, form: Format) -> None:
    from core.views.cost import words  # noqa: PLC0415
    from core.views.cost.bill import cost  # noqa: PLC0415
    from core.views.cost.stack import NONE, basis_by_stage  # noqa: PLC0415

    asked = {name: getattr(inputs, name) or NONE for name in words.FILLED}
    made = cost(inputs, book, basis_by_stage(begun, asked))
    said = [words.answer(made.found), *words.caveats(inputs, book, made).values()]
    said += [words.provenance(begun, asked)] if begun else []
    if book.changed:
        said.append(f"What if: {'; '.join(words.changed(book))}.")
    if form is Format.JSON:
        typer.echo(json.dumps(_data(inputs, book, made, said), ensure_ascii=False, indent=2, default=str))
    elif form is Format.CSV:
        emit(made.bill, form)
    else:
        for sentence in filter(None, said):
            typer.echo(shown(sentence, _LINE))
        reasons = ("reason",) if (made.bill["reason"] != "").any() else ()
        emit(_with_total(made.bill).select(*_SHOWN, *reasons), form, empty="Nothing is billed.")


def _data(inputs: CostInputs, book: PriceBook, made: CostView, said: list[str]) -> dict[str, object]:
    total = _with_total(made.bill).filter(pl.col("stage") == "total").select(_DOLLARS).to_dicts()
    return {
        "answer": said[0],
        "details": [words for words in said[1:] if words],
        "inputs": asdict(inputs),
        "prices": book.name,
        "lines": made.bill.to_dicts(),
        "total": total[0] if total else dict.fromkeys(_DOLLARS, 0.0),
    }


_DOLLARS = ("usd_per_query", "usd_per_1k", "usd_per_month")


def _with_total(bill: pl.DataFrame) -> pl.DataFrame:
    """The bill with a last row; a sum with an unknown part is unknown."""
    if bill.is_empty():
        return bill
    sums = [
        pl.when(pl.col(name).is_not_null().all()).then(pl.col(name).sum()).alias(name) for name in _DOLLARS
    ]
    return pl.concat([bill, bill.select(pl.lit("total").alias("stage"), *sums)], how="diagonal")
