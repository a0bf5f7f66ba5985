"""Axes on which stacks are compared, from cost to robust quality, each with everything that depends on it.

Rules, frontiers, charts, tables, records, links and the command line read this table: a further axis is one
row here and its column in the stack table; one beside the quality also has a field in `Beside` for its limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Annotated, Any, get_args

import numpy as np
import polars as pl

from core.arrays import Floats
from core.axes import AxisStep
from core.choices import Choice
from core.errors import nearest
from core.number_format import PER_1K, CostUnit, ms, score, usd


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One axis."""

    key: str  # its name in rules and keys
    column: str  # its column of the stack table
    word: str  # its name in a sentence
    heading: str = ""  # label of its column in tables; "" = the column's name
    about: str = ""  # help of that column
    article: str = ""  # article before it, with a blank
    unit: str = ""  # unit of its numbers; "" for a share
    unit_words: str = ""  # the unit written out
    # A number with its unit, for people; says so if it is unknown
    written: Callable[[float | None], str] = score
    pattern: str = "{}"  # where the digits of a number go beside its unit
    factor: int = 1  # the factor that its numbers are multiplied by when written
    decimals: int = 3  # decimals from `least` on; smaller amounts have `digits` significant ones
    least: float = 0.001  # see `decimals`
    digits: int = 2  # see `decimals`
    higher_is_better: bool = False  # which direction is good
    compared: bool = True  # whether the frontier compares it
    like_quality: bool = False  # whether it shares the quality's scale, which may not be 0..1
    limit: str  # the name of its limit everywhere: in URLs, commands, records, reasons, as a field
    limit_word: str  # the limit in a sentence
    missing: str  # how to describe a stack whose number is unknown
    remedy: str  # what to do about a missing number
    # The column of its lower bound when it is unknown; "" = there is none
    bound: str = ""
    lifts: bool = True  # whether a near miss may propose to move its limit
    example: str = ""  # the column that names an example of what the limit excludes; "" = there is none
    # Words that its numbers are places of, the least first; a limit is one of them. Empty = plain numbers
    levels: tuple[str, ...] = ()

    @property
    def unknown(self) -> str:
        """The reason that excludes a stack whose number is unknown although a limit requires it."""
        return f"unknown {self.word}"

    @property
    def beyond(self) -> str:
        """Return the description of a stack that breaks the limit: ``over the SLA``."""
        return f"{'under' if self.higher_is_better else 'over'} the {self.limit_word}"

    @property
    def asks(self) -> str:
        """Return the label of a field for the limit: ``Harm at most``."""
        return f"{self.word[:1].upper()}{self.word[1:]} at {self.side}"

    @property
    def side(self) -> str:
        """Return the kind of its limit: the least or the most."""
        return "least" if self.higher_is_better else "most"

    @property
    def short(self) -> str:
        """Return its limit in the one word that fits beside a line: ``floor``."""
        return self.limit_word.rpartition(" ")[2]

    def number(self, limit: float | str | None) -> float | None:
        """Return a limit as a number of the axis; a level's place, if it has levels."""
        return float(self.levels.index(limit)) if isinstance(limit, str) else limit

    def said(self, limit: float | None) -> float | str | None:
        """Return a limit as it is asked for: a level's word, if it has levels."""
        return limit if limit is None or not self.levels else self.levels[round(limit)]

    def merit(self, values: Floats) -> Floats:
        """Return its numbers, with the sign such that higher is better."""
        return values if self.higher_is_better else -values

    def at_least(self, table: pl.DataFrame) -> Floats:
        """Return its numbers [n], with the lower bound in place of unknown ones."""
        numbers = self.read(table)
        return np.where(np.isnan(numbers), floats(table, self.bound), numbers) if self.bound else numbers

    def read(self, table: pl.DataFrame) -> Floats:
        """Return its column of a table [n]; NaN = unknown, everywhere if the table has no such column."""
        return floats(table, self.column)


LATENCY = Axis(
    key="latency",
    column="latency_ms",
    word="latency",
    unit="ms",
    unit_words="ms",
    written=ms,
    pattern="{} ms",
    decimals=0,
    least=10,
    limit="sla_ms",
    limit_word="SLA",
    missing="not timed",
    remedy="time its queries on the machine that the others were timed on",
)


