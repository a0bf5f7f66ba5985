"""Page Cost: what a stack costs per query and per month, what changes that, and the prices behind it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from core.analysis.cache import cached
from core.analysis.stack_cost import (
    NONE,
    CostStart,
    basis_by_stage,
    filled,
    models,
    price_basis,
    recorded,
    start_from,
)
from core.analysis.workspace.view import View
from core.choices import declared
from core.decide.ties import CHEAPER
from core.number_format import CostUnit
from core.prices import PriceBook, load_books
from core.prices.calculator import INDEX_KINDS, NO_INDEX, USUAL, CostInputs
from core.views import columns as cols
from core.views import text
from core.views.ask import Ask
from core.views.blocks import Answer, Block, Blocks, Cards, Chart, Fold, Table, Text, section
from core.views.cost import bill, words
from core.views.cost.bill import PAPER_BOOK, PAPER_TOKENS
from core.views.words.bills import largest

TYPED = "no stack: type the amounts"
FIRST = replace(USUAL, embedder="voyage-3.5", reranker="rerank-2.5")
"""The page's initial inputs if no stack is shown."""
OF_A_STACK = (
    "Its models, K, and the tokens and machine time that it recorded are what is priced; other amounts can "
    "be typed below."
)
RANGE = "Lower and higher than it is, each by itself."
PAPER = (
    f"published · CLQ paper, arXiv:2511.09545, §3.2.1; price book {PAPER_BOOK}; {PAPER_TOKENS} tokens per "
    "candidate and passage; $ per 1,000 queries. Changed prices do not touch it."
)
OWN_BOOKS = (
    "Books of your own are TOML files in the folder that CLQ_PRICES names, else in price-books beside the "
    "store."
)
HOW = cols.text(
    "basis",
    "amount is",
    "Not its price. measured, imported, published: recorded by the stack; else modelled.",
)
BILL = cols.Rows(
    "bill",
    "stage item usd_per_1k usd_per_month units_per_query unit",
    HOW,
    "reason",
    more="unit_price confirmed looked_up source note",
)
RECORDED = cols.Rows("recorded", "stage item units_per_query unit usd_per_1k", HOW, "reason")
SWINGS = cols.Rows(
    "sensitivity_of_the_bill",
    cols.text("input", width=230),
    cols.usd("width", "moves by $", "The month's usage, from one end of the range to the other."),
    cols.usd("usd_low", "$ at lower", "The month's usage where the input is lower."),
    cols.usd("usd_high", "$ at higher", "The month's usage where the input is higher."),
    more=(cols.exact("low", "lower"), cols.exact("value", "as it is"), cols.exact("high", "higher")),
)
BOOK = cols.Rows(
    "prices",
    "item",
    cols.text("provider"),
    "unit",
    cols.exact("price"),
    cols.count("per"),
    cols.text("currency"),
    "confirmed looked_up",
    more="source note",
)


@dataclass(frozen=True)
class Priced:
    """Inputs to price, and the price book that prices them."""

    inputs: CostInputs
    book: PriceBook
    start: CostStart | None = None  # the stack that fills inputs nobody typed
    recorded: pl.DataFrame | None = None  # its recorded usage, priced item by item
    unit: CostUnit | None = None  # the page's cost unit; None = one that suits this cost
    partly: str = ""  # the stack's own cost if a part of it isn't on record: a lower bound

    @property
    def asked(self) -> Mapping[str, Any]:
        """The inputs that a stack can fill, by name; "none" for a model that is not part of it."""
        return {name: getattr(self.inputs, name) or NONE for name in words.FILLED}

    @property
    def cost(self) -> bill.CostView:
        """Work out the bill of the inputs."""
        return bill.cost(self.inputs, self.book, basis_by_stage(self.start, self.asked), self.unit)

    @property
    def said(self) -> tuple[Text, ...]:
        """Texts that say which inputs come from a stack, how each is known, and which prices were changed."""
        came = [Text(words.provenance(self.start, self.asked), "caption")] if self.start else []
        changed = words.changed(self.book)
        return (*came, *([Text(f"What if: {'; '.join(changed)}.", "caption")] if changed else []))


