"""Cross-encoders of the sentence-transformers package, where it is installed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from core.errors import ProviderError
from core.providers.config import ModelConfig
from core.providers.remote import Wiring
from core.providers.rerank.base import Scores
from core.providers.rerank.local import LocalReranker

INSTALL = "pip install sentence-transformers"


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
        try:
            from sentence_transformers import CrossEncoder  # noqa: PLC0415 - optional
        except ImportError as error:
            raise ProviderError(
                f"{self.name} needs the package sentence-transformers.",
                kind="refused",
                do=f"Install it: {INSTALL}",
            ) from error
        try:
            return CrossEncoder(str(self._config.path or self._config.model))
        except Exception as error:  # unknown names, missing files and refused downloads alike
            raise ProviderError(
                f"sentence-transformers cannot load the model: {error}",
                kind="refused",
                where=self.name,
                do="Check its name, or set path to a folder with its files.",
            ) from error

    def ready(self) -> None:
        """Load the model."""
        self._model  # noqa: B018 - loaded by being asked for

    def score(self, query: str, passages: Sequence[str]) -> tuple[Scores, dict[str, Any]]:
        """The model's own scores."""
        pairs = [(query, passage) for passage in passages]
        found = self._model.predict(pairs, batch_size=self.batch_items, show_progress_bar=False)
        return np.asarray(found, dtype=np.float64).reshape(-1), {}
