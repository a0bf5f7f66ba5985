"""Qdrant: its official client, on a server or a folder (which compares every vector)."""

from __future__ import annotations

import time
from functools import cached_property
from pathlib import Path
from typing import Any

from core.arrays import Vectors
from core.contrib.indexes.payload import DISTANCES, GRAPH, filter_of, indexed, payload_of, vector_bytes
from core.errors import ClqError, InputError
from core.params import Param, whole
from core.pipeline.index.kinds import KEY, IndexEngine, shared
from core.pipeline.index.only import Only
from core.pipeline.index.outside import DatabaseFacts, DatabaseHits, DatabaseIndex, bytes_of, numbered, secret

_FOLDER = "qdrant"
_BATCH = 1000
_PAUSE_S = 0.2
_OPTIONS = (
    *shared("", id="", vector=""),
    KEY,
    *GRAPH,
    Param(
        name="type", default="float32", choices=("float32", "float16", "int8"), text="Numbers; int8: beside."
    ),
)


class Qdrant(DatabaseIndex):
    """A collection of Qdrant."""

    engine = IndexEngine(
        name="qdrant",
        title="Qdrant",
        text="A collection of Qdrant: HNSW on a server, exact in a folder.",
        options=_OPTIONS,
        package="qdrant_client",
        requirements="requirements-qdrant.txt",
        example="http://host:6333",
        schemes=("http", "https"),
        vector_bytes=vector_bytes,
        folder=True,
        searching=("exact", "ef_search"),
    )
    selects = True

    def _create(self, vectors: Vectors) -> None:
        models, options, name = self.driver.models, self._options, self.table
        if self._client.collection_exists(name):
            self._client.delete_collection(name)
        kind, quantised = str(options["type"]), None
        if kind == "int8":
            scalar = models.ScalarQuantizationConfig(type="int8", always_ram=True)
            quantised = models.ScalarQuantization(scalar=scalar)
        self._client.create_collection(
            name,
            vectors_config=models.VectorParams(
                size=vectors.shape[1],
                distance=models.Distance(DISTANCES[self.metric]),
                datatype=None if kind == "int8" else kind,
            ),
            hnsw_config=models.HnswConfigDiff(
                m=whole(options, "m"), ef_construct=whole(options, "ef_construction")
            ),
            quantization_config=quantised,
        )
        kinds, fields = self._fields()
        if kinds and self.remote:
            for column, of_field in indexed(kinds).items():
                self._client.create_payload_index(name, column, field_schema=of_field, wait=True)
        payloads = [payload_of(row) for row in fields]
        for start, block in numbered(vectors):
            ids, known = range(start, start + len(block)), payloads[start : start + len(block)] or None
            self._client.upload_collection(name, block, known, ids=ids, batch_size=_BATCH, wait=True)
        self._wait_for_index(name)

    def _wait_for_index(self, name: str) -> None:
        """Wait until the server has built its graph; until then it compares every vector."""
        while self.remote and str(self._client.get_collection(name).status).endswith("yellow"):
            time.sleep(_PAUSE_S)

    def _drop(self) -> None:
        self._client.delete_collection(self.table)

    def _look(self) -> DatabaseFacts:
        if not self._client.collection_exists(self.table):
            known = [collection.name for collection in self._client.get_collections().collections]
            raise self.missing(known, "collection")
        config = self._client.get_collection(self.table).config.params.vectors
        if isinstance(config, dict):
            if self._vector not in config:
                raise self.no_column(str(self._vector or "without a name"), list(config))
            config = config[self._vector]
        elif self._vector:
            raise self.no_column(self._vector, ["one without a name"])
        if DISTANCES[self.metric] != getattr(config.distance, "value", config.distance):
            raise InputError(
                f"The collection {self.table} compares by {getattr(config.distance, 'value', '')}.",
                where=f"index {self.name}",
                do="Name the metric that it was made with.",
            )
        return DatabaseFacts(config.size, self._client.count(self.table, exact=True).count, self._bytes())

    def _nearest(self, query: Vectors, k: int, text: str, only: Only | None = None) -> DatabaseHits:
        del text
        models, name = self.driver.models, self._id
        looked_at = max(whole(self._options, "ef_search"), k)
        how = models.SearchParams(hnsw_ef=looked_at, exact=self._options["exact"] == "yes")
        response = self._client.query_points(
            self.table,
            query=query.tolist(),
            using=self._vector or None,
            limit=k,
            query_filter=filter_of(models, only),
            search_params=how if self.remote else None,  # a folder is always searched exhaustively
            with_payload=[name] if name else False,
        )
        sign = -1.0 if self.metric == "l2" else 1.0
        return [
            (point.payload.get(name) if name else point.id, sign * point.score) for point in response.points
        ]

    def save(self, path: Path) -> None:
        """Record the index's location; release the folder, which allows one reader only."""
        super().save(path)
        if not self.remote:
            self._client.close()
            del self._client

    @cached_property
    def _client(self) -> Any:  # noqa: ANN401 - an optional package
        client = self.driver.QdrantClient
        if not self.remote:
            return client(path=str(self._place.folder / _FOLDER), force_disable_check_same_thread=True)
        return client(url=self.url, api_key=secret(self.engine, self._options), check_compatibility=False)

    def _bytes(self) -> int | None:
        """Return the size of a folder, or None for a server, which doesn't report it."""
        if self.remote:
            return None
        return bytes_of(self._place.folder / _FOLDER / "collection" / self.table)

    def _problem(self, error: Exception) -> ClqError | None:
        return self.unreachable() if type(error).__name__ == "ResponseHandlingException" else None
