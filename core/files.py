"""Files, folders and databases written whole or not at all; locks that are released with their process."""

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

from core.errors import ClqError, InputError, refusal

_POLL_S = 0.02
_ASKED = 3  # Number of tries
_BUSY_S = 30.0
_DATE = (1980, 1, 1, 0, 0, 0)


@contextmanager
def replacing(path: Path, *, mark: str = "") -> Iterator[Path]:
    """Yield a temporary name beside a path that replaces it if the block ends without error.

    Args:
        path: What others read: the old one, or the new one as a whole.
        mark: Part of the temporary name, for holders of a lock; by default unique.

    Yields:
        The path to write to, which does not exist yet; if nothing is written there, nothing is replaced.
    """
    draft = path.with_name(f".{path.name}.{mark or token_hex(4)}")
    try:
        yield draft
        if draft.is_dir() and path.is_dir():  # a folder cannot be replaced by another in one step
            shutil.rmtree(path)
        if draft.exists():
            draft.replace(path)
    finally:
        if draft.is_dir():
            shutil.rmtree(draft, ignore_errors=True)
        else:
            draft.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> int:
    """Replace a file by a text atomically; return its size in bytes."""
    content = text.encode()
    with replacing(path) as draft:
        draft.write_bytes(content)
    return len(content)


def write_out(path: Path, text: str) -> int:
    """Replace a file that somebody named by a text, atomically; return its size in bytes.

    Raises:
        InputError: If it cannot be written there.
    """
    try:
        return write_text(path, text)
    except OSError as error:
        raise unwritable(path, error) from None


def try_out(path: Path) -> None:
    """Refuse a file that cannot be written, before work is spent on what it is to hold.

    Raises:
        InputError: As of `write_out`; nothing was written.
    """
    draft = path.with_name(f".{path.name}.{token_hex(4)}")
    try:
        draft.touch()
        draft.unlink()
    except OSError as error:
        raise unwritable(path, error) from None


def unwritable(path: Path, error: OSError) -> ClqError:
    """Say in a sentence why a path that somebody named cannot be written."""
    if not path.parent.exists():
        return InputError("Its folder does not exist.", where=str(path), do="Make it first, or name another.")
    found = f"It cannot be written: {error.strerror or error}."
    return refusal(error) or InputError(found, where=str(path), do="Name another one.")


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Replace a file by a JSON object atomically."""
    write_text(path, json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False) + "\n")


def read_json(path: Path) -> dict[str, Any] | None:
    """Read a JSON object from one of our own files; None if it is missing or unreadable."""
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
    """Open a SQLite file that several processes may use; a commit is on disk when it returns.

    Args:
        path: The file; created with its folder if missing. One that is not writable is opened read-only.
        schema: Statements that create missing tables; they may run again.
        upgrade: Updates a file of an earlier release in one transaction. A file that has one is kept
            in a single piece (no write-ahead log beside it), so that a plain copy holds every commit.

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
    """Yield one writing transaction, which commits as a whole or not at all."""
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
    # Two processes may create the file at the same time: this one statement does not wait by itself.
    end = time.monotonic() + _BUSY_S
    while True:
        try:
            db.execute(f"PRAGMA journal_mode={mode}")
        except sqlite3.OperationalError as error:
            if time.monotonic() > end or "lock" not in str(error):  # an unwritable file stays unwritable
                raise
            time.sleep(0.01)
        else:
            return


def sync(path: Path) -> None:
    """Force a file's bytes, or a folder's entries, to disk, if the system allows a folder to be opened."""
    if os.name == "nt" and path.is_dir():
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def locked(path: Path, *, wait: Callable[[], None] | None = None) -> Iterator[bool]:
    """Hold a lock that the kernel releases with the process; it also excludes other threads of the process.

    Args:
        path: The lock file; created if missing, and never removed.
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
    """Return whether somebody holds the lock right now, ignoring others who only check it."""
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


@contextmanager
def target(path: Path) -> Iterator[Path]:
    """Yield a folder to write into that becomes `path` on success: a folder, or a zip if so named.

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
        raise unwritable(path, error) from error


def _zip(folder: Path, to: Path) -> None:
    """Pack a folder; the same files give the same bytes."""
    with zipfile.ZipFile(to, "w", zipfile.ZIP_DEFLATED) as packed:
        for file in sorted(path for path in folder.rglob("*") if path.is_file()):
            entry = zipfile.ZipInfo(file.relative_to(folder).as_posix(), _DATE)
            packs = file.suffix != ".parquet"  # already compressed
            entry.compress_type = zipfile.ZIP_DEFLATED if packs else zipfile.ZIP_STORED
            with file.open("rb") as source, packed.open(entry, "w", force_zip64=True) as sink:
                while block := source.read(1 << 20):
                    sink.write(block)
