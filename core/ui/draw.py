"""Draws the blocks of a page's sections with Streamlit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from types import MappingProxyType
from typing import Any, Literal

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.analysis.workspace.view import Place, View
from core.bidi import strip_bidi_controls
from core.ui import controls, figures, show
from core.ui.address.links import go
from core.ui.ask import Visitor
from core.ui.pages import pick_section, way
from core.ui.pick import selected_row
from core.ui.view import Lacking, current_frame, current_page, current_view, find_view
from core.views.blocks import (
    Answer,
    Block,
    Cards,
    Chart,
    Click,
    Comparison,
    Control,
    Fold,
    Lack,
    Passage,
    Passages,
    Section,
    SideBySide,
    Table,
    Tabs,
    Text,
    Way,
)
from core.views.pages import PAGES
from core.views.queries.one_query import shown_text
from core.views.text import plain

ByHand = Callable[[View], None]


def draw_page(
    by_hand: Mapping[str, ByHand] = MappingProxyType({}),
    *,
    runs: bool = True,
    free: Mapping[str, Callable[[], None]] = MappingProxyType({}),
) -> None:
    """Draw the page of this script run: its open section, in full.

    Args:
        by_hand: Functions that draw the page's own sections, or a form below a section's blocks, by name.
        runs: Whether the page needs runs.
        free: Functions that draw the sections that need no workspace, by name.
    """
    if _GO in st.session_state:
        name, asked = st.session_state.pop(_GO)
        go(name, **asked)
    page = current_page()
    sections = {section.name: section for section in page.drawn()}
    if not free and not any(section.bare for section in sections.values()):
        current_view(runs=runs)  # before drawing anything that needs one
    chosen = pick_section(page) if len(page.sections) > 1 else next(iter(sections))
    if chosen in free:
        free[chosen]()
        return
    if chosen in sections:
        section = sections[chosen]
        draw_section(section, find_view() if section.bare else current_view(runs=runs))
    if chosen in by_hand:
        by_hand[chosen](current_view(runs=runs))


def draw_section(section: Section, place: Place | None) -> None:
    """Draw a section of this script run's page."""
    numbers, visitor = st.empty(), Visitor()
    current_frame().question = section.question
    draw(section.draw(place, visitor), visitor, numbers)


def draw(blocks: Iterable[Block], visitor: Visitor, numbers: DeltaGenerator) -> None:
    """Draw blocks one below the other at the current place on the page.

    Args:
        numbers: Container of the cards: below the answer, whatever is asked before them.
    """
    ways = None
    for block in blocks:
        visitor.next_row()
        ways = (ways or _row()) if isinstance(block, Way) else None
        if within := _places(block):
            for place, inside in within:
                with place:
                    draw(inside, visitor, numbers)
        else:
            with numbers.container() if isinstance(block, Cards) else ways or nullcontext():
                _DRAWS[type(block)](block)
        visitor.next_row()


def _places(block: Block) -> Sequence[tuple[DeltaGenerator, Iterable[Block]]]:
    """Return the containers of the blocks inside a block."""
    match block:
        case Fold(title):
            # A key keeps it open when something appears or disappears above it.
            place = st.expander(plain(title), key=f"fold_{title}", on_change=_tells(block.waits))
            return [(place, opened(place.open, block))]
        case Tabs(folds):
            titles = [plain(fold.title) for fold in folds]
            tabs = st.tabs(titles, key=f"tabs_{titles}", on_change=_tells(any(fold.waits for fold in folds)))
            return [(tab, opened(tab.open, fold)) for tab, fold in zip(tabs, folds, strict=True)]
        case SideBySide(left, right, shares, level):
            return list(zip(st.columns(shares, vertical_alignment=level), (left, right), strict=True))
    return ()


def _tells(waits: bool) -> Literal["rerun", "ignore"]:
    """Return whether a container says that it was opened: what waits in it is drawn then."""
    return "rerun" if waits else "ignore"


def opened(opened: bool | None, fold: Fold) -> Iterable[Block]:
    """Return what is inside of a fold, nothing as long as it waits to be opened."""
    return () if fold.waits and not opened else fold.blocks


def _row() -> DeltaGenerator:
    return st.container(horizontal=True, vertical_alignment="center")


def _answer(block: Answer) -> None:
    show.head(block.sentence, block.details, block.warning, block.caveats)


def _label(block: Way) -> str:
    return f"**{block.label}**" if block.first else block.label


def _lack(block: Lack) -> None:
    raise Lacking(current_view(), block.need)


def _chart(block: Chart) -> None:
    figures.draw(block.figure, block.name, block.alt, _chosen(block.click, f"chart_{block.name}"))
    if block.caption:
        st.caption(plain(block.caption))


