"""Blocks of a page's section, whoever draws them: the dashboard, a command, a file, a notebook.

A section is a pure function of a view and of what is asked in it; it yields blocks and knows nobody who draws
them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:  # the charts' library takes long to load, which only a section that draws should wait for
    import plotly.graph_objects as go
    import polars as pl

    from core.analysis.workspace.choices import Has
    from core.analysis.workspace.telling import Tells
    from core.analysis.workspace.view import View
    from core.number_format import CostUnit
    from core.views.ask import Ask
    from core.views.columns import Rows

Card = tuple[str, str, str]
"""Label, number, and what stands small below it."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The head of a page, in the place of one before it; names in its texts may come from users."""

    sentence: str
    details: str = ""
    warning: str = ""
    caveats: Mapping[str, str] = field(default_factory=dict)  # what weakens it, by two or three words


@dataclass(frozen=True, slots=True)
class Cards:
    """The numbers of an answer, at most four, in the place of those before them.

    Label, number, what stands small below it.
    """

    cards: Sequence[Card]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Numbers of several things side by side: of each a title, a card per thing and one per difference."""

    numbers: Sequence[tuple[str, Sequence[Card], Sequence[Card]]]


@dataclass(frozen=True, slots=True)
class Click:
    """Choice that a click on a mark, or the tick of a row, makes."""

    rows: pl.DataFrame  # in which the first custom datum of a mark, or the ticked row, is looked up
    sets: Mapping[str, str]  # column by the setting that takes its value
    also: Mapping[str, object] = field(default_factory=dict)  # further settings, whatever the row
    page: str = ""  # which then opens with them; empty = this one


@dataclass(frozen=True, slots=True)
class Chart:
    """A figure; every chart has a table behind it."""

    figure: go.Figure
    name: str  # file name without ending
    alt: str  # what it shows, in words
    caption: str = ""  # how to read it
    click: Click | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """Rows as they are declared; all columns of a frame are downloaded.

    Raises:
        TypeError: If the frame lacks a column that is declared, or holds something else there.
    """

    rows: pl.DataFrame
    of: Rows
    whole: pl.DataFrame | None = None  # what is downloaded; None = the rows
    # How single numbers are written, row by row, where a column holds several units
    cells: Sequence[Mapping[str, str]] = ()
    click: Click | None = None
    ticked: Sequence[int] | None = None  # rows that are ticked; None = as the visitor left them
    height: int | None = None  # pixels on screen at most; None = as high as its rows
    unknown: bool = False  # whether an empty cell is a number that exists and is not known
    said: CostUnit | None = None  # how its page says costs; None = as the rows say, or as suits them

    def __post_init__(self) -> None:
        """Compare the frame with what is declared."""
        self.of.check(self.rows)

    @property
    def name(self) -> str:
        """Of its files, without ending."""
        return self.of.name


@dataclass(frozen=True, slots=True)
class Text:
    """A line of words."""

    words: str
    role: Literal["body", "caption", "heading", "info", "warning", "code", "guide"] = "body"
    label: str = ""  # stands bold before a body


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage as it is read; its texts come from others."""

    title: str
    text: str
    rank: int | None = None
    grade: int | None = None  # None = unjudged
    mark: str = ""  # what became of it, in a word
    note: str = ""  # stands small


@dataclass(frozen=True, slots=True)
class Passages:
    """Passages one below the other."""

    passages: Sequence[Passage]
    judged: bool = True  # whether their grades are told
    folded: bool = False  # whether each text is unfolded one by one


@dataclass(frozen=True, slots=True)
class Fold:
    """Blocks behind a title; drawn once, and may ask while they are."""

    title: str
    blocks: Iterable[Block]
    late: bool = False  # whether a page draws it when it is opened: what a browser loads for code takes long


@dataclass(frozen=True, slots=True)
class Tabs:
    """Folds side by side, of which a page shows one at a time; elsewhere they follow one another."""

    folds: Sequence[Fold]


@dataclass(frozen=True, slots=True)
class SideBySide:
    """Blocks side by side on a page, as wide as their shares; elsewhere they follow one another."""

    left: Iterable[Block]
    right: Iterable[Block]
    shares: tuple[int, int] = (1, 1)
    level: Literal["top", "bottom"] = "top"  # where they are in line


@dataclass(frozen=True, slots=True)
class Control:
    """Block that the dashboard alone has, such as a form or a button that writes."""

    name: str  # by which `core.ui.controls` knows it
    given: Mapping[str, Any] = field(default_factory=dict)  # what it is called with
    others: Callable[[], Blocks] | None = None  # what all others draw instead; None = nothing


@dataclass(frozen=True, slots=True)
class Way:
    """A way to another page or section, with settings that it takes along; several in turn share a row."""

    page: str
    label: str
    section: str = ""
    settings: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Lack:
    """That the workspace cannot fill the rest of the page; the dashboard says what would."""

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
    """A part of a page; `draw` is pure: what it yields follows from the view and from what was asked."""

    name: str  # as the address has it; empty where it is all of its page
    draw: Callable[[Any, Ask], Blocks]  # of a view
    question: str = ""  # that it answers; stands above the answer where the page has several sections
    bare: bool = False  # whether it has something to say without a workspace, and is given None then
    tells: Tells | None = None  # what brings it forward from behind "More"; None = it always stands forward


def section(
    name: str = "", question: str = "", tells: Tells | None = None
) -> Callable[[Callable[[View, Ask], Blocks]], Section]:
    """Declare a section."""
    return lambda draw: Section(name, draw, question, tells=tells)


def bare_section(
    name: str = "", question: str = ""
) -> Callable[[Callable[[View | None, Ask], Blocks]], Section]:
    """Declare a section that has something to say without a workspace too."""
    return lambda draw: Section(name, draw, question, bare=True)
