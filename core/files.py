"""Files, folders and databases that are written whole or not at all; locks that end with their process."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from typing import Any

from filelock import lock_descriptor, unlock_descriptor

from core.errors import InputError

_POLL_S = 0.02
_ASKED = 3  # times
_BUSY_S = 30.0


@contextmanager
def replacing(path: Path, *, mark: str = "") -> Iterator[Path]:
    """Yield a name beside a path, for a file or folder that takes its place if the block ends without error.

    Args:
        path: What others read: the old one, or the new one as a whole.
        mark: Part of the name beside it, for those who hold a lock; by default one that nobody else has.

    Yields:
        Where to write. Nothing is there, and if nothing is there in the end, all stays as it was.
    """
    draft = path.with_name(f".{path.name}.{mark or token_hex(4)}")
    try:
        yield draft
        if draft.is_dir() and path.is_dir():  # a folder is not replaced by another in one step
            shutil.rmtree(path)
        if draft.exists():
            draft.replace(path)
    finally:
        if draft.is_dir():
            shutil.rmtree(draft, ignore_errors=True)
        else:
            draft.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> int:
    """Replace a file by a text at once; returns its bytes."""
    content = text.encode()
    with replacing(path) as draft:
        draft.write_bytes(content)
    return len(content)


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Replace a file by a JSON object at once."""
    write_text(path, json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False) + "\n")


def read_json(path: Path) -> dict[str, Any] | None:
    """Read a JSON object of our own; None if there is none that can be read."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def database(
    path: Path,
    version: int,
    schema: Sequence[str],
    *,
    upgrade: Callable[[sqlite3.Connection], None] | None = None,
) -> sqlite3.Connection:
    """Open a SQLite file that several processes may use; a commit is on the disk when it returns.

    Args:
        path: The file; made when it is missing, with its folder. One that may not be written is read only.
        schema: Statements that make what is missing; they may be run again.
        upgrade: Brings what an earlier release wrote up to date, in one transaction. A file with one is kept
            whole by itself (no write-ahead log beside it), so that a plain copy holds every commit.

    Raises:
        sqlite3.Error: If it cannot be opened, or a newer release wrote it.
        OSError: If its folder cannot be made.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    readable = path.exists() and not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK))
    if readable:
        address = (
            f"{path.absolute().as_uri()}?mode=ro&immutable=1"  # nobody can write what this process cannot
        )
        return sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False)
    db = sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False)
    try:
        _journal(db, "WAL" if upgrade is None else "DELETE")
        db.execute("PRAGMA synchronous=FULL")  # every commit reaches the disk
        _make(db, version, schema, upgrade)
    except BaseException:
        db.close()
        raise
    return db


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """Yield one transaction that writes: all of it or nothing."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield db
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _make(
    db: sqlite3.Connection,
    version: int,
    schema: Sequence[str],
    upgrade: Callable[[sqlite3.Connection], None] | None,
) -> None:
    stored = db.execute("PRAGMA user_version").fetchone()[0]
    if stored > version:
        raise sqlite3.NotSupportedError("a newer release wrote it")
    if stored == version and upgrade is not None:
        return
    with transaction(db):
        for statement in schema:
            db.execute(statement)
        if upgrade is not None:
            upgrade(db)
        if stored != version:
            db.execute(f"PRAGMA user_version={version}")


def _journal(db: sqlite3.Connection, mode: str) -> None:
    # Two processes that make the file at once: this one statement does not wait by itself.
    end = time.monotonic() + _BUSY_S
    while True:
        try:
            db.execute(f"PRAGMA journal_mode={mode}")
        except sqlite3.OperationalError as error:
            if time.monotonic() > end or "lock" not in str(error):  # what cannot be written never can
                raise
            time.sleep(0.01)
        else:
            return


def sync(path: Path) -> None:
    """Force a file's bytes, or a folder's entries, to the disk, where the system lets a folder be opened."""
    if os.name == "nt" and path.is_dir():
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def locked(path: Path, *, wait: Callable[[], None] | None = None) -> Iterator[bool]:
    """Hold a lock that the kernel releases with the process; it keeps threads of one process apart, too.

    Args:
        path: The lock file; made when absent, and left.
        wait: Called before each new try, about 50 times a second, while somebody else holds the lock; it may
            raise. None = do not wait.

    Yields:
        Whether the lock is held; False only when not waiting.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        held = lock_descriptor(handle, blocking=False)
        while not held and wait is not None:
            wait()
            time.sleep(_POLL_S)
            held = lock_descriptor(handle, blocking=False)
        try:
            yield held
        finally:
            if held:  # explicitly: a child forked meanwhile holds the open file too
                unlock_descriptor(handle)
    finally:
        os.close(handle)


def is_locked(path: Path) -> bool:
    """Tell whether somebody holds the lock right now: no moment of others who ask counts."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        for _ in range(_ASKED):
            if lock_descriptor(handle, blocking=False):
                unlock_descriptor(handle)
                return False
            time.sleep(_POLL_S / 10)
        return True
    finally:
        os.close(handle)


_DATE = (1980, 1, 1, 0, 0, 0)


@contextmanager
def target(path: Path) -> Iterator[Path]:
    """Yield a folder to write into that becomes `path` when all went well: a folder, or a zip by its ending.

    Raises:
        InputError: The path exists already, or cannot be written.
    """
    if path.exists():
        raise InputError(
            "The path exists already.", where=str(path), do="Choose another, or remove it first."
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as draft:
            if path.suffix.lower() != ".zip":
                draft.mkdir()
                yield draft
                return
            with tempfile.TemporaryDirectory(prefix=".clq-export-", dir=path.parent) as folder:
                yield Path(folder)
                _zip(Path(folder), draft)
    except OSError as error:
        raise InputError(f"It cannot be written: {error}.", where=str(path)) from error


def _zip(folder: Path, to: Path) -> None:
    """Pack a folder; the same files give the same bytes."""
    with zipfile.ZipFile(to, "w", zipfile.ZIP_DEFLATED) as packed:
        for file in sorted(path for path in folder.rglob("*") if path.is_file()):
            entry = zipfile.ZipInfo(file.relative_to(folder).as_posix(), _DATE)
            packs = file.suffix != ".parquet"  # packed within already
            entry.compress_type = zipfile.ZIP_DEFLATED if packs else zipfile.ZIP_STORED
            with file.open("rb") as source, packed.open(entry, "w", force_zip64=True) as sink:
                while block := source.read(1 << 20):
                    sink.write(block)
