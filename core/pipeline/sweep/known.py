"""What can stand in a stack here: registries of engines and providers, and a specification's own models."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from core.errors import ClqError, UnknownNameError
from core.pipeline import chunk
from core.pipeline.chunk import CHUNKERS
from core.pipeline.evaluate.identity import billed_by
from core.pipeline.index import INDEX_NAMES, kind_of
from core.pipeline.index.terms import LANGUAGES
from core.pipeline.query.rewrite import REWRITES, WAYS, Rewrite, make_rewrite, rewrite_config
from core.pipeline.ranking.cut import CUTS, cut_options
from core.pipeline.ranking.dedup import DEDUPS, dedup_options
from core.pipeline.ranking.fuse import FUSIONS, fusion_options
from core.providers import chat, embed, rerank
from core.providers.calls import Keys, Secret
from core.providers.config import ModelConfig, place_of
from core.providers.embed import Embedder, make_embedder
from core.providers.rerank import BY_CHAT, Reranker, make_reranker, reranker_config
from core.records import JsonMap

if TYPE_CHECKING:
    from core.pipeline.sweep.model import SweepSpec


@dataclass(frozen=True, slots=True)
class Methods:
    """A registry of methods."""

    names: Iterable[str]  # the methods
    read: Callable[[JsonMap], JsonMap]


METHODS: Mapping[str, Methods] = MappingProxyType(
    {
        "fusion": Methods(FUSIONS, fusion_options),
        "dedup": Methods(DEDUPS, dedup_options),
        "cut": Methods(CUTS, cut_options),
        "chunker": Methods(CHUNKERS, chunk.canonical),
    }
)
"""By the key of a stack's specification."""


NONE = "none"
LOCAL_ENGINES: Mapping[str, tuple[str, str]] = {
    "onnx": ("onnxruntime", "pip install onnxruntime tokenizers"),
    "fastembed": ("fastembed", "pip install fastembed"),
    "sentence-transformers": ("sentence_transformers", "pip install sentence-transformers"),
    "wordllama": ("wordllama", "pip install wordllama"),
    "fake": ("", ""),
    NONE: ("", ""),
}
"""Providers that run here: the module that each needs, and how to install it."""


class _NoKeys(Keys):
    """Stands in for keys where models are made to plan with, and nothing is sent."""

    def find(self, name: str, url: str) -> Secret | None:
        """A placeholder that is no key of anybody."""
        del url
        return Secret(name, "-")


class _KeyIsThereError(Exception):
    """Ends the making of a model that would only go on to load the client of its vendor."""


class _Asked(Keys):
    """Makes sure of a key and goes no further."""

    def __init__(self, keys: Keys) -> None:
        self._keys = keys

    def need(self, name: str, model: str, url: str) -> Secret:
        """Raises either way."""
        self._keys.need(name, model, url)
        raise _KeyIsThereError


