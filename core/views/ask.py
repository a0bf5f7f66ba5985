"""Questions that a section asks, answered by a dashboard visitor or by a command from its given choices."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import polars as pl

from core.axes import as_offered
from core.choices import Choice
from core.decide.rules import Decision
from core.errors import InputError, UnknownNameError
from core.records import JsonMap

T = TypeVar("T")

BY_RULE = "chosen stack"
"""The entry of a list of stacks for making no choice."""
RENAMED: Mapping[str, Mapping[str, str]] = {
    "kx": {"$ of generator input / 1k": "$ of generator input"},
    "rx": {"$ per 1,000 queries": "cost"},
}
"""Answers as release 0.2 gave them, by key: they named a unit, which the page now sets."""
BESIDE, RUNNER_UP = "Beside the chosen stack", "the runner-up"
"""Labels of a choice of several stacks that always includes the first of the usual ones."""


class Ask(Protocol):
    """The source of a section's choices. A key is the choice's name in a URL."""

    def one(
        self, label: str, options: Iterable[T], key: str, *, usual: T | None = None, about: str = "",
        quiet: bool = False,
    ) -> T:  # fmt: skip
        """Ask for one of a few options, by default `usual` or the first; a quiet question shows no label."""
        ...

    def listed(
        self,
        label: str,
        options: Iterable[T],
        key: str,
        *,
        usual: T | None = None,
        about: str = "",
        width: int = 0,
        first: int | None = None,
    ) -> T:
        """Ask for one entry of a list; otherwise like `one`.

        Args:
            first: How many of a long list are offered, in addition to the current choice.
        """
        ...

    def typed(self, label: str, options: Sequence[str], key: str, *, usual: str, about: str = "") -> str:
        """Ask for one entry of a list, or for free text instead."""
        ...

    def text(self, label: str, key: str, *, unsaid: str = "", about: str = "") -> str:
        """Ask for a line of text; `unsaid` is the placeholder while it is empty."""
        ...

    def number(
        self, label: str, key: str, usual: float | None, low: float, high: float | None = None,
        *, step: float = 1.0, about: str = "", width: int = 0, unsaid: str = "unknown",
    ) -> float | None:  # fmt: skip
        """Ask for a number; None if neither visitor nor `usual` gives one, which `unsaid` then describes."""
        ...

    def slide(
        self, label: str, key: str, usual: Sequence[float], low: float, high: float, *, step: float,
        about: str = "",
    ) -> tuple[float, ...]:  # fmt: skip
        """Ask for one number in a range, or for two, according to the length of `usual`."""
        ...

    def several(
        self, label: str, options: Iterable[str], key: str, *, usual: Sequence[str], words: str = "",
        most: int | None = None, about: str = "", width: int = 0,
    ) -> list[str]:  # fmt: skip
        """Ask for several entries of a list; the usual ones, which `words` summarise, if none is picked.

        Without `words` the usual ones start as picked, and none is picked once a visitor removes them.
        """
        ...

    def aside(self, title: str) -> AbstractContextManager[None]:
        """Put the questions asked within it behind a title, as few visitors change them."""
        ...

    def choice(self, choice: Choice, usual: T, options: Sequence[T] = (), *, off: bool = False) -> T:
        """Ask for a declared choice: one of its options or, without options, a number from its lowest up.

        Args:
            usual: The value that applies if nobody sets one; a widget shows it in grey.
            off: Whether it has no effect, as something it needs is missing.
        """
        ...

    def stack(
        self, table: pl.DataFrame, decision: Decision, label: str, key: str = "stack", *,
        usual: str = BY_RULE, instead: str = "", about: str = "",
    ) -> str | None:  # fmt: skip
        """Ask for a stack; return its run_id, the chosen stack's by default, or None if there is none.

        If the entry for making no choice isn't `BY_RULE` it gives None, as does the entry `instead`.
        """
        ...

    def stacks(
        self, table: pl.DataFrame, decision: Decision, key: str, *, usual: Sequence[str] | None = (),
        most: int = 8, label: str = BESIDE, unsaid: str = RUNNER_UP,
    ) -> list[str]:  # fmt: skip
        """Ask for several stacks, by name; under `BESIDE` the first of the usual ones is always included.

        Args:
            usual: The stacks if none is picked; () = the recommended one and the runner-up, None = none.
        """
        ...


def usual_stacks(table: pl.DataFrame, decision: Decision) -> list[str]:
    """Return the chosen stack and the runner-up by name, or the table's first if nothing is feasible."""
    rows = [row for row in (decision.chosen, decision.runner_up) if row is not None]
    return [table["name"][row] for row in rows] or table["name"].head(1).to_list()