@cached(entries=64)
def started(view: View, run_id: str) -> CostStart:
    """Return the calculator's inputs from a stack."""
    return start_from(view.snapshot, view.table.row(by_predicate=pl.col("run_id") == run_id, named=True))


@cached(entries=64)
def recorded_cost(view: View, run_id: str, book: PriceBook) -> pl.DataFrame:
    """Price a run's recorded usage."""
    return recorded(view.snapshot, run_id, book)


def known_in_part(view: View, run_id: str) -> str:
    """Return a stack's own cost in words if it is a lower bound, or else an empty text."""
    row = view.table.row(by_predicate=pl.col("run_id") == run_id, named=True)
    return text.cost_of(row, bare=True) if row["cost"] is None and row["cost_least"] else ""


def ask_start(view: View, ask: Ask) -> str | None:
    """Ask which stack to start from; return its run id."""
    return ask.stack(view.table, view.decision, "Stack", "base", instead=TYPED, about=OF_A_STACK)


class CalculatorForm:
    """Asks for the inputs of the calculator, one by one; inputs not given come from the stack.

    Attributes:
        values: The given values, by name.
    """

    def __init__(self, ask: Ask, start: CostStart | None, books: Iterable[PriceBook]) -> None:
        self._ask, self._usual = ask, filled(start, {}, FIRST)
        self._offered = {**models(books), "index": (*INDEX_KINDS, NO_INDEX)}
        self.values: dict[str, Any] = {}

    def ask(self, name: str) -> None:
        """Ask for an input by name."""
        field, usual = declared(CostInputs)[name], getattr(self._usual, name)
        off = bool(field.choice.needs) and self.values.get(field.choice.needs) in (0, NONE)
        options: Sequence[str] = ()
        if not field.number:
            usual, known = usual or NONE, self._offered[name]
            options = list(dict.fromkeys((*([] if name == "index" else [NONE]), *known, usual)))
        self.values[name] = self._ask.choice(field.choice, usual, options, off=off)

    @property
    def inputs(self) -> CostInputs:
        """The inputs with the given values."""
        return filled(None, self.values, self._usual)


@section(question="What does a stack cost, and which stage takes the money?")
def bill_of(view: View, ask: Ask) -> Blocks:
    """Yield what a stack costs, and the tables behind it."""
    run_id = ask_start(view, ask)
    start = started(view, run_id) if run_id else None
    form = CalculatorForm(ask, start, [*load_books().values(), view.book])
    for name in declared(CostInputs):
        form.ask(name)
    known = recorded_cost(view, run_id, view.book) if run_id else None
    partly = known_in_part(view, run_id) if run_id else ""
    priced = Priced(form.inputs, view.book, start, known, text.cost_unit(view.table), partly)
    yield from costs(priced)
    yield from priced.said
    yield from moving(priced, ask)
    yield from tables(view.book)


def costs(priced: Priced) -> Blocks:
    """Yield the bill: answer, numbers, the stages as a bar and a table, and the stack's recorded usage."""
    view, start = priced.cost, priced.start
    yield Answer(*words.lead(view, priced.partly), caveats=words.caveats(priced.inputs, priced.book, view))
    yield Cards(cards(view, priced))
    if view.bill.is_empty():
        return
    if view.bill.height > 1:  # one item needs no picture
        yield Chart(view.figure, "cost", words.answer(view))
    rows = bill.readable(view.bill).with_columns(pl.col("reason").replace("", None))
    stages = [{"stage": words.STAGES[stage].removeprefix("the ")} for stage in rows["stage"]]
    yield Table(rows, BILL, cells=stages, unknown=True)
    known = priced.recorded
    if known is not None and known.height and start:
        shown = Table(bill.readable(known), RECORDED, unknown=True)
        said = Text(words.recorded_answer(known, start.name, view.said), "caption")
        yield Fold("What the stack recorded, item by item", (said, shown))


