"""Text of untrusted files: whole lines in bounded blocks, checked, and safe to show in a message."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from core.bidi import CONTROLS
from core.errors import InputError, cut

if TYPE_CHECKING:
    from core.importers.read.member import Member

BOM = b"\xef\xbb\xbf"
UTF16 = (b"\xff\xfe", b"\xfe\xff")
# Control characters, marks that reorder text, and bytes of a name that are not text.
_UNSAFE = re.compile(f"[\x00-\x1f\x7f-\x9f{CONTROLS}\ufeff\ud800-\udfff]")
SAVE_AS = "Save the file as UTF-8 and offer it again."


def shown(text: object, limit: int = 80) -> str:
    """Return a short printable line for a message.

    Control characters are escaped, and the middle of a long text is left out.
    """
    plain = _UNSAFE.sub(_escape, str(text))
    return cut(plain, limit)


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code - 0xDC00 if 0xDC80 <= code <= 0xDCFF else code:02x}"  # a byte as Python keeps it


def require_text(what: str, text: str | None) -> None:
    """Refuse a name that is not valid UTF-8, which no store can hold.

    Raises:
        InputError: If it is not valid.
    """
    try:
        (text or "").encode()
    except UnicodeEncodeError:
        raise InputError(f"{what} {quoted(text)} is not UTF-8.", do="Write it in UTF-8.") from None


def quoted(text: object, limit: int = 80) -> str:
    """Return `shown` in quotation marks."""
    return f"'{shown(text, limit)}'"


def place(name: str, line: int | None = None, column: str | None = None) -> str:
    """Format a location, as ``file:line, column `c```."""
    spot = name if line is None else f"{name}:{line}"
    return spot if column is None else f"{spot}, column `{shown(column)}`"


def no_column(wanted: str, columns: Sequence[str], name: str, do: str = "") -> InputError:
    """Return the error for a missing column; it lists the existing ones."""
    return InputError(f"no column `{shown(wanted)}` in {name}; found: {listed(columns)}.", do=do)


def listed(columns: Sequence[str]) -> str:
    """List column names, but only the first of many."""
    more = f" (+{len(columns) - 12} more)" if len(columns) > 12 else ""
    return ", ".join(shown(column, 40) for column in columns[:12]) + more


@dataclass(frozen=True, slots=True)
class LineBlock:
    """Whole lines of a file: valid UTF-8 without NUL and without a byte order mark."""

    data: bytes
    first_line: int


def blocks(member: Member) -> Iterator[LineBlock]:
    """Read a text file as blocks of whole lines, in memory bounded by the limits of the member."""
    line, offset, rest = 1, 0, b""
    with member.stream() as stream:
        while True:
            fresh = stream.read(member.limits.block_bytes)
            data = rest + fresh
            if offset == 0:
                if data.startswith(UTF16):
                    where = place(member.name, 1)
                    raise InputError("The file is UTF-16, not UTF-8.", where=where, do=SAVE_AS)
                if data.startswith(BOM):
                    data, offset = data[len(BOM) :], len(BOM)
            cut = data.rfind(b"\n") + 1 if fresh else len(data)
            ready, rest = data[:cut], data[cut:]
            if ready:
                _check(member.name, ready, line, offset)
                yield LineBlock(ready, line)
                line, offset = line + ready.count(b"\n"), offset + len(ready)
            if not fresh:
                return
            if len(rest) > member.limits.line_bytes:
                problem = f"The line is longer than {member.limits.line_bytes:,} bytes."
                raise InputError(problem, where=place(member.name, line))


def whole(member: Member) -> bytes:
    """Return all the text of a file, checked as in `blocks`."""
    return b"".join(block.data for block in blocks(member))


def _check(name: str, data: bytes, line: int, offset: int) -> None:
    nul = data.find(b"\0")
    if nul >= 0:
        where = place(name, line + data.count(b"\n", 0, nul))
        problem = f"A NUL byte at byte {offset + nul}: this is not a text file."
        raise InputError(problem, where=where, do=SAVE_AS)
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        where = place(name, line + data.count(b"\n", 0, error.start))
        problem = f"Byte {offset + error.start} (0x{data[error.start]:02x}) is not valid UTF-8."
        raise InputError(
            problem, where=where, do=f"It is probably Latin-1 (Windows-1252). {SAVE_AS}"
        ) from None
    if b"\n" not in data and data.rstrip(b"\r").count(b"\r"):
        raise InputError("Lines end with CR alone.", where=place(name, line), do="Save it with LF line ends.")
