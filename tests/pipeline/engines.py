"""Engines of indexes as tests have them: in this process, as local servers, or over the wire."""

from __future__ import annotations

import pytest

from core.pipeline.index import ENGINES

FILTERING = (
    "pgvector", "lancedb folder", "qdrant folder", "qdrant-edge folder", "milvus folder", "redis",
    "elasticsearch wire", "opensearch wire",
)  # fmt: skip
"""Those that filter; with a folder, in this process; over the wire, a server that interprets requests."""
_SERVERS = {
    "pgvector": "postgres",
    "redis": "redis_server",
    "lancedb storage": "storage",
    "elasticsearch wire": "elastic",
    "opensearch wire": "elastic",
}
"""The fixtures that start servers."""


def kind_of(name: str) -> str:
    """The kind of index, as specifications name it."""
    return name.partition(" ")[0]


def address_of(name: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The options that say where an engine is, once its server runs; its package has to be there."""
    pytest.importorskip(ENGINES[kind_of(name)].engine.package)
    if name not in _SERVERS:
        return {}
    monkeypatch.setenv("SOME_URL", request.getfixturevalue(_SERVERS[name]))
    return {"url_env": "SOME_URL"}
