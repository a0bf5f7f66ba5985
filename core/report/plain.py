"""The text of a section for people: charts are named, their numbers are in the tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from core.bidi import strip_bidi_controls
from core.report.page import cells, for_people, marked, written
from core.views.blocks import (
    Answer,
    Block,
    Card,
    Cards,
    Chart,
    Comparison,
    Fold,
    Lack,
    Passages,
    Table,
    Text,
)
from core.views.queries.one_query import shown_text
from core.views.text import ruled

if TYPE_CHECKING:
    from rich.table import Table as Grid

_ROWS = 30  # Maximum rows of a table as text; every other form has more
Pieces = Iterator["str | Grid"]


def pieces(blocks: Iterable[Block], *, more: str = "") -> Pieces:
    """Yield blocks, including those behind folds, as lines and terminal tables; nothing in them is markup.

    Args:
        more: Where to find the rows omitted from a long table.
    """
    for block in blocks:
        if isinstance(block, Fold):
            yield from _lines(block.title)
            yield from pieces(block.blocks, more=more)
        elif isinstance(block, Table):
            yield from _table(block, more)
        elif type(block) in _WRITES:
            yield from _WRITES[type(block)](block)


def _answer(block: Answer) -> Pieces:
    notes = [f"{label}: {words}" for label, words in block.caveats.items() if words]
    yield from _lines(block.sentence, block.details, block.warning and f"warning: {block.warning}", *notes)


def _cards(cards: Sequence[Card]) -> Pieces:
    yield ruled([("", False), ("", True), ("", False)], cards)


def _comparison(block: Comparison) -> Pieces:
    for title, own, apart in block.numbers:
        yield from _lines(title)
        yield from _cards([*own, *apart])


def _table(block: Table, more: str) -> Pieces:
    block, shown = for_people(block)
    lines = ([written(row[column.name], column) for column in shown] for row in cells(block, _ROWS))
    yield ruled([(column.label, column.form not in ("text", "list")) for column in shown], lines)
    if block.rows.height > _ROWS:
        yield f"The first {_ROWS} of {block.rows.height:,} rows{more}."


def _passages(block: Passages) -> Pieces:
    for passage in block.passages:
        shown, rest = shown_text(passage.text)
        left = f"… ({len(rest):,} more characters)" if rest else ""
        yield from _lines(marked(passage, block.judged), passage.note, *shown.splitlines(), left)


_WRITES: Mapping[type, Callable[[Any], Pieces]] = {
    Answer: _answer,
    Cards: lambda block: _cards(block.cards),
    Comparison: _comparison,
    Chart: lambda block: _lines(f"[chart {block.name}] {block.alt}", block.caption),
    Text: lambda block: _lines(f"{block.label} {block.words}".strip()),
    Passages: _passages,
    Lack: lambda block: _lines(block.words),
}
"""Writers of blocks by kind; other kinds are only for the dashboard."""


def _lines(*words: str) -> Pieces:
    return map(strip_bidi_controls, filter(None, words))
