"""The canonical form of a stack's specification: without what is a default and what its mode lacks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from core.pipeline.sweep.fields import Bm25, Index, Methodic
from core.pipeline.sweep.known import Known
from core.records import JsonMap

NONE = "none"
ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One value per axis; see `core.pipeline.sweep.model.Axes`."""

    mode: str = "dense"
    bm25: Bm25 | None = None
    embedder: str = "wordllama"
    dim: int | None = None
    index: Index | None = None
    metric: str = "cosine"
    fusion: Methodic | None = None
    dedup: Methodic | None = None
    candidates: int = 50
    reranker: str = NONE
    rewrite: str = NONE
    chunker: Methodic | None = None
    cut: Methodic | None = None
    chunks_sent: int | str = ALL


def spec_of(choice: Choice, language: str, known: Known) -> JsonMap:
    """The specification of a stack.

    Args:
        choice: One value per axis; values of legs that the mode lacks do not count.
        language: Of the collection.
        known: Defaults of the parameters of fusions, suppressions, cuts, indexes and chunkers.
    """
    spec: dict[str, Any] = {"mode": choice.mode}
    if choice.mode != "dense":
        spec["sparse"] = "bm25"
        _put(spec, "bm25", _bm25(choice.bm25 or Bm25(), language))
    if choice.mode != "sparse":
        spec |= _dense(choice, known)
    if choice.mode == "hybrid":
        spec["fusion"] = known.canonical("fusion", _table(choice.fusion or Methodic(method="rrf")))
    if choice.rewrite != NONE:
        spec["rewrite"] = choice.rewrite
    if choice.chunker is not None and choice.chunker.method != NONE:
        spec["chunker"] = known.canonical("chunker", known.spoken(_table(choice.chunker), language))
    if choice.dedup is not None and choice.dedup.method != NONE:
        spec["dedup"] = known.canonical("dedup", _table(choice.dedup))
    spec["reranker"] = choice.reranker
    spec["candidates"] = choice.candidates
    if choice.cut is not None and choice.cut.method != NONE:
        spec["cut"] = known.canonical("cut", _table(choice.cut))
    if choice.chunks_sent != ALL:
        spec["chunks_sent"] = choice.chunks_sent
    return spec


def _bm25(bm25: Bm25, language: str) -> dict[str, Any]:
    chosen = {"k1": bm25.k1, "b": bm25.b, "language": bm25.language or language}
    usual = {**Bm25().model_dump(), "language": "english"}
    return {key: value for key, value in chosen.items() if value != usual[key]}


def _dense(choice: Choice, known: Known) -> dict[str, Any]:
    index = _table(choice.index or Index(name="flat"))
    name = index.pop("name")
    made: dict[str, Any] = {"embedder": choice.embedder, "index": name}
    _put(made, "dim", choice.dim)
    _put(made, "index_params", known.index_params(name, index))
    _put(made, "metric", choice.metric if choice.metric != "cosine" else None)
    return made


def _table(value: Methodic | Index) -> dict[str, Any]:
    return value.model_dump()


def _put(spec: dict[str, Any], key: str, value: object) -> None:
    """Set a key unless its value is empty."""
    if value:
        spec[key] = value
