"""Redis: vectors and filters of its query engine (RediSearch), over hashes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from core.arrays import Vectors
from core.errors import ClqError
from core.filters import Kind
from core.params import Param, ParamOptions, whole
from core.pipeline.index.kinds import IndexEngine, shared
from core.pipeline.index.only import HELD, NotAll, Only, OnlyTest, held_by
from core.pipeline.index.outside import DatabaseFacts, DatabaseHits, DatabaseIndex, numbered

_ID, _VECTOR = "id", "embedding"
_METRICS = {"cosine": "COSINE", "ip": "IP", "l2": "L2"}
_BATCH = 1000
_TIMEOUT_S = 60
_ROW = 250.0
_NEVER = "@held:{nothing}"
_OPTIONS = (
    *shared("REDIS_URL", id=_ID, vector=_VECTOR),
    Param(name="m", default=16, low=2, high=512, text="Neighbours per vector."),
    Param(name="ef_construction", default=200, low=4, high=10_000, text="Looked at per vector added."),
    Param(
        name="ef_search", default=128, low=1, high=100_000,
        text="Looked at per search; raised to the depth asked for when that is larger.",
    ),
)  # fmt: skip
_TYPES: Mapping[Kind, str] = {
    Kind.TEXT: "TAG",
    Kind.NUMBER: "NUMERIC",
    Kind.DATE: "NUMERIC",
    Kind.BOOL: "TAG",
    Kind.TEXTS: "TAG",
}
_RANGES = {"gte": "[{} +inf]", "gt": "[({} +inf]", "lte": "[-inf {}]", "lt": "[-inf ({}]"}


def _vector_bytes(dim: int, options: ParamOptions) -> float:
    return 2 * 4.0 * dim + 8.0 * whole(options, "m") + _ROW


def _tag(value: object) -> str:
    """Write a digest or boolean as a word that begins with a letter, which no syntax reads otherwise."""
    return f"t{int(value, 16):032x}" if isinstance(value, str) else f"t{bool(value)}".lower()


def _stored(value: object) -> str | float:
    """Return a value as a field of a hash: tags are separated by commas."""
    if isinstance(value, list):
        return ",".join(map(_tag, value))
    return _tag(value) if isinstance(value, str | bool) else repr(value)


def _clauses(parts: Sequence[OnlyTest | NotAll]) -> Iterator[str]:
    """Yield clauses of a query, all of which have to match: of tags and numbers of our own."""
    for part in parts:
        if isinstance(part, NotAll):
            yield f"-({' '.join(_clauses(part.parts))})"
        elif part.operator in _RANGES:
            yield f"@{part.column}:{_RANGES[part.operator].format(repr(part.values[0]))}"
        elif part.operator == "all":
            yield " ".join(f"@{part.column}:{{{_tag(value)}}}" for value in part.values) or f"-{_NEVER}"
        elif not part.values:
            yield _NEVER
        elif part.kind in (Kind.NUMBER, Kind.DATE):
            yield f"({'|'.join(f'@{part.column}:[{value!r} {value!r}]' for value in part.values)})"
        else:
            yield f"@{part.column}:{{{'|'.join(map(_tag, part.values))}}}"


class Redis(DatabaseIndex):
    """An index of Redis over hashes."""

    engine = IndexEngine(
        name="redis",
        title="Redis",
        text="An index of Redis's query engine: HNSW, or exact where it is built so.",
        options=_OPTIONS,
        package="redis",
        requirements="requirements-redis.txt",
        example="redis://user:password@host:6379",
        schemes=("redis", "rediss", "unix"),
        vector_bytes=_vector_bytes,
        searching=("ef_search",),
    )
    selects = True

    def _create(self, vectors: Vectors) -> None:
        if self.table in self._known():
            self._drop()
        kinds, fields = self._fields()
        typed = ["TYPE", "FLOAT32", "DIM", vectors.shape[1], "DISTANCE_METRIC", _METRICS[self.metric]]
        graph = ["M", whole(self._options, "m"), "EF_CONSTRUCTION", whole(self._options, "ef_construction")]
        how, more = ("FLAT", []) if self._options["exact"] == "yes" else ("HNSW", graph)
        columns = [each for at, kind in enumerate(kinds) for each in (f"f{at}", _TYPES[kind])]
        listed = [HELD, "TAG"] if kinds else []
        self._client.execute_command(
            "FT.CREATE", self.table, "ON", "HASH", "PREFIX", 1, f"{self.table}:", "SCHEMA",
            _VECTOR, "VECTOR", how, len(typed) + len(more), *typed, *more, *columns, *listed,
        )  # fmt: skip
        for start, block in numbered(vectors):
            for first in range(0, len(block), _BATCH):
                sent = self._client.pipeline(transaction=False)
                for at, row in enumerate(block[first : first + _BATCH], start + first):
                    held = self._held(fields[at]) if kinds else {}
                    sent.hset(f"{self.table}:{at}", mapping={_ID: at, _VECTOR: row.tobytes(), **held})
                sent.execute()

    @staticmethod
    def _held(row: Sequence[object]) -> dict[str, str | float]:
        values = {f"f{number}": _stored(value) for number, value in enumerate(row) if value is not None}
        return {**values, HELD: ",".join(held_by(row))}

    def _drop(self) -> None:
        self._client.execute_command("FT.DROPINDEX", self.table, "DD")

    def _known(self) -> list[str]:
        return sorted(_text(name) for name in self._client.execute_command("FT._LIST"))

    def _look(self) -> DatabaseFacts:
        if self.table not in (known := self._known()):
            raise self.missing(known, "index")
        told = _pairs(self._client.execute_command("FT.INFO", self.table))
        columns = {_text(each["attribute"]): each for each in map(_pairs, told["attributes"])}
        if self._vector not in columns:
            raise self.no_column(self._vector, list(columns))
        self.check_exact(_text(columns[self._vector].get("algorithm", "")))
        count = int(told["num_docs"])
        _, *keys = self._client.execute_command("FT.SEARCH", self.table, "*", "NOCONTENT", "LIMIT", 0, 1)
        row = self._client.memory_usage(keys[0]) if keys else 0
        index = float(told["total_index_memory_sz_mb"]) * 1024**2
        return DatabaseFacts(int(columns[self._vector].get("dim", 0)), count, int(index + count * (row or 0)))

    def _nearest(self, query: Vectors, k: int, text: str, only: Only | None = None) -> DatabaseHits:
        del text
        held = [f"@{HELD}:{{{name}}}" for name in only.columns] if only else []
        asked = f"({' '.join([*held, *_clauses(only.parts)])})" if only and held else "*"
        looked_at = max(whole(self._options, "ef_search"), k)
        effort = "" if self._options["exact"] == "yes" else f" EF_RUNTIME {looked_at}"
        _, *rows = self._client.execute_command(
            "FT.SEARCH", self.table, f"{asked}=>[KNN {k} @{self._vector} $vector{effort} AS far]",
            "PARAMS", 2, "vector", query.tobytes(), "SORTBY", "far", "RETURN", 2, self._id, "far",
            "LIMIT", 0, k, "TIMEOUT", 1000 * _TIMEOUT_S, "DIALECT", 2,  # its own timeout leaves out the rest
        )  # fmt: skip
        found: list[tuple[str, float]] = []
        for row in map(_pairs, rows[1::2]):
            if self._id not in row:
                raise self.no_column(self._id, list(row))
            far = float(row["far"])
            score = -(max(far, 0.0) ** 0.5) if self.metric == "l2" else 1 - far
            found.append((_text(row[self._id]), score))
        return found

    @cached_property
    def _client(self) -> Any:  # noqa: ANN401 - an optional package
        return self.driver.Redis.from_url(self.url, protocol=2, socket_timeout=_TIMEOUT_S)

    def _problem(self, error: Exception) -> ClqError | None:
        if isinstance(error, self.driver.AuthenticationError):
            return self.refused()
        if isinstance(error, self.driver.ConnectionError | self.driver.TimeoutError):
            return self.unreachable()
        return None


def _text(told: object) -> str:
    return told.decode() if isinstance(told, bytes) else str(told)


def _pairs(told: Sequence[Any]) -> dict[str, Any]:
    """Return a flat list of names and values, as Redis answers, by name; what has no name is left out."""
    names = [_text(name) if isinstance(name, bytes | str) else "" for name in told[::2]]
    return dict(zip(names, told[1::2], strict=False))
