"""Qdrant's own engine in this process: HNSW with filters and BM25, in a folder, without a server."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from core.arrays import Vectors
from core.contrib.indexes.payload import DISTANCES, GRAPH, filter_of, indexed, payload_of, vector_bytes
from core.errors import InputError
from core.params import Param, ParamOptions, whole
from core.pipeline.index.kinds import IndexEngine, shared
from core.pipeline.index.only import Only
from core.pipeline.index.outside import DatabaseFacts, DatabaseHits, DatabaseIndex, bytes_of, numbered

_FOLDER = "qdrant-edge"
_BATCH = 10_000
_LEAST_KB = 1  # Vectors of a graph, as small as the engine allows
DENSE, BM25, RRF = "dense", "bm25", "rrf"
_TEXT = "text"
_CONSTANT = 61  # as the engine counts ranks from 0: 1 / (60 + rank from 1)
# Those of core.pipeline.index.terms, which takes a third of a second to load.
_LANGUAGES = (
    "english", "french", "german", "spanish", "italian", "portuguese", "dutch", "danish", "norwegian",
    "swedish", "russian", "turkish",
)  # fmt: skip
_OPTIONS = (
    *shared("", id="", vector=""),
    *GRAPH,
    Param(
        name="type", default="float32", choices=("float32", "float16", "int8"),
        text="Numbers; int8: codes beside them, which are looked at first.",
    ),
    Param(
        name="search", default=DENSE, choices=(DENSE, BM25, RRF),
        text="Neighbours of the vector, BM25 by sparse vectors of words, or both merged by the engine.",
    ),
    Param(name="text", default=_TEXT, free=True, text="Name of the sparse vectors of words."),
    Param(name="language", default="english", choices=_LANGUAGES, text="Stop words and stemmer."),
)  # fmt: skip


class QdrantEdge(DatabaseIndex):
    """A shard of Qdrant's engine."""

    engine = IndexEngine(
        name="qdrant-edge",
        title="Qdrant Edge",
        text="Qdrant's own engine in this process, in a folder: HNSW with filters, BM25, or both merged.",
        options=_OPTIONS,
        package="qdrant_edge",
        requirements="requirements-qdrant-edge.txt",
        example="/an/absolute/folder",
        schemes=(),
        vector_bytes=vector_bytes,
        least_bytes=69_240_000,
        folder=True,
        searching=("exact", "ef_search"),
    )
    selects = True

    def _take(self, options: ParamOptions) -> None:
        super()._take(options)
        self.remote = False

    def _create(self, vectors: Vectors) -> None:
        edge, options, at = self.driver, self._options, self._at
        shutil.rmtree(at, ignore_errors=True)
        at.parent.mkdir(parents=True, exist_ok=True)
        graph = edge.HnswIndexConfig(whole(options, "m"), whole(options, "ef_construction"), _LEAST_KB)
        distance = getattr(edge.Distance, DISTANCES[self.metric])
        codes = edge.ScalarQuantizationConfig(edge.ScalarType.Int8, always_ram=True)
        config = edge.EdgeConfig(
            vectors=edge.EdgeVectorParams(
                size=vectors.shape[1],
                distance=distance,
                datatype=edge.VectorStorageDatatype.Float16 if options["type"] == "float16" else None,
                quantization_config=codes if options["type"] == "int8" else None,
            ),
            hnsw_config=graph,
            sparse_vectors=self._sparse_of(edge.EdgeSparseVectorParams(modifier=edge.Modifier.Idf)),
            optimizers=edge.EdgeOptimizersConfig(indexing_threshold=_LEAST_KB),
            wal_enabled=False,  # it is written once, and may be read by several
        )
        shard = self._shard = edge.EdgeShard.create(str(at), config)
        kinds, fields = self._fields()
        for column, kind in indexed(kinds).items() if kinds else ():
            of_field = getattr(edge.PayloadSchemaType, kind.capitalize())
            shard.update(edge.UpdateOperation.create_field_index(column, of_field))
        words = self._words(len(vectors))
        for start, block in numbered(vectors):
            for first in range(0, len(block), _BATCH):
                rows = block[first : first + _BATCH].tolist()
                points = [
                    edge.Point(
                        at,
                        {"": row, **self._sparse_of(words[at])} if words else row,
                        payload_of(fields[at]) if fields else None,
                    )
                    for at, row in enumerate(rows, start + first)
                ]
                shard.update(edge.UpdateOperation.upsert_points(points))
        shard.optimize()
        shard.flush()

    def _sparse_of(self, told: Any) -> dict[str, Any]:  # noqa: ANN401 - an optional package
        """Return what is told of the sparse vectors by their name; nothing where words are not searched."""
        return {} if self._options["search"] == DENSE else {str(self._options["text"]): told}

    def _bm25(self, **more: float) -> Any:  # noqa: ANN401 - an optional package
        return self.driver.Bm25(self.driver.Bm25Config(language=self._options["language"], **more))

    @cached_property
    def _asking(self) -> Any:  # noqa: ANN401 - an optional package
        return self._bm25()

    def _words(self, count: int) -> Sequence[Any]:
        """Return the sparse vector of each passage, with the corpus's mean length; [] if none is asked."""
        if self._options["search"] == DENSE:
            return []
        texts = [""] * count if self._place.texts is None else self._place.texts.to_list()
        # Without regard to lengths, and saturated at 1, a word that occurs n times weighs 2 n / (n + 1).
        counting = self._bm25(k=1.0, b=0.0)
        found = (weight / (2 - weight) for text in texts for weight in counting.embed_document(text).values)
        model = self._bm25(avg_len=max(1.0, sum(found) / max(1, count)))
        return [model.embed_document(text) for text in texts]

    def _drop(self) -> None:
        self._close()
        shutil.rmtree(self._at, ignore_errors=True)

    def _look(self) -> DatabaseFacts:
        if not self._at.is_dir():
            folder = self._at.parent
            known = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
            raise self.missing(known)
        first, _ = self._shard.scroll(self.driver.ScrollRequest(limit=1, with_vector=True))
        vector = first[0].vector if first else []
        if isinstance(vector, dict):
            if self._vector not in vector:
                raise self.no_column(self._vector or "without a name", list(vector))
            vector = vector[self._vector]
        elif self._vector:
            raise self.no_column(self._vector, ["one without a name"])
        return DatabaseFacts(len(vector), self._shard.info().points_count, bytes_of(self._at))

    def _nearest(self, query: Vectors, k: int, text: str, only: Only | None = None) -> DatabaseHits:
        edge, name, how = self.driver, self._id, self._options["search"]
        left = filter_of(edge, only)
        near: dict[str, Any] = {
            "query": edge.Query.Nearest(query.tolist(), self._vector or None),
            "params": self._effort(k),
            "filter": left,
        }
        words: dict[str, Any] = {}
        if how != DENSE:
            asked = self._asking.embed_query(text)
            words = {"query": edge.Query.Nearest(asked, str(self._options["text"])), "filter": left}
        told = {DENSE: near, BM25: words}.get(str(how)) or {
            "prefetches": [edge.Prefetch(limit=k, **leg) for leg in (near, words)],
            "query": edge.Fusion.Rrf(_CONSTANT),
        }
        request = edge.QueryRequest(limit=k, with_payload=[name] if name else None, **told)
        sign = -1.0 if self.metric == "l2" and how == DENSE else 1.0
        found = self._shard.query(request)
        return [
            ((point.payload or {}).get(name) if name else point.id, sign * point.score) for point in found
        ]

    def _effort(self, k: int) -> Any:  # noqa: ANN401 - an optional package
        """Return how much of the graph is looked at."""
        edge = self.driver
        exact = self._options["exact"] == "yes"
        return edge.SearchParams(
            hnsw_ef=max(whole(self._options, "ef_search"), k),
            exact=exact,
            quantization=edge.QuantizationSearchParams(ignore=exact),
        )

    def save(self, path: Path) -> None:
        """Record where the shard is, and close it, so that its folder can be moved."""
        super().save(path)
        self._close()

    def _close(self) -> None:
        shard = self.__dict__.pop("_shard", None)
        if shard is not None:
            shard.close()

    @property
    def _at(self) -> Path:
        if Path(self.table).name != self.table:
            raise InputError(
                f"{self.table!r} is no name of a shard's folder.",
                where=f"index {self.name}",
                do="Name the folder in table, and where it is in the variable of url_env.",
            )
        return Path(self.url or self._place.folder / _FOLDER) / self.table

    @cached_property
    def _shard(self) -> Any:  # noqa: ANN401 - an optional package
        return self.driver.EdgeShard.load(str(self._at))
