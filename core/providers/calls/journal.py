"""Replies stored on disk, so that no call is paid twice: one SQLite file that several processes may use.

A reply is durable when `put` returns, whatever happens to the process then. A call is recorded before it is
sent, and the record goes when its reply is stored: a killed process leaves the calls of unknown outcome,
which are counted when they are sent again. A damaged entry counts as missing. Texts are not stored, only
their hashes; keys never come near it.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

import numpy as np

from core.errors import ClqError, JournalError
from core.files import database, transaction
from core.providers.base import Amount, Reply
from core.records import Basis, JsonMap

T = TypeVar("T")

_VERSION = 1
_AT_ONCE = 500
_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, form TEXT, value BLOB, about TEXT, mark BLOB)"
)
_SENT = "CREATE TABLE IF NOT EXISTS sent (key TEXT PRIMARY KEY, call TEXT NOT NULL, process TEXT NOT NULL)"
_UNKNOWN = ("timeout", "unreachable", "unreadable")
"""Kinds of errors after which nobody knows whether the vendor did the work."""


def text_hash(text: str) -> str:
    """Return 40 hexadecimal digits that identify a text."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=20).hexdigest()


def call_key(provider: str, model: str, params: JsonMap, text_hashes: Iterable[str], extra: str = "") -> str:
    """Return a key that identifies a call by everything that its answer depends on."""
    parts = [_VERSION, provider, model, params, list(text_hashes), extra]
    return text_hash(json.dumps(parts, sort_keys=True, separators=(",", ":")))


def sending(journal: Journal | None, keys: Sequence[str]) -> AbstractContextManager[None]:
    """Return `Journal.sending`, or a no-op if there is no journal."""
    return nullcontext() if journal is None else journal.sending(keys)


def once(
    journal: Journal | None, key: str, fits: Callable[[Any], bool], call: Callable[[], Reply[T]]
) -> Reply[T]:
    """Return the reply recorded under a key if its value fits; otherwise make the call and record it."""
    if journal is None:
        return call()
    known = journal.get(key)
    if known is not None and fits(known.value):
        return known
    with journal.sending([key]):
        reply = call()
    journal.put(key, reply)
    return reply


