import streamlit as st

from core.ui import cache, cost, show
from core.ui.cost_columns import BILL_COLUMNS, RECORDED_COLUMNS, SWING_COLUMNS, paper_columns
from core.ui.view import find_view
from core.views import text
from core.views.cost.page import PAPER_BOOK, PAPER_TOKENS, paper_generator, paper_rerank
from core.views.cost.page import cost as bill_of
from core.views.cost.recorded import recorded_answer
from core.views.cost.swings import swings

view = find_view()
head = st.container()
asked = cost.ask(view)
result = st.container()

st.subheader("Prices", anchor=False)
st.caption(
    "The selected price book. Double-click a price to try another: a what-if for this page only; other "
    "pages, links and the files of the book keep it. Books of your own are TOML files in "
    "the folder that CLQ_PRICES names, else in price-books beside the store."
)
changes = cost.edit_prices(asked.book)
found = bill_of(asked.inputs, asked.book, changes, asked.basis)
prices = asked.book.with_changes(changes)

with head:
    show.head(
        "What this tells you: what a stack costs per query and per month, and which stage the money goes to.",
        found.answer,
        found.details,
    )
    if changes:
        bar = st.container(horizontal=True, vertical_alignment="center")
        bar.warning(f"What-if, on this page only: {text.plain(found.what_if)}.", icon=":material/edit:")
        bar.button("Reset prices", on_click=cost.reset_prices, icon=":material/undo:")
with result:
    drawn, paper = st.columns([2, 3], gap="medium")
    if not found.bill.is_empty():
        show.table(found.bill, "bill", BILL_COLUMNS, placeholder="unknown")
    if view and asked.start:
        run_id, name = asked.start
        rows = cache.recorded_cost(view, run_id, prices)
        st.markdown(f"**As recorded** · {text.plain(recorded_answer(rows, name))}")
        if not rows.is_empty():
            show.table(rows, "recorded", RECORDED_COLUMNS, placeholder="unknown")
    st.subheader("What moves the monthly bill", anchor=False)
    share = cost.ask_range()
    moved = swings(asked.inputs, prices, share=share)
    st.markdown(text.plain(moved.answer))
    if not moved.rows.is_empty():
        bars, ends = st.columns([1, 1], gap="medium")
        with bars:
            show.chart(moved.figure, "tornado", alt=moved.answer)
        with ends:
            show.table(moved.rows, "sensitivity_of_the_bill", SWING_COLUMNS)
with drawn:
    if not found.bill.is_empty():
        show.chart(found.figure, "cost", alt=found.answer)
with paper:
    st.markdown("**The paper's prices, by the same calculator**")
    st.caption(
        f"published · CLQ paper, arXiv:2511.09545, §3.2.1; price book {PAPER_BOOK}; {PAPER_TOKENS} tokens "
        "per candidate and chunk; $ per 1,000 queries. What-if prices do not touch it."
    )
    left, right = st.columns([5, 6])
published = cache.books()[PAPER_BOOK]
with left:
    st.caption("Reranker, by K candidates")
    rerank = paper_rerank(published)
    show.table(rerank, "paper_rerank", paper_columns(rerank, "K"))
with right:
    st.caption("Generator input, by chunks sent")
    generator = paper_generator(published)
    show.table(generator, "paper_generator", paper_columns(generator, "chunks"))
