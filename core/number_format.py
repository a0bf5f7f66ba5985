"""Numbers for people: fixed decimals, units, costs, intervals; unknown numbers are written as unknown."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from itertools import pairwise
from typing import Any

import polars as pl

UNKNOWN = "unknown"
NOT_APPLICABLE = "–"
MINUS = "−"  # The minus sign for people; a hyphen is for files
_CLOCK = 1e-5  # Milliseconds that no clock tells from 0
_MOST_DIGITS = 6
SHARED_DIGITS = 4
"""Maximum significant digits of costs in a workspace or a column; those in a sentence may have more."""
ASSUMED_DIGITS = 2
"""Significant digits of costs at assumed prices."""
TINY = 0.001
"""Dollars per 1,000 below which most costs of a workspace are too small to read, and given per million."""
_MILLION = 1_000_000
UNIT = ("cost_shown_per", "cost_digits")
"""Columns of a table of stacks, and keys of its rows, that determine how its costs are written."""
_PLACES = 15
_AMOUNT = re.compile(r"([0-9]{1,20}(?:\.[0-9]{1,40})?(?:e[+-]?[0-9]{1,3})?)(?:per(1k|1m))?", re.ASCII | re.I)
MOST_DOLLARS = 1e9
"""Upper bound of any budget, in dollars per 1,000."""
_OF_THOUSAND = re.compile(r"\b1k\b")
Written = Callable[[float | None], str]
"""A function that formats a number for people."""


def known(value: float | None) -> bool:
    """Return whether a number is known: neither None nor NaN."""
    return value is not None and not math.isnan(value)


def score(value: float | None) -> str:
    """Format a quality in 0..1 with three decimals, ``0.804``; "–" if it does not apply."""
    return f"{value:.3f}".replace("-", MINUS) if value is not None and known(value) else NOT_APPLICABLE


def ms(value: float | None) -> str:
    """Format a latency: ``0.00014 ms``, ``0.42 ms``, ``4.20 ms``, ``333 ms``, ``2.93 s``, ``1,240 s``.

    "unknown" if it was not measured.
    """
    if value is None or not known(value):
        return UNKNOWN
    if value >= 1000:
        return f"{value / 1000:.2f} s" if value < 1e5 else f"{value / 1000:,.0f} s"
    if _CLOCK <= value < 0.01:
        return f"{value:.{1 - math.floor(math.log10(value))}f} ms"
    return f"{value:.{0 if value >= 100 else 1 if value >= 10 else 2}f} ms"


def usd(value: float | None, digits: int = 2) -> str:
    """Format dollars: ``$1.25``, ``$0.0066``; "unknown" if they are.

    Args:
        digits: Minimum of significant digits; always two decimals, with no zeros after these.
    """
    if value is None or not known(value):
        return UNKNOWN
    places = max(2, digits - 1 - math.floor(math.log10(abs(value)))) if value else 2
    whole, _, decimals = f"{value:,.{places}f}".partition(".")
    return f"${whole}.{decimals[:2]}{decimals[2:].rstrip('0')}".replace("$-", f"{MINUS}$")


def digits_apart(amounts: Iterable[float | None]) -> int:
    """Return how many significant digits `usd` needs to write different dollars differently."""
    # Amounts that agree in as many digits as are ever written count as equal.
    each = {float(f"{abs(amount):.{_MOST_DIGITS}g}") for amount in amounts if amount and known(amount)}
    rising = sorted(each)
    for digits in range(2, _MOST_DIGITS):
        if all(one != other for one, other in pairwise(usd(amount, digits) for amount in rising)):
            return digits
    return _MOST_DIGITS


def usd_apart(*amounts: float | None) -> list[str]:
    """Format dollars shown side by side, with as many digits as tell them apart."""
    digits = digits_apart(amounts)
    return [usd(amount, digits) for amount in amounts]


@dataclass(frozen=True, slots=True)
class CostUnit:
    """The form in which every page of a workspace writes costs: per how many, and how precisely."""

    million: bool = False  # per million, otherwise per 1,000
    digits: int = 2  # minimum of significant digits, so that most different costs are written differently

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> CostUnit:
        """Return the unit in a row; per 1,000 if it has none."""
        per, digits = (row.get(name) for name in UNIT)
        return cls(per == _MILLION, digits or cls().digits)

    @classmethod
    def among(cls, usd_per_1k: Iterable[float | None]) -> CostUnit:
        """Return the unit of costs that are shown together: per million if most would be tiny."""
        costs = sorted(abs(cost) for cost in usd_per_1k if cost and known(cost))
        if not costs:
            return cls()
        middle = math.sqrt(costs[(len(costs) - 1) // 2] * costs[len(costs) // 2])
        million = middle < TINY
        factor = cls(million).factor
        return cls(million, min(SHARED_DIGITS, digits_apart(factor * cost for cost in costs)))

    @property
    def said(self) -> tuple[int, int]:
        """The values of the columns in `UNIT`."""
        return _MILLION if self.million else 1000, self.digits

    @property
    def factor(self) -> int:
        """The factor that dollars per 1,000 are multiplied by."""
        return 1000 if self.million else 1

    @property
    def many(self) -> str:
        """The number of queries in words: ``1,000`` or ``million``."""
        return "million" if self.million else "1,000"

    @property
    def per(self) -> str:
        """The number of queries in short: ``1k`` or ``1M``."""
        return "1M" if self.million else "1k"

    def bare(self, usd_per_1k: float | None) -> str:
        """Format a cost without its unit: ``$1.25``; "unknown" if it is unknown."""
        return usd(None if usd_per_1k is None else self.factor * usd_per_1k, self.digits)

    def beside(self, *usd_per_1k: float | None) -> CostUnit:
        """Return the unit with as many digits as tell costs apart that are shown side by side."""
        amounts = (None if cost is None else self.factor * cost for cost in usd_per_1k)
        return replace(self, digits=max(self.digits, digits_apart(amounts)))

    def apart(self, *usd_per_1k: float | None) -> list[str]:
        """Format costs that are shown side by side, without their unit."""
        return [self.beside(*usd_per_1k).bare(cost) for cost in usd_per_1k]

    def usd(self, usd_per_1k: float | None, of: str = "") -> str:
        """Format a cost: ``$1.25 / 1k``; of something other than queries ``$1.25 / 1k correct``."""
        written = self.bare(usd_per_1k)
        return written if written == UNKNOWN else f"{written} / {self.per}{f' {of}' if of else ''}"

    def per_queries(self, usd_per_1k: float | None) -> str:
        """Format a cost in full words: ``$1.25 per 1,000 queries``."""
        return f"{self.bare(usd_per_1k)} per {self.many} queries"

    def typed(self, usd_per_1k: float) -> str:
        """Format a cost for `dollars_per_1k` to parse: ``2.5per1k``, ``0.2per1M``; no digit is lost."""
        amount = Decimal(repr(float(usd_per_1k))) * self.factor
        return f"{_plain(amount)}per{self.per}"

    def label(self, per_1k: str) -> str:
        """Convert a label in dollars per 1,000 to this unit: ``$ / 1M correct``."""
        return _OF_THOUSAND.sub(self.per, per_1k).replace("1,000", self.many) if self.million else per_1k


def dollars_per_1k(words: str) -> float | None:
    """Parse a cost from a URL: ``2.5per1k``, ``0.2per1M``; a bare number is per 1,000.

    Returns:
        Dollars per 1,000, from 0 to `MOST_DOLLARS`; None if it isn't such an amount.
    """
    found = _AMOUNT.fullmatch(words.strip())
    if found is None:
        return None
    amount = float(Decimal(found[1]) / (1000 if (found[2] or "").lower() == "1m" else 1))
    return amount if amount <= MOST_DOLLARS else None


def _plain(amount: Decimal) -> str:
    """Format a number without an exponent, as long as it stays readable."""
    amount = amount.normalize()
    return f"{amount:f}" if -_PLACES <= amount.adjusted() <= _PLACES else f"{amount:g}"


PER_1K = CostUnit()
"""Dollars per 1,000, the unit in files and commands."""


def interval(low: float | None, high: float | None) -> str:
    """Format an interval of qualities, `` [0.750, 0.850]`` with a leading blank; "" if there is none."""
    if low is None or high is None or not (known(low) and known(high)):
        return ""
    return f" [{score(low)}, {score(high)}]"


def signed(value: float, written: Callable[[float], str] = score) -> str:
    """Format a difference with its sign: ``+0.031``, ``−0.500``; no sign if it is written as 0."""
    shown = written(abs(value))
    return shown if shown == written(0.0) else f"{MINUS if value < 0 else '+'}{shown}"


def cost_unit(table: pl.DataFrame) -> CostUnit:
    """Return the cost unit of a table of stacks: the one it holds, otherwise the one that suits its costs."""
    if table.height and set(UNIT) <= set(table.columns):
        return CostUnit.of({name: table[name][0] for name in UNIT})
    known = [name for name in ("cost", "cost_least") if name in table.columns]
    return CostUnit.among(cost for name in known for cost in table[name])


def dollars_of(table: pl.DataFrame) -> Written:
    """Return a function that formats costs in the unit of a table of stacks."""
    per = table["cost_per"].first() if "cost_per" in table.columns and table.height else None
    return partial(cost_unit(table).usd, of="correct" if per == "correct answer" else "")


def cost_of(row: Mapping[str, Any], *, bare: bool = False) -> str:
    """Format the cost in a row of the stack table, in its unit.

    ``≥ $1.25 / 1k, embedding not priced`` if a stage of it is unknown.

    Args:
        bare: Without the unit, which is shown elsewhere.
    """
    said = CostUnit.of(row)
    of = "correct" if row.get("cost_per") == "correct answer" else ""
    written = said.bare if bare else partial(said.usd, of=of)
    return cost(row["cost"], row["cost_least"], row["cost_missing"], written)


def cost(value: float | None, least: float | None, missing: str | None, written: Written) -> str:
    """Format a cost, or its lower bound and what is missing, using `written`."""
    return written(value) if least is None else f"≥ {written(least)}, {missing}"


def cost_of_many(row: Mapping[str, Any]) -> tuple[str, str]:
    """Return a row's cost without its unit, and the number of queries it is for: ``1,000``, ``million``."""
    return cost_of(row, bare=True), CostUnit.of(row).many


