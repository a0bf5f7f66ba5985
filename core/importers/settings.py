"""A tool's settings: as axes of a stack if their names tell, and as kept in a manifest, without secrets."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, overload

from core.importers.read.jsons import Json, plain
from core.importers.read.text import shown

_MODES = {
    "dense": "dense", "vector": "dense", "semantic": "dense", "embedding": "dense", "similarity": "dense",
    "sparse": "sparse", "bm25": "sparse", "lexical": "sparse", "keyword": "sparse", "hybrid": "hybrid",
}  # fmt: skip
_TEXTS = {
    "embedder": ("embedder", "embedding_model", "embedding", "embeddings", "embedding_model_name",
                 "embed_model"),
    "index": ("index", "index_type"),
    "reranker": ("reranker", "rerank_model", "reranker_model", "rerank"),
    "rewrite": ("rewrite", "query_rewrite", "query_rewriter", "query_transform", "query_expansion"),
    "generator": ("generator", "model", "llm", "llm_model", "generation_model", "generator_model"),
}  # fmt: skip
_WHOLE = {
    "dim": ("dim", "dims", "dimension", "dimensions", "embedding_dim", "output_dimension"),
    "candidates": ("candidates", "candidate_depth", "fetch_k", "rerank_depth", "retrieve_k"),
    "chunks_sent": ("chunks_sent", "top_k", "topk", "k", "similarity_top_k", "final_k"),
}
_CHUNK = {"size": ("chunk_size", "chunk_tokens"), "overlap": ("chunk_overlap", "overlap")}
_MOST = 200  # Most nested settings that are examined
_NONE = ("none", "off", "false", "no", "")

LEFT_OUT = "(left out: may be a secret)"
_TEXT_LIMIT = 100_000
_SECRET_KEY = re.compile(
    r"(?:.*_)?(?:password|passwd|pwd|secret|token|api_?key|(?:access|secret|private|account)_key|credentials?"
    r"|authorization|auth|bearer|cookie|uri|url|endpoint|host|user|user_?name|dsn|connection_string)"
)
_SECRET_TEXT = re.compile(
    r"\bBearer\s+\S+"
    r"|\b(?:sk|pk|pa|lsv2|hf|xox[bp])[-_](?:[a-z]{2,8}[-_])?(?=\w*\d)[A-Za-z0-9_]{16,}"
    r"|(?<=://)[^/\s:@]+:[^/\s@]+@"
)


def axes_of(settings: Mapping[str, object]) -> Json:
    """Return the axes that settings name.

    Settings without an axis stay with the caller, who stores the settings unchanged.
    """
    flat = _flat(settings)
    axes: Json = {}
    mode = _text(flat, ("mode", "search_type", "search_mode", "retrieval_mode", "retriever", "retrieval"))
    if mode and mode.lower() in _MODES:
        axes["mode"] = _MODES[mode.lower()]
        if axes["mode"] != "dense":
            axes["sparse"] = "bm25"
    for axis, names in _TEXTS.items():
        if value := _text(flat, names):
            axes[axis] = "none" if value.lower() in _NONE else value
    for axis, names in _WHOLE.items():
        if (count := _count(flat, names)) is not None:
            axes[axis] = count
    chunks = {key: count for key, names in _CHUNK.items() if (count := _count(flat, names)) is not None}
    method = _text(flat, ("chunker", "chunking", "chunk_method", "chunk_strategy", "splitter"))
    if method or chunks:
        axes["chunker"] = {"method": method or "unknown", **chunks}
    return axes


def _flat(settings: Mapping[str, object]) -> dict[str, object]:
    flat: dict[str, object] = {}
    within: list[Mapping[str, object]] = [settings]
    for level in within:  # grows while it is read
        for name, value in level.items():
            if isinstance(value, Mapping) and len(within) < _MOST:
                within.append(value)
                nested = next(
                    (value[key] for key in ("name", "model", "type", "method") if key in value), None
                )
                flat.setdefault(_bare(name), nested)
            else:
                flat.setdefault(_bare(name), value)
    return flat


def _bare(name: str) -> str:
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", str(name))
    return re.sub(r"[^a-z0-9]+", "_", snake.lower()).strip("_")


def _text(flat: Mapping[str, object], names: tuple[str, ...]) -> str | None:
    value = next((flat[name] for name in names if isinstance(flat.get(name), str | bool)), None)
    if value is None or value is True:
        return None
    return "none" if value is False else shown(value) or None


def _count(flat: Mapping[str, object], names: tuple[str, ...]) -> int | None:
    for name in names:
        value = flat.get(name)
        if isinstance(value, str) and re.fullmatch(r"\d{1,9}", value.strip()):
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 31:
            return value
    return None


@overload
def kept(config: Mapping[str, object]) -> Json: ...
@overload
def kept(config: object) -> Any: ...  # noqa: ANN401
def kept(config: object) -> object:
    """Return a JSON value that may be stored.

    Keys that usually hold a secret or an address lose their value, and texts that look like a key are left
    out; everything else is unchanged (numbers that JSON cannot hold become null).
    """
    return _clean(plain(config, _TEXT_LIMIT))


def _clean(value: object) -> object:
    if isinstance(value, dict):
        return {
            key: LEFT_OUT if isinstance(item, str) and item and _is_secret(key) else _clean(item)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_clean(item) for item in value]
    if isinstance(value, str):
        return _SECRET_TEXT.sub(LEFT_OUT, _inner(value))
    return value


def _inner(text: str) -> str:
    """Redact JSON within a text, too; a text without any is left exactly as it is."""
    if not text.lstrip().startswith(("{", "[")):
        return text
    try:
        value = json.loads(text)
        cleaned = _clean(value)
    except (ValueError, RecursionError):
        return text
    return text if cleaned == value else json.dumps(cleaned, ensure_ascii=False)


def _is_secret(key: str) -> bool:
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", key).lower()
    return _SECRET_KEY.fullmatch(re.sub(r"[\s.-]+", "_", snake)) is not None
