"""Models of the sentence-transformers package, where it is installed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from core.errors import ProviderError
from core.providers.base import Purpose
from core.providers.config import ModelConfig
from core.providers.embed.base import LocalEmbedder
from core.providers.embed.vectors import Vectors, require_dim, shortened
from core.records import JsonMap

INSTALL = "pip install sentence-transformers"


class SentenceTransformersEmbedder(LocalEmbedder):
    """A model of sentence-transformers, by name or by folder."""

    provider = "sentence-transformers"
    batch_items = 32

    def __init__(self, config: ModelConfig, dim: int | None = None) -> None:
        self._model = _load(config)
        self._prefixes = dict(config.prefixes)
        self.name, self.normalised = config.name, config.normalised
        self.batch_items = config.batch_items or self.batch_items
        size = int(self._encoded(["a"], Purpose.PASSAGE).shape[1])
        self.dim = (config.dim or size) if dim is None else dim
        require_dim(self.name, self.dim, (config.dims or (self.dim,)) if config.matryoshka else (size,))
        self.full_dim = size if config.matryoshka else self.dim

    def params(self, purpose: Purpose) -> JsonMap:
        """What a vector depends on besides the model and the text."""
        return {**super().params(purpose), "prefix": self._prefixes.get(purpose, "")}

    def encode(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        """Vectors by the model's own prompts, or by our prefixes: float32 [len(texts), dim]."""
        return shortened(self._encoded(texts, purpose), self.dim, scale=self.normalised)

    def _encoded(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        options: dict[str, Any] = {
            "batch_size": self.batch_items,
            "show_progress_bar": False,
            "convert_to_numpy": True,
        }
        if purpose in self._prefixes:
            made = self._model.encode([self._prefixes[purpose] + text for text in texts], **options)
        else:  # the model's own prompts; before version 5 there is only one way
            name = "encode_query" if purpose is Purpose.QUERY else "encode_document"
            made = getattr(self._model, name, self._model.encode)(list(texts), **options)
        vectors: Vectors = np.asarray(made, dtype=np.float32)
        return vectors


def _load(config: ModelConfig) -> Any:  # noqa: ANN401 - an optional package
    try:
        from sentence_transformers import SentenceTransformer  # noqa: PLC0415 - optional
    except ImportError as error:
        raise ProviderError(
            f"{config.name} needs the package sentence-transformers.",
            kind="refused",
            do=f"Install it: {INSTALL}",
        ) from error
    try:
        return SentenceTransformer(str(config.path or config.model))
    except Exception as error:  # unknown names, missing files and refused downloads alike
        raise ProviderError(
            f"sentence-transformers cannot load the model: {error}",
            kind="refused",
            where=config.name,
            do="Check its name, or set path to a folder with its files.",
        ) from error