@cache
def cost_axis(said: CostUnit, *, per_correct: bool) -> Axis:
    """Return the cost axis; its numbers are always dollars per 1,000.

    Args:
        said: How they are written.
        per_correct: Whether it is per correct answer: a query answered wrongly has bought nothing.
    """
    of = "correct" if per_correct else ""
    unit = "$ / 1k correct" if per_correct else "$ / 1k"
    axis = Axis(
        key="cost",
        column="cost",
        word="cost",
        unit=unit,
        unit_words=f"$ per {said.many} {'correct answers' if per_correct else 'queries'}",
        written=partial(said.usd, of=of),
        pattern=said.label(unit).replace("$", "${}"),
        factor=said.factor,
        decimals=2,
        least=10.0 ** (said.digits - 3),
        digits=said.digits,
        limit="budget",
        limit_word="budget",
        missing="not priced",
        bound="cost_least",
        remedy="record what its calls use, and give every item a price in the price book",
    )
    if not per_correct:
        return axis
    return replace(
        axis,
        word="cost per correct answer",
        missing="of unknown cost per correct answer",
        remedy="let a reader answer from its passages, score the answers, and price what they take",
    )


COST = cost_axis(PER_1K, per_correct=False)
QUALITY = Axis(
    key="quality",
    column="quality",
    word="quality",
    higher_is_better=True,
    like_quality=True,
    limit="min_quality",
    limit_word="quality floor",
    missing="not scored",
    remedy="import or make its rankings, and judge them",
)
HARM = Axis(
    key="harm",
    column="harm",
    word="harm",
    about="Share of a Top-K that can mislead (grade 1 or 2), and unjudged where that is over 5 %.",
    compared=False,
    limit="max_harm",
    limit_word="harm cap",
    missing="not judged for harm",
    remedy="judge the passages that it ranks first",
)
ROBUST = Axis(
    key="robust",
    column="robust",
    word="robust quality",
    about="The same under the worst of the query as it is and as it was perturbed.",
    article="a ",
    higher_is_better=True,
    compared=False,
    like_quality=True,
    limit="min_robust",
    limit_word="robust floor",
    missing="not asked perturbed queries",
    remedy="run its queries perturbed too (noise, typo, accents, case or names in the sweep)",
)
REFUSING = Axis(
    key="refusal_rate",
    column="refusal_rate",
    word="right-refusal rate",
    heading="refused rightly",
    about="Of the questions without an answer, what the reader refused.",
    article="a ",
    higher_is_better=True,
    compared=False,
    limit="min_refusal_rate",
    limit_word="refusal floor",
    missing="not seen to refuse",
    remedy="have a reader answer questions without an answer from as many passages as the cutoff, scored by "
    "right_refusal",
)
ANSWERING = Axis(
    key="answer_rate",
    column="answer_rate",
    word="answer rate",
    heading="answered",
    about="Of the questions with an answer, what the reader did not refuse.",
    article="an ",
    higher_is_better=True,
    compared=False,
    limit="min_answer_rate",
    limit_word="answer floor",
    missing="not seen to answer",
    remedy="have a reader answer questions with an answer from as many passages as the cutoff, scored by "
    "no_wrong_refusal",
)
LEAK = Axis(
    key="leak",
    column="leak",
    word="leak rate",
    heading="leaks",
    about="Share of questions whose first K hold a passage that their filter forbids.",
    article="a ",
    compared=False,
    limit="max_leak",
    limit_word="leak limit",
    missing="of unknown leaks",
    remedy="import the metadata of every passage that it ranks",
    lifts=False,
    example="leak_example",
)
BESIDE = (HARM, ROBUST, REFUSING, ANSWERING, LEAK)
"""Axes that are used only if they have a limit, each a mean over queries."""
_TO_MARK = "mark the stack that runs today (`incumbent NAME`)"
SWITCHING = Axis(
    key="switching",
    column="switching_usd",
    word="switching cost",
    article="a ",
    unit="$",
    unit_words="$ once",
    written=usd,
    pattern="${} once",
    decimals=2,
    least=0.01,
    compared=False,
    limit="max_switching_usd",
    limit_word="switching limit",
    missing="of unknown switching cost",
    remedy=f"{_TO_MARK}, and give what a move costs: `--move queries_per_month=1e6`",
)
STEPS: tuple[AxisStep, ...] = get_args(AxisStep)
STEP_WORDS: Mapping[AxisStep, str] = {
    "none": "a setting",
    "rebuild": "a new index",
    "embed": "embedding again",
}
"""The most that a move requires, in words."""


def _step_words(place: float | None) -> str:
    return "not known" if place is None else STEP_WORDS[STEPS[round(place)]]


STEP = Axis(
    key="step",
    column="switching_step",
    word="step",
    article="a ",
    unit="step",
    written=_step_words,
    decimals=0,
    compared=False,
    limit="max_step",
    limit_word="step limit",
    missing="of unknown step",
    remedy=f"{_TO_MARK}; of custom and imported stacks it stays unknown",
    levels=STEPS,
)
NEEDED = "switching"
"""Column of the stack table with the word of the largest step; null = unknown."""
MOVING = (SWITCHING, STEP)
"""Axes of a move from the stack that runs today, which are used only if they have a limit."""


