"""Prices and books of them: what one unit of a model or machine costs, with its source and date."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property

import polars as pl

from core.errors import PriceError, UnknownNameError

DEFAULT_BOOK = "list"
UNITS = (
    "input_tokens",
    "output_tokens",
    "search_units",
    "requests",
    "cpu_hour",
    "gpu_hour",
    "gib_month",
)
"""What can be priced."""
MS_PER_HOUR = 3_600_000
CPU_MS_PER_HOUR = MS_PER_HOUR
PRICED_AS: Mapping[str, str] = {"cpu_ms": "cpu_hour", "gpu_ms": "gpu_hour"}
"""Units of usage that are priced by the hour."""
CURRENCY = "USD"
"""Costs are in dollars; a price in another currency is shown but not converted."""

PRICE_FRAME = pl.Schema(
    {
        "item": pl.String,
        "provider": pl.String,
        "unit": pl.String,
        "price": pl.Float64,
        "per": pl.Float64,
        "currency": pl.String,
        "valid_from": pl.Date,
        "source": pl.String,
        "looked_up": pl.Date,
        "confirmed": pl.Boolean,
        "note": pl.String,
    }
)
"""Columns of `PriceBook.frame`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """What a number of units of one item costs.

    Attributes:
        item: What is priced: a model name, or "local-cpu".
        provider: Who bills it.
        unit: One of `UNITS`.
        price: Amount of money for `per` units, 0 or more.
        per: Number of units the price is for, above 0.
        currency: ISO code.
        valid_from: Since when; None = not known.
        source: Address or citation.
        looked_up: When the source was read.
        confirmed: Whether the source was good enough to rely on; the note says why not.
        note: Limits and assumptions.
    """

    item: str
    provider: str
    unit: str
    price: float
    per: float
    currency: str
    source: str
    looked_up: date
    confirmed: bool
    valid_from: date | None = None
    note: str = ""

    @property
    def each(self) -> float:
        """Price of one unit, in the price's currency."""
        return self.price / self.per

    @property
    def since(self) -> date:
        """The day that it is in force from; the first of all days where that is not known."""
        return self.valid_from or date.min


@dataclass(frozen=True)
class PriceBook:
    """A named set of prices; an item and unit may have several, with different dates of validity."""

    name: str
    prices: tuple[Price, ...]

    @cached_property
    def _newest_first(self) -> Mapping[tuple[str, str], tuple[Price, ...]]:
        found: dict[tuple[str, str], list[Price]] = {}
        for price in self.prices:
            found.setdefault((price.item, price.unit), []).append(price)
        return {
            key: tuple(sorted(prices, key=lambda price: price.since, reverse=True))
            for key, prices in found.items()
        }

    @cached_property
    def digest(self) -> str:
        """Tells books with other prices apart."""
        return hashlib.blake2b(repr(self.prices).encode(), digest_size=12).hexdigest()

    def find(self, item: str, unit: str, on: date | None = None) -> Price | None:
        """The price of an item in force on a day.

        Args:
            item: What is priced.
            unit: One of `UNITS`.
            on: The day; None = the newest price.

        Returns:
            The price, or None when the book has none: the cost is then unknown.
        """
        prices = self._newest_first.get((item, unit), ())
        return next((price for price in prices if on is None or price.since <= on), None)

    def items(self, unit: str | None = None) -> tuple[str, ...]:
        """Names of what the book prices (by this unit), sorted."""
        return tuple(sorted({price.item for price in self.prices if unit in (None, price.unit)}))

    def with_changes(self, changes: Mapping[tuple[str, str], float]) -> PriceBook:
        """The same book with other amounts, for a what-if.

        Args:
            changes: New amount for the price's own number of units, by (item, unit).

        Returns:
            A new book; changed prices are marked unconfirmed and say what they were.

        Raises:
            UnknownNameError: If the book has no such item and unit.
            PriceError: If an amount is negative or not a number.
        """
        for key, amount in changes.items():
            if key not in self._newest_first:
                raise UnknownNameError(
                    "price", " ".join(key), (" ".join(known) for known in self._newest_first)
                )
            check_amount(amount, 0, f"what-if, {key[0]} ({key[1]})")
        changed = tuple(
            _what_if(price, changes[price.item, price.unit])
            if (price.item, price.unit) in changes and price == self.find(price.item, price.unit)
            else price
            for price in self.prices
        )
        return PriceBook(f"{self.name} (what-if)" if changed != self.prices else self.name, changed)

    def frame(self) -> pl.DataFrame:
        """The newest price of every item and unit as a table; columns of `PRICE_FRAME`, sorted by item."""
        newest = [prices[0] for prices in self._newest_first.values()]
        columns = {name: [getattr(price, name) for price in newest] for name in PRICE_FRAME}
        return pl.DataFrame(columns, schema=PRICE_FRAME).sort("provider", "item", "unit")


def _what_if(price: Price, amount: float) -> Price:
    if amount == price.price:
        return price
    note = f"What-if; the book says {price.price:g} per {price.per:g}."
    return replace(price, price=float(amount), confirmed=False, note=note)


def check_amount(amount: float, least: float, where: str) -> None:
    """Refuse what is not a number of at least so much."""
    if not (math.isfinite(amount) and amount >= least):
        raise PriceError(
            f"{amount!r} is not an amount.", where=where, do="Give a number that is not negative."
        )
