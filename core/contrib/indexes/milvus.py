"""Milvus: its official client, on a server or, by Milvus Lite, in a folder."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from core.arrays import Vectors
from core.errors import ClqError, InputError
from core.filters import Kind
from core.params import Param, ParamOptions, whole
from core.pipeline.index.kinds import KEY, IndexEngine, shared
from core.pipeline.index.only import HELD, NotAll, Only, OnlyTest, held_by, literal
from core.pipeline.index.outside import DatabaseFacts, DatabaseHits, DatabaseIndex, bytes_of, numbered, secret

_ID, _VECTOR = "id", "embedding"
_METRICS = {"cosine": "COSINE", "ip": "IP", "l2": "L2"}
_BATCH = 1000
_MOST_IN_LIST = 4096  # of an array, as Milvus allows
_DIGEST = 32  # bytes
_ROW = 16.0
_OPTIONS = (
    *shared("", id=_ID, vector=_VECTOR),
    KEY,
    Param(name="m", default=16, low=2, high=2048, text="Neighbours per vector."),
    Param(name="ef_construction", default=200, low=4, high=10_000, text="Looked at per vector added."),
    Param(
        name="ef_search", default=128, low=1, high=32_768,
        text="Looked at per search; raised to the depth asked for when that is larger.",
    ),
)  # fmt: skip
_TYPES: Mapping[Kind, tuple[str, object]] = {
    Kind.TEXT: ("VARCHAR", ""),
    Kind.NUMBER: ("DOUBLE", 0.0),
    Kind.DATE: ("INT64", 0),
    Kind.BOOL: ("BOOL", False),
    Kind.TEXTS: ("ARRAY", []),
}
"""The type of a column, and what stands there for a passage without a value, which `held` tells apart."""
_RANGES = {"gte": ">=", "gt": ">", "lte": "<=", "lt": "<"}


def _vector_bytes(dim: int, options: ParamOptions) -> float:
    return 2 * 4.0 * dim + 8.0 * whole(options, "m") + _ROW


def _expressions(parts: Sequence[OnlyTest | NotAll]) -> Iterator[str]:
    """Yield conditions; Milvus Lite takes no parameters, so the values are digests and numbers of our own."""
    for part in parts:
        if isinstance(part, NotAll):
            yield f"not ({' and '.join(_expressions(part.parts))})"
            continue
        values = ", ".join(map(literal, part.values))
        if part.operator in _RANGES:
            yield f"{part.column} {_RANGES[part.operator]} {values}"
        elif not values:
            yield f"{_ID} {'>=' if part.operator == 'all' else '<'} 0"  # always, or never
        elif part.operator == "in":
            yield f"{part.column} in [{values}]"
        else:
            yield f"array_contains_{part.operator}({part.column}, [{values}])"


class Milvus(DatabaseIndex):
    """A collection of Milvus."""

    engine = IndexEngine(
        name="milvus",
        title="Milvus",
        text="A collection of Milvus: HNSW, or exact where it is built so; in a folder by Milvus Lite.",
        options=_OPTIONS,
        package="pymilvus",
        requirements="requirements-milvus.txt",
        example="http://host:19530",
        schemes=("http", "https"),
        vector_bytes=_vector_bytes,
        folder=True,
        searching=("ef_search",),
    )
    selects = True

    def _create(self, vectors: Vectors) -> None:
        client, name, (kinds, fields) = self._client, self.table, self._fields()
        if client.has_collection(name):
            client.drop_collection(name)
        graph = {"M": whole(self._options, "m"), "efConstruction": whole(self._options, "ef_construction")}
        how = ("FLAT", {}) if self._options["exact"] == "yes" else ("HNSW", graph)
        index = client.prepare_index_params()
        index.add_index(_VECTOR, index_type=how[0], metric_type=_METRICS[self.metric], params=how[1])
        client.create_collection(name, schema=self._schema(vectors.shape[1], kinds), index_params=index)
        empty = [_TYPES[kind][1] for kind in kinds]
        for start, block in numbered(vectors):
            for first in range(0, len(block), _BATCH):
                rows = [
                    {_ID: at, _VECTOR: vector, **(self._held(fields[at], empty) if kinds else {})}
                    for at, vector in enumerate(block[first : first + _BATCH], start + first)
                ]
                client.insert(name, rows)
        client.flush(name)
        client.load_collection(name)

    def _schema(self, dim: int, kinds: Sequence[Kind]) -> Any:  # noqa: ANN401 - an optional package
        types = self.driver.DataType
        schema = self._client.create_schema(auto_id=False, enable_dynamic_field=False)
        schema.add_field(_ID, types.INT64, is_primary=True)
        schema.add_field(_VECTOR, types.FLOAT_VECTOR, dim=dim)
        listed = {"element_type": types.VARCHAR, "max_length": _DIGEST, "max_capacity": _MOST_IN_LIST}
        more = {"ARRAY": listed, "VARCHAR": {"max_length": _DIGEST}}
        for number, kind in enumerate(kinds):
            of_type = _TYPES[kind][0]
            schema.add_field(f"f{number}", getattr(types, of_type), **more.get(of_type, {}))
        if kinds:
            schema.add_field(HELD, types.ARRAY, **listed)
        return schema

    @staticmethod
    def _held(row: Sequence[object], empty: Sequence[object]) -> dict[str, object]:
        values = (other if value is None else value for value, other in zip(row, empty, strict=True))
        return {**{f"f{number}": value for number, value in enumerate(values)}, HELD: held_by(row)}

    def _drop(self) -> None:
        self._client.drop_collection(self.table)
        if not self.remote:
            self._close()
            shutil.rmtree(self._at, ignore_errors=True)

    def _look(self) -> DatabaseFacts:
        if not (self.remote or self._at.exists()) or not self._client.has_collection(self.table):
            raise self.missing(self._known(), "collection")
        columns = {field["name"]: field for field in self._client.describe_collection(self.table)["fields"]}
        for name in (self._id, self._vector):
            if name not in columns:
                raise self.no_column(name, list(columns))
        for name in self._client.list_indexes(self.table, field_name=self._vector):
            self.check_exact(self._client.describe_index(self.table, name)["index_type"])
        self._client.load_collection(self.table)
        (counted,) = self._client.query(self.table, output_fields=["count(*)"], consistency_level="Strong")
        dim = int(columns[self._vector]["params"].get("dim", 0))
        return DatabaseFacts(dim, int(counted["count(*)"]), None if self.remote else bytes_of(self._at))

    def _known(self) -> list[str]:
        if self.remote:
            return sorted(self._client.list_collections())
        return sorted(path.stem for path in self._at.parent.glob("*.db"))

    def _nearest(self, query: Vectors, k: int, text: str, only: Only | None = None) -> DatabaseHits:
        del text
        held = [f"array_contains({HELD}, '{name}')" for name in only.columns] if only else []
        (found,) = self._client.search(
            self.table,
            data=[query],
            anns_field=self._vector,
            filter=" and ".join([*held, *_expressions(only.parts if only else ())]),
            limit=k,
            output_fields=[self._id],
            search_params={
                "metric_type": _METRICS[self.metric],
                "params": {"ef": max(whole(self._options, "ef_search"), k)},
            },
        )
        far = [float(hit["distance"]) for hit in found]
        scores = [-(max(each, 0.0) ** 0.5) for each in far] if self.metric == "l2" else far
        return [(hit["entity"][self._id], score) for hit, score in zip(found, scores, strict=True)]

    def save(self, path: Path) -> None:
        """Record where the collection is; release its folder, which one process may have open."""
        super().save(path)
        if not self.remote:
            self._close()

    def _close(self) -> None:
        client = self.__dict__.pop("_client", None)
        if client is not None:
            client.close()
            self._package("milvus_lite.server_manager").server_manager_instance.release_server(str(self._at))

    def _take(self, options: ParamOptions) -> None:
        super()._take(options)
        self.remote = "://" in self.url

    @property
    def _at(self) -> Path:
        if Path(self.table).name != self.table:
            raise InputError(
                f"{self.table!r} is no name of a collection.",
                where=f"index {self.name}",
                do="Name it in table, and where it is in the variable of url_env.",
            )
        return Path(self.url or self._place.folder / "milvus") / f"{self.table}.db"

    @cached_property
    def _client(self) -> Any:  # noqa: ANN401 - an optional package
        if self.remote:
            return self.driver.MilvusClient(self.url, token=secret(self.engine, self._options) or "")
        self._at.parent.mkdir(parents=True, exist_ok=True)
        return self.driver.MilvusClient(str(self._at))

    def _problem(self, error: Exception) -> ClqError | None:
        words = str(error).lower()
        if any(part in words for part in ("fail connecting", "unavailable", "deadline exceeded")):
            return self.unreachable()
        if any(part in words for part in ("unauthenticated", "auth check failure", "invalid password")):
            return self.refused()
        return None