@dataclass(frozen=True)
class Known:
    """Facade of the registries: what a name stands for, without loading a model or sending anything."""

    models: Mapping[str, ModelConfig] = field(default_factory=dict)  # the specification's own models by name
    keys: Keys = field(default_factory=Keys)  # where keys are looked up

    @classmethod
    def of(cls, spec: SweepSpec, keys: Keys | None = None) -> Known:
        """What a specification can name."""
        return cls(spec.models, keys or Keys())

    def names(self, kind: str) -> frozenset[str]:
        """What is known of a kind: "embedder", "reranker", "rewrite", "index", "language" and methods."""
        return self._names[kind]

    @cached_property
    def _names(self) -> dict[str, frozenset[str]]:
        chats = {*chat.CHATS, *self._own(chat.PROVIDERS)}
        ways = (f"{way}:{model}" for way in BY_CHAT for model in chats)
        return {
            "embedder": frozenset({*embed.EMBEDDERS, *self._own(embed.PROVIDERS)}),
            "reranker": frozenset({*rerank.RERANKERS, *self._own(rerank.PROVIDERS), *ways}),
            "rewrite": frozenset({*REWRITES, *(f"{way}:{model}" for way in WAYS for model in chats)}),
            "index": frozenset(INDEX_NAMES),
            "language": frozenset(LANGUAGES),
            **{key: frozenset(methods.names) for key, methods in METHODS.items()},
        }

    @staticmethod
    def providers() -> frozenset[str]:
        """What `provider` of a model may be."""
        return frozenset({*embed.PROVIDERS, *rerank.PROVIDERS, *chat.PROVIDERS})

    def _own(self, providers: Mapping[str, object]) -> list[str]:
        return [name for name, config in self.models.items() if config.provider in providers]

    def embedder(self, name: str) -> ModelConfig | None:
        """What is known of an embedder; None if there is none of this name."""
        own = self.models.get(name)
        return own if own is not None and own.provider in embed.PROVIDERS else embed.EMBEDDERS.get(name)

    def dims(self, name: str) -> tuple[int, ...]:
        """Dimensions that an embedder has; empty = any, or not known before it is loaded."""
        config = self.embedder(name)
        return config.dims if config else ()

    def default_dim(self, name: str) -> int | None:
        """The dimension that is taken when none is asked for; None where that is not known."""
        config = self.embedder(name)
        return config.default_dim if config else None

    def planned_embedder(self, name: str) -> Embedder:
        """A remote embedder to count with; it has no key and sends nothing."""
        config = self.embedder(name) or embed.embedder_config(name)
        return make_embedder(config, config.default_dim or 1, keys=_NoKeys())

    def planned_reranker(self, name: str) -> Reranker:
        """A reranker to count with; it has no key, loads nothing and sends nothing."""
        return make_reranker(name, models=self.models, keys=_NoKeys(), ready=False)

    def planned_rewrite(self, name: str) -> Rewrite:
        """A rewrite to count with; it has no key and sends nothing."""
        return make_rewrite(name, models=self.models, keys=_NoKeys(), ready=False)

    def pointwise(self, name: str) -> bool:
        """Whether a reranker's score of a passage does not depend on the passages beside it."""
        return self.planned_reranker(name).pointwise

    def is_local(self, key: str, name: str) -> bool:
        """Whether a model (of the key "embedder", "reranker" or "rewrite") runs here."""
        config = self._config(key, name)
        return config is None or place_of(config) is None

    def billed(self, key: str, name: str) -> list[tuple[str, str]]:
        """Item and unit of what a model is paid by; nothing for what runs here."""
        return billed_by(key, name, self.models)

    def obstacles(self, key: str, name: str) -> Iterator[ClqError]:
        """Why a model cannot be used: a key, a package or a folder is missing."""
        config = self._config(key, name)
        if config is None:
            return
        if config.provider in LOCAL_ENGINES:
            module, install = LOCAL_ENGINES[config.provider]
            if module and importlib.util.find_spec(module) is None:
                yield ClqError(f"{name} needs the package {module}.", do=f"Install it: {install}")
            return
        try:
            self._reach(key, config, name)
        except _KeyIsThereError:
            return
        except ClqError as error:
            yield error

    def _reach(self, key: str, config: ModelConfig, name: str) -> None:
        if key == "embedder":
            make_embedder(config, config.default_dim or 1, keys=_Asked(self.keys))
        elif key == "rewrite":
            make_rewrite(name, models=self.models, keys=_Asked(self.keys))
        else:
            make_reranker(name, models=self.models, keys=_Asked(self.keys))

    def config(self, key: str, name: str) -> ModelConfig:
        """What is known of a model; see `is_local`."""
        found = self._config(key, name)
        if found is None:
            raise UnknownNameError("model", name, ())
        return found

    def _config(self, key: str, name: str) -> ModelConfig | None:
        if key == "embedder":
            return self.embedder(name) or embed.embedder_config(name)
        if key == "rewrite":
            return rewrite_config(name, self.models)
        return reranker_config(name, self.models)[1]

    def read(self, kind: str, table: JsonMap) -> JsonMap:
        """A fusion, suppression, cut or chunker with its parameters checked, in its canonical form."""
        return METHODS[kind].read(table)

    def canonical(self, kind: str, table: JsonMap) -> JsonMap:
        """The same; as it is where it cannot be read."""
        try:
            return self.read(kind, table)
        except ClqError:
            return dict(table)

    def spoken(self, chunker: JsonMap, language: str) -> JsonMap:
        """A chunker in the language of a collection, where it knows that and is not told another."""
        params = CHUNKERS[chunker["method"]].params if chunker["method"] in CHUNKERS else ()
        spoken = {each.name: each.choices for each in params}.get("language", ())
        return {"language": language, **chunker} if language in spoken else chunker

    def index_params(self, name: str, params: JsonMap) -> dict[str, Any]:
        """Parameters of an index that are not its defaults."""
        options = kind_of(name).options if name in INDEX_NAMES else ()
        usual = {option.name: option.default for option in options}
        return {key: value for key, value in params.items() if value != usual.get(key)}
