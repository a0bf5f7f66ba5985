"""A local ONNX encoder: token vectors, pooled to one vector per text."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.arrays import Ints, Vectors
from core.errors import InputError
from core.providers.base import Purpose
from core.providers.config import ModelConfig, Pooling
from core.providers.embed.base import TokenEmbedder, TokenVectors
from core.providers.embed.batches import shortened
from core.providers.embed.local import LocalEmbedder
from core.providers.onnx_folder import OnnxFolder, open_folder, read_json
from core.providers.remote import Wired
from core.records import JsonMap

_PROMPTS = {Purpose.PASSAGE: ("document", "passage"), Purpose.QUERY: ("query",)}
_SHARED = 4  # Windows of a long text overlap by this fraction (a quarter) of their tokens


class OnnxEmbedder(LocalEmbedder, TokenEmbedder):
    """An encoder in a folder.

    Pooling, prefixes and length come from the configuration, or else from the folder's files of
    sentence-transformers; the defaults are the mean, no prefixes and 512 tokens.
    """

    provider = "onnx"
    batch_items = 32

    def __init__(self, config: ModelConfig, dim: int | None, _wired: Wired) -> None:
        if config.path is None:
            raise InputError("A local model needs its folder.", where=config.name, do="Set path.")
        self._folder: OnnxFolder = open_folder(config.path, config.max_tokens, config.device)
        self._tokenizer = self._folder.tokenizer()
        self._pooling = config.pooling or _pooling(config.path)
        self._take(config)
        self._prefixes = dict(config.prefixes) or _prompts(config.path)
        self._fit(config, dim, self._vectors_of(self._tokenizer.encode_batch(["a"])).shape[-1])

    def params(self, purpose: Purpose) -> JsonMap:
        """Return what a vector depends on besides the text."""
        return {
            "dim": self.dim,
            "files": self._folder.digest,
            "pooling": self._pooling,
            "prefix": self._prefixes.get(purpose, ""),
            "length": self._folder.max_tokens,
            "scaled": self.normalised,
        }

    def encode(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        """Return token vectors of each text, pooled, cut and scaled: float32 [len(texts), dim]."""
        prefix = self._prefixes.get(purpose, "")
        encodings = self._tokenizer.encode_batch([prefix + text for text in texts])
        vectors = self._vectors_of(encodings)
        if vectors.ndim == 3:
            mask = np.array([encoding.attention_mask for encoding in encodings], dtype=np.float32)
            vectors = _pool(vectors, mask, self._pooling)
        return shortened(vectors, self.dim, scale=self.normalised)

    def embed_tokens(self, text: str) -> TokenVectors:
        """Return a passage's token vectors in context; windows of long passages overlap by a quarter."""
        prefix = self._prefixes.get(Purpose.PASSAGE, "")
        first = self._windows.encode(prefix + text)
        windows = [first, *first.overflowing]
        token_vectors = self._vectors_of(windows)
        if token_vectors.ndim != 3:
            raise InputError(
                f"{self.name} gives one vector per text, none per token.",
                where="chunker",
                do="Use an encoder with last_hidden_state for late chunking.",
            )
        kept = [
            _content(window, rows, len(prefix)) for window, rows in zip(windows, token_vectors, strict=True)
        ]
        vectors, spans = _merged(kept)
        return TokenVectors(shortened(vectors, self.dim, scale=False), spans)

    def pooled(self, vectors: Vectors) -> Vectors:
        """Average token vectors, for late chunking, scaled if the model's vectors are."""
        single: Vectors = shortened(vectors.mean(axis=0)[np.newaxis], self.dim, scale=self.normalised)[0]
        return single

    @cached_property
    def _windows(self) -> Any:  # noqa: ANN401 - the package's own type
        return self._folder.tokenizer(stride=self._folder.max_tokens // _SHARED)

    def _vectors_of(self, encodings: Sequence[Any]) -> Vectors:
        """Return [texts, tokens, size], or [texts, size] from a model that pools by itself."""
        outputs = self._folder.run(encodings)
        for rank in (3, 2):
            for name, output in outputs.items():
                if output.ndim == rank and name != "pooler_output":
                    vectors: Vectors = output.astype(np.float32, copy=False)
                    return vectors
        raise InputError(
            f"The model gives {', '.join(outputs)}, none of which holds vectors.",
            where=str(self._folder.path),
        )


def _pool(vectors: Vectors, mask: NDArray[np.float32], pooling: Pooling) -> Vectors:
    if pooling == "cls":
        pooled: Vectors = vectors[:, 0]
    elif pooling == "last":
        last = mask.shape[1] - 1 - np.argmax(mask[:, ::-1], axis=1)
        pooled = vectors[np.arange(len(vectors)), last]
    else:
        sums = np.einsum("btd,bt->bd", vectors, mask)
        pooled = sums / np.maximum(mask.sum(axis=1, keepdims=True), np.float32(1))
    return pooled


def _content(window: Any, rows: Vectors, prefix: int) -> tuple[Vectors, Ints]:  # noqa: ANN401
    """Return the tokens of a window that stand for text, and their positions."""
    spans = np.array(window.offsets, dtype=np.int64).reshape(-1, 2) - prefix
    special = np.array(window.special_tokens_mask, dtype=bool) | (np.array(window.attention_mask) == 0)
    real = ~special & (spans[:, 1] > np.maximum(spans[:, 0], 0))
    return rows[real], np.maximum(spans[real], 0)


def _merged(windows: list[tuple[Vectors, Ints]]) -> tuple[Vectors, Ints]:
    """Join windows; in an overlap, each contributes the half that lies deeper inside it."""
    vectors, spans = [windows[0][0]], [windows[0][1]]
    for rows, where in windows[1:]:
        if not len(where):
            continue
        known = np.concatenate(spans)
        shared = int(np.searchsorted(known[:, 1], where[0, 1], side="left"))  # where this window begins
        common = len(known) - shared
        keep, skip = len(known) - common // 2, common - common // 2
        vectors = [np.concatenate(vectors)[:keep], rows[skip:]]
        spans = [known[:keep], where[skip:]]
    return np.concatenate(vectors), np.concatenate(spans)


def _pooling(path: Path) -> Pooling:
    config = read_json(path / "1_Pooling" / "config.json")
    named = config.get("pooling_mode")
    if config.get("pooling_mode_cls_token") or named == "cls":
        return "cls"
    return "last" if config.get("pooling_mode_lasttoken") or named == "lasttoken" else "mean"


def _prompts(path: Path) -> dict[Purpose, str]:
    prompts = read_json(path / "config_sentence_transformers.json").get("prompts") or {}
    prefixes = {}
    for purpose, names in _PROMPTS.items():
        text = next((prompts[name] for name in names if prompts.get(name)), "")
        if text:
            prefixes[purpose] = str(text)
    return prefixes
