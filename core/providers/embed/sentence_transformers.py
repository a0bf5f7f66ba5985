"""Models of the sentence-transformers package, where it is installed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from core.providers.base import CHECK, SENTENCE_TRANSFORMERS, Purpose, loaded, optional
from core.providers.config import ModelConfig
from core.providers.embed.base import LocalEmbedder
from core.providers.embed.batches import Vectors, shortened


class SentenceTransformersEmbedder(LocalEmbedder):
    """A model of sentence-transformers, by name or by folder."""

    provider = "sentence-transformers"
    batch_items = 32

    def __init__(self, config: ModelConfig, dim: int | None = None) -> None:
        self._model = _load(config)
        self._take(config)
        self._fit(config, dim, int(self._encoded(["a"], Purpose.PASSAGE).shape[1]))

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
    kind = optional(SENTENCE_TRANSFORMERS, "SentenceTransformer", config.name)
    place = str(config.path or config.model)
    return loaded(lambda: kind(place, device=config.device), SENTENCE_TRANSFORMERS, config.name, CHECK)
