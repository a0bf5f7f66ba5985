"""Specifications of stacks: the demo's grid, their checks and the name of their candidate pool."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from core.errors import InputError, UnknownNameError
from core.pipeline.dense import INDEXES
from core.providers.embed import EMBEDDERS
from core.records import JsonMap, Stack

MODES = ("sparse", "dense", "hybrid")
DEPTHS = (20, 50, 100, 200)
RRF: JsonMap = {"method": "rrf", "constant": 60, "depth": 100}


def grid(
    *,
    embedder: str = "wordllama",
    dims: Sequence[int] = (64, 128, 256),
    indexes: Sequence[str] = ("flat", "hnsw-f32", "int8"),
    depths: Sequence[int] = DEPTHS,
) -> list[Stack]:
    """BM25, every dense combination, and the fusion of BM25 with each of them, at every candidate depth.

    Args:
        embedder: A registered embedder.
        dims: Its dimensions.
        indexes: Kinds of dense index.
        depths: Candidate depths K.

    Returns:
        (1 + 2 · dims · indexes) · depths stacks; 76 by default.
    """
    dense = [{"embedder": embedder, "dim": dim, "index": index} for dim in dims for index in indexes]
    return [Stack({**leg, "reranker": "none", "candidates": k}) for leg in _legs(dense) for k in depths]


def _legs(dense: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    yield {"mode": "sparse", "sparse": "bm25"}
    for leg in dense:
        yield {"mode": "dense", **leg}
    for leg in dense:
        yield {"mode": "hybrid", "sparse": "bm25", **leg, "fusion": dict(RRF)}


def pool_name(spec: JsonMap) -> str:
    """The convention of a stack's candidate pool: "bm25@K", "dense@K" or "rrf<depth>@K"."""
    head = {"sparse": "bm25", "dense": "dense"}.get(spec["mode"]) or f"rrf{spec['fusion']['depth']}"
    return f"{head}@{spec['candidates']}"


def check(spec: JsonMap) -> None:
    """Refuse what cannot run here, before anything runs.

    Raises:
        UnknownNameError: If mode, sparse engine, embedder, index, fusion or reranker is not known.
        InputError: If a key that the mode needs is missing or is not a positive whole number.
    """
    mode = _known("mode", spec.get("mode"), MODES)
    _positive(spec, "candidates")
    _known("reranker", spec.get("reranker", "none"), ("none",))
    if mode != "dense":
        _known("sparse engine", spec.get("sparse"), ("bm25",))
    if mode != "sparse":
        _known("embedder", spec.get("embedder"), EMBEDDERS)
        _known("index", spec.get("index"), INDEXES)
        _positive(spec, "dim")
    if mode == "hybrid":
        fusion = spec.get("fusion") or {}
        _known("fusion", fusion.get("method"), ("rrf",))
        _positive(fusion, "constant")
        _positive(fusion, "depth")


def _known(kind: str, name: object, known: Sequence[str] | Mapping[str, object]) -> str:
    if not isinstance(name, str) or name not in known:
        raise UnknownNameError(kind, "" if name is None else str(name), known, where="stack")
    return name


def _positive(spec: JsonMap, key: str) -> None:
    value = spec.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InputError(f"{key} = {value!r}.", where="stack", do="Give a whole number of 1 or more.")