def told(what: str, written: str) -> str:
    """Format a number; if it is unknown, name it: ``latency unknown``."""
    return f"{what} {written}" if written == UNKNOWN else written


def percent(value: float | None) -> str:
    """Format a share in 0..1: ``85.2 %``."""
    return f"{100 * value:.1f} %" if value is not None and known(value) else NOT_APPLICABLE


def count(number: int, one: str, many: str | None = None) -> str:
    """Format a number with its noun: ``1 passage``, ``3,512 queries``."""
    several = many or (f"{one[:-1]}ies" if one.endswith("ry") else f"{one}s")
    return f"{number:,} {one if number == 1 else several}"


def format_bytes(size: float) -> str:
    """Format a size in bytes: ``512 bytes``, ``4.6 kB``, ``3.8 MB``."""
    for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size >= unit:
            return f"{size / unit:,.1f} {name}"
    return count(int(size), "byte")


def sample(n: object) -> str:
    """Format the number of queries behind a mean: ``n = 2,837``, or ``n unknown``.

    Args:
        n: The number, or the row of a table that holds it, with clusters and cluster_kind if the queries
            come in groups: ``n = 64 from 25 documents``.
    """
    if isinstance(n, Mapping):
        clusters = n.get("clusters")
        of = "" if clusters is None else f" from {count(clusters, n['cluster_kind'])}"
        return f"{sample(n['n'])}{of}"
    return f"n = {n:,}" if isinstance(n, int) else f"n = {n}" if n is not None else f"n {UNKNOWN}"


def shorten(text: str, length: int = 60) -> str:
    """Cut a text to a length, ending in an ellipsis if something was cut."""
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"


def quoted(query_id: str, question: str | None) -> str:
    """Describe a query by its id and the start of its question, if that is known."""
    start = shorten(" ".join((question or "").split()))
    return f"{query_id} “{start}”" if start else query_id


def duration(seconds: float) -> str:
    """Format a time in everyday units: 40 s, 12 min, 3.5 h, 2.1 d."""
    for unit, length, most in (("s", 1, 90), ("min", 60, 90), ("h", 3600, 36)):
        if seconds < most * length:
            return f"{seconds / length:.{0 if seconds >= 10 * length else 1}f} {unit}"
    return f"{seconds / 86_400:.1f} d"
