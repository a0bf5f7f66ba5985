"""Blocks of a page's section, whatever renders them: the dashboard, a command, a file, a notebook.

A section is a pure function of a view and of the choices asked in it; it yields blocks and doesn't know what
renders them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:  # the charting library is slow to load, so only a section that draws should wait for it
    import plotly.graph_objects as go
    import polars as pl

    from core.analysis.workspace.choices import Has
    from core.analysis.workspace.telling import Tells
    from core.analysis.workspace.view import View
    from core.number_format import CostUnit
    from core.views.ask import Ask
    from core.views.columns import Rows

Card = tuple[str, str, str]
"""Label, number, and the small text below it."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The head of a page, replacing an earlier one; names in its texts may come from users."""

    sentence: str
    details: str = ""
    warning: str = ""
    caveats: Mapping[str, str] = field(default_factory=dict)  # what weakens it, keyed by two or three words


@dataclass(frozen=True, slots=True)
class Cards:
    """The numbers of an answer, at most four, replacing earlier ones.

    Label, number, and the small text below it.
    """

    cards: Sequence[Card]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Numbers of several things side by side: each has a title, a card per thing and one per difference."""

    numbers: Sequence[tuple[str, Sequence[Card], Sequence[Card]]]


@dataclass(frozen=True, slots=True)
class Click:
    """The choice made by clicking a mark or ticking a row."""

    rows: pl.DataFrame  # where the first custom datum of a mark, or the ticked row, is looked up
    sets: Mapping[str, str]  # setting → column that gives its value
    also: Mapping[str, object] = field(default_factory=dict)  # further settings, the same for every row
    page: str = ""  # the page that opens with them; "" = this one


@dataclass(frozen=True, slots=True)
class Chart:
    """A figure; every chart has a table behind it."""

    figure: go.Figure
    name: str  # file name without extension
    alt: str  # what it shows, in words
    caption: str = ""  # how to read it
    click: Click | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """Rows in their declared form; downloads contain all columns of a frame.

    Raises:
        TypeError: If the frame lacks a declared column, or the column has another type.
    """

    rows: pl.DataFrame
    of: Rows
    whole: pl.DataFrame | None = None  # the rows to download; None = the rows shown
    # How single numbers are written, row by row, if a column mixes units
    cells: Sequence[Mapping[str, str]] = ()
    click: Click | None = None
    ticked: Sequence[int] | None = None  # rows that are ticked; None = as the visitor left them
    height: int | None = None  # maximum pixels on screen; None = as high as its rows
    unknown: bool = False  # whether an empty cell is a number that exists but is unknown
    said: CostUnit | None = None  # the page's cost unit; None = the rows' own unit, or one that suits them

    def __post_init__(self) -> None:
        """Check the frame against the declaration."""
        self.of.check(self.rows)

    @property
    def name(self) -> str:
        """The name of its files, without extension."""
        return self.of.name


@dataclass(frozen=True, slots=True)
class Text:
    """A line of words."""

    words: str
    role: Literal["body", "caption", "heading", "info", "warning", "code", "guide"] = "body"
    label: str = ""  # bold, before a body


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage to be read; its texts come from others."""

    title: str
    text: str
    rank: int | None = None
    grade: int | None = None  # None = unjudged
    mark: str = ""  # what happened to it, in a word
    note: str = ""  # in small print


@dataclass(frozen=True, slots=True)
class Passages:
    """Passages, one below the other."""

    passages: Sequence[Passage]
    judged: bool = True  # whether their grades are shown
    folded: bool = False  # whether each text unfolds separately


@dataclass(frozen=True, slots=True)
class Fold:
    """Blocks behind a title; drawn once, and may ask questions meanwhile."""

    title: str
    blocks: Iterable[Block]
    late: bool | None = None  # whether a page draws it only when opened; by default if nothing in it can ask

    @property
    def waits(self) -> bool:
        """Tell whether a page draws it only when it is opened, as whatever is drawn slows a page down."""
        return isinstance(self.blocks, Sequence) if self.late is None else self.late


@dataclass(frozen=True, slots=True)
class Tabs:
    """Folds side by side, one shown at a time on a page; elsewhere they follow each other."""

    folds: Sequence[Fold]


@dataclass(frozen=True, slots=True)
class SideBySide:
    """Blocks side by side on a page, in proportion to their shares; elsewhere they follow each other."""

    left: Iterable[Block]
    right: Iterable[Block]
    shares: tuple[int, int] = (1, 1)
    level: Literal["top", "bottom"] = "top"  # their vertical alignment


@dataclass(frozen=True, slots=True)
class Control:
    """Block that only the dashboard has, such as a form or a button that writes."""

    name: str  # by which `core.ui.controls` knows it
    given: Mapping[str, Any] = field(default_factory=dict)  # its arguments
    others: Callable[[], Blocks] | None = None  # the blocks drawn everywhere else instead; None = nothing


@dataclass(frozen=True, slots=True)
class Way:
    """A link to another page or section, with settings to take along; consecutive ones share a row."""

    page: str
    label: str
    section: str = ""
    settings: Mapping[str, object] = field(default_factory=dict)
    first: bool = False  # the next thing to do, drawn bold


@dataclass(frozen=True, slots=True)
class Lack:
    """Notice that the workspace cannot fill the rest of the page; the dashboard says what would."""

    need: Has
    words: str


Block = (
    Answer
    | Cards
    | Comparison
    | Chart
    | Table
    | Text
    | Passages
    | Fold
    | Tabs
    | SideBySide
    | Control
    | Way
    | Lack
)
Blocks = Iterator[Block]


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a page; `draw` is pure: its blocks depend only on the view and on the answers."""

    name: str  # in the URL; "" if it is the whole page
    draw: Callable[[Any, Ask], Blocks]  # of a view
    question: str = ""  # the question it answers; shown above the answer if the page has several sections
    bare: bool = False  # whether it has something to say without a workspace; its view is then None
    tells: Tells | None = None  # what makes it visible instead of behind "More"; None = always visible


def section(
    name: str = "", question: str = "", tells: Tells | None = None
) -> Callable[[Callable[[View, Ask], Blocks]], Section]:
    """Declare a section."""
    return lambda draw: Section(name, draw, question, tells=tells)


def bare_section(
    name: str = "", question: str = ""
) -> Callable[[Callable[[View | None, Ask], Blocks]], Section]:
    """Declare a section that also has something to say without a workspace."""
    return lambda draw: Section(name, draw, question, bare=True)
