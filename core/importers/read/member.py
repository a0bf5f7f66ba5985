"""A readable file of an offer, and archives of such files, bounded however packed; and reading progress."""

from __future__ import annotations

import gzip
import hashlib
import io
import lzma
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, TypeVar, cast

from core.errors import InputError, told
from core.importers.read.packing import unpacked, without_endings
from core.importers.read.text import shown

_T = TypeVar("_T")
_CURRENT: ContextVar[ReadProgress | None] = ContextVar("progress", default=None)
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
HEAD_BYTES = 64 * KIB
BROKEN = (
    *(OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile),
    *(NotImplementedError, RuntimeError, ValueError),
)
"""Errors that the standard library raises on damaged or unsupported archives."""
_ENDINGS = (
    *(".qrels", ".txt", ".tsv", ".csv", ".jsonl", ".ndjson", ".json", ".parquet", ".parq"),
    *(".trec", ".run", ".xlsx", ".hdf5", ".h5", ".db", ".sqlite", ".sqlite3", ".md"),
)


class ReadProgress:
    """Progress of an import, updated at every step.

    Args:
        tell: Called with this object; it is called often, so it should take no time.

    Attributes:
        stage: The present activity, in a few words.
        read: Stored bytes that were read.
        total: Stored bytes that were offered; 0 while that is unknown.
        rows: Rows of rankings that were read.
    """

    def __init__(self, tell: Callable[[ReadProgress], None]) -> None:
        self._tell = tell
        self._at: dict[str, int] = {}
        self.stage = "reading"
        self.total = self.rows = 0

    @property
    def read(self) -> int:
        """Stored bytes that were read, over all files; bytes that are read twice count once."""
        return min(self.total, sum(self._at.values())) if self.total else sum(self._at.values())

    def at(self, name: str, position: int) -> None:
        """Record that a file was read up to a position."""
        if position > self._at.get(name, 0):
            self._at[name] = position
            self._tell(self)

    def more(self, rows: int) -> None:
        """Record that rows were read."""
        self.rows += rows
        self._tell(self)

    def step(self, stage: str) -> None:
        """Record that another activity has begun."""
        self.stage = stage
        self._tell(self)


@contextmanager
def watched(progress: ReadProgress | None) -> Iterator[None]:
    """Report the progress of everything that is read within the block."""
    token = _CURRENT.set(progress)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def current() -> ReadProgress | None:
    """Return the progress to report to, or None."""
    return _CURRENT.get()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLimits:
    """Bounds on untrusted input."""

    total_bytes: int = 16 * GIB  # Most bytes that an offer may unfold to
    # Most bytes that one stored byte may unfold to, checked once more than `grace_bytes` came out
    ratio: int = 200
    # Unfolded bytes that are fine at any ratio (a small file of one repeated line)
    grace_bytes: int = 64 * MIB
    members: int = 20_000  # Most files in one folder or archive
    columns: int = 10_000  # Most columns of a table
    cell_bytes: int = 10 * MIB  # Longest cell of a table, in bytes of UTF-8
    line_bytes: int = 64 * MIB  # Longest line of a text file, in bytes
    block_bytes: int = 16 * MIB  # How much text is taken into memory at a time while streaming
    # Text of a table that is read at once; a larger one of rankings is read in blocks
    table_bytes: int = 128 * MIB
    # Rows of rankings that an offer holds in memory; further rows wait on disk
    rows_in_memory: int = 3_000_000


@dataclass(frozen=True)
class Member:
    """One readable file of an offer."""

    name: str  # its name in messages, for example ``beir.zip/qrels/test.tsv``
    relative: str  # its path within the offer, for example ``qrels/test.tsv``
    size: int  # stored size in bytes
    limits: ReadLimits  # bounds on reading it
    opener: Callable[[], BinaryIO] = field(repr=False, compare=False)  # opens the stored bytes
    path: Path | None = None  # its path on disk if it is a plain file there
    seen: dict[object, Any] = field(default_factory=dict, repr=False, compare=False)  # cache of `per_member`

    @contextmanager
    def stream(self) -> Iterator[BinaryIO]:
        """Open the unpacked content; reading more than the limits allow raises `InputError`."""
        with ExitStack() as stack:
            with sound(self.name):
                stored = stack.enter_context(self.opener())
                inner = unpacked(stored, self.name, stack)
            yield cast(BinaryIO, _Bounded(inner, stored, self))

    @cached_property
    def head(self) -> bytes:
        """The first 64 KiB of the content."""
        with self.stream() as stream:
            return stream.read(HEAD_BYTES)

    @cached_property
    def digest(self) -> str:
        """Hash of the unpacked content (BLAKE2b, 32 hexadecimal digits).

        A file that was read to its end was hashed on the way and is not read again.
        """
        with self.stream() as stream:
            while stream.read(MIB):
                pass
        return str(self.__dict__["digest"])

    @property
    def file(self) -> str:
        """The file name without its folder."""
        return PurePosixPath(self.relative).name

    @property
    def stem(self) -> str:
        """The file name without its folder and its usual endings."""
        name = without_endings(self.file)
        for suffix in _ENDINGS:
            if name.lower().endswith(suffix) and len(name) > len(suffix):
                name = name[: -len(suffix)]
        return name

    def read(self) -> bytes:
        """Return all of the content."""
        with self.stream() as stream:
            return stream.read()


