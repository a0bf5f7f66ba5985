"""The text of a section for people: charts are named, their numbers stand in the tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import typer

from core.cli.context import grid
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
from core.written import upright

_ROWS = 30  # Rows of a table as text; every other form has more


def write(blocks: Iterable[Block]) -> None:
    """Write blocks to standard output, those behind folds too."""
    for block in blocks:
        if isinstance(block, Fold):
            _lines(block.title)
            write(block.blocks)
        elif type(block) in _WRITES:
            _WRITES[type(block)](block)


def _answer(block: Answer) -> None:
    notes = [f"{label}: {words}" for label, words in block.caveats.items() if words]
    _lines(block.sentence, block.details, block.warning and f"warning: {block.warning}", *notes)


def _cards(cards: Sequence[Card]) -> None:
    grid([("", False), ("", True), ("", False)], cards)


def _comparison(block: Comparison) -> None:
    for title, own, apart in block.numbers:
        _lines(title)
        _cards([*own, *apart])


def _table(block: Table) -> None:
    block, shown = for_people(block)
    lines = ([written(row[column.name], column) for column in shown] for row in cells(block, _ROWS))
    grid([(column.label, column.form not in ("text", "list")) for column in shown], lines)
    if block.rows.height > _ROWS:
        _lines(f"The first {_ROWS} of {block.rows.height:,} rows; --format csv has all.")


def _passages(block: Passages) -> None:
    for passage in block.passages:
        shown, rest = shown_text(passage.text)
        more = f"… ({len(rest):,} more characters)" if rest else ""
        _lines(marked(passage, block.judged), passage.note, *shown.splitlines(), more)


_WRITES: Mapping[type, Callable[[Any], None]] = {
    Answer: _answer,
    Cards: lambda block: _cards(block.cards),
    Comparison: _comparison,
    Chart: lambda block: _lines(f"[chart {block.name}] {block.alt}", block.caption),
    Table: _table,
    Text: lambda block: _lines(f"{block.label} {block.words}".strip()),
    Passages: _passages,
    Lack: lambda block: _lines(block.words),
}
"""Writers of blocks by their kind; what is not here is for the dashboard alone."""


def _lines(*words: str) -> None:
    for line in filter(None, words):
        typer.echo(upright(line))
