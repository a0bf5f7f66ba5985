"""What flips it: the number that would turn the choice, the frontier's shape, and what the limits exclude."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl
import streamlit as st

from core.decide.rules import Constraints, Rule, decide
from core.decide.turning import turns
from core.ui import cache, show
from core.ui.sections.hold import ask_rule
from core.ui.view import View
from core.views.confidence import words
from core.views.confidence.flips import excluded_rows, front, turn_rows
from core.views.text import plain


def what_flips_it(view: View) -> None:
    """Draw the section."""
    head = st.container()
    rule, decision = ask_rule(view)
    turned = _turned(view, view.constraints, rule)
    shape = front(view.table, decision)
    with head:
        show.head(words.turning_words(turned))
        cards = [] if shape is None else words.front_cards(shape)
        if decision.chosen is not None:
            cards.append(words.quality_card(view.table.row(decision.chosen, named=True), view.quality))
        if cards:
            show.cards(*cards)
    if not turned.is_empty():
        then = turned.with_columns(outcome=pl.coalesce("winner", "reason"))
        show.table(then, "turning", TURNS, whole=turned)
    st.subheader("What the limits exclude, and by how much", anchor=False)
    excluded = excluded_rows(view.table, decision)
    st.markdown(plain(words.excluded_words(excluded)))
    if not excluded.is_empty():
        show.table(excluded, "excluded", EXCLUDED, more={"constraint": show.text_column("first limit")})


@cache.cached(entries=64)
def _turned(view: View, constraints: Constraints, rule: Rule) -> pl.DataFrame:
    decision = decide(view.table, constraints, rule, paired=view.paired)
    return turn_rows(view.table, turns(view.table, constraints, rule, decision=decision, paired=view.paired))


TURNS: Mapping[str, Any] = {
    "stack": show.text_column("stack", width=240),
    "number": show.text_column("its"),
    "now": show.text_column("now"),
    "then": show.text_column("would need"),
    "change": show.text_column("change"),
    "outcome": show.text_column("then chosen", "Or why no such change turns the choice.", width=260),
}
EXCLUDED: Mapping[str, Any] = {
    "name": show.text_column("stack", width=270),
    "reason": show.text_column("excluded because", width=230),
    "by": show.number_column("over by", 3),
    "unit": show.text_column("unit"),
    **show.NUMBERS,
}
