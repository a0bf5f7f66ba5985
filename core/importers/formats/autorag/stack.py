"""AutoRAG's modules as axes of a stack."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from core.importers.formats.autorag.layout import Module
from core.importers.read.jsons import Json
from core.importers.read.piece import Piece
from core.importers.read.text import shown
from core.importers.read.yamls import read_yaml

RANKS = ("lexical_retrieval", "semantic_retrieval", "retrieval", "hybrid_retrieval", "passage_augmenter",
         "passage_reranker", "passage_filter")  # fmt: skip
"""Nodes whose modules return rankings."""
STAGES: Mapping[str, str] = {
    "query_expansion": "rewrite", "lexical_retrieval": "sparse", "semantic_retrieval": "retrieve",
    "hybrid_retrieval": "fuse", "passage_augmenter": "augment", "passage_reranker": "rerank",
    "passage_filter": "cut", "passage_compressor": "compress", "prompt_maker": "prompt",
    "generator": "generate",
}  # fmt: skip
AFTER = ("prompt", "generate")
"""Stages that follow retrieval."""
_FUSION = {"rrf": "rrf", "cc": "weighted"}


def stage_of(module: Module) -> str:
    """Name of the stage that a module's time belongs to."""
    if module.node == "retrieval":
        return {"sparse": "sparse", "hybrid": "fuse"}.get(_searches(module), "retrieve")
    return STAGES.get(module.node, shown(module.node, 40))


def embedders(files: Sequence[Piece]) -> dict[str, str]:
    """Name of a vector store → the embedding model that fills it, from configurations."""
    found: dict[str, str] = {}
    for piece in files:
        value = read_yaml(piece)
        stores = value.get("vectordb") if isinstance(value, dict) else None
        for store in stores if isinstance(stores, list) else []:
            if isinstance(store, dict) and "name" in store and isinstance(store.get("embedding_model"), str):
                found[str(store["name"])] = store["embedding_model"]
    return found


def axes(module: Module, before: Json, models: Mapping[str, str], depth: int | None) -> Json:
    """The stack once a module was added to what came before it."""
    if _bare(module.name).startswith("pass") or module.node in ("passage_augmenter", "passage_compressor"):
        return before
    model = shown(module.params.get("model") or module.params.get("llm") or module.name)
    if module.node == "query_expansion":
        return {**before, "rewrite": shown(module.name)}
    if module.node == "generator":
        return {**before, "generator": model}
    if module.node == "passage_filter":
        return {**before, "cut": {"method": shown(module.name)}}
    if module.node == "passage_reranker":
        return {**before, "reranker": model, **({"candidates": depth} if depth else {})}
    return _search(module, before, models)


def _search(module: Module, before: Json, models: Mapping[str, str]) -> Json:
    mode, params = _searches(module), module.params
    if mode == "hybrid":
        legs = params.get("target_module_params")
        for leg in legs if isinstance(legs, list) else []:
            before = {**before, **({"embedder": _embedder(leg, models)} if "vectordb" in str(leg) else {})}
        if "bm25" in str(params.get("target_modules", "")).lower():
            before = {**before, "sparse": "bm25"}
        return {**before, "mode": mode, "fusion": _fusion(module)}
    if mode == "dense":
        return {**before, "mode": mode, "embedder": _embedder(params, models)}
    return {**before, "mode": mode, "sparse": "bm25"} if mode else before


def _embedder(params: object, models: Mapping[str, str]) -> str:
    known = params if isinstance(params, dict) else {}
    store = str(known.get("vectordb", "default"))
    return shown(known.get("embedding_model") or models.get(store) or f"vectordb {store}")


def _searches(module: Module) -> str:
    name = _bare(module.name)
    if name.startswith("hybrid"):
        return "hybrid"
    return "sparse" if name.startswith("bm25") else "dense" if name.startswith("vectordb") else ""


def _fusion(module: Module) -> Json:
    name = _bare(module.name).removeprefix("hybrid")
    made: Json = {"method": _FUSION.get(name, name)}
    weight = module.params.get("weight")
    if name == "rrf" and (constant := module.params.get("rrf_k", weight)) is not None:
        made["constant"] = constant
    elif weight is not None:
        made["weight"] = weight
    if isinstance(depth := module.params.get("top_k"), int):
        made["depth"] = depth
    return made


def _bare(name: str) -> str:
    return name.lower().replace("_", "")
