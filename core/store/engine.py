"""The one DuckDB instance of a process; catalogue files are attached to it.

Attaching a catalogue takes 0.5 ms, a separate connection 20 ms (2 cores, 2026-11), so a reader
can follow a writer that publishes many times a second.

It also turns errors of the system and of the libraries that read files into the product's own.
"""

from __future__ import annotations

import itertools
import os
import tempfile
import threading
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa

from core.errors import ClqError, StoreDamagedError, StoreError, refusal
from core.store import migrations
from core.store.layout import REPAIR, sealed

FAULTS = (OSError, duckdb.Error, pa.ArrowException, pl.exceptions.PolarsError)
"""Errors that libraries raise because of a disk, or of a file that is not what it was."""

EXAMINE = "Run `python -m core doctor`."
_CACHED = 4
_REMEMBERED = 256
_BOUND = "768MiB"
_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    # Nothing may be fetched from a network, and spilled sorts do not belong in the working directory.
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "temp_directory": str(Path(tempfile.gettempdir()) / f"clq-spill-{os.getpid()}"),
}
_OWN_TABLES = "SELECT table_name FROM duckdb_tables() WHERE database_name = current_database()"
SqlParams = Mapping[str, Any]


@contextmanager
def as_store_error(doing: str, root: Path, do: str = "") -> Iterator[None]:
    """Raise an error from inside the block as a `StoreError`."""
    try:
        yield
    except ClqError:
        raise
    except FAULTS as error:
        raise of(error, doing, root, do) from error


def of(error: Exception, doing: str, root: Path, do: str = "") -> StoreError:
    """Put an error into words, without the query that failed."""
    if isinstance(error, FileNotFoundError) and error.filename:
        missing = Path(str(error.filename)).name
        return StoreDamagedError(f"{missing} is missing.", where=str(root), do=EXAMINE)
    said = refusal(error)
    if said is None:
        first = str(error).strip().partition("\n")[0]
        return StoreError(f"The store failed while {doing}: {first[:200]}", where=str(root), do=do)
    return StoreError(f"The store failed while {doing}: {said.found}", where=str(root), do=said.do)


class Catalogue:
    """One attached catalogue file, read-only for all but its writer.

    Attributes:
        path: The file; None for the catalogue of an absent store.
        alias: Its name within the engine.
        version: Number of its last migration.
    """

    def __init__(self, engine: Engine, path: Path | None, alias: str, version: int) -> None:
        self._engine = engine
        self.path = path
        self.alias = alias
        self.version = version
        self._records: dict[tuple[object, ...], pl.DataFrame] = {}

    def cursor(self) -> duckdb.DuckDBPyConnection:
        """Return a separate connection to this catalogue, for one thread."""
        return self._engine.cursor(self.alias)

    def frame(self, sql: str, params: SqlParams | None = None) -> pl.DataFrame:
        """Return the answer to a query as a frame."""
        with self._reading():
            rows: pl.DataFrame = self.cursor().sql(sql, params=dict(params) if params else None).pl()
            return rows

    def records(self, sql: str, params: SqlParams | None = None) -> pl.DataFrame:
        """Answer a query over the catalogue's own tables only once: a published catalogue never changes."""
        return self.kept((sql, *(params or {}).values()), lambda: self.frame(sql, params))

    def kept(self, key: tuple[object, ...], make: Callable[[], pl.DataFrame]) -> pl.DataFrame:
        """Return data made from the catalogue's own tables alone, made once and cached."""
        rows = self._records.get(key)
        if rows is None:
            rows = make()
            if len(self._records) >= _REMEMBERED:
                self._records.clear()
            self._records[key] = rows
        return rows

    def column(self, sql: str, params: SqlParams | None = None) -> list[Any]:
        """Return the first column of a query's answer."""
        with self._reading():
            answer = self.cursor().execute(sql, dict(params) if params else None)
            return [row[0] for row in answer.fetchall()]

    def read_all(self) -> None:
        """Read every row of the catalogue's own tables, so that damage shows even without a checksum."""
        for table in self.column(_OWN_TABLES):
            self.frame(f"SELECT * FROM {table}")  # noqa: S608 - own names

    def _reading(self) -> AbstractContextManager[None]:
        return as_store_error("reading", self.path.parents[1] if self.path else Path(), EXAMINE)


