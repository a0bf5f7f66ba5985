"""Changed prices: the URL carries them, every page uses them, one click takes them back."""

from __future__ import annotations

from collections.abc import Iterable

import streamlit as st

from core.analysis.workspace.figures.costs import repriced, used_by
from core.analysis.workspace.view import View
from core.decide.rules import decide
from core.prices import Price, PriceBook
from core.prices.book import PriceKey
from core.ui import address, cache
from core.ui.view import just_arrived
from core.views.cost.words import BUYS, buying, changed, rechosen
from core.views.text import count, label, plain

KEY = "price"  # URL setting: a text per changed price, in the form `PriceBook.read_changes` parses
_SET = "_price_set"
_FIELD, _MORE, _SEEN, _TRIED = "_price_field_", "_price_more", "_price_seen", "_price_tried"
_LARGEST = 1e9


def changes(book: PriceBook) -> list[str]:
    """Return the changed prices of the chosen book, without URL values that aren't prices of it."""
    texts = st.session_state.pop(_SET, st.query_params.get_all(KEY))
    kept = [text for text in texts if not book.read_changes([text])[1]]
    st.session_state[KEY] = kept
    address.put({KEY: kept})
    return kept


def use(texts: Iterable[str] = ()) -> None:
    """Use these changed prices from now on; if there are none, the book's (a callback)."""
    st.session_state[_SET] = list(texts)


def chip(view: View) -> None:
    """Say how many prices in use were changed, and which, and offer the way back."""
    book = view.book
    keys = {price.key for price in book.changed}
    mine = keys & used_keys(view) if keys else keys
    if not mine:
        return
    with st.popover(
        f"{count(len(mine), 'price')} changed",
        icon=":material/sell:",
        help="Every cost here counts with them.",
        type="tertiary",
        width="content",
    ):
        for words in changed(book):
            st.markdown(plain(words))
        st.button("Back to the book's prices", on_click=use, key="_price_back", icon=":material/undo:")


@cache.cached(entries=64)
def used_keys(view: View) -> frozenset[PriceKey]:
    """Return the items and units that the workspace's stacks use."""
    return used_by(view.snapshot, view.table)


def ask(own: PriceBook, now: PriceBook, used: Iterable[Price]) -> PriceBook:
    """Ask for the prices that the stack uses; return the book with those on screen, kept until reset.

    Args:
        now: The book used on every page.
        used: The book's prices behind the bill.
    """
    if (seen := (own.name, now.changes)) != st.session_state.get(_SEEN):
        _forget_tried()
    elif just_arrived():
        _forget_fields()
    st.session_state[_SEEN] = seen
    begin = own.with_changes(own.read_changes(st.session_state.get(_TRIED, now.changes))[0])
    used = [*used, *(own.newest[price.key] for price in (*now.changed, *begin.changed))]
    rows = {price.key: price for price in used}
    others = {
        f"{price.item}, {BUYS[price.unit]}": price for price in own.newest.values() if price.key not in rows
    }
    if (picked := st.session_state.get(_MORE)) in others:
        rows[others[picked].key] = others[picked]
    halves = st.columns(2)
    amounts = {}
    for place, (key, price) in enumerate(rows.items()):
        with halves[place % 2]:
            amounts[key] = _price(price, begin.newest[key])
    tried = own.with_changes(amounts)
    st.session_state[_TRIED] = tried.changes
    bar = st.container(horizontal=True, vertical_alignment="bottom")
    bar.selectbox(
        "Change another price", list(others), index=None, key=_MORE, width=330, placeholder="choose"
    )
    if tried.changes != now.changes:
        words = "Use these prices in the decision"
        bar.button(words, on_click=use, args=(tried.changes,), type="primary", icon=":material/check:")
    if tried.changed:
        bar.button("Back to the book's prices", on_click=_back, icon=":material/undo:")
    return tried


def say_choice(view: View, tried: PriceBook) -> None:
    """Say whether the prices on screen would change the choice; nothing if they are in force."""
    if tried.changes != view.book.changes:
        st.markdown(plain(rechosen(*(_choice(view, book) for book in (view.book, tried)))))


@cache.cached(entries=64)
def _choice(view: View, book: PriceBook) -> str | None:
    """Return the name of the stack chosen under these prices."""
    table = repriced(view.snapshot, view.table, book, (view.scope, view.quality.k))
    chosen = decide(table, view.constraints, paired=view.paired).chosen
    return None if chosen is None else str(table["name"][chosen])


def _price(book: Price, begin: Price) -> float:
    """Ask for one price: a field, and buttons for half and double."""
    key = f"{_FIELD}{book.item}:{book.unit}"
    st.session_state.setdefault(key, begin.price)
    row = st.container(horizontal=True, vertical_alignment="bottom", gap="small")
    said = f"{book.item}, {book.currency} per {buying(book)}"
    value: float = row.number_input(
        label(said), min_value=0.0, max_value=_LARGEST, format="%.6g", key=key, width=240
    )
    for name, factor, means in (("×½", 0.5, "Half"), ("×2", 2.0, "Twice")):
        about = label(f"{means} of the price of {book.item}")
        row.button(name, key=f"{key}{name}", on_click=_scale, args=(key, factor), help=about)
    row.caption(f"price book: {book.price:.6g}")
    return value


def _scale(key: str, factor: float) -> None:
    st.session_state[key] = float(f"{st.session_state[key] * factor:.6g}")


def _back() -> None:
    _forget_tried()
    use()


def _forget_tried() -> None:
    """Forget the trial prices, on screen and on other pages."""
    _forget_fields()
    st.session_state.pop(_TRIED, None)


def _forget_fields() -> None:
    """Start the price fields with the trial prices, or else with those in force."""
    for key in [key for key in st.session_state if str(key).startswith(_FIELD)]:
        del st.session_state[key]
