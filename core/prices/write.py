"""Custom price books: written as TOML files, and checked.

It also reads price books: those that ship with the product, and the user's own.
"""

from __future__ import annotations

import math
import os
import re
import tempfile
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl

from core.errors import PriceError
from core.files import write_text
from core.paths import DEFAULT_STORE, PRICES
from core.prices.book import DEFAULT_BOOK, PRICED_AS, UNITS, Price, PriceBook, check_amount
from core.tables import schema
from core.toml_text import toml

OWN_FOLDER = "price-books"  # Name of the folder with the user's own books, beside the store
STACKS = "stack-prices.toml"  # Name of the file in it with what single stacks cost; see `core.prices.stacks`
PRICE_IT = f"Price it in a file in {OWN_FOLDER}, beside the store: data/prices/README.md says how."
_NAME = re.compile(r"\w[\w .+-]{0,59}")
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
_OPTIONAL: Mapping[str, type | tuple[type, ...]] = {"valid_from": date, "note": str, "provider": str}
_NOT_GIVEN = (None, "")
OLD_AFTER_DAYS = 90  # Age in days from which a price should be looked up again
FINDINGS = schema("book problem item unit detail")
"""Columns of `check_book`."""


@dataclass(slots=True)
class _Draft:
    """A book while its files are being read."""

    prices: list[Price] = field(default_factory=list)
    extends: str | None = None


def own_folder(store: Path | None = None) -> Path:
    """Return the folder of the user's own price books.

    It is ``CLQ_PRICES``, otherwise the folder "price-books" beside the store.

    Args:
        store: Folder of the store; None = ``CLQ_STORE``, otherwise the default one.
    """
    named = os.environ.get("CLQ_PRICES")
    if named:
        return Path(named).expanduser()
    usual = os.environ.get("CLQ_STORE")
    chosen = store or (Path(usual).expanduser() if usual else DEFAULT_STORE)
    return chosen.absolute().parent / OWN_FOLDER


def load_books(folder: Path | None = None, *, own: Path | None = None) -> dict[str, PriceBook]:
    """Read every price file of a folder, and the user's own books.

    Args:
        folder: Folder of the TOML files; None = the ones that come with the product, and the user's own.
        own: Folder of the user's own books; None = `own_folder`, if no other folder is read.

    Returns:
        Books by name, each with the prices of all files that name it.

    Raises:
        PriceError: If a file or an entry is malformed, or one of the user's has the name of a book that
            comes with the product; the message names file and entry.
    """
    books: dict[str, _Draft] = {}
    for path in sorted((folder or PRICES).glob("*.toml")):
        _add(path, books, DEFAULT_BOOK)
    shipped = frozenset(books)
    if folder is None or own is not None:
        for path in own_files(own):
            _add(path, books, None, taken=shipped)
    for name, draft in books.items():
        _check_unique(name, draft.prices)
    stacks = stack_prices(own) if folder is None or own is not None else []
    return {name: PriceBook(name, (*_with_inherited(name, books), *stacks)) for name in books}


def stack_prices(folder: Path | None = None) -> list[Price]:
    """Return what single stacks cost, as the user has set it; folder as in `own_files`."""
    path = (folder or own_folder()) / STACKS
    return _entries(_toml(path), path.name) if path.exists() else []


def own_files(folder: Path | None = None) -> list[Path]:
    """Return the user's own price files, sorted; [] if there is no folder.

    Raises:
        PriceError: If ``CLQ_PRICES`` names a folder that does not exist.
    """
    wanted, named = folder or own_folder(), os.environ.get("CLQ_PRICES")
    if named and wanted == Path(named).expanduser() and not wanted.is_dir():
        raise PriceError(
            "There is no such folder.", where=f"CLQ_PRICES = {wanted}", do="Create it, or unset CLQ_PRICES."
        )
    return sorted(path for path in wanted.glob("*.toml") if path.name != STACKS)


def check_name(name: str, where: str = "") -> str:
    """Refuse a name that is not valid for a book."""
    if not _NAME.fullmatch(name):
        raise PriceError(
            f"{name[:60]!r} cannot be the name of a price book.",
            where=where,
            do="Use up to 60 letters, digits, spaces, and . _ + -, beginning with a letter or digit.",
        )
    return name


def _add(
    path: Path, books: dict[str, _Draft], default: str | None, *, taken: frozenset[str] = frozenset()
) -> None:
    data = _toml(path)
    name = data.get("book", default)
    if not isinstance(name, str):
        raise PriceError("Found no name of a book.", where=path.name, do='Give book = "…".')
    check_name(name, path.name)
    if name in taken:
        raise PriceError(
            f"The book {name!r} comes with the product.",
            where=path.name,
            do=f'Give your book a name of its own, with extends = "{name}" to take over its other prices.',
        )
    draft = books.setdefault(name, _Draft())
    draft.prices += _entries(data, path.name)
    extends = data.get("extends")
    if extends is not None and (not isinstance(extends, str) or draft.extends not in (None, extends)):
        raise PriceError(f"The book {name!r} cannot extend {extends!r} too.", where=path.name)
    draft.extends = extends or draft.extends


