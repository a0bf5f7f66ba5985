"""Models that the fastembed package knows by name, where it is installed."""

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

INSTALL = "pip install fastembed"


class FastEmbedEmbedder(LocalEmbedder):
    """A model of fastembed."""

    provider = "fastembed"
    batch_items = 32

    def __init__(self, config: ModelConfig, dim: int | None = None) -> None:
        self._model = _load(config)
        size = int(self._model.embedding_size)
        self.name, self.normalised = config.name, config.normalised
        self._prefixes = dict(config.prefixes)
        self.batch_items = config.batch_items or self.batch_items
        self.dim = (config.dim or size) if dim is None else dim
        require_dim(self.name, self.dim, (config.dims or (self.dim,)) if config.matryoshka else (size,))
        self.full_dim = size if config.matryoshka else self.dim

    def params(self, purpose: Purpose) -> JsonMap:
        """What a vector depends on besides the model and the text."""
        return {**super().params(purpose), "prefix": self._prefixes.get(purpose, "")}

    def encode(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        """Vectors by the model's own way with queries and passages: float32 [len(texts), dim]."""
        sent = [self._prefixes.get(purpose, "") + text for text in texts]
        embed = self._model.query_embed if purpose is Purpose.QUERY else self._model.passage_embed
        return shortened(np.array(list(embed(sent)), dtype=np.float32), self.dim, scale=self.normalised)


def _load(config: ModelConfig) -> Any:  # noqa: ANN401 - an optional package
    try:
        from fastembed import TextEmbedding  # noqa: PLC0415 - optional
    except ImportError as error:
        raise ProviderError(
            f"{config.name} needs the package fastembed.", kind="refused", do=f"Install it: {INSTALL}"
        ) from error
    optional: dict[str, Any] = {} if config.path is None else {"specific_model_path": str(config.path)}
    try:
        return TextEmbedding(config.model, cuda=False, **optional)
    except Exception as error:  # unknown names, missing files and refused downloads alike
        raise ProviderError(
            f"fastembed cannot load the model: {error}",
            kind="refused",
            where=config.name,
            do="Check its name in fastembed's list, or set path to a folder with its files.",
        ) from error
