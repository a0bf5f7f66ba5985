"""A vector index in a database: all that the engines share, so that each file has only its own dialect.

An engine either builds a separate table from the vectors of an evaluation, or searches an existing one
(the option `table`) without copying it. Its location comes from an environment variable (the option
`url_env`), whose value is in no file, log or message. Without one, engines that can work on a folder do.
"""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from functools import cached_property
from pathlib import Path
from time import perf_counter
from types import ModuleType
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import polars as pl

from core.arrays import Vectors
from core.errors import ClqError, InputError, ProviderError
from core.extras import needed
from core.filters import Kind
from core.params import ParamOptions
from core.pipeline.index.kinds import BLOCK_ROWS, IndexEngine, blocks, no_selection, row_lengths
from core.pipeline.index.only import Only, OnlyRow, only_of, rows_of
from core.pipeline.index.saved import new_folder
from core.pipeline.index.scope import IndexScope
from core.pipeline.ranking import Hits, top_k
from core.records import JsonMap

KIND = "index of a database"
_WORDS = 200
_SECRET = re.compile(r"[^\s:/@?&=;,]{3,}")
DatabaseHits = Sequence[tuple[Any, float]]
"""Identifiers and scores, higher is better."""
ALLOW = "CLQ_ALLOW_ENV"
"""Variables that specifications may name as an index's address or key besides its engine's own, separated by
blanks; only whoever runs the program sets it, as a specification may come from anybody."""


class DatabasePlace(NamedTuple):
    """Location of an index."""

    folder: Path  # for local files
    table: str  # the name of a table to build
    ids: Sequence[str] = ()  # the passages of an existing table, by the position that hits refer to
    texts: pl.Series | None = None  # their texts, for engines that search them too
    fields: pl.DataFrame | None = None  # their fields, for engines that filter


class DatabaseFacts(NamedTuple):
    """A table's dimensions, number of vectors and size, as its engine states them."""

    dim: int  # dimensions of the vectors
    passages: int  # vectors
    size: int | None  # bytes of rows and index; None if the engine does not report it


