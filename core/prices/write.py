"""A price book of one's own: written as a TOML file, and what is wrong with one."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import date
from pathlib import Path

import polars as pl

from core.errors import PriceError
from core.files import write_text
from core.paths import PRICES
from core.prices.book import PRICED_AS, Price, PriceBook
from core.prices.read import check_name, load_books
from core.toml import toml

_NOT_GIVEN = (None, "")


def write_book(
    folder: Path, name: str, prices: Sequence[Price], *, extends: str | None = None, replace: bool = False
) -> Path:
    """Write a price book as one file; readers see the old file or the new one, never a part.

    Args:
        folder: Where the user's own books lie; made if it is not there.
        name: Of the book, and of the file.
        extends: The book whose other prices it takes over.
        replace: Whether a file of that name may be replaced.

    Returns:
        The file.

    Raises:
        PriceError: If the name cannot be one or belongs to a shipped book, there is no price, the file exists
            and is not to be replaced, it could not be written, or could not be read back.
    """
    path = folder / f"{check_name(name)}.toml"
    if name in load_books(PRICES):
        raise PriceError(f"The book {name!r} comes with the product.", do="Give yours another name.")
    if not prices:
        raise PriceError(f"There is no price to write into the book {name!r}.")
    if path.exists() and not replace:
        raise PriceError(
            "The file is there already.", where=str(path), do="Ask to replace it, or take a name."
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _replace(path, as_toml(name, prices, extends))
    except OSError as error:
        raise PriceError(f"It cannot be written: {error.strerror}.", where=str(path)) from error
    return path


def as_toml(name: str, prices: Sequence[Price], extends: str | None = None) -> str:
    """A price book as text that `load_books` reads back."""
    head = {"book": name, "extends": extends, "provider": "several"}
    blocks = [_lines(head)]
    blocks += [
        "[[price]]\n" + _lines({each.name: getattr(price, each.name) for each in fields(price)})
        for price in prices
    ]
    return "\n".join(blocks)


def _lines(values: Mapping[str, object]) -> str:
    return "".join(f"{key} = {toml(value)}\n" for key, value in values.items() if value not in _NOT_GIVEN)


def _replace(path: Path, text: str) -> None:
    """Write elsewhere, read it back by itself, then put it into place."""
    with tempfile.TemporaryDirectory(prefix="clq-prices-") as elsewhere:
        (Path(elsewhere) / path.name).write_text(text, encoding="utf-8")
        load_books(PRICES, own=Path(elsewhere))
    write_text(path, text)


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