def _say(block: Text) -> None:
    words = block.words if block.role in ("code", "guide") else plain(block.words)
    _SAYS[block.role](f"**{plain(block.label)}** {words}".rstrip() if block.label else words)


def _comparison(block: Comparison) -> None:
    """Draw a box per number."""
    for place, (title, cards, apart) in zip(st.columns(len(block.numbers)), block.numbers, strict=True):
        with place.container(border=True, height="stretch"):
            st.markdown(f"**{plain(title)}**")
            for column, card in zip(st.columns(len(cards)), cards, strict=True):
                label, number, note = (plain(words) for words in card)
                if len(cards) == 2:
                    column.metric(label, number)
                else:  # a metric truncates what doesn't fit
                    column.markdown(f"{label}  \n**{number}**")
                column.caption(note)
            for card in apart:
                label, number, note = (plain(words) for words in card)
                st.markdown(f"{label}: **{number}**")
                st.caption(note)


_ROW = 35  # Pixels per table row; fewer rows than fit leave no empty ones


def _table(block: Table) -> None:
    key, high = f"table_{block.name}", block.height
    chosen = _chosen(block.click, key)
    options = {"height": high} if high is not None and high < _ROW * (block.rows.height + 1) else {}
    if block.ticked is not None:
        selected = {"selection": {"rows": list(block.ticked)}}
        if st.session_state.get(key, {}).get("selection", {}).get("rows") != selected["selection"]["rows"]:
            st.session_state[key] = selected
    show.table(
        block.rows, block.of, whole=block.whole, cells=block.cells,
        placeholder="unknown" if block.unknown else "–", **options,
        **({"on_select": chosen, "selection_mode": "single-row"} if chosen else {}),
    )  # fmt: skip


_GO = "_go"  # Session slot: the page that a click opens, and its URL settings


def _chosen(click: Click | None, key: str) -> Callable[[], None] | None:
    """Return the action of a click on a mark or a row."""
    if click is None:
        return None

    def chosen() -> None:
        row = selected_row(key)
        if row is None or row >= click.rows.height:
            return
        values = {setting: click.rows[column][row] for setting, column in click.sets.items()}
        values.update(click.also)
        if click.page:
            st.session_state[_GO] = click.page, values
        else:
            st.session_state.update(values)

    return chosen


def _passages(block: Passages) -> None:
    """Draw passages one below the other: the part shown at once, or folded."""
    for passage in block.passages:
        with st.container(border=True, gap="small"):
            st.markdown(_passage_line(passage, judged=block.judged))
            st.caption(plain(passage.note))
            shown, rest = (
                ("", strip_bidi_controls(passage.text))
                if block.folded
                else shown_text(strip_bidi_controls(passage.text))
            )
            if shown:
                st.text(shown)
            if rest:
                title = f"Read on ({len(rest):,} more characters)" if shown else "Read"
                with st.expander(title, type="compact"):
                    st.text(rest)


def _passage_line(passage: Passage, *, judged: bool) -> str:
    """Return a passage's rank, grade, mark and title as one element, for a page shows twenty and more."""
    parts = [] if passage.rank is None else [f"**#{passage.rank}**"]
    if judged:
        grade = "unjudged" if passage.grade is None else f"grade {passage.grade}"
        parts.append(f":{_GRADES[passage.grade]}-badge[{grade}]")
    if passage.mark:
        parts.append(f":{_MARKS.get(passage.mark[0], 'gray')}-badge[{plain(passage.mark)}]")
    return " ".join([*parts, f"**{plain(passage.title)}**"])


_GRADES: Mapping[int | None, str] = {5: "green", 4: "green", 3: "blue", 2: "gray", 1: "gray", None: "orange"}
_MARKS: Mapping[str, str] = {"f": "red", "l": "red", "n": "violet", "▲": "green", "▼": "orange"}
"""Colours of a passage's change, by the first letter of the word."""

_DRAWS: Mapping[type, Callable[[Any], Any]] = {
    Answer: _answer,
    Cards: lambda block: show.cards(*block.cards),
    Comparison: _comparison,
    Chart: _chart,
    Table: _table,
    Text: _say,
    Passages: _passages,
    Control: lambda block: controls.CONTROLS[block.name](**block.given),
    Way: lambda block: way(PAGES[block.page], _label(block), block.section, **block.settings),
    Lack: _lack,
}
"""Functions that draw a block that holds no others."""
_SAYS: Mapping[str, Callable[[str], Any]] = {
    "body": st.markdown,
    "guide": st.markdown,
    "caption": st.caption,
    "heading": partial(st.subheader, anchor=False),
    "info": partial(st.info, icon=":material/info:"),
    "warning": partial(st.warning, icon=":material/edit:"),
    "code": partial(st.code, language=None, wrap_lines=True),
}