class DatabaseIndex(ABC):
    """A vector index in a database, searched one vector at a time."""

    engine: ClassVar[IndexEngine]
    selects: ClassVar[bool] = False  # whether it can search among some of its passages only

    def __init__(self, place: DatabasePlace, metric: str, options: ParamOptions) -> None:
        self.name, self.metric, self.build_s = self.engine.name, metric, 0.0
        self._place = place
        self._names: Sequence[str] = () if place.fields is None else place.fields.columns
        self._first: DatabaseIndex | None = None
        self.dim, self._passages, self.size_bytes = DatabaseFacts(0, 0, None)
        self._take(options)

    def _take(self, options: ParamOptions) -> None:
        self._options = options
        self.existing = bool(options["table"])  # whether the table existed before
        self.table = str(options["table"] or self._place.table)
        self._id, self._vector = str(options["id"]), str(options["vector"])
        self.remote = bool(options["url_env"])  # whether another process answers

    @classmethod
    def build(cls, place: DatabasePlace, vectors: Vectors, metric: str, options: ParamOptions) -> Self:
        """Create a table of vectors, each under its position, and its index."""
        index = cls(place, metric, options)
        row_lengths(vectors)  # refuses infinite and missing numbers
        address(cls.engine, options)  # refuses an invalid address before a package is needed
        started = perf_counter()
        with index.saying("build the index"):
            index._create(vectors)
        index.build_s = perf_counter() - started
        return index._looked(vectors.shape[1])

    @classmethod
    def use(cls, place: DatabasePlace, metric: str, options: ParamOptions, *, dim: int) -> Self:
        """Search an existing table."""
        return cls(place, metric, options)._looked(dim)

    @classmethod
    def load(cls, path: Path, about: JsonMap, ids: Sequence[str] = ()) -> Self:
        """Open the table that `save` recorded."""
        options = cls.engine.read(about["options"])
        index = cls(DatabasePlace(path.parent, about["table"], ids), about["metric"], options)
        index.build_s, index._names = about["build_s"], about.get("fields", ())
        return index._looked(about["dim"])

    def with_options(self, options: JsonMap) -> Self:
        """Return the same table with other search options."""
        other = copy(self)  # over the same connections, which close with the first
        other._first = self
        other._take(self.engine.read({**self._options, **options}))
        return other

    def drop(self) -> None:
        """Drop the table if this object created it."""
        if not self.existing:
            with self.saying("take the table away"):
                self._drop()

    @abstractmethod
    def _drop(self) -> None:
        """Drop the table."""

    @abstractmethod
    def _create(self, vectors: Vectors) -> None:
        """Create the table, replacing any of the same name, and its index."""

    @abstractmethod
    def _look(self) -> DatabaseFacts:
        """Ask the engine for the table's facts."""

    @abstractmethod
    def _nearest(self, query: Vectors, k: int, text: str, only: Only | None = None) -> DatabaseHits:
        """Ask for the nearest neighbours of one vector; engines that also search text get the query text.

        Engines that select are given a filter, and return neighbours among the rows that it leaves.
        """

    def _fields(self) -> tuple[list[Kind], list[OnlyRow]]:
        """Return the types of the columns to store beside the vectors, and each row's values."""
        fields = self._place.fields
        return ([], []) if fields is None else rows_of(fields)

    def _problem(self, error: Exception) -> ClqError | None:
        """Translate a driver's error, or return None to keep its own words."""
        del error
        return None

    @property
    def _stated(self) -> ParamOptions:
        """The options that are not empty, in a form that can be read again."""
        return {name: value for name, value in self._options.items() if value != ""}

    @property
    def parameters(self) -> JsonMap:
        """Return the options for building and searching it, for the manifest; never an address."""
        return {"metric": self.metric, **self._stated}

    def __len__(self) -> int:
        return self._passages

    def search(self, vector: Vectors, k: int, text: str = "", scope: IndexScope | None = None) -> Hits:
        """Return the best passages for one query vector, of those that its asker may see."""
        query = np.ascontiguousarray(vector, dtype=np.float32)
        if query.shape != (self.dim,):
            raise InputError(
                f"A query vector has {query.shape[-1]} dimensions, the index {self.dim}.",
                where=f"index {self.name}",
                do="Embed queries with the model and dimension of the passages.",
            )
        depth = min(k, len(self) if scope is None else len(scope.positions))
        with self.saying("search"):
            neighbours = self._found(query, depth, text, scope)
        passages = np.array([self._position(name) for name, _ in neighbours], dtype=np.int64)
        # Some engines return NaN as the cosine of a zero vector.
        scores = np.nan_to_num(np.array([score for _, score in neighbours], dtype=np.float64))
        order = np.argsort(passages)  # engines return equal scores in any order, which a new build changes
        return top_k(passages[order], scores[order], k)

    def _found(self, query: Vectors, depth: int, text: str, scope: IndexScope | None) -> DatabaseHits:
        if scope is None:
            return self._nearest(query, depth, text)
        if not depth:
            return []
        if not self.selects or not set(scope.asked.names) <= set(self._names):
            raise no_selection(self.name)
        if scope not in self._only:
            self._only[scope] = only_of(scope.asked, scope.kinds, self._names)
        return self._nearest(query, depth, text, self._only[scope])

    @cached_property
    def _only(self) -> dict[IndexScope, Only]:
        return {}

    def search_batch(self, vectors: Vectors, k: int) -> list[Hits]:
        """Return the best passages for each of many query vectors."""
        return [self.search(vector, k) for vector in vectors]

    def save(self, path: Path) -> None:
        """Record the index's location; the table stays in the database."""
        about = {
            "name": self.name,
            "metric": self.metric,
            "options": self._stated,
            "table": self._place.table,
            "dim": self.dim,
            "build_s": self.build_s,
            "fields": list(self._names),
        }
        with new_folder(path, KIND, about):
            pass

    @cached_property
    def url(self) -> str:
        """The address, or "" if the index lies in a folder."""
        return address(self.engine, self._options)

    @cached_property
    def driver(self) -> ModuleType:
        """The package that connects to the engine."""
        return self._package(self.engine.package)

    def _package(self, name: str) -> ModuleType:
        return needed(name, self.engine.requirements, self.engine.title)

    @contextmanager
    def saying(self, doing: str) -> Iterator[None]:
        """Rephrase a driver's errors, since the originals may contain an address."""
        try:
            yield
        except ClqError:
            raise
        except Exception as error:
            secrets = f"{self.url} {secret(self.engine, self._options) or ''}"
            words = without_secrets(str(error).strip().split("\n")[0], secrets)[:_WORDS]
            usual = ProviderError(
                f"{self.engine.title} did not {doing}: {words or type(error).__name__}.",
                kind="server",
                where=f"index {self.name}",
            )
            if getattr(error, "status_code", None) in (401, 403):
                raise self.refused() from None
            raise (self._problem(error) or usual) from None

    def unreachable(self) -> ProviderError:
        """Return the error for an address that doesn't answer."""
        do = f"Is it running, and is the address in {self._options['url_env']} right?"
        problem = f"{self.engine.title} does not answer."
        return ProviderError(problem, kind="unreachable", where=f"index {self.name}", do=do)

    def refused(self) -> ProviderError:
        """Return the error for wrong credentials."""
        problem = f"{self.engine.title} refused the user, the password or the key."
        do = f"Look at the address in {self._options['url_env']}."
        return ProviderError(problem, kind="auth", where=f"index {self.name}", do=do)

    def no_column(self, column: str, known: Sequence[str]) -> InputError:
        """Return the error for a missing column."""
        problem = f"The table {self.table} has no column {column}."
        return InputError(problem, where=f"index {self.name}", do=f"Found: {', '.join(known[:12])}.")

    def check_exact(self, kind: str) -> None:
        """Refuse an exact search of a table whose index is a graph, for engines that walk what there is."""
        if self._options["exact"] == "yes" and kind != "FLAT":
            problem = f"The index of {self.table} is {kind}, which does not compare every vector."
            raise InputError(problem, where=f"index {self.name}", do="Leave exact out, or index it as FLAT.")

    def missing(self, known: Sequence[str], what: str = "table") -> InputError:
        """Return the error for a missing table."""
        do = f"Found: {', '.join(known[:12]) or 'none'}."
        return InputError(f"There is no {what} {self.table}.", where=f"index {self.name}", do=do)

    def _looked(self, dim: int) -> Self:
        with self.saying("describe the table"):
            self.dim, self._passages, self.size_bytes = self._look()
        if self.dim != dim:
            raise InputError(
                f"The vectors of {self.table} have {self.dim} dimensions, those of the model {dim}.",
                where=f"index {self.name}",
                do="Name the model and the dimension that the table was made with.",
            )
        return self

    def _position(self, name: object) -> int:
        if not self.existing:
            return int(str(name))
        position = self._positions.get(str(name))
        if position is None:
            raise InputError(
                f"The table {self.table} holds a passage that the collection lacks: {str(name)[:_WORDS]}.",
                where=f"index {self.name}",
                do="Give the collection that the table was made of, and the column of its identifiers (id).",
            )
        return position

    @cached_property
    def _positions(self) -> Mapping[str, int]:
        return {name: position for position, name in enumerate(self._place.ids)}