def named(table: pl.DataFrame, run_id: str) -> str:
    """Return the name of the table's stack with this run id."""
    return str(table.row(by_predicate=pl.col("run_id") == run_id, named=True)["name"])


def run_of(table: pl.DataFrame, name: str) -> str:
    """Return the run id of the table's stack with this name."""
    return str(table.row(by_predicate=pl.col("name") == name, named=True)["run_id"])


@dataclass
class Given:
    """Answers given beforehand, by key; a key without one takes its usual value.

    Raises:
        UnknownNameError: If a choice isn't among those offered, or nobody asks for a key.
        InputError: If a value isn't a number, or is out of range.
    """

    given: Mapping[str, Sequence[str]] = field(default_factory=dict)
    asked: dict[str, JsonMap] = field(default_factory=dict)  # what was asked, by key: label, value, options

    def one(
        self, label: str, options: Iterable[T], key: str, *, usual: T | None = None, about: str = "",
        quiet: bool = False,
    ) -> T:  # fmt: skip
        """Take the given choice, or the usual one."""
        del quiet
        offered = list(options)
        last = self._last(key)
        words = None if last is None else as_offered(last, [str(option) for option in offered])
        value = (offered[0] if usual is None else usual) if words is None else None
        if words is not None:
            value = next((option for option in offered if str(option) == words), None)
            if value is None:
                raise UnknownNameError(key, words, [str(option) for option in offered])
        self._note(key, label, value, [str(option) for option in offered], about)
        return value  # type: ignore[return-value]  # one of the offered, or the usual one

    def listed(
        self,
        label: str,
        options: Iterable[T],
        key: str,
        *,
        usual: T | None = None,
        about: str = "",
        width: int = 0,
        first: int | None = None,
    ) -> T:
        """Take the given choice, or the usual one."""
        del width, first
        return self.one(label, options, key, usual=usual, about=about)

    def typed(self, label: str, options: Sequence[str], key: str, *, usual: str, about: str = "") -> str:
        """Take the given text, or the usual one."""
        words = self._last(key)
        value = usual if words is None else words
        self._note(key, label, value, options, about)
        return value

    def text(self, label: str, key: str, *, unsaid: str = "", about: str = "") -> str:
        """Take the given line."""
        del unsaid
        value = self._last(key) or ""
        self._note(key, label, value, None, about)
        return value

    def number(
        self, label: str, key: str, usual: float | None, low: float, high: float | None = None,
        *, step: float = 1.0, about: str = "", width: int = 0, unsaid: str = "unknown",
    ) -> float | None:  # fmt: skip
        """Take the given number, or the usual one."""
        del step, width, unsaid
        words = self._last(key)
        value = usual if words is None else _within(key, words, low, high)
        self._note(key, label, value, None, about)
        return value

    def slide(
        self, label: str, key: str, usual: Sequence[float], low: float, high: float, *, step: float,
        about: str = "",
    ) -> tuple[float, ...]:  # fmt: skip
        """Take the given numbers, or the usual ones."""
        del step
        words = self.given.get(key)
        value = tuple(usual if words is None else sorted(_within(key, word, low, high) for word in words))
        if len(value) != len(usual):
            raise InputError(f"{key}: {len(value)} numbers were given.", do=f"Give {len(usual)}.")
        self._note(key, label, list(value), None, about)
        return value

    def several(
        self, label: str, options: Iterable[str], key: str, *, usual: Sequence[str], words: str = "",
        most: int | None = None, about: str = "", width: int = 0,
    ) -> list[str]:  # fmt: skip
        """Take the given choices, or the usual ones."""
        del words, width
        offered = list(options)
        picked = self._all(key, key, offered, most)
        self._note(key, label, picked or list(usual), offered, about)
        return picked or list(usual)

    def aside(self, title: str) -> AbstractContextManager[None]:
        """Take the answers within like any others."""
        del title
        return nullcontext()

    def choice(self, choice: Choice, usual: T, options: Sequence[T] = (), *, off: bool = False) -> T:
        """Take the given choice, or the usual one."""
        del off
        if options:
            return self.one(choice.label, options, choice.key, usual=usual, about=choice.about)
        low = -math.inf if choice.low is None else choice.low
        value: Any = usual
        return self.number(choice.label, choice.key, value, low, choice.high, about=choice.about)  # type: ignore[return-value]

    def stack(
        self, table: pl.DataFrame, decision: Decision, label: str, key: str = "stack", *,
        usual: str = BY_RULE, instead: str = "", about: str = "",
    ) -> str | None:  # fmt: skip
        """Take the given stack, or the recommended one."""
        name = self.one(label, [usual, *([instead] if instead else []), *table["name"]], key, about=about)
        if name != usual:
            return None if name == instead else run_of(table, name)
        chosen = decision.chosen if usual == BY_RULE else None
        return None if chosen is None else str(table["run_id"][chosen])

    def stacks(
        self, table: pl.DataFrame, decision: Decision, key: str, *, usual: Sequence[str] | None = (),
        most: int = 8, label: str = BESIDE, unsaid: str = RUNNER_UP,
    ) -> list[str]:  # fmt: skip
        """Take the given stacks, or the usual ones."""
        del unsaid
        names = table["name"].to_list()
        usual = () if usual is None else usual or usual_stacks(table, decision)
        picked = self._all(key, "stack", names, most) or usual
        chosen = list(dict.fromkeys([*(usual[:1] if label == BESIDE else ()), *picked]))
        self._note(key, label, chosen, names, "")
        return chosen

    def unasked(self) -> None:
        """Refuse given answers that nothing asked for."""
        for key in self.given:
            if key not in self.asked:
                raise UnknownNameError("choice", key, list(self.asked))

    def _last(self, key: str) -> str | None:
        given = self.given.get(key)
        return RENAMED.get(key, {}).get(given[-1], given[-1]) if given else None

    def _all(self, key: str, noun: str, offered: Sequence[str], most: int | None) -> list[str]:
        picked = [as_offered(name, offered) for name in self.given.get(key, ())]
        for name in picked:
            if name not in offered:
                raise UnknownNameError(noun, name, offered)
        if most is not None and len(picked) > most:
            raise InputError(f"{key}: {len(picked)} were given.", do=f"Give {most} at most.")
        return picked

    def _note(self, key: str, label: str, value: object, options: Sequence[str] | None, about: str) -> None:
        self.asked[key] = {"label": label, "value": value, "options": options, "help": about}


def _within(key: str, words: str, low: float, high: float | None) -> float:
    """Return a number given as text, checking its range."""
    try:
        value = float(words)
    except ValueError:
        raise InputError(f"{key}: {words!r} is not a number.", do=f"Write {key}=10, for example.") from None
    if not low <= value <= (float("inf") if high is None else high):
        most = "" if high is None else f" and at most {high:g}"
        raise InputError(f"{key}: {value:g} is out of range.", do=f"At least {low:g}{most}.")
    return value
