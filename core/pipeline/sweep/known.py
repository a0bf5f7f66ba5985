"""Parts that a stack can have here: registries of engines and providers, and a specification's own models."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from core.errors import ClqError
from core.pipeline.index import INDEX_NAMES
from core.pipeline.index.terms import LANGUAGES
from core.pipeline.query.rewrite import REWRITES, WAYS, Rewrite, make_rewrite
from core.pipeline.sweep.model import METHODS
from core.providers import chat, embed, rerank
from core.providers.calls import Keys, Secret
from core.providers.config import ModelConfig, place_of
from core.providers.embed import Embedder, make_embedder
from core.providers.rerank import BY_CHAT, Reranker, make_reranker, reranker_config

NONE = "none"
LOCAL_ENGINES: Mapping[str, tuple[str, str]] = {
    "onnx": ("onnxruntime", "pip install onnxruntime tokenizers"),
    "fastembed": ("fastembed", "pip install fastembed"),
    "sentence-transformers": ("sentence_transformers", "pip install sentence-transformers"),
    "wordllama": ("wordllama", "pip install wordllama"),
    **dict.fromkeys(("fake", "bm25", "tf-idf"), ("", "")),
    NONE: ("", ""),
}
"""Providers that run here: the module that each needs, and how to install it."""


class _NoKeys(Keys):
    """Placeholder for API keys while planning, when models are built but nothing is sent."""

    def find(self, name: str, url: str) -> Secret | None:
        del url
        return Secret(name, "-")


@dataclass(frozen=True)
class KnownNames:
    """Facade of the registries: what a name stands for, without loading a model or sending anything."""

    models: Mapping[str, ModelConfig] = field(default_factory=dict)  # the specification's own models by name
    keys: Keys = field(default_factory=Keys)  # where keys are looked up

    @cached_property
    def names(self) -> Mapping[str, frozenset[str]]:
        """Return names by kind: "embedder", "reranker", "rewrite", "index", "language" and methods."""
        chats = {*chat.CHATS, *self._own(chat.PROVIDERS)}
        ways = (f"{way}:{model}" for way in BY_CHAT for model in chats)
        return {
            "embedder": frozenset({*embed.EMBEDDERS, *self._own(embed.PROVIDERS)}),
            "reranker": frozenset({*rerank.RERANKERS, *self._own(rerank.PROVIDERS), *ways}),
            "rewrite": frozenset({*REWRITES, *(f"{way}:{model}" for way in WAYS for model in chats)}),
            "index": frozenset(INDEX_NAMES),
            "language": frozenset(LANGUAGES),
            **{axis: frozenset(registry.methods) for axis, registry in METHODS.items()},
        }

    def _own(self, providers: Mapping[str, object]) -> list[str]:
        return [name for name, config in self.models.items() if config.provider in providers]

    def embedder(self, name: str) -> ModelConfig | None:
        """Return the configuration of an embedder, or None if there is none of this name."""
        own = self.models.get(name)
        return own if own is not None and own.provider in embed.PROVIDERS else embed.EMBEDDERS.get(name)

    def dims(self, name: str) -> tuple[int, ...]:
        """Return dimensions that an embedder has; empty = any, or not known before it is loaded."""
        config = self.embedder(name)
        return config.dims if config else ()

    def default_dim(self, name: str) -> int | None:
        """Return the dimension used by default, or None if it is unknown."""
        config = self.embedder(name)
        return config.default_dim if config else None

    def planned_embedder(self, name: str) -> Embedder:
        """Return a remote embedder to count with; it has no key and sends nothing."""
        config = self.config("embedder", name)
        return make_embedder(config, config.default_dim or 1, keys=_NoKeys())

    def planned_reranker(self, name: str) -> Reranker:
        """Return a reranker to count with; it has no key, loads nothing and sends nothing."""
        return make_reranker(name, models=self.models, ready=False)

    def planned_rewrite(self, name: str) -> Rewrite:
        """Return a rewrite to count with; it has no key and sends nothing."""
        return make_rewrite(name, models=self.models, ready=False)

    def config(self, key: str, name: str) -> ModelConfig:
        """Return the configuration of a model (of the key "embedder", "reranker" or "rewrite")."""
        if key == "embedder":
            return embed.embedder_config(self.embedder(name) or name)
        if key == "reranker":
            return reranker_config(name, self.models)[1]
        return chat.chat_config(name.partition(":")[2], self.models)

    def is_local(self, key: str, name: str) -> bool:
        """Return whether a model runs here; see `config`."""
        return (key == "rewrite" and name in REWRITES) or place_of(self.config(key, name)) is None

    def obstacles(self, key: str, name: str) -> Iterator[ClqError]:
        """Yield why a model cannot be used: a key or a package is missing."""
        if key == "rewrite" and name in REWRITES:
            return
        config = self.config(key, name)
        if config.provider in LOCAL_ENGINES:
            module, install = LOCAL_ENGINES[config.provider]
            if module and importlib.util.find_spec(module) is None:
                yield ClqError(f"{name} needs the package {module}.", do=f"Install it: {install}")
            return
        place = place_of(config)
        try:
            if place is not None and place.key_env:
                self.keys.need(place.key_env, config.name, place.url)
        except ClqError as error:
            yield error
