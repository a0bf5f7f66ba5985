"""The manual parts of page Decision: cards, limits that admit a near miss, and ticked stacks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
import streamlit as st

from core.analysis.workspace.resolve import NO_INCUMBENT
from core.analysis.workspace.view import View
from core.decide.selection import SHOWN
from core.ui import access, cache, limits, show
from core.ui.address.links import go, link
from core.ui.address.state import TAKE
from core.ui.pick import ASKED
from core.ui.view import current_frame
from core.views import text
from core.views.blocks import Table
from core.views.decision import limits as ranges
from core.views.decision import words
from core.views.decision.sections import (
    OFFERED,
    PRICES,
    STEPS,
    alternative_rows,
    price_rows,
)
from core.views.decision.tiles import Tile
from core.views.text import count, plain
from core.views.words.advice import second_row
from core.views.words.bills import rented_words, same_bill
from core.views.words.near import broken, kind, way_in
from core.views.words.trade import side_by_side, trade
from core.work.incumbent import mark, unmark

NEAR_SHOWN = 1
ALTERNATIVES_SHOWN = 1
OFFER, FASTER = "cheaper or faster", "faster"
LACKING_SHOWN = 5


def choice(
    *, tiles: Sequence[Tile], label: str, several: int, sentences: Sequence[str], notes: Sequence[str]
) -> None:
    """Draw the numbers of the stacks that the heading names, the last with a chip per caveat."""
    with current_frame().numbers:
        for tile in tiles:
            with st.container(border=True, gap=None, height="stretch"):
                _tile(tile)
                if tile is tiles[-1]:
                    chip = f"{label} · {count(several, 'note')}" if several > 1 else label
                    rests_on = st.popover(plain(chip), type="tertiary", key="firm", on_change="rerun")
                    if rests_on.open:  # hidden content would slow down every move of a slider
                        with rests_on:
                            _grounds(sentences, notes)


def _grounds(sentences: Sequence[str], notes: Sequence[str]) -> None:
    """Draw what the confidence rests on."""
    for sentence in sentences:
        st.markdown(plain(sentence))
    for note in notes:
        st.caption(plain(note))
    link("confidence", "Would it hold?")


def _tile(tile: Tile) -> None:
    """Draw a number of one stack, or those of two side by side."""
    if len(tile.numbers) == 1:
        st.metric(plain(tile.label), plain(tile.numbers[0][0]))
    else:
        st.caption(plain(tile.label))
        st.markdown(_as_table([[plain(words) for words in line] for line in zip(*tile.numbers, strict=True)]))
    badge = f":gray-badge[{plain(tile.basis)}]" if tile.basis else ""
    st.caption(f"{plain(tile.note)} {badge}".strip() or "–")


def alternatives(*, view: View) -> None:
    """Draw the first cheaper or faster stack with its price and a button; the others behind it.

    One that may be as good and saves much is said with what one gives up; both stand side by side behind it.
    """
    rest, instead = len(view.sure.offered) - ALTERNATIVES_SHOWN, view.decision.instead_of
    traded, either = view.once(trade), second_row(view) is not None  # then the heading names both
    with st.container(key="alternatives", horizontal=True, gap="small", vertical_alignment="center"):
        if instead is not None:
            name = plain(str(view.table["name"][instead]))
            st.markdown(f":blue-badge[taken by hand] in place of {name}", width="content")
            st.button("Follow the rule", key="untake", on_click=take, args=("",))
        for row in alternative_rows(view, ALTERNATIVES_SHOWN).iter_rows(named=True):
            said = f"{text.shorten(row['stack'], words.SHORT)}: {row['in_words']}"
            first = view.sure.alternatives[0]
            saves = FASTER if first.told_apart and view.once(same_bill, first.row) else OFFER
            offer = f":gray-badge[{saves}] {plain(said)}"
            if traded is not None:
                offer = f"**{plain(traded.beside if either else traded.sentence)}**"
            st.markdown(offer, width="content")
            st.button("Take it", key=f"take_{row['run_id']}", on_click=take, args=(row["run_id"],))
        label = f"{count(rest, 'more alternative')}" if rest > 0 else PRICES
        more = st.popover(label, type="tertiary", key="more_alternatives", on_change="rerun")
        if more.open:  # hidden content would slow down every move of a slider
            with more:
                if traded is not None:
                    st.markdown(_side_by_side(side_by_side(view, traded)))
                rows = alternative_rows(view)
                _more(rows, price_rows(view), "" if either else rented_words(view), either=either)


def _side_by_side(table: Table) -> str:
    """Return a small table of words as Markdown."""
    labels = [column.label for column in table.of.columns]
    lines = [[plain(cell) for cell in line] for line in (labels, *table.rows.rows())]
    return _as_table(lines, [":--", *["--:"] * (len(labels) - 1)])


def _as_table(lines: Sequence[Sequence[str]], ruler: Sequence[str] = ()) -> str:
    """Return escaped cells as a table in Markdown, the first line as its head."""
    first, *rest = lines
    return "\n".join(f"| {' | '.join(line)} |" for line in (first, ruler or [":--"] * len(first), *rest))


def _more(rows: pl.DataFrame, steps: pl.DataFrame, saved: str, *, either: bool) -> None:
    """Draw the next alternatives with their buttons, all as a table, and the price of more quality.

    Args:
        either: Whether the first stands beside the choice already.
    """
    for row in rows.slice(ALTERNATIVES_SHOWN, SHOWN).iter_rows(named=True):
        st.markdown(f"**{plain(row['stack'])}** {plain(row['in_words'])}")
        st.button("Take it", key=f"take_{row['run_id']}", on_click=take, args=(row["run_id"],))
    if not (rows := rows[1:] if either else rows).is_empty():
        show.table(rows, OFFERED)
        if saved:
            st.caption(saved)
    if steps.height:
        st.markdown(f"**{PRICES}**")
        show.table(steps, STEPS)


def take(run_id: str) -> None:
    """Take a stack instead of the rule's, or follow the rule again (a callback)."""
    st.session_state[TAKE] = run_id


