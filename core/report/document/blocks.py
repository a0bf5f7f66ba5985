"""What a document is made of. All texts are plain: writers escape them, so names of users may stand in any.

A document knows nothing of HTML or Markdown; `core.report.document.html` and `.markdown` write it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import plotly.graph_objects as go


@dataclass(frozen=True)
class Say:
    """A paragraph.

    Attributes:
        text: Its words.
        quiet: Whether it is set small and grey.
    """

    text: str
    quiet: bool = False


@dataclass(frozen=True)
class Note:
    """A statement that speaks for trusting the numbers, or against it."""

    text: str
    good: bool = False


@dataclass(frozen=True)
class Notes:
    """Statements below one another."""

    notes: tuple[Note, ...]


@dataclass(frozen=True)
class Tile:
    """One large number.

    Attributes:
        label: What it is.
        value: The number with its unit.
        below: Interval, n, or what it rests on.
        basis: How it was obtained (measured, published…), shown as a badge; empty = not said.
    """

    label: str
    value: str
    below: str = ""
    basis: str = ""


@dataclass(frozen=True)
class Tiles:
    """Numbers beside one another."""

    tiles: tuple[Tile, ...]


@dataclass(frozen=True)
class Cell:
    """A cell of a table.

    Attributes:
        text: What it shows.
        order: What its column is sorted by, where that is a number.
        basis: A badge behind the text.
    """

    text: str
    order: float | None = None
    basis: str = ""


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        label: Its heading.
        number: Whether it holds numbers, which stand right-aligned.
        wide: Whether it holds long texts, such as names of stacks.
    """

    label: str
    number: bool = False
    wide: bool = False


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes:
        columns: From left to right.
        rows: A cell per column.
        caption: What it shows, in a few words.
        strong: Rows that are set in bold.
        left_out: How many more rows there are that the document leaves out.
        sortable: Whether a reader may sort it.
    """

    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    caption: str = ""
    strong: frozenset[int] = frozenset()
    left_out: int = 0
    sortable: bool = False


@dataclass(frozen=True)
class Facts:
    """Pairs of a name and a value."""

    pairs: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Chart:
    """A chart.

    Attributes:
        name: Short, in small letters: the name of its file when saved.
        figure: The chart; texts in it are escaped for Plotly already.
        alt: What it shows, in words.
        caption: How to read it.
    """

    name: str
    figure: go.Figure
    alt: str
    caption: str = ""


@dataclass(frozen=True)
class Link:
    """An address; one that is neither http nor https is shown as text."""

    text: str
    address: str


@dataclass(frozen=True)
class Code:
    """Text as it is typed or stored."""

    text: str


@dataclass(frozen=True)
class Fold:
    """What is shown on demand, and always on paper."""

    summary: str
    blocks: tuple[Block, ...]


Block: TypeAlias = Say | Notes | Tiles | Table | Facts | Chart | Link | Code | Fold


@dataclass(frozen=True)
class Section:
    """A part with its heading."""

    heading: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Document:
    """A document.

    Attributes:
        kind: What it is, above its first sentence: "Decision record".
        title: Title of the window or file.
        answer: The first sentence.
        lead: What follows it without a heading.
        sections: The parts.
        foot: The last line.
        language: Of its words.
    """

    kind: str
    title: str
    answer: str
    lead: tuple[Block, ...]
    sections: tuple[Section, ...]
    foot: str
    language: Literal["en"] = "en"


def charts(document: Document) -> list[Chart]:
    """All charts of a document, in order."""
    parts = [document.lead, *(section.blocks for section in document.sections)]
    return [chart for blocks in parts for chart in _charts(blocks)]


def _charts(blocks: Sequence[Block]) -> list[Chart]:
    found: list[Chart] = []
    for block in blocks:
        if isinstance(block, Chart):
            found.append(block)
        elif isinstance(block, Fold):
            found += _charts(block.blocks)
    return found
