"""Draws the blocks of a page's sections with Streamlit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from functools import partial
from types import MappingProxyType
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.ui import cache, controls, show
from core.ui.ask import Visitor
from core.ui.pages import pick_section, way
from core.ui.view import current_page, current_view, find_view
from core.views.blocks import (
    Answer,
    Beside,
    Block,
    Cards,
    Chart,
    Control,
    Fold,
    Section,
    Table,
    Tabs,
    Text,
    Way,
)
from core.views.columns import Column, Columns, columns
from core.views.keep import keep_by
from core.views.pages import PAGES, Page
from core.views.text import plain
from core.views.workspace.view import View

keep_by(lambda words, entries: cache.cached(words, entries=entries))


ByHand = Callable[[View], None]


def draw_page(by_hand: Mapping[str, ByHand] = MappingProxyType({}), *, runs: bool = True) -> None:
    """Draw the page that this script run shows: the section that is open, in full.

    Args:
        by_hand: What draws the page's own sections, or a form below the blocks of a section, by its name.
        runs: Whether the page needs runs.
    """
    page = current_page()
    sections = {section.name: section for section in page.drawn()}
    if not any(section.bare for section in sections.values()):
        current_view(runs=runs)  # before anything is drawn that needs one
    chosen = pick_section(page) if len(page.sections) > 1 else next(iter(sections))
    if chosen in sections:
        section = sections[chosen]
        _draw_section(section, find_view() if section.bare else current_view(runs=runs))
    if chosen in by_hand:
        by_hand[chosen](current_view(runs=runs))


def _draw_section(section: Section, view: View | None) -> None:
    numbers, visitor = st.empty(), Visitor()
    draw(section.draw(view, visitor), visitor, numbers)


def draw(blocks: Iterable[Block], visitor: Visitor, numbers: DeltaGenerator) -> None:
    """Draw blocks one below the other where the page stands.

    Args:
        numbers: Where cards stand: below the answer, whatever is asked before them.
    """
    ways = None
    for block in blocks:
        visitor.next_row()
        ways = (ways or _row()) if isinstance(block, Way) else None
        match block:
            case Fold(title, folded):
                with st.expander(plain(title)):
                    draw(folded, visitor, numbers)
            case Tabs(folds):
                for tab, fold in zip(st.tabs([plain(fold.title) for fold in folds]), folds, strict=True):
                    with tab:
                        draw(fold.blocks, visitor, numbers)
            case Beside(left, right, shares):
                places = st.columns(shares, vertical_alignment="bottom")
                for place, part in zip(places, (left, right), strict=True):
                    with place:
                        draw(part, visitor, numbers)
            case _:
                with numbers.container() if isinstance(block, Cards) else ways or nullcontext():
                    _draw(block)
        visitor.next_row()


def _row() -> DeltaGenerator:
    return st.container(horizontal=True, vertical_alignment="center")


def _lead(page: Page, label: str, section: str, settings: Mapping[str, object]) -> None:
    if section or settings:
        way(page, label, section, **settings)
    else:
        st.page_link(page.file, label=label, icon=page.icon)


def _draw(block: Block) -> None:
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
        case Text(words, role, label):
            shown = words if role == "code" else plain(words)
            _SAYS[role](f"**{plain(label)}** {shown}" if label else shown)
        case Control(name, given):
            controls.CONTROLS[name](**given)
        case Way(page, label, name, settings):
            _lead(PAGES[page], label, name, settings)


_SAYS: Mapping[str, Callable[[str], Any]] = {
    "body": st.markdown,
    "caption": st.caption,
    "heading": partial(st.subheader, anchor=False),
    "info": partial(st.info, icon=":material/info:"),
    "warning": partial(st.warning, icon=":material/edit:"),
    "code": partial(st.code, language=None, wrap_lines=True),
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
    "change": show.change_column,
    "share": show.percent_column,
    "usd": show.dollar_column,
    "time": show.time_column,
    "date": show.date_column,
    "list": show.list_column,
}
"""What draws the forms that a label and a help text say all about."""
