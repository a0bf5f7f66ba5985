"""Draws the blocks of a page's sections with Streamlit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import streamlit as st

from core.ui import cache, show
from core.ui.ask import Visitor
from core.ui.pages import pick_section, way
from core.ui.view import current_page, current_view
from core.views.blocks import Answer, Block, Cards, Chart, Fold, Table, Text, Way
from core.views.columns import Column, Columns, columns
from core.views.keep import keep_by
from core.views.pages import PAGES
from core.views.text import plain

keep_by(lambda words, entries: cache.cached(words, entries=entries))


def draw_page() -> None:
    """Draw the page that this script run shows: the section that is open, in full."""
    page, view = current_page(), current_view()
    sections = page.drawn()
    chosen = pick_section(page) if len(sections) > 1 else sections[0].name
    section = next(each for each in sections if each.name == chosen)
    numbers, visitor = st.container(), Visitor()
    for block in section.draw(view, visitor):
        visitor.next_row()
        if isinstance(block, Cards):  # which stand below the answer, whatever is asked before them
            with numbers:
                draw(block)
        else:
            draw(block)


def draw(block: Block) -> None:
    """Draw one block where the page stands."""
    match block:
        case Answer():
            show.head(block.sentence, block.details, block.warning, block.caveats)
        case Cards(cards):
            show.cards(*cards)
        case Chart(figure, name, alt, caption):
            show.chart(figure, name, alt=alt)
            if caption:
                st.caption(plain(caption))
        case Table(rows, name, shown, more, whole):
            show.table(rows, name, configured(shown), more=configured(more), whole=whole)
        case Text(words, role):
            _SAYS[role](plain(words))
        case Fold(title, blocks):
            with st.expander(plain(title)):
                for each in blocks:
                    draw(each)
        case Way(page, label, name, settings):
            way(PAGES[page], label, name, **settings)


_SAYS: Mapping[str, Callable[[str], Any]] = {
    "body": st.markdown,
    "caption": st.caption,
    "heading": partial(st.subheader, anchor=False),
    "info": partial(st.info, icon=":material/info:"),
}


def configured(chosen: Columns) -> dict[str, Any]:
    """The columns as Streamlit's tables take them, by name."""
    return {column.name: _config(column) for column in columns(chosen)}


def _config(column: Column) -> Any:
    label, about = column.label, column.help
    if column.form in ("number", "signed"):
        made = show.number_column if column.form == "number" else show.signed_column
        return made(label, help_text=about, digits=column.digits)
    if column.form == "text":
        return show.text_column(label, about, column.width)
    return _FORMS[column.form](label, about)


_FORMS: Mapping[str, Callable[[str, str], Any]] = {
    "score": show.score_column,
    "share": show.percent_column,
    "usd": show.dollar_column,
    "time": show.time_column,
    "date": show.date_column,
    "list": show.list_column,
}
"""What draws the forms that a label and a help text say all about."""
