"""Models that the fastembed package knows by name, where it is installed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from core.providers.base import Purpose, loaded, optional
from core.providers.config import ModelConfig
from core.providers.embed.base import LocalEmbedder
from core.providers.embed.batches import Vectors, shortened


class FastEmbedEmbedder(LocalEmbedder):
    """A model of fastembed."""

    provider = "fastembed"
    batch_items = 32

    def __init__(self, config: ModelConfig, dim: int | None = None) -> None:
        self._model = _load(config)
        self._take(config)
        self._fit(config, dim, int(self._model.embedding_size))

    def encode(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        """Vectors by the model's own way with queries and passages: float32 [len(texts), dim]."""
        sent = [self._prefixes.get(purpose, "") + text for text in texts]
        embed = self._model.query_embed if purpose is Purpose.QUERY else self._model.passage_embed
        return shortened(np.array(list(embed(sent)), dtype=np.float32), self.dim, scale=self.normalised)


def _load(config: ModelConfig) -> Any:  # noqa: ANN401 - an optional package
    kind = optional("fastembed", "TextEmbedding", config.name)
    folder = {} if config.path is None else {"specific_model_path": str(config.path)}
    return loaded(
        lambda: kind(config.model, cuda=False, **folder),
        "fastembed",
        config.name,
        "Check its name in fastembed's list, or set path to a folder with its files.",
    )
