"""What is wrong with a price book: prices that are old, and models that were used but have none."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date

import polars as pl

from core.prices.book import PRICED_AS, Price, PriceBook

OLD_AFTER_DAYS = 90
"""From how many days after it was looked up a price is to be looked up again."""

FINDINGS = pl.Schema(
    {"book": pl.String, "problem": pl.String, "item": pl.String, "unit": pl.String, "detail": pl.String}
)
"""Columns of `check_book`."""


@dataclass(frozen=True, slots=True)
class Used:
    """Something that is to be priced."""

    item: str  # what price books name it
    unit: str | None  # the unit of its usage; None where the usage was not recorded, so any price will do
    runs: int  # how many runs use it


def check_book(
    book: PriceBook, used: Iterable[Used], *, today: date, old_after: int = OLD_AFTER_DAYS
) -> pl.DataFrame:
    """Find what to look up.

    Args:
        book: Prices; the newest of an item counts.
        used: What was used.
        today: The day to count from.
        old_after: Days after which a price is old.

    Returns:
        Columns of `FINDINGS`; problem is "no price" (these first, most used first) or "old" (oldest first).
    """
    rows = [_missing(book, each) for each in sorted(used, key=lambda each: (-each.runs, each.item))]
    aged = [(price, (today - price.looked_up).days) for price in _newest(book)]
    old = sorted((days, price.item, price.unit) for price, days in aged if days > old_after)
    rows += [
        (book.name, "old", item, unit, f"looked up {days} days ago") for days, item, unit in reversed(old)
    ]
    return pl.DataFrame([row for row in rows if row is not None], schema=FINDINGS, orient="row")


def _newest(book: PriceBook) -> list[Price]:
    newest = [book.find(price.item, price.unit) for price in book.prices]
    return list(dict.fromkeys(price for price in newest if price is not None))


def _missing(book: PriceBook, used: Used) -> tuple[str, str, str, str, str] | None:
    unit = None if used.unit is None else PRICED_AS.get(used.unit, used.unit)
    has_one = used.item in book.items() if unit is None else book.find(used.item, unit) is not None
    if has_one:
        return None
    runs = "1 run uses it" if used.runs == 1 else f"{used.runs:,} runs use it"
    return (
        book.name,
        "no price",
        used.item,
        unit or "",
        runs if unit else f"{runs}; its usage is not recorded",
    )