def _with_inherited(name: str, books: Mapping[str, _Draft], below: tuple[str, ...] = ()) -> list[Price]:
    """Return a price book's prices, plus those inherited from its parent and not overridden."""
    draft = books[name]
    if draft.extends is None:
        return draft.prices
    if draft.extends not in books:
        raise PriceError(f"It extends {draft.extends!r}, which does not exist.", where=f"book {name}")
    if draft.extends in (*below, name):
        raise PriceError("It extends itself.", where=f"book {name}")
    own = {(price.item, price.unit) for price in draft.prices}
    inherited = _with_inherited(draft.extends, books, (*below, name))
    return [*draft.prices, *(price for price in inherited if (price.item, price.unit) not in own)]


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise PriceError(f"Not readable as TOML: {error}.", where=path.name) from error


def _entries(data: Mapping[str, Any], file: str) -> list[Price]:
    provider, entries = data.get("provider"), data.get("price")
    if not isinstance(provider, str) or not isinstance(entries, list):
        raise PriceError(
            "Found no provider or no [[price]] entry.",
            where=file,
            do='Give provider = "…" and at least one [[price]].',
        )
    return [_entry(entry, provider, f"{file}, entry {number}") for number, entry in enumerate(entries, 1)]


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
        # bool is an int in Python, and a price of "true" isn't a number
        if not isinstance(value, known[key]) or (isinstance(value, bool) and known[key] is not bool):
            raise PriceError(f"{key} = {value!r} has the wrong type.", where=where)
    if entry["unit"] not in UNITS:
        raise PriceError(f"Unknown unit {entry['unit']!r}.", where=where, do=f"Known: {', '.join(UNITS)}.")
    check_amount(entry["price"], 0, where)
    check_amount(entry["per"], math.nextafter(0, 1), where)
    if not entry["source"]:
        raise PriceError("The source is empty.", where=where, do="Say where the price was found.")
    numbers = {key: float(entry[key]) for key in ("price", "per")}
    return Price(**{"provider": provider, **entry, **numbers})


def _check_unique(book: str, prices: Iterable[Price]) -> None:
    seen: set[tuple[str, str, date]] = set()
    for price in prices:
        key = (price.item, price.unit, price.since)
        if key in seen:
            raise PriceError(
                f"{price.item!r} has two prices for {price.unit} from the same date.",
                where=f"book {book}",
                do="Give them different valid_from dates or remove one.",
            )
        seen.add(key)


def write_book(
    folder: Path, name: str, prices: Sequence[Price], *, extends: str | None = None, replace: bool = False
) -> Path:
    """Write a price book as one file; readers see either the old file or the new one, never a part.

    Args:
        name: Name of the book, and of the file.
        extends: The book that it inherits the other prices from.
        replace: Whether a file of that name may be replaced.

    Raises:
        PriceError: If the name is invalid or belongs to a shipped book, there is no price, the file exists
            and must not be replaced, it could not be written, or could not be read back.
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
        text = as_toml(name, prices, extends)
        with tempfile.TemporaryDirectory(prefix="clq-prices-") as elsewhere:  # read it back by itself first
            (Path(elsewhere) / path.name).write_text(text, encoding="utf-8")
            load_books(PRICES, own=Path(elsewhere))
        write_text(path, text)
    except OSError as error:
        raise PriceError(f"It cannot be written: {error.strerror}.", where=str(path)) from error
    return path


def as_toml(name: str, prices: Sequence[Price], extends: str | None = None) -> str:
    """Format a price book as text that `load_books` can read."""
    head = {"book": name, "extends": extends, "provider": "several"}
    blocks = [_lines(head)]
    blocks += [
        "[[price]]\n" + _lines({field.name: getattr(price, field.name) for field in fields(price)})
        for price in prices
    ]
    return "\n".join(blocks)


def _lines(values: Mapping[str, object]) -> str:
    return "".join(f"{key} = {toml(value)}\n" for key, value in values.items() if value not in _NOT_GIVEN)


@dataclass(frozen=True, slots=True)
class Used:
    """Something that needs a price."""

    item: str  # its name in price books
    unit: str | None  # the unit of its usage; None if the usage was not recorded, so any price will do
    runs: int  # how many runs use it


def check_book(
    book: PriceBook, used: Iterable[Used], *, today: date, old_after: int = OLD_AFTER_DAYS
) -> pl.DataFrame:
    """Find prices that are missing or out of date.

    Returns:
        Columns of `FINDINGS`; problem is "no price" (these first, most used first) or "old" (oldest first).
    """
    rows = [_missing(book, one) for one in sorted(used, key=lambda one: (-one.runs, one.item))]
    aged = [(price, (today - price.looked_up).days) for price in book.newest.values()]
    old = sorted((days, price.item, price.unit) for price, days in aged if days > old_after)
    rows += [
        (book.name, "old", item, unit, f"looked up {days} days ago") for days, item, unit in reversed(old)
    ]
    return pl.DataFrame([row for row in rows if row is not None], schema=FINDINGS, orient="row")


def _missing(book: PriceBook, used: Used) -> tuple[str, str, str, str, str] | None:
    unit = None if used.unit is None else PRICED_AS.get(used.unit, used.unit)
    if any(item == used.item and unit in (None, sold) for item, sold in book.newest):
        return None
    runs = "1 run uses it" if used.runs == 1 else f"{used.runs:,} runs use it"
    detail = runs if unit else f"{runs}; its usage is not recorded"
    return book.name, "no price", used.item, unit or "", detail
