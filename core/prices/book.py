"""Prices and books of them: what one unit of a model or machine costs, with its source and date."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property

import polars as pl

from core.errors import ClqError, InputError, PriceError, UnknownNameError
from core.tables import schema

DEFAULT_BOOK = "list"
UNITS = ("input_tokens", "output_tokens", "search_units", "requests", "cpu_hour", "gpu_hour", "gib_month")
"""Units that can have a price."""
MS_PER_HOUR = 3_600_000
PRICED_AS: Mapping[str, str] = {"cpu_ms": "cpu_hour", "gpu_ms": "gpu_hour"}
"""Units of usage that are priced by the hour."""
PriceKey = tuple[str, str]  # The key of a price: item and unit
CURRENCY = "USD"  # Costs are in dollars; a price in another currency is shown but not converted

PRICE_FRAME = schema(
    "item provider unit price:float per:float currency valid_from:date source looked_up:date "
    "confirmed:bool note"
)
"""Columns of `PriceBook.frame`."""
MOST_CHANGES = 100  # Prices that one text may change: a link may come from anyone
_CHANGE = re.compile(
    r"(?P<name>[^\n]{1,200})[:=](?P<amount>-?[0-9]{1,12}(\.[0-9]{1,15})?(e[+-]?[0-9]{1,2})?)", re.I | re.A
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """Price of a number of units of one item."""

    item: str  # The priced thing: a model name, or "local-cpu"
    provider: str  # Who bills it
    unit: str  # One of `UNITS`
    price: float  # Amount of money for `per` units, 0 or more
    per: float  # Number of units the price is for, above 0
    currency: str  # ISO code
    source: str  # Address or citation
    looked_up: date  # When the source was read
    confirmed: bool  # Whether the source was good enough to rely on; the note says why not
    valid_from: date | None = None  # Start of validity; None = unknown
    note: str = ""  # Limits and assumptions
    # The book's original price, if somebody changed it
    was: float | None = field(default=None, repr=False)  # not part of digests

    @property
    def each(self) -> float:
        """Price of one unit, in the price's currency."""
        return self.price / self.per

    @property
    def key(self) -> PriceKey:
        """Return item and unit."""
        return self.item, self.unit

    @property
    def since(self) -> date:
        """The day that it is in force from; the earliest date if that is unknown."""
        return self.valid_from or date.min