def cards(view: bill.CostView, priced: Priced) -> Sequence[tuple[str, str, str]]:
    """Return the cost of queries and of a month, and the stack's recorded cost if it differs."""
    known = priced.recorded
    whole = known is not None and known.height and not known["usd_per_1k"].null_count()
    billed, used = (
        view.found.per_1k,
        float(known["usd_per_1k"].sum()) if known is not None and whole else None,
    )
    same = billed is not None and used is not None and abs(billed - used) <= CHEAPER * used
    cost, usd = view.said.apart(billed, billed if same else used)
    basis = price_basis(price.confirmed or price.was is not None for price in view.prices)
    most = largest(known) if known is not None and same else ""
    month = f"{view.found.queries_per_month:,.0f} queries"
    counted: tuple[tuple[str, str, str], ...] = (
        (f"Cost per {view.said.many} queries", cost, ", ".join(filter(None, (basis, most)))),
        ("Cost per month", text.usd(view.found.per_month), month),
    )
    if machine := words.rented(view.found):
        number, paid, busy = machine
        machines = text.count(number, "machine")
        counted = (
            (f"{machines} per month".capitalize(), text.usd(paid), f"always on, {busy} busy"),
            counted[0],
            ("Cost of busy time, per month", *counted[1][1:]),
        )
    if priced.partly:
        return (*counted, ("As recorded", priced.partly, f"per {view.said.many} queries"))
    if known is None or cost == usd:
        return counted
    how = ", ".join(sorted(set(known["basis"].drop_nulls()))) if known.height else "no usage recorded"
    return (*counted, ("As recorded", usd, f"per {view.said.many} queries, {how}"))


def moving(priced: Priced, ask: Ask) -> Blocks:
    """Yield the effect of each input and price on the monthly bill."""
    yield Text("What moves the month's usage", "heading")
    (percent,) = ask.slide("Range of every input (± %)", "swing", (25,), 5, 90, step=5, about=RANGE)
    yield from swings(priced, percent / 100)


def swings(priced: Priced, share: float) -> Blocks:
    """Yield the monthly bill when each input and price is varied by a share, lower and higher."""
    moved = bill.swings(priced.inputs, priced.book, share=share)
    yield Text(moved.answer)
    if not moved.rows.is_empty():
        if not moved.alike:
            yield Chart(moved.figure, "tornado", moved.answer)
        yield Table(moved.rows, SWINGS)


def tables(book: PriceBook) -> Blocks:
    """Yield the paper's tables and the price book."""
    yield Fold("The paper's prices, by the same calculator", (Text(PAPER, "caption"), *_paper()))
    rows = book.frame().with_columns(
        pl.when(pl.col("confirmed")).then(pl.lit("yes")).otherwise(pl.lit("no")).alias("confirmed"),
        pl.col("unit").replace(words.BUYS),
    )
    shown = Table(rows, BOOK)
    yield Fold(f"Price book {book.title}", (Text(OWN_BOOKS, "caption"), shown))


def _paper() -> Iterable[Block]:
    book = load_books()[PAPER_BOOK]
    rerank, generator = bill.paper_rerank(book), bill.paper_generator(book)
    for title, first, rows in (
        ("Reranker, by candidate depth K", cols.COLUMNS["k"], rerank),
        ("Reader's input, by passages sent", cols.count("chunks"), generator),
    ):
        yield Text(title, "caption")
        name = "paper_rerank" if rows is rerank else "paper_generator"
        yield Table(rows, cols.Rows(name, first, *(cols.usd(column) for column in rows.columns[1:])))


SECTIONS = (bill_of,)
