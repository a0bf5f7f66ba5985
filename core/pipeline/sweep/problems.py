"""What is wrong with a specification: every problem with its place, its reason and what to do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from rapidfuzz import fuzz, process

from core.errors import InputError

_ALIKE = 60
"""From this similarity on (0 to 100) a known name is offered as what was meant."""
_SHORTEST = 3
_LISTED = 12
_SHOWN = 60


class Severity(StrEnum):
    """What a problem keeps from happening."""

    ERROR = "error"  # the specification makes no sense: it cannot even be planned
    MISSING = "missing"  # it can be planned; to run, it needs what is missing here
    WARNING = "warning"  # it can run


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that keeps a sweep from running, or that its owner should know.

    Attributes:
        where: File, line and key, or what a stack is called.
        found: What was found, as a sentence.
        do: What the user can do about it, as a sentence.
        severity: What it keeps from happening.
    """

    where: str
    found: str
    do: str = ""
    severity: Severity = Severity.ERROR

    def __str__(self) -> str:
        return " ".join(
            part for part in (f"{self.where}:" if self.where else "", self.found, self.do) if part
        )


class SpecError(InputError):
    """A specification cannot be used; the message has one line per problem."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        first = self.problems[0]
        super().__init__(first.found, where=first.where, do=first.do)
        self.args = ("\nerror: ".join(str(each) for each in self.problems),)


def suggestion(name: object, known: Iterable[object]) -> str:
    """What to do about a name that is not known: the nearest one, and those there are."""
    names = sorted({str(each) for each in known})
    # Parts of words count as alike, but one letter or two are part of too many.
    scorer = fuzz.WRatio if len(str(name)) >= _SHORTEST else fuzz.ratio
    found = process.extractOne(str(name).lower(), names, scorer=scorer, score_cutoff=_ALIKE)
    listed = ", ".join(names[:_LISTED]) or "none"
    more = f" (+{len(names) - _LISTED} more)" if len(names) > _LISTED else ""
    return (f'Did you mean "{found[0]}"? ' if found else "") + f"Known: {listed}{more}."


def brief(value: object) -> str:
    """A value as it may stand in a message: one short line."""
    text = value if isinstance(value, str) else repr(value)
    text = text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
    return repr(text) if isinstance(value, str) else text
