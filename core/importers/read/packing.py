"""Packed files as streams of their content: gzip, LZ4, bzip2, xz and Zstandard, each in bounded memory."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
from collections.abc import Callable
from contextlib import ExitStack
from typing import BinaryIO, Protocol, cast

from core.errors import InputError

BEGIN = 10
"""Bytes by which a packed file is recognised."""
_MEMORY = 256 << 20  # Most bytes that an xz file may ask for to be unpacked
_CHUNK = 1 << 16
_GZIP, _LZ4, _XZ, _ZSTD = b"\x1f\x8b", b"\x04\x22\x4d\x18", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd"
_BZIP2 = (b"1AY&SY", b"\x17\x72\x45\x38\x50\x90")  # after BZh and a digit: a block, or the end
ENDINGS = (".tgz", ".tbz2", ".txz", ".tzst", ".gz", ".lz4", ".bz2", ".xz", ".zst", ".tar", ".zip")


class _Steps(Protocol):
    """A decompressor of the standard library."""

    eof: bool
    needs_input: bool
    unused_data: bytes

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        """Return at most this many bytes of the content."""


class _Stepwise(io.RawIOBase):
    """Content of a file of one packed part or of several in sequence."""

    def __init__(self, packed: BinaryIO, make: Callable[[], _Steps]) -> None:
        super().__init__()
        self._packed, self._make, self._part, self._any = packed, make, make(), False

    def read(self, size: int = -1) -> bytes:
        """Return up to `size` bytes, at least one if there is any."""
        while True:
            if self._part.eof:
                rest = self._part.unused_data.lstrip(b"\0") or self._packed.read(_CHUNK).lstrip(b"\0")
                if not rest:
                    return b""
                self._part, self._any = self._make(), False
            else:
                rest = self._packed.read(_CHUNK) if self._part.needs_input else b""
                if self._part.needs_input and not rest:
                    raise EOFError("it ends within a packed part")
            if got := self._part.decompress(rest, size if size > 0 else _CHUNK):
                return got


def kind_of_packing(begin: bytes) -> str | None:
    """Return the compression of a file that begins with some bytes, or None if it has none."""
    if begin.startswith(b"BZh") and begin[4:10] in _BZIP2:
        return "bzip2"
    marks = {"gzip": _GZIP, "lz4": _LZ4, "xz": _XZ, "zstd": _ZSTD}
    return next((kind for kind, mark in marks.items() if begin.startswith(mark)), None)


def unpacked(stored: BinaryIO, name: str, stack: ExitStack) -> BinaryIO | gzip.GzipFile:
    """Return the content of a file, packed or not.

    Raises:
        InputError: The package for its compression is not installed.
    """
    kind = kind_of_packing(stored.read(BEGIN))
    stored.seek(0)
    if kind == "gzip":
        return stack.enter_context(gzip.GzipFile(fileobj=stored))
    if kind == "lz4":
        return _lz4(stored, name)
    if kind == "bzip2":
        return cast(BinaryIO, _Stepwise(stored, cast("Callable[[], _Steps]", bz2.BZ2Decompressor)))
    if kind == "xz":
        return cast(BinaryIO, _Stepwise(stored, _xz))
    return _zstd(stored) if kind == "zstd" else stored


def _xz() -> _Steps:
    return cast(_Steps, lzma.LZMADecompressor(format=lzma.FORMAT_XZ, memlimit=_MEMORY))


def _zstd(stored: BinaryIO) -> BinaryIO:
    import pyarrow as pa  # noqa: PLC0415 - a fifth of a second, for a rare packing

    return cast(BinaryIO, pa.CompressedInputStream(pa.PythonFile(stored, "r"), "zstd"))


def without_endings(name: str) -> str:
    """Return a file name without endings that indicate compression."""
    for ending in ENDINGS:
        if name.lower().endswith(ending) and len(name) > len(ending):
            name = name[: -len(ending)]
    return name


def _lz4(packed: BinaryIO, name: str) -> BinaryIO:
    try:
        import lz4.frame  # noqa: PLC0415
    except ImportError:
        problem = "The file is packed with LZ4, whose package is not installed."
        raise InputError(problem, where=name, do="Install it: pip install lz4.") from None
    inner = lz4.frame.LZ4FrameFile(packed)
    twice = inner.read(4) == _LZ4  # as in ranx files
    inner.seek(0)
    return cast(BinaryIO, lz4.frame.LZ4FrameFile(inner) if twice else inner)
