"""The models of one evaluation, each made once, with its journals and its budget."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

from core.pipeline.query.rewrite import Rewrite, make_rewrite
from core.providers.base import Meter
from core.providers.calls import Journal, Keys
from core.providers.chat import Chat, make_chat
from core.providers.config import ModelConfig
from core.providers.embed import Embedder, make_embedder
from core.providers.rerank import Reranker, make_reranker

M = TypeVar("M")


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
        self._made: dict[tuple[object, ...], Any] = {}

    def for_passages(self, name: str, dim: int) -> Embedder:
        """An embedder whose replies are kept for all evaluations."""
        return self._embedder(name, dim, self._shared)

    def for_queries(self, name: str, dim: int) -> Embedder:
        """An embedder whose replies are kept for this evaluation."""
        return self._embedder(name, dim, self._own or self._shared)

    def reranker(self, name: str) -> Reranker:
        """A reranker whose replies are kept for this evaluation."""
        journal = self._own or self._shared
        wired = partial(make_reranker, models=self._configs, keys=self._keys, meter=self._meter)
        reranker = self._once(("reranker", name), lambda: wired(name, journal=journal))
        reranker.journal = None if reranker.local else reranker.journal
        return reranker

    def rewrite(self, name: str) -> Rewrite:
        """A rewrite whose replies are kept for this evaluation."""
        journal = self._own or self._shared
        wired = partial(make_rewrite, models=self._configs, keys=self._keys, meter=self._meter)
        return self._once(("rewrite", name), lambda: wired(name, journal=journal))

    def chat(self, name: str) -> Chat:
        """A chat model whose replies are kept for this evaluation."""
        journal = self._own or self._shared
        wired = partial(make_chat, models=self._configs, keys=self._keys, meter=self._meter)
        return self._once(("chat", name), lambda: wired(name, journal=journal))

    def close(self) -> None:
        """Let go of connections."""
        for each in self._made.values():
            each.close()
        self._made.clear()

    def interrupt(self) -> None:
        """End waits for vendors that are under way."""
        for each in list(self._made.values()):
            each.interrupt()

    def _embedder(self, name: str, dim: int, journal: Journal | None) -> Embedder:
        wired = partial(make_embedder, keys=self._keys, meter=self._meter)
        model = self._configs.get(name, name)
        key = ("embedder", name, dim, journal)
        embedder = self._once(key, lambda: wired(model, dim, journal=journal))
        # Nothing is paid for what runs here, and its answers are at hand sooner than from a file.
        embedder.journal = None if embedder.local else journal
        return embedder

    def _once(self, key: tuple[object, ...], make: Callable[[], M]) -> M:
        if key not in self._made:
            self._made[key] = make()
        made: M = self._made[key]
        return made
