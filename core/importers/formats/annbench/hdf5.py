"""HDF5 files of ann-benchmarks, read by a reader in Python: a damaged file cannot hang or end the process.

What a file says of its sizes is checked against its bytes before any of it is read.
"""

from __future__ import annotations

import io
import math
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from core.errors import InputError
from core.importers.read.piece import Piece
from core.importers.read.text import shown

if TYPE_CHECKING:
    from collections.abc import Iterator

HDF5 = b"\x89HDF\r\n\x1a\n"
_MOST_BYTES = 2 << 30  # Largest file that is read into memory; one that lies on the disk as it is, is not
_MOST_ATTRIBUTES = 200
_LARGEST = 2.0**63  # Numbers of vectors are below it


@dataclass(frozen=True)
class Found:
    """A result."""

    piece: Piece  # the file
    attributes: Mapping[str, object]  # what it says of itself, plain values only
    times: np.ndarray  # seconds of every query, shape [queries]
    neighbors: np.ndarray  # numbers of the vectors that were found, [queries × count]; −1 = none
    distances: np.ndarray | None  # their distances, of the same shape; None if they are not there

    def text(self, name: str) -> str:
        """An attribute that is a text; empty if it is none."""
        value = self.attributes.get(name)
        return shown(value, 200) if isinstance(value, str) else ""


def is_hdf5(piece: Piece) -> bool:
    """Whether a file begins as HDF5."""
    return piece.head.startswith(HDF5)


def kind_of_hdf5(piece: Piece) -> str | None:
    """``result``, ``truth`` (a data set with exact neighbours), or None."""
    return _kind(piece.head, piece) if is_hdf5(piece) else None


@lru_cache(maxsize=256)
def _kind(head: bytes, piece: Piece) -> str | None:  # noqa: ARG001  (tells namesakes apart)
    try:
        with _opened(piece) as file:
            names = set(file)
    except InputError:
        return None
    if {"times", "neighbors"} <= names:
        return "result"
    return "truth" if {"test", "neighbors"} <= names else None


def names_in(piece: Piece) -> list[str]:
    """Names of the tables of a file, and of its attributes after ``attrs.``."""
    with _opened(piece) as file:
        return [*map(shown, file), *(f"attrs.{shown(name)}" for name in file.attrs)]


def why_no_kind(piece: Piece) -> str:
    """What keeps an HDF5 file from being of a kind that is known."""
    try:
        with _opened(piece):
            return "it has neither times and neighbors nor test and neighbors"
    except InputError as error:
        return str(error)


def read_found(piece: Piece) -> Found:
    """Read a result."""
    with _opened(piece) as file:
        times = _array(file, "times", 1, piece)
        neighbors = _numbers(file, piece)
        distances = _array(file, "distances", 2, piece) if "distances" in file else None
        attributes = _attributes(file)
    if len(times) != len(neighbors) or (distances is not None and distances.shape != neighbors.shape):
        raise InputError(
            f"There are {len(times):,} times for the neighbours of {len(neighbors):,} queries.",
            where=piece.name,
        )
    if not neighbors.size:
        raise InputError("The result holds no neighbours.", where=piece.name)
    return Found(piece, attributes, times, neighbors, distances)


def read_truth(piece: Piece) -> np.ndarray:
    """The exact neighbours of every query, nearest first, [queries × depth]."""
    with _opened(piece) as file:
        return _numbers(file, piece)


@contextmanager
def _opened(piece: Piece) -> Iterator[Any]:
    try:
        import pyfive  # noqa: PLC0415
    except ImportError:
        found = "The reader of HDF5 files is not installed."
        raise InputError(found, where=piece.name, do="Install it: pip install pyfive.") from None
    plain = piece.path is not None and _begins(piece)
    if not plain and piece.size > _MOST_BYTES:
        raise InputError("The file is too large to be read from where it is.", where=piece.name)
    try:
        source = str(piece.path) if plain else io.BytesIO(piece.read())
        with pyfive.File(source) as file:
            yield file
    except InputError:
        raise
    except Exception as error:  # the reader raises anything on a damaged file
        told = shown(str(error) or type(error).__name__, 200)
        raise InputError(f"The HDF5 file cannot be read: {told}.", where=piece.name) from error


def _begins(piece: Piece) -> bool:
    with piece.opener() as file:
        return file.read(len(HDF5)) == HDF5


def _array(file: Any, name: str, axes: int, piece: Piece) -> np.ndarray:  # noqa: ANN401
    """A table of numbers, once its size is known to be in the file."""
    where = f"{piece.name}, {name}"
    if name not in file:
        raise InputError(f"There is no table {name}.", where=piece.name)
    table = file[name]
    shape, dtype = tuple(table.shape), np.dtype(table.dtype)
    if len(shape) != axes or dtype.kind not in "iuf":
        raise InputError(f"The table has {len(shape)} axes of {dtype}.", where=where)
    claimed = math.prod(shape) * dtype.itemsize
    if claimed > max(piece.limits.grace_bytes, piece.limits.ratio * piece.size):
        raise InputError(f"The table claims {claimed:,} bytes in a file of {piece.size:,}.", where=where)
    made = np.asarray(table[...])
    if made.shape != shape:
        raise InputError("The table is cut off.", where=where)
    return made


def _numbers(file: Any, piece: Piece) -> np.ndarray:  # noqa: ANN401
    """The table of neighbours as 64-bit integers."""
    found = _array(file, "neighbors", 2, piece)
    if found.size and (found.dtype.kind == "f" or found.dtype.itemsize == 8):
        with np.errstate(invalid="ignore"):
            whole = (found == np.rint(found)).all() and (np.abs(found.astype(np.float64)) < _LARGEST).all()
        if not whole:
            raise InputError("A neighbour is not a whole number.", where=f"{piece.name}, neighbors")
    return found.astype(np.int64)


def _attributes(file: Any) -> dict[str, object]:  # noqa: ANN401
    """Attributes that are one text, number or flag."""
    made: dict[str, object] = {}
    for name in list(file.attrs)[:_MOST_ATTRIBUTES]:
        value = file.attrs[name]
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, bytes):
            value = value.decode("utf-8", "replace")
        if isinstance(value, float) and not math.isfinite(value):
            continue
        if isinstance(value, str | int | float | bool):
            made[shown(name)] = value
    return made
