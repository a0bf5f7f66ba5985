"""Servers that speak the wire formats of vector databases, over numpy: they compare every vector."""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable
from typing import Any

import numpy as np
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

Json = dict[str, Any]


def answer(body: object, status: int = 200, **headers: str) -> Response:
    return Response(json.dumps(body), status, {"Content-Type": "application/json", **headers})


def values(how: str, rows: np.ndarray, query: np.ndarray) -> np.ndarray:
    """Cosine, inner product or distance of every row."""
    if how == "l2":
        return np.linalg.norm(rows - query, axis=1)
    cosine = np.linalg.norm(rows, axis=1) * np.linalg.norm(query) if how == "cosine" else 1.0
    return rows @ query / cosine


class Database:
    """What both servers have: tables of rows, requests kept, and refusals on demand."""

    def __init__(self, server: HTTPServer) -> None:
        self.tables: dict[str, Json] = {}
        self.asked: list[tuple[str, str, Any]] = []
        self.refusal = 0
        server.expect_request(re.compile(".*")).respond_with_handler(self._handle)

    def _handle(self, request: Request) -> Response:
        text = request.get_data(as_text=True)
        bulk = request.path.endswith("_bulk")
        lines = [json.loads(line) for line in text.splitlines()] if bulk else None
        body = lines if bulk else json.loads(text or "null")
        self.asked.append((request.method, request.path, body))
        if self.refusal:
            return answer({"status": {"error": "no"}, "error": "no"}, self.refusal, **PRODUCT)
        return self.reply(request.method, request.path.strip("/").split("/"), body)

    def reply(self, method: str, path: list[str], body: Any) -> Response:
        raise NotImplementedError


PRODUCT = {"X-Elastic-Product": "Elasticsearch"}
_METRICS = {"Cosine": "cosine", "Dot": "ip", "Euclid": "l2"}


class QdrantServer(Database):
    """As the REST interface of Qdrant 1.x answers."""

    def reply(self, method: str, path: list[str], body: Any) -> Response:
        name, rest = (path[1] if len(path) > 1 else ""), path[2:]
        return answer({"result": self._result(method, name, rest, body), "status": "ok", "time": 0.0})

    def _result(self, method: str, name: str, rest: list[str], body: Any) -> object:
        of_request: dict[tuple[str, str], Callable[[], object]] = {
            ("PUT", ""): lambda: self.tables.update({name: {"config": body, "points": []}}) or True,
            ("DELETE", ""): lambda: bool(self.tables.pop(name, None)),
            ("GET", ""): lambda: self._told(name) if name else self._names(),
            ("GET", "exists"): lambda: {"exists": name in self.tables},
            ("POST", "points/count"): lambda: {"count": len(self.tables[name]["points"])},
            ("POST", "points/query"): lambda: {"points": self._nearest(self.tables[name], body)},
            ("PUT", "points"): lambda: self._taken(name, body),
        }
        return of_request[method, "/".join(rest)]()

    def _names(self) -> Json:
        return {"collections": [{"name": each} for each in self.tables]}

    def _told(self, name: str) -> Json:
        params = {"vectors": self.tables[name]["config"]["vectors"]}
        hnsw = {"m": 16, "ef_construct": 100, "full_scan_threshold": 10_000}
        optimizer = {
            "deleted_threshold": 0.2, "vacuum_min_vector_number": 1, "default_segment_number": 0,
            "flush_interval_sec": 5,
        }  # fmt: skip
        config = {"params": params, "hnsw_config": hnsw, "optimizer_config": optimizer}
        told = {"status": "green", "optimizer_status": "ok", "segments_count": 1, "payload_schema": {}}
        return {**told, "config": config}

    def _taken(self, name: str, body: Json) -> Json:
        batch = body.get("batch")
        points = body.get("points") or [
            {"id": each, "vector": vector}
            for each, vector in zip(batch["ids"], batch["vectors"], strict=True)
        ]
        self.tables[name]["points"] += points
        return {"operation_id": 1, "status": "completed"}

    def _nearest(self, table: Json, body: Json) -> list[Json]:
        how = _METRICS[table["config"]["vectors"]["distance"]]
        points, asked = table["points"], body["query"]
        asked = asked["nearest"] if isinstance(asked, dict) else asked
        far = values(how, np.array([point["vector"] for point in points]), np.array(asked))
        order = np.argsort(far if how == "l2" else -far, kind="stable")[: body["limit"]]
        return [
            {"id": points[i]["id"], "version": 1, "score": float(far[i]), "payload": points[i].get("payload")}
            for i in order
        ]