def bytes_of(folder: Path) -> int:
    """Add up the sizes of the files in a folder."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def numbered(vectors: Vectors) -> Iterator[tuple[int, Vectors]]:
    """Yield blocks of vectors as float32, with the position of their first vector."""
    for number, block in enumerate(blocks(vectors)):
        yield number * BLOCK_ROWS, block


def secret(engine: IndexEngine, options: ParamOptions) -> str | None:
    """Return the API key in an environment variable, or None if no variable is named."""
    variable = str(options.get("key_env", ""))
    return _variable(engine, variable, "Set it to the API key.") if variable else None


def address(engine: IndexEngine, options: ParamOptions) -> str:
    """Return the address in an environment variable, or "" if no variable is named.

    Raises:
        InputError: If the variable may not be named, is not set, or is no address of this engine.
    """
    variable = str(options["url_env"])
    if not variable:
        return ""
    url = _variable(engine, variable, f"Set it to the address, as {engine.example}.")
    if url.partition("://")[0] in engine.schemes or (engine.folder and Path(url).is_absolute()):
        return url
    forms = [
        *(f"{scheme}://…" for scheme in engine.schemes),
        *(["an absolute folder"] if engine.folder else []),
    ]
    raise InputError(
        f"The environment variable {variable} holds no address of {engine.title}.",
        where=f"index {engine.name}",
        do=f"Set it to {' or '.join(forms)}.",
    )


def _variable(engine: IndexEngine, variable: str, do: str) -> str:
    where = f"index {engine.name}"
    if variable not in (*engine.variables(), *os.environ.get(ALLOW, "").split()):
        raise InputError(
            f"The environment variable {variable} may not be read for {engine.title}.",
            where=where,
            do=f"Name {' or '.join(sorted(engine.variables()))}. If this one is meant, who runs the program"
            f' allows it with {ALLOW}="{variable}".',
        )
    value = os.environ.get(variable, "").strip()
    if not value:
        raise InputError(f"The environment variable {variable} is not set.", where=where, do=do)
    return value


def without_secrets(words: str, url: str) -> str:
    """Remove every part of an address from a text."""
    for part in sorted(set(_SECRET.findall(url)), key=len, reverse=True):
        words = words.replace(part, "…")
    return words
