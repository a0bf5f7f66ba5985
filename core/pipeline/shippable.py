"""Whether a stack can be written as something that runs without this program, and as what."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from types import MappingProxyType

from core.records import JsonMap

ADAPTERS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "python": ("retriever", ""),
        "langchain": ("langchain_retriever", "langchain-core"),
        "llama-index": ("llama_index_retriever", "llama-index-core"),
        "haystack": ("haystack_retriever", "haystack-ai"),
    }
)
"""What a stack can be written as: its module and the package that it is for."""
ENGINE = "elasticsearch"
KINDS = (*ADAPTERS, ENGINE)
_ANALYZERS = (
    "english french german spanish italian portuguese dutch swedish norwegian danish finnish russian turkish"
)
FLAT = "flat"
"""The index that searches every vector."""
_DENSE = {"embedder": "wordllama", "index": FLAT}
_WRITTEN = {"name", "mode", "sparse", "bm25", "dim", "fusion", "candidates", "chunks_sent", *_DENSE}
"""Axes that adapters carry out, or mention; a new axis counts as missing until one does so."""
_NOTHING: tuple[object, ...] = (None, "", "none", "cosine", {})
"""Values of other axes that leave a ranking as it is."""


def missing(spec: JsonMap, kind: str) -> list[str]:
    """List in words the parts of a stack that cannot be written so; empty = all of it can."""
    parts = [f"{key} {_said(spec, key)}" for key in spec if key not in _WRITTEN and spec[key] not in _NOTHING]
    mode = spec.get("mode")
    if mode == "own":
        return [f"{spec.get('name')} is your own pipeline, which runs already"]
    if mode not in ("sparse", "dense", "hybrid"):
        return [f"mode {mode}" if mode else "an unknown way to retrieve"]
    if not spec.get("candidates"):
        parts.append("an unknown K")
    if mode != "sparse" and kind != ENGINE:
        parts += [f"{part} {_said(spec, part)}" for part, only in _DENSE.items() if spec.get(part) != only]
    if mode != "sparse" and kind == ENGINE:
        parts.append("vectors, which a query of Elasticsearch has to bring along")
    fusion = spec.get("fusion") or {}
    if mode == "hybrid" and fusion.get("method") != "rrf":
        parts.append(f"fusion {_said(fusion, 'method')}")
    if kind == ENGINE and language_of(spec) not in _ANALYZERS.split():
        parts.append(f"an analyzer for {language_of(spec)}")
    return parts


def _said(spec: JsonMap, part: str) -> str:
    value = spec.get(part) or "unknown"
    return " ".join(map(str, chain(*value.items()))) if isinstance(value, Mapping) else str(value)


def language_of(spec: JsonMap) -> str:
    """Return the language of a stack's words."""
    return str(spec.get("bm25", {}).get("language", "english"))
