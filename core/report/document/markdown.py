"""Writes a document as Markdown. Names are escaped so that they read as text in any common renderer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from core.bidi import isolated, upright
from core.report.document.blocks import (
    Block,
    Chart,
    Code,
    Document,
    Facts,
    Fold,
    Link,
    Notes,
    Say,
    Table,
    Tiles,
)
from core.report.document.link import safe_address

_SPECIAL = frozenset("\\`*_[]<>|~&$#!")
_JOINER = "\u2060"
_LINKED_LATE = re.compile(r"://|www\.|@(?=[-\w]+\.[-\w])|:(?=[-+\w]+:)", re.IGNORECASE)
"""What renderers turn into links and icons after escapes are gone; an invisible joiner keeps them from it."""
_BLOCK_START = re.compile(r"^(\d{1,9})(?=[.)](?:\s|$))|^(?=[-+=:])")
"""Where a line would begin a list, a rule or a heading: a backslash goes there."""


def escaped(text: str) -> str:
    """Text for the inside of a line of Markdown, also at its start and in a cell of a table."""
    line = isolated(" ".join(text.split()))
    line = _LINKED_LATE.sub(lambda found: "".join(char + _JOINER for char in found[0]), line)
    line = "".join(f"\\{char}" if char in _SPECIAL else char for char in line)
    return _BLOCK_START.sub(r"\g<1>\\", line)


def markdown(document: Document) -> str:
    """Write a document as Markdown (GitHub's tables); charts are named, their numbers are in the tables."""
    lines = [f"# {escaped(document.kind)}", f"**{escaped(document.answer)}**", *_blocks(document.lead)]
    for section in document.sections:
        lines += [f"## {escaped(section.heading)}", *_blocks(section.blocks)]
    return "\n\n".join([*lines, "---", f"*{escaped(document.foot)}*"]) + "\n"


def _blocks(blocks: Sequence[Block]) -> list[str]:
    return [part for block in blocks for part in _block(block)]


def _block(block: Block) -> Iterator[str]:
    match block:
        case Say():
            yield escaped(block.text)
        case Notes():
            yield "\n".join(f"- {'✓' if note.good else '⚠'} {escaped(note.text)}" for note in block.notes)
        case Tiles():
            rows = [(tile.label, tile.value, tile.below, tile.basis) for tile in block.tiles]
            yield _grid(("", "value", "", "basis"), (":--", "--:", ":--", ":--"), rows)
        case Facts():
            yield _grid(("", ""), (":--", ":--"), block.pairs)
        case Table():
            yield from _table(block)
        case Chart():
            yield f"*Chart, in the HTML file:* {escaped(block.alt)}"
        case Link():
            address = safe_address(block.address)
            text = escaped(block.text)
            yield f"[{text}](<{address}>)" if address else f"{text}: {_code(block.address)}"
        case Code():
            yield _fenced(block.text)
        case Fold():
            yield f"### {escaped(block.summary)}"
            yield from _blocks(block.blocks)


def _table(table: Table) -> Iterator[str]:
    if table.caption:
        yield escaped(table.caption)
    rows = [
        tuple(f"{cell.text} ({cell.basis})" if cell.basis else cell.text for cell in row)
        for row in table.rows
    ]
    rules = tuple("--:" if column.number else ":--" for column in table.columns)
    yield _grid(tuple(column.label for column in table.columns), rules, rows)
    if table.left_out:
        yield f"And {table.left_out:,} more."


def _grid(head: Sequence[str], rules: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    cells = [head, *rows]
    lines = [f"| {' | '.join(escaped(cell) or ' ' for cell in row)} |" for row in cells]
    return "\n".join([lines[0], f"| {' | '.join(rules)} |", *lines[1:]])


def _code(text: str) -> str:
    """A span of code; its fence is longer than any run of backticks in it."""
    line = upright(" ".join(text.split()))
    fence = "`" * (1 + max((len(run) for run in re.findall(r"`+", line)), default=0))
    return f"{fence} {line} {fence}"


def _fenced(text: str) -> str:
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall(r"`+", text)), default=0))
    return f"{fence}\n{upright(text)}\n{fence}"