class Journal:
    """Stores replies whose value is a text, JSON, or an array of float32, float64 or int64.

    Args:
        path: The file; created with its folder if missing.
        on_again: Called with how many calls of unknown outcome are about to be sent again.

    Raises:
        JournalError: If it cannot be opened.
    """

    def __init__(self, path: Path, on_again: Callable[[int], None] = lambda _: None) -> None:
        self.path = Path(path)
        self._on_again, self._name = on_again, uuid4().hex
        self._lock = threading.Lock()
        self._db: sqlite3.Connection | None = None
        self._process = 0
        with self._open():
            pass

    def __reduce__(self) -> tuple[type[Journal], tuple[Path]]:
        return (Journal, (self.path,))

    def __repr__(self) -> str:
        return f"Journal({str(self.path)!r})"

    def get(self, key: str) -> Reply[Any] | None:
        """Return the reply, with `fresh` False, or None if it is missing or damaged."""
        return self.get_many([key]).get(key)

    def get_many(self, keys: Sequence[str]) -> dict[str, Reply[Any]]:
        """Return the replies that exist for some keys."""
        rows = [row for at in range(0, len(keys), _AT_ONCE) for row in self._rows(keys[at : at + _AT_ONCE])]
        replies = {row[0]: _unpacked(*row) for row in rows}
        return {key: reply for key, reply in replies.items() if reply is not None}

    def put(self, key: str, reply: Reply[Any]) -> None:
        """Store a reply; it is durable when this returns."""
        self.put_many({key: reply})

    def put_many(self, replies: Mapping[str, Reply[Any]]) -> None:
        """Store replies, all of them or none."""
        rows = [_packed(key, reply) for key, reply in replies.items()]
        with self._writing() as db:
            db.executemany("INSERT OR REPLACE INTO replies VALUES (?, ?, ?, ?, ?)", rows)
            db.executemany("DELETE FROM sent WHERE key = ?", [(key,) for key in replies])

    def drop(self, keys: Sequence[str]) -> None:
        """Remove replies that turned out to be useless."""
        with self._writing() as db:
            db.executemany("DELETE FROM replies WHERE key = ?", [(key,) for key in keys])

    @contextmanager
    def sending(self, keys: Sequence[str]) -> Iterator[None]:
        """Record that one call is sent whose replies `put_many` stores under these keys."""
        call = uuid4().hex
        self.begin(keys, call)
        try:
            yield
        except ClqError as error:
            if getattr(error, "kind", "") not in _UNKNOWN:
                self.forget(call)
            raise

    def begin(self, keys: Sequence[str], call: str) -> None:
        """Record that the call of this name is sent."""
        with self._writing() as db:
            lost = {
                row[0]
                for key in keys
                for row in db.execute(
                    "SELECT call FROM sent WHERE key = ? AND process <> ?", (key, self._name)
                )
            }
            db.executemany("DELETE FROM sent WHERE call = ?", [(name,) for name in lost])
            rows = [(key, call, self._name) for key in keys]
            db.executemany("INSERT OR REPLACE INTO sent VALUES (?, ?, ?)", rows)
        if lost:
            self._on_again(len(lost))

    def forget(self, call: str) -> None:
        """Record that the call of this name cost nothing."""
        with self._writing() as db:
            db.execute("DELETE FROM sent WHERE call = ?", (call,))

    def __bool__(self) -> bool:
        return True  # an empty journal is a journal

    def __len__(self) -> int:
        with self._open() as db:
            return int(db.execute("SELECT count(*) FROM replies").fetchone()[0])

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        with self._lock:
            if self._db is not None and self._process == os.getpid():
                self._db.close()
            self._db = None

    def _rows(self, keys: Sequence[str]) -> list[Any]:
        marks = ",".join("?" * len(keys))
        asked = f"SELECT key, form, value, about, mark FROM replies WHERE key IN ({marks})"  # noqa: S608
        try:
            with self._open() as db:
                return db.execute(asked, keys).fetchall()
        except JournalError as error:
            if getattr(error.__cause__, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_CORRUPT:
                raise
        # A damaged page: its entries are missing, but not those on other pages.
        return [row for key in keys for row in self._rows([key])] if len(keys) > 1 else []

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._open() as db, transaction(db):
            yield db

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                if self._db is None or self._process != os.getpid():  # a forked child needs its own
                    self._db, self._process = _connected(self.path), os.getpid()
                yield self._db
            except (sqlite3.Error, OSError) as error:
                raise JournalError(
                    f"The file of replies cannot be used: {error}.",
                    where=str(self.path),
                    do="Check the disk and the folder's permissions, or move the file away to begin anew.",
                ) from error


def _connected(path: Path) -> sqlite3.Connection:
    db = database(path, _VERSION, (_SENT, _SCHEMA))  # a file of an earlier release lacks the first
    db.text_factory = lambda text: text.decode(errors="replace")  # damaged text fails its mark, nothing else
    return db


def _packed(key: str, reply: Reply[Any]) -> tuple[str, str, bytes, str, bytes]:
    form, value = _value(reply.value)
    usage = [[amount.item, amount.unit, amount.amount, amount.basis.value] for amount in reply.usage]
    facts = {name: getattr(reply, name) for name in ("ms", "waited_ms", "attempts", "details")}
    about = json.dumps({"usage": usage, **facts})
    return key, form, value, about, _mark(key, form, value, about)


def _unpacked(key: str, form: str, value: bytes, about: str, mark: bytes) -> Reply[Any] | None:
    try:
        if _mark(key, form, value, about) != mark:
            return None
        facts = json.loads(about)
        usage = tuple(Amount(item, unit, n, Basis(basis)) for item, unit, n, basis in facts["usage"])
        about_call = (facts["ms"], facts["waited_ms"], facts["attempts"], False, facts["details"])
        return Reply(_restored(form, value), usage, *about_call)
    except (TypeError, ValueError, KeyError, AttributeError):
        return None


def _value(value: object) -> tuple[str, bytes]:
    if isinstance(value, np.ndarray):
        shape = "x".join(map(str, value.shape))
        if value.dtype.str not in {"<f4", "<f8", "<i8"}:
            raise TypeError(f"A journal does not keep arrays of {value.dtype}.")
        return f"{value.dtype.str} {shape}", np.ascontiguousarray(value).tobytes()
    if isinstance(value, str):
        return "text", value.encode("utf-8", "surrogatepass")
    return "json", json.dumps(value).encode()


def _restored(form: str, value: bytes) -> object:
    if form == "text":
        return value.decode("utf-8", "surrogatepass")
    if form == "json":
        return json.loads(value)
    dtype, _, shape = form.partition(" ")
    return np.frombuffer(value, dtype=dtype).reshape([int(size) for size in shape.split("x") if size])


def _mark(key: str, form: str, value: bytes, about: str) -> bytes:
    marked = hashlib.blake2b(digest_size=8)
    for part in (key.encode(), form.encode(), value, about.encode()):
        marked.update(len(part).to_bytes(8, "little"))
        marked.update(part)
    return marked.digest()
