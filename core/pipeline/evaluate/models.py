"""The models of one evaluation, each made once, with its journals and its budget."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core.pipeline.query.rewrite import Rewrite, make_rewrite
from core.providers.base import Meter
from core.providers.calls import Journal, Keys
from core.providers.config import ModelConfig
from core.providers.embed import Embedder, make_embedder
from core.providers.rerank import Reranker, make_reranker


class Models:
    """Makes models by the names that stacks use."""

    def __init__(
        self,
        configs: Mapping[str, ModelConfig],
        *,
        shared: Journal | None,
        own: Journal | None,
        meter: Meter,
        keys: Keys | None = None,
    ) -> None:
        self._configs, self._meter, self._keys = configs, meter, keys or Keys()
        self._shared, self._own = shared, own
        self._made: dict[tuple[str, str, int | None, bool], Any] = {}

    def for_passages(self, name: str, dim: int) -> Embedder:
        """An embedder whose replies are kept for all evaluations."""
        return self._embedder(name, dim, passages=True)

    def for_queries(self, name: str, dim: int) -> Embedder:
        """An embedder whose replies are kept for this evaluation."""
        return self._embedder(name, dim, passages=False)

    def reranker(self, name: str) -> Reranker:
        """A reranker whose replies are kept for this evaluation."""
        key = ("reranker", name, None, False)
        if key not in self._made:
            journal = self._own or self._shared
            reranker = make_reranker(
                name, models=self._configs, keys=self._keys, journal=journal, meter=self._meter
            )
            reranker.journal = None if reranker.local else reranker.journal
            self._made[key] = reranker
        made: Reranker = self._made[key]
        return made

    def rewrite(self, name: str) -> Rewrite:
        """A rewrite whose replies are kept for this evaluation."""
        key = ("rewrite", name, None, False)
        if key not in self._made:
            self._made[key] = make_rewrite(
                name,
                models=self._configs,
                keys=self._keys,
                journal=self._own or self._shared,
                meter=self._meter,
            )
        made: Rewrite = self._made[key]
        return made

    def close(self) -> None:
        """Let go of connections."""
        for each in self._made.values():
            each.close()
        self._made.clear()

    def interrupt(self) -> None:
        """End waits for vendors that are under way."""
        for each in list(self._made.values()):
            each.interrupt()

    def _embedder(self, name: str, dim: int, *, passages: bool) -> Embedder:
        key = ("embedder", name, dim, passages)
        if key not in self._made:
            # Nothing is paid for what runs here, and its answers are at hand sooner than from a file.
            journal = self._shared if passages else self._own or self._shared
            embedder = make_embedder(
                self._configs.get(name, name), dim, keys=self._keys, journal=journal, meter=self._meter
            )
            embedder.journal = None if embedder.local else journal
            self._made[key] = embedder
        made: Embedder = self._made[key]
        return made
