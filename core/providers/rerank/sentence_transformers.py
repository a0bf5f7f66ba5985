"""Cross-encoders of the sentence-transformers package, where it is installed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from core.providers.base import CHECK, SENTENCE_TRANSFORMERS, loaded, optional
from core.providers.config import ModelConfig
from core.providers.remote import Wiring
from core.providers.rerank.base import Scores
from core.providers.rerank.places import LocalReranker


class SentenceTransformersReranker(LocalReranker):
    """A cross-encoder of sentence-transformers, by name or by folder."""

    provider = "sentence-transformers"
    batch_items = 32

    def __init__(self, config: ModelConfig, wiring: Wiring) -> None:
        self._config = config
        self.name, self.journal = config.name, wiring.journal
        self.batch_items = config.batch_items or self.batch_items

    @cached_property
    def _model(self) -> Any:  # noqa: ANN401 - an optional package
        kind = optional(SENTENCE_TRANSFORMERS, "CrossEncoder", self.name)
        place = str(self._config.path or self._config.model)
        device = self._config.device
        return loaded(lambda: kind(place, device=device), SENTENCE_TRANSFORMERS, self.name, CHECK)

    def ready(self) -> None:
        """Load the model."""
        self._model  # noqa: B018 - loaded by being asked for

    def score(self, query: str, passages: Sequence[str]) -> tuple[Scores, dict[str, Any]]:
        """The model's own scores."""
        pairs = [(query, passage) for passage in passages]
        found = self._model.predict(pairs, batch_size=self.batch_items, show_progress_bar=False)
        return np.asarray(found, dtype=np.float64).reshape(-1), {}
