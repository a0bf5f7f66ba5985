"""LanceDB: vectors in a folder or in object storage."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa

from core.arrays import Vectors
from core.errors import ClqError, InputError
from core.filters import Kind
from core.params import Param, ParamOptions, whole
from core.pipeline.index.kinds import IndexEngine, shared
from core.pipeline.index.only import NotAll, Only, OnlyTest, literal
from core.pipeline.index.outside import DatabaseFacts, DatabaseHits, DatabaseIndex, bytes_of, numbered

DATA = "data"
_METRICS = {"cosine": "cosine", "ip": "dot", "l2": "l2"}
_ID, _VECTOR = "id", "vector"
_ROW = 8.0
_OPTIONS = (
    *shared("", id=_ID, vector=_VECTOR),
    Param(name="method", default="hnsw", choices=("hnsw", "ivf_pq", "none"), text="Index that is built."),
    Param(name="partitions", default=1, low=1, high=100_000, text="Lists that vectors fall into."),
    Param(name="m", default=20, low=2, high=512, text="hnsw: neighbours per vector."),
    Param(name="ef_construction", default=300, low=4, high=10_000, text="hnsw: looked at per vector added."),
    Param(
        name="ef_search", default=128, low=1, high=100_000,
        text="hnsw: looked at per search; raised to the depth asked for, times refine, when that is larger.",
    ),
    Param(name="parts", default=0, low=0, high=4096, text="ivf_pq: parts of a vector; 0: LanceDB's choice."),
    Param(name="probes", default=20, low=1, high=100_000, text="Lists looked at per search."),
    Param(
        name="refine", default=0, low=0, high=1000,
        text="So many times the depth is compared again with the vectors themselves; 0: not.",
    ),
)  # fmt: skip
_TYPES = {
    Kind.TEXT: pa.string(),
    Kind.NUMBER: pa.float64(),
    Kind.DATE: pa.int64(),
    Kind.BOOL: pa.bool_(),
    Kind.TEXTS: pa.list_(pa.string()),
}
_RANGES = {"gte": ">=", "gt": ">", "lte": "<=", "lt": "<"}


def _vector_bytes(dim: int, options: ParamOptions) -> float:
    parts = whole(options, "parts") or dim / 16
    index = {"none": 0.0, "hnsw": dim + 10.0 * whole(options, "m"), "ivf_pq": parts}[str(options["method"])]
    return 4.0 * dim + _ROW + index + _ROW * (index > 0)


def _where(parts: Sequence[OnlyTest | NotAll]) -> Iterator[str]:
    """Yield conditions; LanceDB takes no parameters, so the values are digests and numbers of our own."""
    for part in parts:
        if isinstance(part, NotAll):
            yield f"NOT ({' AND '.join(_where(part.parts))})"
            continue
        values = [literal(value) for value in part.values]
        if part.operator in _RANGES:
            yield f"{part.column} {_RANGES[part.operator]} {values[0]}"
        elif part.operator == "in":
            yield f"{part.column} IN ({', '.join(values)})" if values else "FALSE"
        else:
            yield (
                f"array_has_{part.operator}({part.column}, [{', '.join(values)}])"
                if values
                else str(part.operator == "all")
            )


class LanceDb(DatabaseIndex):
    """A table of LanceDB."""

    engine = IndexEngine(
        name="lancedb",
        title="LanceDB",
        text="A table of LanceDB in a folder or in object storage: HNSW, IVF_PQ or exact.",
        options=_OPTIONS,
        package="lancedb",
        requirements="requirements-lancedb.txt",
        example="s3://bucket/path (keys in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY)",
        schemes=("s3", "gs", "az", "abfss"),
        vector_bytes=_vector_bytes,
        least_bytes=4_890,
        folder=True,
        searching=("exact", "ef_search", "probes", "refine"),
    )
    selects = True

    def _package(self, name: str) -> ModuleType:
        os.environ.setdefault("LANCEDB_LOG", "off")  # it would print URLs, bypassing redaction
        return super()._package(name)

    def _create(self, vectors: Vectors) -> None:
        dim, (kinds, fields) = vectors.shape[1], self._fields()
        added = [(f"f{number}", _TYPES[kind]) for number, kind in enumerate(kinds)]
        schema = pa.schema([(_ID, pa.int64()), (_VECTOR, pa.list_(pa.float32(), dim)), *added])

        def batches() -> Any:  # noqa: ANN401 - of a package without types
            for start, block in numbered(vectors):
                rows = pa.FixedSizeListArray.from_arrays(pa.array(block.reshape(-1)), dim)
                places = pa.array(np.arange(start, start + len(block)))
                columns = zip(*fields[start : start + len(block)], strict=True) if added else ()
                held = [pa.array(column, of[1]) for column, of in zip(columns, added, strict=True)]
                yield pa.record_batch([places, rows, *held], schema=schema)

        table = self._base.create_table(self.table, batches(), schema=schema, mode="overwrite")
        method, options = str(self._options["method"]), self._options
        common = {
            "metric": _METRICS[self.metric],
            "vector_column_name": _VECTOR,
            "num_partitions": whole(options, "partitions"),
        }
        if method == "hnsw":
            more = {"m": whole(options, "m"), "ef_construction": whole(options, "ef_construction")}
            table.create_index(index_type="IVF_HNSW_SQ", **common, **more)
        elif method == "ivf_pq":
            parts = whole(options, "parts")
            table.create_index(index_type="IVF_PQ", **common, **({"num_sub_vectors": parts} if parts else {}))

    def _drop(self) -> None:
        self._base.drop_table(self.table)

    def _look(self) -> DatabaseFacts:
        if self.table not in (known := list(self._base.list_tables().tables)):
            raise self.missing(known)
        schema = self._opened.schema
        for column in (self._id, self._vector):
            if column not in schema.names:
                raise self.no_column(column, list(schema.names))
        kind = schema.field(self._vector).type
        if not pa.types.is_fixed_size_list(kind):
            raise InputError(
                f"The column {self._vector} holds no vectors of one length.", where=f"index {self.name}"
            )
        return DatabaseFacts(kind.list_size, self._opened.count_rows(), self._bytes())

    def _nearest(self, query: Vectors, k: int, text: str, only: Only | None = None) -> DatabaseHits:
        del text
        asked = self._opened.search(query, vector_column_name=self._vector)
        if only is not None and (only.columns or only.parts):  # a filter may ask for nothing
            held = (f"{name} IS NOT NULL" for name in only.columns)
            asked = asked.where(" AND ".join([*held, *_where(only.parts)]), prefilter=True)
        asked = asked.distance_type(_METRICS[self.metric]).select([self._id, "_distance"]).limit(k)
        if self._options["exact"] == "yes":
            asked = asked.bypass_vector_index()
        elif self._options["method"] != "none":
            refine = whole(self._options, "refine")  # multiples of k to search, which ef must reach
            asked = asked.ef(max(whole(self._options, "ef_search"), k * max(refine, 1)))
            asked = asked.nprobes(whole(self._options, "probes"))
            if refine:
                asked = asked.refine_factor(refine)
        table = asked.to_arrow()
        far = table["_distance"].to_numpy().astype(np.float64)
        scores = -np.sqrt(np.maximum(far, 0)) if self.metric == "l2" else 1 - far
        return list(zip(table[self._id].to_pylist(), scores.tolist(), strict=True))

    @cached_property
    def _base(self) -> Any:  # noqa: ANN401 - of a package without types
        return self.driver.connect(self.url or str(self._place.folder / DATA))

    @cached_property
    def _opened(self) -> Any:  # noqa: ANN401 - of a package without types
        return self._base.open_table(self.table)

    def _bytes(self) -> int | None:
        """Return the size of the table's files, or None in object storage, which is not queried for it."""
        at = Path(self.url or self._place.folder / DATA)
        return None if "://" in self.url else bytes_of(at / f"{self.table}.lance")

    def _problem(self, error: Exception) -> ClqError | None:
        words = str(error).lower()
        if any(part in words for part in ("connection", "dns", "timed out", "error sending request")):
            return self.unreachable()
        if any(part in words for part in ("403", "access denied", "invalidaccesskey", "credential")):
            return self.refused()
        return None