@dataclass(frozen=True)
class PriceBook:
    """A named set of prices; an item and unit may have several, with different dates of validity."""

    name: str  # name of the book, and of those derived from it
    prices: tuple[Price, ...]  # its prices

    @cached_property
    def newest(self) -> Mapping[PriceKey, Price]:
        """The newest price of every item and unit."""
        by_key: dict[PriceKey, Price] = {}
        for price in self.prices:
            known = by_key.setdefault(price.key, price)
            if price.since > known.since:
                by_key[price.key] = price
        return by_key

    @cached_property
    def changed(self) -> tuple[Price, ...]:
        """The prices that were changed."""
        return tuple(price for price in self.prices if price.was is not None)

    @property
    def changes(self) -> tuple[str, ...]:
        """The changed prices, in the form `read_changes` parses."""
        return tuple(sorted(self.write_change(price.key, price.price) for price in self.changed))

    @property
    def title(self) -> str:
        """The name, and how many prices of the book were changed."""
        number = len(self.changed)
        return f"{self.name}, {number} price{'s' * (number > 1)} changed" if number else self.name

    @cached_property
    def _named(self) -> Mapping[str, PriceKey]:
        """Every price by the names that a change may use for it."""
        units: dict[tuple[str, str], list[str]] = {}
        keys: dict[str, PriceKey] = {}
        for (item, unit), price in self.newest.items():
            units.setdefault((price.provider, item), []).append(unit)
            keys[f"{item}:{unit}"] = keys[f"{price.provider}/{item}:{unit}"] = (item, unit)
        single = {pair: sold[0] for pair, sold in units.items() if len(sold) == 1}
        return keys | {f"{provider}/{item}": (item, unit) for (provider, item), unit in single.items()}

    def read_changes(self, texts: Iterable[str]) -> tuple[dict[PriceKey, float], list[ClqError]]:
        """Parse changed prices from an untrusted source.

        Args:
            texts: Each ``voyage/rerank-2.5:0.025``, the amount for the price's own number of units; an item
                with several units needs its unit, ``openai/gpt-5:output_tokens:8``.

        Returns:
            New amounts by item and unit, and the errors in the texts that are left out.
        """
        changes: dict[PriceKey, float] = {}
        wrong: list[ClqError] = []
        for text in list(texts)[:MOST_CHANGES]:
            try:
                key, amount = self._read_change(text)
            except ClqError as error:
                wrong.append(error)
            else:
                changes[key] = amount
        return changes, wrong

    def derived(self, texts: Iterable[str]) -> PriceBook:
        """Return the book with changed prices.

        Args:
            texts: As in `read_changes`.

        Raises:
            ClqError: If one of them isn't a price of the book.
        """
        changes, wrong = self.read_changes(texts)
        if wrong:
            raise wrong[0]
        return self.with_changes(changes)

    def _read_change(self, text: str) -> tuple[PriceKey, float]:
        read = _CHANGE.fullmatch(text)
        if read is None or not {"/", ":"} & set(read["name"]):
            raise InputError(
                f"{text[:80]!r} is not a price.", do="Write voyage/rerank-2.5:0.03, for example."
            )
        if read["name"] not in self._named:
            raise UnknownNameError("price", read["name"][:80], self._named)
        amount = float(read["amount"])
        check_amount(amount, 0, f"what-if, {read['name']}")
        return self._named[read["name"]], amount

    def write_change(self, key: PriceKey, amount: float) -> str:
        """Format a changed price so that `read_changes` can parse it."""
        price = self.newest[key]
        name = f"{price.provider}/{price.item}"
        return f"{name if self._named.get(name) == key else f'{name}:{price.unit}'}:{amount:.10g}"

    @cached_property
    def digest(self) -> str:
        """A digest that tells books with different prices apart."""
        return hashlib.blake2b(repr(self.prices).encode(), digest_size=12).hexdigest()

    def find(self, item: str, unit: str) -> Price | None:
        """Return the newest price of an item by one of `UNITS`.

        It is None if the book has none: the cost is unknown.
        """
        return self.newest.get((item, unit))

    def with_changes(self, changes: Mapping[PriceKey, float]) -> PriceBook:
        """Return the same book with other amounts, for a what-if.

        Args:
            changes: New amount for the price's own number of units, by (item, unit).

        Returns:
            A new book; changed prices are marked unconfirmed and keep their original amounts.

        Raises:
            UnknownNameError: If the book has no such item and unit.
            PriceError: If an amount is negative or not a number.
        """
        for key, amount in changes.items():
            if key not in self.newest:
                raise UnknownNameError("price", " ".join(key), (" ".join(known) for known in self.newest))
            check_amount(amount, 0, f"what-if, {key[0]} ({key[1]})")
        changed = (
            _what_if(price, changes[price.key])
            if price.key in changes and price == self.newest[price.key]
            else price
            for price in self.prices
        )
        return PriceBook(self.name, tuple(changed))

    def frame(self) -> pl.DataFrame:
        """List the newest price of every item and unit; columns of `PRICE_FRAME`, sorted by item."""
        columns = {name: [getattr(price, name) for price in self.newest.values()] for name in PRICE_FRAME}
        return pl.DataFrame(columns, schema=PRICE_FRAME).sort("provider", "item", "unit")


def _what_if(price: Price, amount: float) -> Price:
    if amount == price.price:
        return price
    note = f"What-if; the book says {price.price:.10g} per {price.per:,.10g}."
    return replace(price, price=float(amount), confirmed=False, note=note, was=price.price)


def check_amount(amount: float, least: float, where: str) -> None:
    """Refuse a value that isn't a number of at least `least`."""
    if not (math.isfinite(amount) and amount >= least):
        raise PriceError(
            f"{amount!r} is not an amount.", where=where, do="Give a number that is not negative."
        )
