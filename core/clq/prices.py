"""Price books: what one unit of a model or machine costs, with its source and the date it was looked up.

A book is the union of the TOML files that name it, so that providers stay one file each:

```toml
book = "list"
provider = "voyage"
[[price]]
item = "rerank-2.5"
unit = "input_tokens"
price = 0.05
per = 1_000_000
currency = "USD"
valid_from = 2025-08-11        # optional
source = "https://…"
looked_up = 2025-11-12
confirmed = true
note = ""                      # optional
```
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl

from core.errors import PriceError, UnknownNameError
from core.paths import PRICES

DEFAULT_BOOK = "list"
UNITS = ("input_tokens", "output_tokens", "search_units", "requests", "cpu_hour", "gib_month")
"""What can be priced. Usage in "cpu_ms" is priced by "cpu_hour"."""
CPU_MS_PER_HOUR = 3_600_000
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

_REQUIRED: Mapping[str, type | tuple[type, ...]] = {
    "item": str,
    "unit": str,
    "price": (int, float),
    "per": (int, float),
    "currency": str,
    "source": str,
    "looked_up": date,
    "confirmed": bool,
}
_OPTIONAL: Mapping[str, type | tuple[type, ...]] = {"valid_from": date, "note": str}


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


@dataclass(frozen=True, slots=True)
class PriceBook:
    """A named set of prices; an item and unit may have several, with different dates of validity."""

    name: str
    prices: tuple[Price, ...]

    def find(self, item: str, unit: str, on: date | None = None) -> Price | None:
        """The price of an item in force on a day.

        Args:
            item: What is priced.
            unit: One of `UNITS`.
            on: The day; None = the newest price.

        Returns:
            The price, or None when the book has none: the cost is then unknown.
        """
        found = [price for price in self.prices if (price.item, price.unit) == (item, unit)]
        in_force = [p for p in found if on is None or p.valid_from is None or p.valid_from <= on]
        return max(in_force, key=_since, default=None)

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
        current = {(p.item, p.unit): p for p in self.prices if p == self.find(p.item, p.unit)}
        for key, amount in changes.items():
            if key not in current:
                raise UnknownNameError("price", " ".join(key), (" ".join(known) for known in current))
            _check_amount(amount, 0, f"what-if, {key[0]} ({key[1]})")
        changed = tuple(
            _what_if(price, changes[price.item, price.unit])
            if price in current.values() and (price.item, price.unit) in changes
            else price
            for price in self.prices
        )
        return PriceBook(f"{self.name} (what-if)" if changed != self.prices else self.name, changed)

    def frame(self) -> pl.DataFrame:
        """The newest price of every item and unit as a table; columns of `PRICE_FRAME`, sorted by item."""
        newest = [p for p in self.prices if p == self.find(p.item, p.unit)]
        columns = {name: [getattr(p, name) for p in newest] for name in PRICE_FRAME}
        return pl.DataFrame(columns, schema=PRICE_FRAME).sort("provider", "item", "unit")


def _since(price: Price) -> date:
    return price.valid_from or date.min


def _what_if(price: Price, amount: float) -> Price:
    if amount == price.price:
        return price
    note = f"What-if; the book says {price.price:g} per {price.per:g}."
    return replace(price, price=float(amount), confirmed=False, note=note)


def load_books(folder: Path | None = None) -> dict[str, PriceBook]:
    """Read every price file of a folder.

    Args:
        folder: Where the TOML files are; None = the ones that come with the product.

    Returns:
        Books by name, each with the prices of all files that name it.

    Raises:
        PriceError: If a file or an entry is malformed; the message names both.
    """
    books: dict[str, list[Price]] = {}
    for path in sorted((folder or PRICES).glob("*.toml")):
        name, prices = _read(path)
        books.setdefault(name, []).extend(prices)
    for name, prices in books.items():
        _check_unique(name, prices)
    return {name: PriceBook(name, tuple(prices)) for name, prices in books.items()}


def _read(path: Path) -> tuple[str, list[Price]]:
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise PriceError(f"Not readable as TOML: {error}.", where=path.name) from error
    provider, entries = data.get("provider"), data.get("price")
    if not isinstance(provider, str) or not isinstance(entries, list):
        raise PriceError(
            "Found no provider or no [[price]] entry.",
            where=path.name,
            do='Give provider = "…" and at least one [[price]].',
        )
    return str(data.get("book", DEFAULT_BOOK)), [
        _entry(entry, provider, f"{path.name}, entry {number}") for number, entry in enumerate(entries, 1)
    ]


def _entry(entry: object, provider: str, where: str) -> Price:
    if not isinstance(entry, dict):
        raise PriceError("The entry is not a table.", where=where, do="Write it under [[price]].")
    where = f"{where} ({entry.get('item', 'no item')})"
    known = {**_REQUIRED, **_OPTIONAL}
    if unknown := sorted(set(entry) - set(known)):
        raise PriceError(f"Unknown key {unknown[0]!r}.", where=where, do=f"Known: {', '.join(known)}.")
    if missing := [key for key in _REQUIRED if key not in entry]:
        raise PriceError(f"Missing key {missing[0]!r}.", where=where)
    for key, value in entry.items():
        _check_type(key, value, known[key], where)
    _check_values(entry, where)
    numbers = {key: float(entry[key]) for key in ("price", "per")}
    return Price(provider=provider, **{**entry, **numbers})


def _check_type(key: str, value: object, kind: type | tuple[type, ...], where: str) -> None:
    # bool is an int in Python, and a price of "true" is not a number
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise PriceError(f"{key} = {value!r} has the wrong type.", where=where)


def _check_values(entry: Mapping[str, Any], where: str) -> None:
    if entry["unit"] not in UNITS:
        raise PriceError(f"Unknown unit {entry['unit']!r}.", where=where, do=f"Known: {', '.join(UNITS)}.")
    _check_amount(entry["price"], 0, where)
    _check_amount(entry["per"], math.nextafter(0, 1), where)
    if not entry["source"]:
        raise PriceError("The source is empty.", where=where, do="Say where the price was found.")


def _check_amount(amount: float, least: float, where: str) -> None:
    if not (math.isfinite(amount) and amount >= least):
        raise PriceError(
            f"{amount!r} is not an amount.", where=where, do="Give a number that is not negative."
        )


def _check_unique(book: str, prices: Iterable[Price]) -> None:
    seen: set[tuple[str, str, date]] = set()
    for price in prices:
        key = (price.item, price.unit, _since(price))
        if key in seen:
            raise PriceError(
                f"{price.item!r} has two prices for {price.unit} from the same date.",
                where=f"book {book}",
                do="Give them different valid_from dates or remove one.",
            )
        seen.add(key)
