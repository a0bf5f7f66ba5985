"""Reading price books: those that come with the product, and the user's own."""

from __future__ import annotations

import math
import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from core.errors import PriceError
from core.paths import DEFAULT_STORE, PRICES
from core.prices.book import DEFAULT_BOOK, UNITS, Price, PriceBook, check_amount

OWN_FOLDER = "price-books"
"""Name of the folder with the user's own books, beside the store."""
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


@dataclass(slots=True)
class _Draft:
    """A book while its files are read."""

    prices: list[Price] = field(default_factory=list)
    extends: str | None = None


def own_folder(store: Path | None = None) -> Path:
    """Where the user's own price books lie: ``CLQ_PRICES``, else the folder "price-books" beside the store.

    Args:
        store: Folder of the store; None = ``CLQ_STORE``, else the usual one.
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
        folder: Where the TOML files are; None = the ones that come with the product, and the user's own.
        own: Folder of the user's own books; None = `own_folder`, where no other folder is read.

    Returns:
        Books by name, each with the prices of all files that name it.

    Raises:
        PriceError: If a file or an entry is malformed, or one of the user's takes the name of a book that
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
    return {name: PriceBook(name, tuple(_with_inherited(name, books))) for name in books}


def own_files(folder: Path | None = None) -> list[Path]:
    """The user's own price files, sorted; none where there is no folder.

    Raises:
        PriceError: If ``CLQ_PRICES`` names a folder that does not exist.
    """
    wanted, named = folder or own_folder(), os.environ.get("CLQ_PRICES")
    if named and wanted == Path(named).expanduser() and not wanted.is_dir():
        raise PriceError(
            "There is no such folder.", where=f"CLQ_PRICES = {wanted}", do="Create it, or unset CLQ_PRICES."
        )
    return sorted(wanted.glob("*.toml"))


def check_name(name: str, where: str = "") -> str:
    """Refuse a name that a book cannot have."""
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
    """The prices of a book and those of the one it extends that it does not name itself."""
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
        _check_type(key, value, known[key], where)
    _check_values(entry, where)
    numbers = {key: float(entry[key]) for key in ("price", "per")}
    return Price(**{"provider": provider, **entry, **numbers})


def _check_type(key: str, value: object, kind: type | tuple[type, ...], where: str) -> None:
    # bool is an int in Python, and a price of "true" is not a number
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise PriceError(f"{key} = {value!r} has the wrong type.", where=where)


def _check_values(entry: Mapping[str, Any], where: str) -> None:
    if entry["unit"] not in UNITS:
        raise PriceError(f"Unknown unit {entry['unit']!r}.", where=where, do=f"Known: {', '.join(UNITS)}.")
    check_amount(entry["price"], 0, where)
    check_amount(entry["per"], math.nextafter(0, 1), where)
    if not entry["source"]:
        raise PriceError("The source is empty.", where=where, do="Say where the price was found.")


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