def per_member(look: Callable[[Member], _T]) -> Callable[[Member], _T]:
    """Cache a function of a member: every format asks the same of every file, several times."""

    def seen(member: Member) -> _T:
        if look not in member.seen:
            member.seen[look] = look(member)
        return cast(_T, member.seen[look])

    return seen


@dataclass(frozen=True)
class Archive:
    """One offered thing: a file, a folder or an archive."""

    name: str  # file or folder name
    members: tuple[Member, ...]  # its files, sorted by name
    parent: str = ""  # name of the folder that holds it, if known
    skipped: tuple[str, ...] = ()  # names of links and clutter that were not read

    @property
    def stem(self) -> str:
        """Its name without endings."""
        return self.members[0].stem if len(self.members) == 1 else without_endings(self.name)

    def split(self) -> tuple[Archive, ...]:
        """Return a separate archive for each member."""
        return tuple(Archive(member.name, (member,), self.parent) for member in self.members)


def members_of(archives: Iterable[Archive]) -> list[Member]:
    """Return all files of some archives."""
    return [member for archive in archives for member in archive.members]


def digest_of(members: Iterable[Member]) -> str:
    """Return a hash of the content of several files, whatever their order."""
    return "-".join(sorted(member.digest for member in members))


def head_lines(member: Member, most: int = 200) -> list[str]:
    """Return the first complete lines of a text file without its byte order mark, or [] if it is not text."""
    return _lines(member)[:most]


def first_is_cut(member: Member) -> bool:
    """Return whether a first line of JSON is longer than the head by which formats are recognised."""
    begins = member.head.lstrip()[:1] in (b"{", b"[")
    return begins and len(member.head) >= HEAD_BYTES and b"\n" not in member.head.strip()


@per_member
def _lines(member: Member) -> list[str]:
    if b"\0" in member.head:
        return []
    lines = member.head.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    # After the last line end comes nothing, or a line that was cut off; keep it if it is all there is.
    whole = len(member.head) < HEAD_BYTES and lines[-1]
    complete = lines if whole else lines[:-1] or lines
    return [line.decode("utf-8", "replace").rstrip("\r") for line in complete]


class _Bounded(io.RawIOBase):
    """A stream that counts and hashes what comes out of a file, and stops beyond the limits."""

    def __init__(self, inner: BinaryIO | gzip.GzipFile, stored: BinaryIO, member: Member) -> None:
        super().__init__()
        self._inner, self._stored, self._member, self._out = inner, stored, member, 0
        self._hash = hashlib.blake2b(digest_size=16)
        self._progress = current()

    def read(self, size: int = -1) -> bytes:
        """Read up to `size` bytes, all if negative, in steps that are counted."""
        parts, wanted = [], size
        while wanted != 0:
            with sound(self._member.name):
                chunk = self._inner.read(min(MIB, wanted) if wanted > 0 else MIB)
            if not chunk:
                self._member.__dict__.setdefault("digest", self._hash.hexdigest())
                break
            self._hash.update(chunk)
            self._count(len(chunk))
            parts.append(chunk)
            wanted -= len(chunk) if wanted > 0 else 0
        return b"".join(parts)

    def readable(self) -> bool:
        return True

    def _count(self, fresh: int) -> None:
        self._out += fresh
        if self._progress is not None:
            self._progress.at(self._member.name, self._stored.tell())
        check_unfolded(self._member.name, self._out, self._member.size, self._member.limits)


@contextmanager
def sound(name: str) -> Iterator[None]:
    """Turn the standard library's errors on a damaged file or archive into one that names it."""
    try:
        yield
    except BROKEN as error:
        problem = f"The file cannot be read: {shown(str(error) or type(error).__name__)}."
        raise told(error, InputError(problem, where=name)) from error


def check_unfolded(name: str, unfolded: int, stored: int, limits: ReadLimits) -> None:
    """Refuse a file that unfolds to more than the limits allow."""
    do = "If the file is meant to be so, unpack it and offer the files in parts."
    if unfolded > limits.total_bytes:
        raise InputError(f"It unfolds to more than {limits.total_bytes:,} bytes.", where=name, do=do)
    if unfolded > limits.grace_bytes and unfolded > limits.ratio * max(stored, 1):
        raise InputError(f"It unfolds to more than {limits.ratio} times its size.", where=name, do=do)
