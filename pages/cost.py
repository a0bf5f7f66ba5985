import streamlit as st

from core.ui import cache, cost, show
from core.ui.view import find_view
from core.views import text
from core.views.cost import PAPER_BOOK, PAPER_TOKENS, paper_generator, paper_rerank
from core.views.cost import cost as bill_of

view = find_view()
head = st.container()
inputs, book = cost.ask(view)
result = st.container()

st.subheader("Prices", anchor=False)
st.caption(
    "The selected price book. Double-click a price to try another: a what-if for this page only; other "
    "pages, links and the files in data/prices keep the book."
)
changes = cost.edit_prices(book)
found = bill_of(inputs, book, changes)

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
        show.table(found.bill, "bill", cost.BILL_COLUMNS, placeholder="unknown")
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
    show.table(rerank, "paper_rerank", cost.paper_columns(rerank, "K"))
with right:
    st.caption("Generator input, by chunks sent")
    generator = paper_generator(published)
    show.table(generator, "paper_generator", cost.paper_columns(generator, "chunks"))