class ElasticServer(Database):
    """As Elasticsearch 9 answers, and with `knn_vector` as OpenSearch 3 does."""

    def reply(self, method: str, path: list[str], body: Any) -> Response:
        made, status = self._result(method, path, body)
        return answer(made, status, **PRODUCT)

    def _result(self, method: str, path: list[str], body: Any) -> tuple[object, int]:
        if path[-1] == "_bulk":
            for action, source in zip(body[::2], body[1::2], strict=True):
                (told,) = action.values()
                self.tables[told["_index"]]["documents"].append((told["_id"], source))
            items = [{"index": {"_id": "x", "status": 201}} for _ in body[::2]]
            return {"errors": False, "items": items}, 200
        if path[-1] == "_alias":
            return {name: {"aliases": {}} for name in self.tables}, 200
        name = path[0]
        if method in ("HEAD", "GET") and len(path) == 1:
            return ({}, 200) if name in self.tables else ({}, 404)
        if method == "PUT" and len(path) == 1:
            self.tables[name] = {**body, "documents": []}
            return {"acknowledged": True, "index": name}, 200
        table = self.tables[name]
        count = len(table["documents"])
        of_path: dict[str, Callable[[], object]] = {
            "_mapping": lambda: {name: {"mappings": table["mappings"]}},
            "_count": lambda: {"count": count},
            "_search": lambda: {"hits": {"hits": self._hits(table, body)}},
            "store": lambda: {"_all": {"total": {"store": {"size_in_bytes": 1000 * count}}}},
        }
        if method == "DELETE":
            del self.tables[name]
        return of_path.get(path[-1], dict)(), 200

    def _hits(self, table: Json, body: Json) -> list[Json]:
        documents = table["documents"]
        if "retriever" in body:
            legs = body["retriever"]["rrf"]["retrievers"]
            ranked = self._fused(documents, table, legs[0]["standard"], legs[1])
        elif "hybrid" in body.get("query", {}):
            words, near = body["query"]["hybrid"]["queries"]
            ranked = self._fused(documents, table, {"query": words}, {"query": near})
        else:
            ranked = self._scores(documents, table, body)
        order = np.argsort(-ranked, kind="stable")[: body["size"]]
        fields = body.get("_source") or []
        return [
            {
                "_id": documents[i][0], "_score": float(ranked[i]),
                "_source": {name: documents[i][1].get(name) for name in fields},
            }
            for i in order
            if ranked[i] > 0
        ]  # fmt: skip

    def _fused(self, documents: list[Any], table: Json, words: Json, near: Json) -> np.ndarray:
        legs = [self._scores(documents, table, leg) for leg in (words, near)]
        ranks = [np.argsort(np.argsort(-leg, kind="stable"), kind="stable") for leg in legs]
        return sum((1.0 / (61 + rank)) * (leg > 0) for rank, leg in zip(ranks, legs, strict=True))

    def _scores(self, documents: list[Any], table: Json, body: Json) -> np.ndarray:
        """Scores of documents, 0 for those that a request leaves out."""
        mapped, query = table["mappings"]["properties"], body.get("query", {})
        words = (query.get("bool") or {}).get("must", [query])[0]
        if "match" in words:
            left = (
                matching({"bool": {"filter": query["bool"]["filter"]}}, documents, mapped)
                if "bool" in query
                else True
            )
            ((field, told),) = words["match"].items()
            asked = told["query"].split()
            return left * np.array([float(sum(w in d.get(field, "") for w in asked)) for _, d in documents])
        field, vector, whole, only = self._asked(body)
        told = mapped[field]
        space = told.get("similarity") or told["method"]["space_type"]
        how = {"cosine": "cosine", "cosinesimil": "cosine", "l2": "l2", "l2_norm": "l2"}.get(space, "ip")
        held = np.array([field in d for _, d in documents])
        far = np.zeros(len(documents))
        far[held] = values(how, np.array([d[field] for _, d in documents if field in d]), np.array(vector))
        return held * matching(only, documents, mapped) * self._score(how, far, whole=whole)

    @staticmethod
    def _score(how: str, far: np.ndarray, *, whole: bool) -> np.ndarray:
        if how == "l2":
            return 1 / (1 + far**2)
        if how == "cosine":
            return 1 + far if whole else (1 + far) / 2
        return np.where(far < 0, 1 / (1 - far), far + 1)

    @staticmethod
    def _asked(body: Json) -> tuple[str, list[float], bool, Any]:
        """The field, the vector, whether the score is that of a script of OpenSearch, and the filter."""
        if "knn" in body:
            knn = body["knn"]
            return knn["field"], knn["query_vector"], False, knn.get("filter", [])
        query = body["query"]
        if "knn" in query:
            ((field, told),) = query["knn"].items()
            return field, told["vector"], False, told.get("filter", [])
        script, only = query["script_score"]["script"], query["script_score"]["query"]
        if script.get("lang") == "knn":
            return script["params"]["field"], script["params"]["query_value"], True, only
        field = only["bool"]["filter"][0]["exists"]["field"]
        assert f"'{field}'" in script["source"]
        return field, script["params"]["q"], False, only


def matching(query: Any, documents: list[Any], mapped: Json) -> np.ndarray:
    """Which documents a query of filters matches: a query, or a list of which all have to match."""
    every = query if isinstance(query, list) else [query]
    return np.array([all(_matches(one, source, mapped) for one in every) for _, source in documents])


def _matches(query: Json, source: Json, mapped: Json) -> bool:
    ((kind, told),) = query.items()
    if kind == "bool":
        assert set(told) <= {"filter", "must_not", "should", "minimum_should_match"}
        return (
            all(_matches(one, source, mapped) for one in told.get("filter", []))
            and not any(_matches(one, source, mapped) for one in told.get("must_not", []))
            and ("should" not in told or any(_matches(one, source, mapped) for one in told["should"]))
        )
    if kind == "match_none":
        return False
    if kind == "exists":
        return source.get(told["field"]) not in (None, [])
    ((field, asked),) = told.items()
    if field not in mapped:
        return False
    read = (
        str if mapped[field]["type"] == "keyword" else {"double": float, "long": int}[mapped[field]["type"]]
    )
    stored = source.get(field)
    held = [
        read(each) for each in (stored if isinstance(stored, list) else [] if stored is None else [stored])
    ]
    if kind == "range":
        assert len(asked) == 1
        compare = {"gte": operator.ge, "gt": operator.gt, "lte": operator.le, "lt": operator.lt}
        ((how, bound),) = asked.items()
        return any(compare[how](each, read(bound)) for each in held)
    wanted = {"term": [asked], "terms": asked}[kind]
    assert len(wanted) <= 65_536
    return bool({read(each) for each in wanted} & set(held))
