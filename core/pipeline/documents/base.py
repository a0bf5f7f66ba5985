"""What every reader of documents gives, and the text that all of them clean alike."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import polars as pl

from core.errors import InputError
from core.importers import LeftOut
from core.importers.read.piece import MIB, Piece
from core.records import short_hash

DOCUMENT_BYTES = 64 * MIB  # A single document file is not larger; books of a thousand pages take a tenth

SCHEMA = pl.Schema(
    {
        "source": pl.String(),
        "title": pl.String(),
        "text": pl.String(),
        "headings": pl.List(pl.Struct({"start": pl.Int64, "level": pl.Int8, "title": pl.String})),
        "pages": pl.List(pl.Int64),
    }
)
"""Columns of the frame of documents.

source identifies the document (path within the folder, or id in the table); headings are where a section
begins, its level 1..6 and its title, in the order of the text, empty where none are known; pages are where
each page begins, empty for what has no pages.
"""

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading: where its line begins, its level (1 is the highest) and its text."""

    start: int
    level: int
    title: str


@dataclass(frozen=True, slots=True)
class Content:
    """One document as its reader found it; `title` is empty where it has none."""

    text: str
    title: str = ""
    headings: tuple[Heading, ...] = ()
    pages: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Documents:
    """What was read."""

    frame: pl.DataFrame  # columns of `SCHEMA`, sorted by source for files, in the order of the table else
    left_out: tuple[LeftOut, ...] = ()  # what was not taken, with reasons
    notes: tuple[str, ...] = field(default=())  # what there is to know about what was taken, as sentences

    @property
    def hash(self) -> str:
        """Identifies the sources and their texts."""
        return short_hash(*self.frame["source"], *self.frame["text"])


def documents_frame(sources: Sequence[str], contents: Sequence[Content]) -> pl.DataFrame:
    """Documents as a frame of `SCHEMA`."""
    return pl.DataFrame(
        {
            "source": list(sources),
            "title": [each.title or None for each in contents],
            "text": [each.text for each in contents],
            "headings": [
                [{"start": one.start, "level": one.level, "title": one.title} for one in each.headings]
                for each in contents
            ],
            "pages": [list(each.pages) for each in contents],
        },
        schema=SCHEMA,
    )


def storable(text: str) -> str:
    """The text with what no file in UTF-8 or no database holds replaced by U+FFFD; as long as before."""
    return _UNSTORABLE.sub("\ufffd", text)


def unix_lines(text: str) -> str:
    """The text with LF line ends."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def all_bytes(piece: Piece) -> bytes:
    """The content of one document."""
    with piece.stream() as stream:
        data = stream.read(DOCUMENT_BYTES + 1)
    if len(data) > DOCUMENT_BYTES:
        raise InputError(
            f"The document has more than {DOCUMENT_BYTES:,} bytes.",
            where=piece.name,
            do="Split it, or offer its text as a table with a row per part.",
        )
    return data
