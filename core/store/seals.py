"""Checks that files are as they were written, by bytes and checksum, before their content is believed.

Published files never change, so each is examined once per process, on its first reading. Reading every byte
of a part costs less than decoding it (bench/verifying.py).
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from core.errors import StoreDamagedError, refusal

MEND = "`python -m core doctor` lists all damage; `python -m core store restore BACKUP` mends it."
_UNREADABLE = "cannot be read"
_AT_ONCE = 4

_guard = threading.Lock()
_sound: set[Sealed] = set()


class Sealed(NamedTuple):
    """A published file; cheap to compare, because it is part of the keys of cached results."""

    path: str  # where it is
    size: int | None  # its bytes when written; None if only the checksum is known
    checksum: str  # its `checksum` when written

    def problem(self) -> str:
        """Describe what is wrong with the file, such as "is missing", or return ""; this reads every byte."""
        try:
            path = Path(self.path)
            size = path.stat().st_size
            if self.size not in (None, size):
                return f"has {size} bytes, not {self.size}"
            return "" if checksum(path) == self.checksum else "has other bytes than were written"
        except (FileNotFoundError, NotADirectoryError):
            return "is missing"
        except OSError as error:
            said = refusal(error)
            return f"{_UNREADABLE}: {said.found.rstrip('.') if said else error.strerror}"


def checksum(path: Path) -> str:
    """Return the BLAKE2b checksum of a file, 128 bits, hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def advice(problem: str) -> str:
    """Return advice on a problem with a file."""
    return "Let this user read it." if problem.startswith(_UNREADABLE) else MEND


def sound(file: Sealed) -> bool:
    """Return whether a file is unchanged since it was written; a sound file is read once per process."""
    return not _problem(file)


def verify(files: Iterable[Sealed]) -> None:
    """Refuse files that are not as they were written."""
    new = list({file: None for file in files if file not in _sound})
    if not new:
        return
    with ThreadPoolExecutor(min(_AT_ONCE, len(new))) as pool:
        problems = list(pool.map(_problem, new))
    for file, problem in zip(new, problems, strict=True):
        if problem:
            path = Path(file.path)
            raise StoreDamagedError(
                f"The file {path.name} {problem}.", where=str(path.parent), do=advice(problem)
            )


def forget() -> None:
    """Forget which files were checked, so that every file is checked again."""
    with _guard:
        _sound.clear()


def _problem(file: Sealed) -> str:
    if file in _sound:
        return ""
    problem = file.problem()
    if not problem:
        with _guard:
            _sound.add(file)
    return problem
