"""pgvector: vectors in PostgreSQL, via psycopg."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from core.arrays import Vectors
from core.errors import ClqError, InputError
from core.filters import Kind
from core.params import Param, ParamOptions, whole
from core.pipeline.index.kinds import IndexEngine, shared
from core.pipeline.index.only import NotAll, Only, OnlyTest
from core.pipeline.index.outside import DatabaseFacts, DatabaseHits, DatabaseIndex, numbered

_OPERATORS = {"cosine": ("<=>", "cosine_ops"), "ip": ("<#>", "ip_ops"), "l2": ("<->", "l2_ops")}
_ID, _VECTOR = "id", "embedding"
_MOST_LOOKED_AT = 1000
_CONNECT_S = 10
_OPTIONS = (
    *shared("PG_URL", id=_ID, vector=_VECTOR),
    Param(name="method", default="hnsw", choices=("hnsw", "ivfflat", "none"), text="Index that is built."),
    Param(name="type", default="vector", choices=("vector", "halfvec"), text="Numbers of 4 or of 2 bytes."),
    Param(
        name="build_mb", default=512, low=1, high=1_000_000,
        text="MiB that the server may take while it builds (maintenance_work_mem).",
    ),
    Param(name="m", default=16, low=2, high=100, text="hnsw: neighbours per vector."),
    Param(name="ef_construction", default=64, low=4, high=1000, text="hnsw: looked at per vector added."),
    Param(
        name="ef_search", default=40, low=1, high=_MOST_LOOKED_AT,
        text="hnsw: looked at per search; raised to the depth asked for when that is larger.",
    ),
    Param(name="lists", default=100, low=1, high=32_768, text="ivfflat: lists that vectors fall into."),
    Param(name="probes", default=10, low=1, high=32_768, text="ivfflat: lists looked at per search."),
)  # fmt: skip
_ROW, _KEY, _ENTRY, _ELEMENT, _WASTE = 36.0, 22.0, 16.0, 96.0, 1.06
"""Bytes beside the vector: of a row, its key's entry, an entry of a list and an element of a graph; and what
pages of a graph leave empty. 5,000 vectors of 64 dimensions took 932 bytes each as a graph of m = 16, a
million took 613 in lists."""
_TYPES: Mapping[Kind, str] = {
    Kind.TEXT: "text",
    Kind.NUMBER: "float8",
    Kind.DATE: "int8",
    Kind.BOOL: "bool",
    Kind.TEXTS: "text[]",
}
_CONDITIONS: Mapping[str, str] = {
    "in": "{0} = ANY(%s::{1}[])",
    "any": "{0} && %s::{1}",
    "all": "{0} @> %s::{1}",
    "gte": "{0} >= %s",
    "gt": "{0} > %s",
    "lte": "{0} <= %s",
    "lt": "{0} < %s",
}


def _vector_bytes(dim: int, options: ParamOptions) -> float:
    vector = (2 if options["type"] == "halfvec" else 4) * dim + 8.0
    links = 6.0 * 2 * whole(options, "m") * 1.1
    graph = _WASTE * (vector + links + _ELEMENT)
    index = {"none": 0.0, "hnsw": graph, "ivfflat": vector + _ENTRY}
    return _ROW + _KEY + vector + index[str(options["method"])]


class PgVector(DatabaseIndex):
    """A table of PostgreSQL with a column of vectors."""

    engine = IndexEngine(
        name="pgvector",
        title="PostgreSQL with pgvector",
        text="A table of PostgreSQL with pgvector: HNSW, IVFFlat or exact.",
        options=_OPTIONS,
        package="psycopg",
        requirements="requirements-pgvector.txt",
        example="postgresql://user:password@host:5432/database",
        schemes=("postgresql", "postgres"),
        vector_bytes=_vector_bytes,
        least_bytes=49_152,
        searching=("exact", "ef_search", "probes"),
    )
    selects = True

    def _create(self, vectors: Vectors) -> None:
        sql, table, dim = self._sql, self._named(self.table), vectors.shape[1]
        kind = str(self._options["type"])
        of_type = self._vector_types[kind]
        if not self._has(self._connection, kind):
            problem = f"This server's pgvector has no type {kind}."
            raise InputError(problem, where=f"index {self.name}", do="Update pgvector to 0.7, or use vector.")
        statement = sql.SQL("CREATE TABLE {} ({} bigint PRIMARY KEY, {} {}({}){})")
        kinds, fields = self._fields()
        types = [_TYPES[of_field] for of_field in kinds]
        more = sql.SQL("").join(
            sql.SQL(", {} {}").format(sql.Identifier(f"f{number}"), sql.SQL(name))
            for number, name in enumerate(types)
        )
        copied = sql.SQL("COPY {} FROM STDIN WITH (FORMAT BINARY)").format(table)
        connection = self._connection
        with connection.transaction():
            connection.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(table))
            names = (sql.Identifier(_ID), sql.Identifier(_VECTOR), sql.SQL(kind), sql.Literal(dim))
            connection.execute(statement.format(table, *names, more))
            with connection.cursor().copy(copied) as copy:
                copy.set_types(["bigint", kind, *types])
                for start, block in numbered(vectors):
                    for place, row in enumerate(block, start):
                        copy.write_row((place, of_type(row), *(fields[place] if fields else ())))
            self._index(connection, table, kind)
        connection.execute(sql.SQL("ANALYZE {}").format(table))

    def _index(self, connection: Any, table: Any, kind: str) -> None:  # noqa: ANN401 - an optional package
        method, sql = str(self._options["method"]), self._sql
        if method == "none":
            return
        names = {"hnsw": ("m", "ef_construction"), "ivfflat": ("lists",)}[method]
        set_to = [
            sql.SQL("{} = {}").format(sql.SQL(name), sql.Literal(whole(self._options, name)))
            for name in names
        ]
        memory = f"{whole(self._options, 'build_mb')}MB"
        connection.execute("SELECT set_config('maintenance_work_mem', %s, true)", (memory,))
        statement = sql.SQL("CREATE INDEX ON {} USING {} ({} {}) WITH ({})")
        operators = sql.SQL(f"{kind}_{_OPERATORS[self.metric][1]}")
        connection.execute(
            statement.format(
                table, sql.SQL(method), sql.Identifier(_VECTOR), operators, sql.SQL(", ").join(set_to)
            )
        )

    def _drop(self) -> None:
        self._connection.execute(self._sql.SQL("DROP TABLE {}").format(self._named(self.table)))

    def _look(self) -> DatabaseFacts:
        sql, table = self._sql, self._named(self.table)
        where = self._connection.execute("SELECT to_regclass(%s)", (table.as_string(None),)).fetchone()
        if where is None or where[0] is None:
            raise self.missing(self._tables())
        columns = dict(
            self._connection.execute(
                "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute"
                " WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped",
                (table.as_string(None),),
            ).fetchall()
        )
        for column in (self._id, self._vector):
            if column not in columns:
                raise self.no_column(column, list(columns))
        vector = sql.Identifier(self._vector)
        asked = sql.SQL(
            "SELECT (SELECT count({0}) FROM {1}),"
            " (SELECT vector_dims({0}) FROM {1} WHERE {0} IS NOT NULL LIMIT 1), pg_total_relation_size({2})"
        ).format(vector, table, sql.Literal(table.as_string(None)))
        count, dim, size = self._connection.execute(asked).fetchone()
        self._type = columns[self._vector].partition("(")[0]
        return DatabaseFacts(dim or 0, count, size)

    def _nearest(self, query: Vectors, k: int, text: str, only: Only | None = None) -> DatabaseHits:
        """Search with `WHERE`; a graph is walked on until enough rows match, as far as pgvector allows."""
        del text
        values: list[Any] = []
        asked = self._asked if only is None else self._filtered(only, values)
        connection = self._connection
        self._set_depth(connection, k, on=only is not None)
        given = (self._vector_types[self._type](query), *values, k)
        rows = connection.execute(asked, given).fetchall()
        return [(name, 1 - far if self.metric == "cosine" else -far) for name, far in rows]

    def _filtered(self, only: Only, values: list[Any]) -> str:
        """Return the statement with a filter, whose values are added to `values`."""
        held = [self._sql.SQL("{} IS NOT NULL").format(self._sql.Identifier(name)) for name in only.columns]
        where = self._sql.SQL(" AND ").join([*held, *self._where(only.parts, values)])
        return self._statement(self._sql.SQL("WHERE {} ").format(where) if held else self._sql.SQL(""))

    def _where(self, parts: Sequence[OnlyTest | NotAll], values: list[Any]) -> list[Any]:
        """Return conditions with a placeholder for every value, which is added to `values`."""
        sql, found = self._sql, []
        for part in parts:
            if isinstance(part, NotAll):
                inner = sql.SQL(" AND ").join(self._where(part.parts, values))
                found.append(sql.SQL("NOT ({})").format(inner))
                continue
            form = _CONDITIONS[part.operator]
            several = part.operator in ("in", "any", "all")
            values.append(list(part.values) if several else part.values[0])
            found.append(sql.SQL(form).format(sql.Identifier(part.column), sql.SQL(_TYPES[part.kind])))
        return found

    @property
    def _asked(self) -> Any:  # noqa: ANN401 - an optional package
        if "asked" not in self._of_thread.__dict__:
            self._of_thread.asked = self._statement(self._sql.SQL(""))
        return self._of_thread.asked

    def _statement(self, where: Any) -> str:  # noqa: ANN401 - an optional package
        sql = self._sql
        text = sql.SQL("SELECT {}, {} {} %s AS far FROM {} {}ORDER BY far LIMIT %s").format(
            sql.Identifier(self._id), sql.Identifier(self._vector), sql.SQL(_OPERATORS[self.metric][0]),
            self._named(self.table), where,
        )  # fmt: skip
        return str(text.as_string(None))

    def _set_depth(self, connection: Any, k: int, *, on: bool) -> None:  # noqa: ANN401 - an optional package
        """Raise the search depth to k: a graph returns no more than its depth, unless it is walked on."""
        looked_at = min(max(whole(self._options, "ef_search"), k), _MOST_LOOKED_AT)
        scanning = "off" if self._options["exact"] == "yes" else "on"
        settings = {
            "hnsw.ef_search": str(looked_at),
            "ivfflat.probes": str(whole(self._options, "probes")),
            "enable_indexscan": scanning,
            "enable_bitmapscan": scanning,
        }
        if self._walks_on:
            settings["hnsw.iterative_scan"] = "strict_order" if on else "off"
            settings["ivfflat.iterative_scan"] = "relaxed_order" if on else "off"
        if self._of_thread.settings == settings:
            return
        for name, value in settings.items():
            connection.execute("SELECT set_config(%s, %s, false)", (name, value))
        self._of_thread.settings = settings

    @cached_property
    def _walks_on(self) -> bool:
        """Whether this server's pgvector walks on until enough rows match a filter (0.8 and later)."""
        asked = (
            "SELECT string_to_array(extversion, '.')::int[] >= '{0,8}'"
            " FROM pg_extension WHERE extname = 'vector'"
        )
        return bool(self._connection.execute(asked).fetchone()[0])

    @property
    def _sql(self) -> Any:  # noqa: ANN401 - an optional package
        return self.driver.sql

    @property
    def _vector_types(self) -> dict[str, Any]:
        pgvector = self._package("pgvector")
        return {"vector": pgvector.Vector, "halfvec": pgvector.HalfVector}

    def _named(self, table: str) -> Any:  # noqa: ANN401 - an optional package
        return self._sql.Identifier(*table.split("."))

    @property
    def _connection(self) -> Any:  # noqa: ANN401 - an optional package
        """The connection of this thread; a new one if it has none, or lost it."""
        kept = self._of_thread.__dict__.get("connection")
        if kept is None or kept.closed:
            self._of_thread.connection = kept = self._connect()
            self._of_thread.settings = {}
        return kept

    def _connect(self) -> Any:  # noqa: ANN401 - an optional package
        vectors = self._package("pgvector.psycopg")
        url = self.url
        try:
            connection = self.driver.connect(url, autocommit=True, connect_timeout=_CONNECT_S)
        except self.driver.Error as error:
            words = str(error)
            raise (
                self.refused() if "password" in words or "authentication" in words else self.unreachable()
            ) from None
        if not self._has(connection, "vector"):
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        vectors.register_vector(connection)
        weakref.finalize(self, connection.close)
        return connection

    @staticmethod
    def _has(connection: Any, kind: str) -> bool:  # noqa: ANN401 - an optional package
        asked = "SELECT EXISTS (SELECT FROM pg_type WHERE typname = %s)"
        return bool(connection.execute(asked, (kind,)).fetchone()[0])

    @property
    def _of_thread(self) -> threading.local:
        kept: threading.local = self.__dict__.setdefault("_local", threading.local())
        return kept

    def _problem(self, error: Exception) -> ClqError | None:
        lost = (self.driver.OperationalError, self.driver.InterfaceError)
        connection = self._of_thread.__dict__.get("connection")
        if isinstance(error, lost) and connection is not None and (connection.closed or connection.broken):
            del self._of_thread.connection
            return self.unreachable()
        return None

    def _tables(self) -> Sequence[str]:
        rows = self._connection.execute(
            "SELECT DISTINCT c.oid::regclass::text FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid"
            " JOIN pg_type t ON t.oid = a.atttypid"
            " WHERE c.relkind IN ('r', 'p') AND t.typname IN ('vector', 'halfvec') ORDER BY 1"
        ).fetchall()
        return [name for (name,) in rows]
