"""How values are written: numbers for people, TOML, and text of others without marks that turn it round.

A name may hold characters that turn everything behind them (U+202E and its kin), and a name in Hebrew or
Arabic draws the figures that follow it to its own side. So names are shown without such characters, and what
is written from right to left is shown as an island (Unicode Standard Annex 9: FSI and PDI).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from itertools import pairwise
from typing import Any

CONTROLS = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
"""The characters that say in which direction to read, as the inside of a regular expression's class."""
_CONTROLS = re.compile(f"[{CONTROLS}]")
_LETTERS = "\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff"
_ISLAND = re.compile(rf"[{_LETTERS}](?:[{_LETTERS}\s'’-]*[{_LETTERS}])?")


def upright(text: str) -> str:
    """Return a text of others without the characters that say in which direction to read."""
    return text if text.isascii() else _CONTROLS.sub("", text)


def isolated(text: str) -> str:
    """Return `upright`, and every stretch that reads from right to left an island in the line."""
    return text if text.isascii() else _ISLAND.sub("\u2068\\g<0>\u2069", upright(text))


def escaped(json: str) -> str:
    """Return JSON that says the same with such characters written as numbers."""
    return _CONTROLS.sub(lambda match: f"\\u{ord(match[0]):04x}", json)


def toml(value: object) -> str:
    """Return a text, number, date, truth, list or table of them as TOML writes it, in one line."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{toml(str(key))} = {toml(inner)}' for key, inner in value.items())} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml, value))}]"
    # a JSON string is a TOML string, but for the one control character that JSON leaves as it is
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def toml_text(*tables: tuple[str, Mapping[str, object]]) -> str:
    """Return tables as TOML, each under its name in brackets, the first without one.

    What is empty is not said.
    """
    blocks = []
    for table, keys in tables:
        lines = [f"{key} = {toml(value)}" for key, value in keys.items() if value not in (None, "")]
        if lines:
            blocks.append("\n".join([*([f"[{table}]"] if table else []), *lines, ""]))
    return "\n".join(blocks)


UNKNOWN = "unknown"
NOT_APPLICABLE = "–"
MINUS = "−"  # The sign of a number as people read it; a hyphen is for files


def known(value: float | None) -> bool:
    """Tell whether a number is there: neither None nor NaN."""
    return value is not None and not math.isnan(value)


def score(value: float | None) -> str:
    """Return a quality in 0..1 with three decimals, ``0.804``; "–" where it is not applicable."""
    return f"{value:.3f}".replace("-", MINUS) if value is not None and known(value) else NOT_APPLICABLE


def ms(value: float | None) -> str:
    """Return a latency: ``0.42 ms``, ``4.2 ms``, ``333 ms``, ``2.93 s``, ``1,240 s``.

    "unknown" where it was not measured.
    """
    if value is None or not known(value):
        return UNKNOWN
    if value >= 1000:
        return f"{value / 1000:.2f} s" if value < 1e5 else f"{value / 1000:,.0f} s"
    return f"{value:.{0 if value >= 100 else 1 if value >= 10 else 2}f} ms"


def usd(value: float | None, digits: int = 2) -> str:
    """Return dollars: ``$1.25``, ``$0.0066``; "unknown" where they are.

    Args:
        digits: Significant ones at least; two decimals in any case, and no zeros behind these.
    """
    if value is None or not known(value):
        return UNKNOWN
    places = max(2, digits - 1 - math.floor(math.log10(abs(value)))) if value else 2
    whole, _, decimals = f"{value:,.{places}f}".partition(".")
    return f"${whole}.{decimals[:2]}{decimals[2:].rstrip('0')}".replace("$-", f"{MINUS}$")


def digits_apart(amounts: Iterable[float | None]) -> int:
    """Return how many significant digits `usd` takes to write different dollars differently."""
    # What agrees in as many digits as are ever written is the same amount.
    each = {float(f"{abs(amount):.{_MOST_DIGITS}g}") for amount in amounts if amount and known(amount)}
    rising = sorted(each)
    for digits in range(2, _MOST_DIGITS):
        if all(one != other for one, other in pairwise(usd(amount, digits) for amount in rising)):
            return digits
    return _MOST_DIGITS


def usd_apart(*amounts: float | None) -> list[str]:
    """Return dollars that stand beside one another, with as many digits as tell them apart."""
    digits = digits_apart(amounts)
    return [usd(amount, digits) for amount in amounts]


_MOST_DIGITS = 6
_SHARED_DIGITS = 4  # At most for all costs of a workspace; those beside one another may take more
TINY = 0.001
"""Dollars per 1,000 below which most costs of a workspace are too small to read, and said per million."""
_MILLION = 1_000_000
UNIT = ("cost_shown_per", "cost_digits")
"""Columns of a table of stacks, and keys of its rows, that say how its costs are said."""


@dataclass(frozen=True, slots=True)
class CostUnit:
    """How the costs of a workspace are said, on every page: of how many, and how exactly."""

    million: bool = False  # of a million, else of 1,000
    digits: int = 2  # significant ones at least, so that most different costs are written differently

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> CostUnit:
        """Return the unit that a row says; that of 1,000 where it says none."""
        per, digits = (row.get(name) for name in UNIT)
        return cls(per == _MILLION, digits or cls().digits)

    @classmethod
    def among(cls, usd_per_1k: Iterable[float | None]) -> CostUnit:
        """Return the unit of costs that are said together: of a million where most would be tiny."""
        costs = sorted(abs(cost) for cost in usd_per_1k if cost and known(cost))
        if not costs:
            return cls()
        middle = math.sqrt(costs[(len(costs) - 1) // 2] * costs[len(costs) // 2])
        million = middle < TINY
        factor = cls(million).factor
        return cls(million, min(_SHARED_DIGITS, digits_apart(factor * cost for cost in costs)))

    @property
    def said(self) -> tuple[int, int]:
        """Its values of `UNIT`."""
        return _MILLION if self.million else 1000, self.digits

    @property
    def factor(self) -> int:
        """By what dollars per 1,000 are multiplied."""
        return 1000 if self.million else 1

    @property
    def many(self) -> str:
        """Of how many, in words: ``1,000`` or ``million``."""
        return "million" if self.million else "1,000"

    @property
    def per(self) -> str:
        """Of how many, in short: ``1k`` or ``1M``."""
        return "1M" if self.million else "1k"

    def bare(self, usd_per_1k: float | None) -> str:
        """Return a cost without its unit: ``$1.25``; "unknown" where it is."""
        return usd(None if usd_per_1k is None else self.factor * usd_per_1k, self.digits)

    def beside(self, *usd_per_1k: float | None) -> CostUnit:
        """Return the unit with as many digits as tell costs apart that stand beside one another."""
        amounts = (None if cost is None else self.factor * cost for cost in usd_per_1k)
        return replace(self, digits=max(self.digits, digits_apart(amounts)))

    def apart(self, *usd_per_1k: float | None) -> list[str]:
        """Return costs that stand beside one another, without their unit."""
        return [self.beside(*usd_per_1k).bare(cost) for cost in usd_per_1k]

    def usd(self, usd_per_1k: float | None, of: str = "") -> str:
        """Return a cost: ``$1.25 / 1k``; of something else than queries ``$1.25 / 1k correct``."""
        written = self.bare(usd_per_1k)
        return written if written == UNKNOWN else f"{written} / {self.per}{f' {of}' if of else ''}"

    def per_queries(self, usd_per_1k: float | None) -> str:
        """Return a cost in full words: ``$1.25 per 1,000 queries``."""
        return f"{self.bare(usd_per_1k)} per {self.many} queries"

    def typed(self, usd_per_1k: float) -> str:
        """Return a cost as `dollars_per_1k` reads it: ``2.5per1k``, ``0.2per1M``; no digit is lost."""
        amount = Decimal(repr(float(usd_per_1k))) * self.factor
        return f"{_plain(amount)}per{self.per}"

    def label(self, per_1k: str) -> str:
        """Return a label of dollars per 1,000 as one of this unit: ``$ / 1M correct``."""
        return _OF_THOUSAND.sub(self.per, per_1k).replace("1,000", self.many) if self.million else per_1k


def dollars_per_1k(words: str) -> float | None:
    """Read a cost as it stands in an address: ``2.5per1k``, ``0.2per1M``; a bare number is per 1,000.

    Returns:
        Dollars per 1,000, from 0 to `MOST_DOLLARS`; None where it is no such amount.
    """
    found = _AMOUNT.fullmatch(words.strip())
    if found is None:
        return None
    amount = float(Decimal(found[1]) / (1000 if (found[2] or "").lower() == "1m" else 1))
    return amount if amount <= MOST_DOLLARS else None


def _plain(amount: Decimal) -> str:
    """Return a number without an exponent, as far as it can be read so."""
    amount = amount.normalize()
    return f"{amount:f}" if -_PLACES <= amount.adjusted() <= _PLACES else f"{amount:g}"


_PLACES = 15
_AMOUNT = re.compile(r"([0-9]{1,20}(?:\.[0-9]{1,40})?(?:e[+-]?[0-9]{1,3})?)(?:per(1k|1m))?", re.ASCII | re.I)
MOST_DOLLARS = 1e9
"""Dollars per 1,000 beyond which no budget lies."""
PER_1K = CostUnit()
"""Dollars per 1,000, as files and commands have them."""
_OF_THOUSAND = re.compile(r"\b1k\b")
