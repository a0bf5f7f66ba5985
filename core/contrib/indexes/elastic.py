"""Elasticsearch and OpenSearch: dense kNN, BM25, and both merged by their own reciprocal rank fusion."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from core.arrays import Vectors
from core.contrib.indexes.payload import payload_of, plain
from core.errors import ClqError, InputError
from core.filters import Kind
from core.params import Param, ParamOptions, whole
from core.pipeline.index.kinds import KEY, IndexEngine, shared
from core.pipeline.index.only import HELD, NotAll, Only, OnlyTest
from core.pipeline.index.outside import DatabaseFacts, DatabaseHits, DatabaseIndex, numbered, secret

Json = dict[str, Any]
DENSE, BM25, RRF = "dense", "bm25", "rrf"
_ID, _VECTOR, _TEXT = "_id", "embedding", "text"
_FIELD = re.compile(r"[\w.@-]+")
_CONSTANT = 60
_MOST_LOOKED_AT = 10_000
_TIMEOUT_S = 60
_OPTIONS = (
    KEY,
    Param(name="text", default=_TEXT, free=True, text="Where a table that is there keeps the text."),
    Param(
        name="search", default=DENSE, choices=(DENSE, BM25, RRF),
        text="Neighbours of the vector, BM25 of the query's text, or both merged by the engine.",
    ),
    Param(name="m", default=16, low=2, high=512, text="Neighbours per vector."),
    Param(name="ef_construction", default=100, low=4, high=10_000, text="Looked at per vector added."),
    Param(
        name="ef_search", default=100, low=1, high=_MOST_LOOKED_AT,
        text="Looked at per search and shard; raised to the depth asked for when that is larger.",
    ),
)  # fmt: skip
_ROW = 60.0
_MOST_TERMS = 65_536  # index.max_terms_count, unless it was set
_TYPES: Mapping[Kind, str] = {
    Kind.TEXT: "keyword",
    Kind.NUMBER: "double",
    Kind.DATE: "long",
    Kind.BOOL: "keyword",
    Kind.TEXTS: "keyword",
}


def _vector_bytes(dim: int, options: ParamOptions) -> float:
    return 2 * 4.0 * dim + 8.0 * whole(options, "m") + _ROW


def _engine(name: str, title: str, package: str) -> IndexEngine:
    return IndexEngine(
        name=name,
        title=title,
        text=f"An index of {title}: dense kNN by HNSW, BM25, or both by its own rank fusion.",
        options=(*shared(f"{name.upper()}_URL", id=_ID, vector=_VECTOR), *_OPTIONS),
        package=package,
        requirements="requirements-elasticsearch.txt",
        example="https://user:password@host:9200",
        schemes=("http", "https"),
        vector_bytes=_vector_bytes,
        searching=("exact", "ef_search", "search"),
    )


def _conditions(parts: Sequence[OnlyTest | NotAll]) -> list[Json]:
    return [
        {"bool": {"must_not": [{"bool": {"filter": _conditions(part.parts)}}]}}
        if isinstance(part, NotAll)
        else _condition(part)
        for part in parts
    ]


def _condition(part: OnlyTest) -> Json:
    column, values = part.column, [plain(value) for value in part.values]
    if part.operator not in ("in", "any", "all"):
        return {"range": {column: {part.operator: values[0]}}}
    if part.operator == "all":
        return {"bool": {"filter": [{"term": {column: value}} for value in values]}}
    blocks = [values[start : start + _MOST_TERMS] for start in range(0, len(values), _MOST_TERMS)]
    any_of: list[Json] = [{"terms": {column: block}} for block in blocks]
    return {"bool": {"should": any_of, "minimum_should_match": 1}} if any_of else {"match_none": {}}


class Elasticsearch(DatabaseIndex):
    """An index of Elasticsearch."""

    engine = _engine("elasticsearch", "Elasticsearch", "elasticsearch")
    selects = True
    similarities: Mapping[str, str] = {"cosine": "cosine", "ip": "max_inner_product", "l2": "l2_norm"}

    def _create(self, vectors: Vectors) -> None:
        indices = self._client.indices
        if indices.exists(index=self.table):
            indices.delete(index=self.table)
        indices.create(index=self.table, body=self._mapping(vectors.shape[1]))
        helpers = self._package(f"{self.engine.package}.helpers")
        helpers.bulk(self._client, self._documents(vectors))
        indices.forcemerge(index=self.table, max_num_segments=1)
        indices.refresh(index=self.table)

    def _documents(self, vectors: Vectors) -> Iterator[Json]:
        texts, (_, fields) = self._place.texts, self._fields()
        for start, block in numbered(vectors):
            for place, row in enumerate(block, start):
                held = payload_of(fields[place]) if fields else {}
                text = {} if texts is None else {_TEXT: texts[place]}
                # A zero vector has no direction, and is refused: it is nobody's neighbour.
                vector = {_VECTOR: row.tolist()} if row.any() or self.metric != "cosine" else {}
                yield {"_index": self.table, "_id": str(place), "_source": {**text, **vector, **held}}

    def _mapping(self, dim: int) -> Json:
        graph = {"type": "hnsw", **self._graph}
        vector = {"type": "dense_vector", "dims": dim, "index": True, "index_options": graph}
        vector["similarity"] = self.similarities[self.metric]
        return {"mappings": {"properties": self._properties(vector)}}

    def _properties(self, vector: Json) -> Json:
        """Return the types of everything that is stored of a passage."""
        kinds, _ = self._fields()
        held = {f"f{number}": {"type": _TYPES[kind]} for number, kind in enumerate(kinds)}
        listed = {HELD: {"type": "keyword"}} if kinds else {}
        return {_VECTOR: vector, _TEXT: {"type": "text"}, **held, **listed}

    @property
    def _graph(self) -> dict[str, int]:
        return {name: whole(self._options, name) for name in ("m", "ef_construction")}

    def _drop(self) -> None:
        self._client.indices.delete(index=self.table)

    def _look(self) -> DatabaseFacts:
        client = self._client
        if not client.indices.exists(index=self.table):
            raise self.missing(sorted(client.indices.get_alias(index="*")), "index")
        (mapping,) = client.indices.get_mapping(index=self.table).values()
        properties = mapping["mappings"].get("properties", {})
        text = [self._text] if self._options["search"] != DENSE else []
        for name in (self._vector, *text, *([self._id] if self._id != _ID else [])):
            if not _FIELD.fullmatch(name) or name not in properties:
                raise self.no_column(name, list(properties))
        field = properties[self._vector]
        size = client.indices.stats(index=self.table, metric="store")["_all"]["total"]["store"]
        dim = int(field.get("dims", field.get("dimension", 0)))
        return DatabaseFacts(dim, client.count(index=self.table)["count"], size["size_in_bytes"])

    def _nearest(self, query: Vectors, k: int, text: str, only: Only | None = None) -> DatabaseHits:
        how = self._options["search"]
        held = [{"term": {HELD: name}} for name in only.columns] if only else []
        left = [*held, *_conditions(only.parts if only else ())]
        if how == BM25:
            asked: Json = {"query": self._words(text, left)}
        elif how == RRF:
            asked = self._merged(query, k, text, left)
        elif self._options["exact"] == "yes":
            compared = {"bool": {"filter": [{"exists": {"field": self._vector}}, *left]}}
            asked = {"query": {"script_score": {"query": compared, "script": self._script(query)}}}
        else:
            asked = self._near(query, k, left)
        named = self._id != _ID
        body = {**asked, "size": k, "_source": [self._id] if named else False}
        hits = self._client.search(index=self.table, body=body)["hits"]["hits"]
        plain = how != DENSE
        return [
            (hit["_source"][self._id] if named else hit["_id"], hit["_score"] if plain else self._score(hit))
            for hit in hits
        ]

    def _words(self, text: str, only: list[Json]) -> Json:
        match = {"match": {self._text: {"query": text}}}
        return {"bool": {"must": [match], "filter": only}} if only else match

    def _knn(self, query: Vectors, k: int, only: list[Json]) -> Json:
        looked_at = min(max(whole(self._options, "ef_search"), k), _MOST_LOOKED_AT)
        asked = {"field": self._vector, "query_vector": query.tolist(), "k": k, "num_candidates": looked_at}
        return {**asked, "filter": only} if only else asked

    def _near(self, query: Vectors, k: int, only: list[Json]) -> Json:
        return {"knn": self._knn(query, k, only)}

    def _merged(self, query: Vectors, k: int, text: str, only: list[Json]) -> Json:
        legs = [{"standard": {"query": self._words(text, only)}}, {"knn": self._knn(query, k, only)}]
        return {"retriever": {"rrf": {"retrievers": legs, "rank_window_size": k, "rank_constant": _CONSTANT}}}

    def _script(self, query: Vectors) -> Json:
        """Return the script that compares a vector; Elasticsearch doesn't allow negative scores."""
        field = f"params.q, '{self._vector}'"  # a field's name, checked against the mapping
        source = {
            "cosine": f"(1 + cosineSimilarity({field})) / 2",
            "l2": f"1 / (1 + Math.pow(l2norm({field}), 2))",
            "ip": f"double ip = dotProduct({field}); return ip < 0 ? 1 / (1 - ip) : ip + 1",
        }[self.metric]
        return {"source": source, "params": {"q": query.tolist()}}

    def _score(self, hit: Json) -> float:
        """Convert an Elasticsearch score, which is never negative, to the metric's scale."""
        score = float(hit["_score"])
        if self.metric == "cosine":
            return 2 * score - 1
        if self.metric == "l2":
            return -math.sqrt(max(1 / score - 1, 0.0))
        return score - 1 if score >= 1 else 1 - 1 / score

    @property
    def _text(self) -> str:
        return str(self._options["text"])

    @cached_property
    def _client(self) -> Any:  # noqa: ANN401 - an optional package
        key = secret(self.engine, self._options)
        more = {"api_key": key} if key else {}
        return self.driver.Elasticsearch(self.url, request_timeout=_TIMEOUT_S, max_retries=0, **more)

    def _problem(self, error: Exception) -> ClqError | None:
        if type(error).__name__ in ("ConnectionError", "ConnectionTimeout"):
            return self.unreachable()
        if getattr(error, "status_code", None) == "N/A" or type(error).__name__ == "UnsupportedProductError":
            return InputError(f"That is no {self.engine.title}.", where=f"index {self.name}")
        return None


