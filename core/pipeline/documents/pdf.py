"""PDF: the text of every page, page boundaries kept. Pages that are pictures have no text."""

from __future__ import annotations

import io
import logging

from core.errors import InputError
from core.importers.read.piece import Piece
from core.importers.read.text import shown
from core.pipeline.documents.base import Content, all_bytes, storable, unix_lines

_BETWEEN = "\n\n"


def read_pdf(piece: Piece) -> Content:
    """A PDF file."""
    # The library tells about every blemish that it works around.
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    data = io.BytesIO(all_bytes(piece))
    try:
        read = _read(data)
    except Exception as error:  # a malformed file makes it raise anything, not only its own errors
        said = shown(str(error) or type(error).__name__, 200)
        raise InputError(
            f"The PDF cannot be read: {said}.", where=piece.name, do="Save it anew, or leave it out."
        ) from error
    if read is None:
        raise InputError("The PDF is encrypted.", where=piece.name, do="Save it without a password.")
    return _joined(*read)


def _read(data: io.BytesIO) -> tuple[list[str], str] | None:
    """The texts of the pages and the title; None where a password is needed."""
    import pypdf  # noqa: PLC0415 - needed for PDF only

    reader = pypdf.PdfReader(data, strict=False)
    if reader.is_encrypted and not reader.decrypt(""):
        return None
    title = reader.metadata.title if reader.metadata else None
    return [_clean(page.extract_text()) for page in reader.pages], _clean(str(title or ""))


def _clean(text: str) -> str:
    return storable(unix_lines(text)).strip()


def _joined(texts: list[str], title: str) -> Content:
    pages: list[int] = []
    parts: list[str] = []
    length = 0
    for text in texts:
        if text and length:
            parts.append(_BETWEEN)
            length += len(_BETWEEN)
        # The pages before this one that have no text begin here, too.
        pages.append(length)
        parts.append(text)
        length += len(text)
    return Content("".join(parts), " ".join(title.split()), pages=tuple(pages))