class Engine:
    """Attaches and caches catalogues; safe to use from several threads."""

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self._guard = threading.RLock()
        self._root: duckdb.DuckDBPyConnection | None = None
        self._cache: OrderedDict[Path | None, Catalogue] = OrderedDict()
        self._numbers = itertools.count(1)
        self._unused: deque[str] = deque()

    def abandon(self) -> None:
        """Start afresh in a forked child, which has none of the instance's threads.

        The parent's objects stay referenced: closing them here would wait for those threads.
        """
        self._inherited = (self._root, self._cache)
        self._reset()

    def cursor(self, alias: str = "memory") -> duckdb.DuckDBPyConnection:
        """Return a new connection to the instance, with one attached catalogue as its default."""
        with self._guard:
            if self._root is None:
                self._root = duckdb.connect(config=_CONFIG)
            cursor = self._root.cursor()
        cursor.execute("USE " + alias)
        return cursor

    def attach(self, path: Path | None, *, read_only: bool) -> str:
        """Attach a file (None: an empty catalogue in memory) and return its alias."""
        alias = f"c{next(self._numbers)}"
        # Small blocks: a catalogue takes 45 kB, not 540 kB, and it is copied with every revision.
        options = "READ_ONLY" if read_only else "BLOCK_SIZE 16384"
        target = ":memory:" if path is None else str(path)
        self.cursor().execute(f"ATTACH ? AS {alias}" + (f" ({options})" if path else ""), [target])
        return alias

    def detach(self, alias: str) -> None:
        """Close an attached file."""
        self.cursor().execute("DETACH DATABASE IF EXISTS " + alias)

    def catalogue(self, path: Path | None) -> Catalogue:
        """Return the catalogue in a published file (None: of an absent store), attached once and cached.

        Raises:
            FileNotFoundError: If the file is gone (a later catalogue replaced it).
            StoreError: If it is damaged.
            StoreVersionError: If it is newer than this release.
        """
        with self._guard:
            catalogue = self._cache.get(path)
            if catalogue is None:
                catalogue = self._cache[path] = self._load(path)
                while len(self._cache) > _CACHED:
                    self._cache.popitem(last=False)
            self._cache.move_to_end(path)
            return catalogue

    def _load(self, path: Path | None) -> Catalogue:
        while self._unused:
            self.detach(self._unused.popleft())
        if path is not None and (seal := sealed(path)) is not None and (problem := seal.problem()):
            if not path.exists():
                raise FileNotFoundError(path)
            raise StoreDamagedError(f"The catalogue {problem}.", where=str(path), do=REPAIR)
        alias = None
        try:
            alias = self.attach(path, read_only=path is not None)
            cursor = self.cursor(alias)
            if path is None:
                migrations.migrate(cursor, empty=True)
            catalogue = Catalogue(self, path, alias, migrations.version(cursor, str(path or "")))
        except (duckdb.Error, StoreError) as error:
            if alias is not None:
                self.detach(alias)
            if isinstance(error, StoreError):
                raise
            if path is not None and not path.exists():
                raise FileNotFoundError(path) from error
            if (said := refusal(error)) is not None:
                raise StoreError(
                    f"The catalogue cannot be opened: {said.found}", where=str(path), do=said.do
                ) from error
            first = str(error).partition("\n")[0]
            raise StoreDamagedError(
                f"The catalogue cannot be opened: {first}", where=str(path), do=REPAIR
            ) from error
        # A finalizer may run anywhere, so it only notes the alias; the next load detaches it.
        weakref.finalize(catalogue, self._unused.append, alias)
        return catalogue


@contextmanager
def bounded() -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield a separate instance that sorts and groups more rows than fit into memory, by spilling them."""
    limits: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": _BOUND,
        "enable_external_file_cache": "false",
    }
    with duckdb.connect(config=_CONFIG | limits) as connection:
        connection.execute("SET enable_progress_bar = false")  # it would go to standard output
        yield connection


ENGINE = Engine()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=ENGINE.abandon)