@dataclass(frozen=True, kw_only=True)
class ExtraLimits:
    """The limits on the axes of `BESIDE` and `MOVING`, named after their axes; None = no limit."""

    max_harm: Annotated[
        float | None,
        Choice(
            "max_harm", "harm cap",
            "Highest Harm at the measure's cutoff; Harm + Hole where over 5 % of a Top-K is unjudged.",
            low=0, high=1,
        ),
    ] = None  # fmt: skip
    min_robust: Annotated[
        float | None,
        Choice(
            "min_robust", "robust floor",
            "Lowest robust quality: that under the worst of the query as it is and with the highest level of "
            "small talk (or of what else) that was run.",
            low=0,
        ),
    ] = None  # fmt: skip
    min_refusal_rate: Annotated[
        float | None,
        Choice(
            "min_refusal_rate", "refusal floor",
            "Lowest share of the questions without an answer that the reader refuses, given as many passages "
            "as the cutoff.",
            low=0, high=1,
        ),
    ] = None  # fmt: skip
    min_answer_rate: Annotated[
        float | None,
        Choice(
            "min_answer_rate", "answer floor",
            "Lowest share of the questions with an answer that the reader does not refuse, given as many "
            "passages as the cutoff.",
            low=0, high=1,
        ),
    ] = None  # fmt: skip

    max_leak: Annotated[
        float | None,
        Choice(
            "max_leak", "leak limit",
            "Highest share of questions whose first K hold a passage that their filter forbids; 0 unless "
            "set, as soon as a filter asks about a permission.",
            low=0, high=1,
        ),
    ] = None  # fmt: skip
    max_switching_usd: Annotated[
        float | None,
        Choice(
            "max_switching_usd", "switching limit",
            "Most that a move from the stack that runs today costs once; $. See `switch`.",
            low=0, title="Switching cost at most",
        ),
    ] = None  # fmt: skip
    max_step: Annotated[
        AxisStep | None,
        Choice(
            "max_step", "step limit",
            "Largest step of a move from the stack that runs today: none (a setting), rebuild (a new index) "
            "or embed (embedding again).",
            title="Step at most",
        ),
    ] = None  # fmt: skip

    @property
    def beside(self) -> dict[str, Any]:
        """Return the limits by name."""
        return {axis.limit: getattr(self, axis.limit) for axis in (*BESIDE, *MOVING)}


def quality_axis(*, higher_is_better: bool) -> Axis:
    """Return the quality axis in the direction of a measure: if lower is better, its floor is a cap."""
    if higher_is_better:
        return QUALITY
    return replace(QUALITY, higher_is_better=False, limit_word="quality cap")


def axes(
    *, higher_is_better: bool = True, per_correct: bool = False, said: CostUnit = PER_1K
) -> tuple[Axis, ...]:
    """Return all axes, in the order in which their limits exclude.

    Args:
        higher_is_better: The direction of the quality.
        per_correct: Whether the cost is per correct answer.
        said: How costs are written.
    """
    cost = cost_axis(said, per_correct=per_correct)
    return (LATENCY, cost, quality_axis(higher_is_better=higher_is_better), *BESIDE, *MOVING)


LIMITS: Mapping[str, Axis] = {axis.limit: axis for axis in axes()}
"""Every limit by its name."""
FORMER: Mapping[str, str] = {
    "sla": LATENCY.limit,
    "floor": QUALITY.limit,
    "cap": QUALITY.limit,
    "harm": HARM.limit,
    "robust": ROBUST.limit,
    "refusals": REFUSING.limit,
    "answers": ANSWERING.limit,
}
"""Names of limits in release 0.2, which are accepted until the next release."""
_MEANT: Mapping[str, str] = {
    **{
        f"{side}{word}": axis.limit
        for axis in axes()
        for word in (axis.key, axis.column, axis.word.replace(" ", "_"))
        for side in ("", "max_", "min_")
    },
    **FORMER,
}
"""Other names that a limit is accepted under: those of its axis and its column, and its former name."""


def nearest_setting(name: str, known: Iterable[str]) -> str:
    """Return the setting that was most likely meant, or "" if none is: ``max_cost`` means ``budget``."""
    settings = {each.replace("-", "_"): each for each in known}
    meant = (word for word, limit in _MEANT.items() if limit in settings)
    near = nearest(name.replace("-", "_"), [*settings, *meant])
    return settings.get(near) or settings.get(_MEANT.get(near, ""), "")


def floats(table: pl.DataFrame, column: str) -> Floats:
    """Return a column as numbers [n]; NaN = unknown, everywhere if the table has no such column."""
    values = table.get_column(column, default=None)
    if values is None:
        return np.full(table.height, np.nan)
    # A null becomes NaN in the conversion; filling it first takes ten times as long.
    found: Floats = (values if values.dtype == pl.Float64 else values.cast(pl.Float64)).to_numpy()
    return found
