"""The exceptions that a user can meet.

Each says what was found, where, and what to do. A message is plain text: names and paths in it come
from the user and must never be rendered as HTML or Markdown.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

_MOST = 200  # Characters of a part of a message
_LEAST = 3  # Least characters of a beginning that identify a name
_FEW = 3  # Number of names that are seen at a glance, so that the nearest is not named
# Libraries that wrap a system error keep its words and lose its number.
_REFUSALS: tuple[tuple[tuple[int, ...], tuple[str, ...], str, str], ...] = (
    (
        (errno.ENOSPC, errno.EDQUOT),
        ("no space left", "disk is full", "quota exceeded"),
        "the disk is full.",
        "Free some space and try again; what was there is unchanged.",
    ),
    (
        (errno.EROFS,),
        ("read-only file system", "readonly database"),
        "the disk may only be read.",
        "Make it writable, or name another folder.",
    ),
    (
        (errno.EACCES, errno.EPERM),
        ("permission denied", "operation not permitted"),
        "permission is missing.",
        "Let this user read and write the folder, or name another one.",
    ),
    (
        (errno.EMFILE, errno.ENFILE),
        ("too many open files",),
        "too many files are open.",
        "Try again in a moment; if it stays, allow more with `ulimit -n`.",
    ),
    (
        (errno.ENAMETOOLONG,),
        ("file name too long",),
        "the name is too long for a file.",
        "Name another one.",
    ),
    (
        (errno.EIO,),
        ("input/output error", "i/o error"),
        "the disk does not answer as it should.",
        "Check the disk; then run `python -m core doctor`.",
    ),
)
_NUMBERED = re.compile(r"\(os error ([0-9]{1,3})\)")


def cut(text: str, most: int = _MOST) -> str:
    """Shorten a text for a message by leaving out its middle."""
    return text if len(text) <= most else f"{text[: most - 12]}…{text[-11:]}"


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the known name that was most likely meant, or "" if none is similar.

    If no spelling comes close, it is the shortest known name that begins with the given one.
    """
    folded, short = {each.casefold(): each for each in known}, cut(name).casefold()
    begins = sorted((each for each in folded if len(short) >= _LEAST and each.startswith(short)), key=len)
    return next((folded[near] for near in (*get_close_matches(short, folded, 1), *begins)), "")


class ClqError(Exception):
    """Base of every error that a user can meet.

    Args:
        found: What was found, as a sentence.
        where: File, line, column or table; "" if there is no place to point at.
        do: What the user can do about it.
    """

    most = _MOST  # Characters of what was found; more if the product made all of the text

    def __init__(self, found: str, *, where: str = "", do: str = "") -> None:
        self.found, self.where, self.do = cut(found, self.most), cut(where), cut(do, 2 * self.most)
        super().__init__(_joined(self.found, self.where, self.do))

    def brief(self, most: int = _MOST) -> str:
        """Return the message within so many characters: what was found first, then the remedy."""
        if len(str(self)) <= most:
            return str(self)
        lead = _joined(cut(self.found, most // 2), cut(self.where, most // 4), "")
        return cut(f"{lead} {cut(self.do, max(most - len(lead) - 1, 12))}", most)

    def __reduce__(self) -> tuple[object, ...]:
        return _again, (type(self), self.args, self.__dict__)  # subclasses take other arguments


def _joined(found: str, where: str, do: str) -> str:
    return " ".join(part for part in (f"{where}:" if where else "", found, do) if part)


def _again(kind: type[ClqError], args: tuple[object, ...], told: dict[str, object]) -> ClqError:
    """Rebuild an error raised in another process."""
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(told)
    return error


class InputError(ClqError):
    """A file, a table or a value that was offered cannot be used; nothing was written."""


class AccessError(ClqError):
    """The visitor may not do this; nothing was done."""


class UnknownNameError(ClqError):
    """A name (run, collection, measure, column…) does not exist; the message lists what does."""

    def __init__(self, kind: str, name: str, known: Iterable[str], *, where: str = "") -> None:
        self.kind = kind
        self.name = name
        self.known = tuple(known)
        super().__init__(f"No {kind} {cut(name, 80)!r}.", where=where, do=_listed(name, sorted(self.known)))


def _listed(name: str, known: Sequence[str]) -> str:
    """List as many existing names as fit, and name the nearest one if there are many."""
    shown: list[str] = []
    room = _MOST - 60
    for each in known[:12]:
        room -= len(each) + 2
        if room < 0 and shown:
            break
        shown.append(each)
    more = len(known) - len(shown)
    near = nearest(name, known) if len(known) > _FEW else ""
    found = f"Found: {', '.join(shown) or 'none'}{f' (+{more} more)' if more else ''}."
    return f"Nearest: {cut(near, 60)}. {found}" if near else found


class NothingKnownError(ClqError):
    """A limit or the rule needs a number that no stack has; the message says what to provide."""


class StoreError(ClqError):
    """The store cannot be opened or read as requested."""


class StoreDamagedError(StoreError):
    """A file of the store is missing, or its bytes are not those that were written."""


class StoreBusyError(StoreError):
    """Another process is writing and did not finish within the bound."""


class StoreVersionError(StoreError):
    """The store was written by a newer release."""


class PriceError(ClqError):
    """A price file is malformed."""


class BudgetError(ClqError):
    """Continuing could cost more than is allowed, or the cost is unknown; nothing more was spent."""


class ProviderError(ClqError):
    """A model could not be reached or used.

    Attributes:
        kind: "auth", "quota", "refused", "too large", "busy", "server", "timeout", "unreachable",
            "unreadable", "count" (not the requested number of results) or "stopped".
        status: HTTP status of the last answer; None if there was none.
    """

    def __init__(
        self, found: str, *, kind: str, status: int | None = None, where: str = "", do: str = ""
    ) -> None:
        self.kind = kind
        self.status = status
        super().__init__(found, where=where, do=do)


class JournalError(ClqError):
    """The file that keeps replies of providers cannot be used."""


class DiskError(ClqError):
    """The system refused to read or to write a file."""


def refusal(error: BaseException) -> DiskError | None:
    """Describe a system error; None if the user can do nothing about it."""
    words, number = str(error).lower(), getattr(error, "errno", None)
    for numbers, parts, found, do in _REFUSALS:
        if number in numbers or any(part in words for part in parts):
            return DiskError(found, where=str(getattr(error, "filename", None) or ""), do=do)
    return None


def told(error: BaseException | str, otherwise: ClqError) -> ClqError:
    """Return the system's refusal behind an error, in words, or `otherwise` if there is none."""
    found = _NUMBERED.search(str(error))
    number = int(found[1]) if found else getattr(error, "errno", None)
    said = refusal(OSError(number, "")) if number else None
    if said is None:
        return otherwise
    full = number in (errno.ENOSPC, errno.EDQUOT)  # this is not the fault of the file that was read
    return DiskError(said.found, where="" if full else otherwise.where, do=said.do)
