import streamlit as st

from core.choices import declared
from core.number_format import cost_unit
from core.prices.calculator import CostInputs, calculator
from core.ui import cache, prices
from core.ui.address.state import linked
from core.ui.ask import Visitor
from core.ui.draw import draw
from core.ui.pick import ASKED
from core.ui.view import current_frame, find_view
from core.views.cost.sections import (
    CalculatorForm,
    Priced,
    ask_start,
    bill_of,
    costs,
    known_in_part,
    moving,
    recorded_cost,
    started,
    tables,
)

PER_QUERY = (
    ("embedder", "query_tokens", "cpu_ms"),
    ("reranker", "candidates", "tokens_per_candidate"),
    ("generator", "chunks_sent", "tokens_per_chunk"),
    ("prompt_tokens", "output_tokens", "gpu_ms"),
)
CORPUS = (("passages", "tokens_per_passage"), ("spread_queries", "dim"), ("index",), ("copies",))
PASSAGES = declared(CostInputs)["passages"].choice.key


def ask_columns(form: CalculatorForm, columns: tuple[tuple[str, ...], ...]) -> None:
    """Ask for inputs in columns."""
    for place, names in zip(st.columns(len(columns)), columns, strict=True):
        with place:
            for name in names:
                visitor.next_row()
                form.ask(name)


current_frame().question = bill_of.question
view, visitor, books = find_view(), Visitor(), cache.books()
start = run_id = None
top = st.columns([3, 1])
with top[0]:
    if view is not None:
        run_id = ask_start(view, visitor)
        start = started(view, run_id) if run_id else None
form = CalculatorForm(visitor, start, books.values())
with top[1]:
    visitor.next_row()
    form.ask("queries_per_month")
    if view is None:  # there is no frame to choose it in
        choice = ASKED["prices"].choice
        chosen_book = st.selectbox(choice.label, list(books), **linked(choice.key))
cards, priced, result = st.empty(), st.container(), st.container()
st.subheader("What is sent", anchor=False)
ask_columns(form, PER_QUERY)
with st.expander("Corpus and index", expanded=bool(st.query_params.get(PASSAGES))):
    ask_columns(form, CORPUS)
now = books[chosen_book].derived(prices.changes(books[chosen_book])) if view is None else view.book
own = books[now.name]
with priced.expander("Prices of what it uses", expanded=True):
    tried = prices.ask(own, now, [line.price for line in calculator(form.inputs, own).lines if line.price])
    if view:
        prices.say_choice(view, tried)
recorded = recorded_cost(view, run_id, own) if view and run_id else None
partly = known_in_part(view, run_id) if view and run_id else ""
asked = Priced(form.inputs, tried, start, recorded, cost_unit(view.table) if view else None, partly)
draw(asked.said, visitor, cards)
with result:
    draw(costs(asked), visitor, cards)
    draw(moving(asked, visitor), visitor, cards)
draw(tables(tried), visitor, cards)
