"""A process that judges until it is killed, and tells every grade that was acknowledged."""

from __future__ import annotations

from pathlib import Path

from core.golden.book import Book


def judging(path: Path, told: Path) -> None:
    """Grade what is left of a queue, card by card."""
    book = Book(path)
    with told.open("a", buffering=1) as log:
        for at, item in enumerate(book.items("Anne-1")):
            if item.at is None and book.grade("Anne-1", at, 1 + at % 5, 1.0):
                log.write(f"{at}\n")