def near_misses(*, view: View, misses: Sequence[Mapping[str, Any]], lacking: pl.DataFrame, own: str) -> None:
    """Draw the stacks just outside the limits and those that lack a number, in one line."""
    offered = ranges.limits(view.table, view.quality, view.latency)
    with st.container(key="offers", horizontal=True, gap="small", vertical_alignment="center"):
        for place, miss in enumerate(misses[:NEAR_SHOWN]):
            st.markdown(f":orange-badge[{kind(miss)}] {plain(words.gaining(miss))}", width="content")
            st.button(
                plain(f"Set {way_in(miss)}"),
                key=f"near_{place}",
                help=plain(f"{miss['stack']}: {broken(miss)}"),
                on_click=limits.take,
                args=(offered, {miss["limit"]: miss["set_to"]}),
            )
        if not lacking.is_empty():
            _lacking(lacking, own)
        elif own:
            with st.popover("latency of the path not published", type="tertiary"):
                _other_scope(own)


def _other_scope(own: str) -> None:
    """Offer the latency reported by the source."""
    st.markdown(plain(own))
    decide_on = {"lat": "rerank"}
    st.button("Decide on the reranker", key="near_scope", on_click=st.session_state.update, args=(decide_on,))


def _lacking(lacking: pl.DataFrame, own: str) -> None:
    """Draw the best stack that lacks a number, and all of them behind a button."""
    best = lacking.row(0, named=True)
    st.markdown(f":orange-badge[{plain(best['missing'])}] {plain(words.gaining(best))}", width="content")
    with st.popover("Measure it"):
        for row in lacking.head(LACKING_SHOWN).iter_rows(named=True):
            st.markdown(f"**{plain(row['stack'])}** {plain(words.to_measure(row))}")
        if lacking.height > LACKING_SHOWN:
            st.caption(f"And {count(lacking.height - LACKING_SHOWN, 'more stack')}.")
        if own:
            _other_scope(own)
        link("run", "Run it here")


def stacks(*, view: View, table: Table) -> None:
    """Draw the stacks with checkboxes, for a comparison or to mark the one that runs today."""
    place = st.container(key="compare", horizontal=True, vertical_alignment="center")
    rows = table.rows
    event = show.table(
        rows, table.of, whole=table.whole, on_select="rerun", selection_mode="multi-row"
    )  # fmt: skip
    ticked = [rows["name"][row] for row in event.selection.rows if row < rows.height]
    if rows.height > 1:
        place.caption(words.ticking(len(ticked)), width="content")
    if len(ticked) >= 2 and place.button(
        "Compare", type="primary", key="compare_ticked", icon=":material/compare_arrows:"
    ):
        go("compare", cmp=ticked)
    if len(ticked) == 1:
        runs = view.running_name == ticked[0]
        label, name = ("No longer runs today", NO_INCUMBENT) if runs else ("Runs today", ticked[0])
        place.button(label, key="runs_today", icon=":material/flag:", on_click=today, args=(view, name))


def today(view: View, name: str) -> None:
    """Mark the stack that runs today, in the store if this visitor may write there (a callback)."""
    st.session_state[ASKED["incumbent"].choice.key] = name
    if not access.forbidden() and view.snapshot.revision == cache.store().revision():
        access.act(_keep, view.scope.collection_id, name)


def _keep(collection: str, name: str) -> str:
    """Write the mark to the store; the page shows it, so there is nothing to say."""
    if name == NO_INCUMBENT:
        unmark(cache.store(), collection)
    else:
        mark(cache.store(), collection, name)
    return ""


def stack(*, view: View, run_id: str) -> None:
    """Draw the three numbers of a stack."""
    show.card(view.table, run_id, view.quality)