class OpenSearch(Elasticsearch):
    """An index of OpenSearch."""

    engine = _engine("opensearch", "OpenSearch", "opensearchpy")
    similarities: Mapping[str, str] = {"cosine": "cosinesimil", "ip": "innerproduct", "l2": "l2"}

    def _mapping(self, dim: int) -> Json:
        method = {
            "name": "hnsw",
            "engine": "lucene",
            "space_type": self.similarities[self.metric],
            "parameters": self._graph,
        }
        vector = {"type": "knn_vector", "dimension": dim, "method": method}
        return {"settings": {"index.knn": True}, "mappings": {"properties": self._properties(vector)}}

    def _near(self, query: Vectors, k: int, only: list[Json]) -> Json:
        looked_at = max(whole(self._options, "ef_search"), k)
        asked: Json = {"vector": query.tolist(), "k": k, "method_parameters": {"ef_search": looked_at}}
        if only:
            asked["filter"] = {"bool": {"filter": only}}
        return {"query": {"knn": {self._vector: asked}}}

    def _merged(self, query: Vectors, k: int, text: str, only: list[Json]) -> Json:
        legs = {"queries": [self._words(text, only), self._near(query, k, only)["query"]]}
        merging = {"combination": {"technique": "rrf", "rank_constant": _CONSTANT}}
        pipeline = {"phase_results_processors": [{"score-ranker-processor": merging}]}
        return {"query": {"hybrid": legs}, "search_pipeline": pipeline}

    def _script(self, query: Vectors) -> Json:
        space = self.similarities[self.metric]
        params = {"field": self._vector, "query_value": query.tolist(), "space_type": space}
        return {"lang": "knn", "source": "knn_score", "params": params}

    def _score(self, hit: Json) -> float:
        if self.metric == "cosine" and self._options["exact"] == "yes":
            return float(hit["_score"]) - 1  # its script's scores range from 0 to 2
        return super()._score(hit)

    @cached_property
    def _client(self) -> Any:  # noqa: ANN401 - an optional package
        key = secret(self.engine, self._options)
        more = {"headers": {"Authorization": f"ApiKey {key}"}} if key else {}
        return self.driver.OpenSearch(hosts=[self.url], timeout=_TIMEOUT_S, max_retries=0, **more)
