"""Embedders: one file per vendor or local engine, one line each in the registry.

A model is named as in papers and price books ("voyage-3.5"); any other comes by a `ModelConfig`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Unpack

from core.errors import InputError
from core.providers.config import ModelConfig, named
from core.providers.embed import cohere, fastembed, onnx, openai, sentence_transformers, voyage
from core.providers.embed.base import Embedder, TokenEmbedder, TokenVectors
from core.providers.embed.batches import Vectors, unit_rows
from core.providers.embed.fake import FakeEmbedder
from core.providers.embed.remote import RemoteEmbedder
from core.providers.embed.wordllama import WordLlamaEmbedder
from core.providers.remote import Wired, Wiring, wiring_of

__all__ = [
    "EMBEDDERS",
    "PROVIDERS",
    "Embedder",
    "RemoteEmbedder",
    "TokenEmbedder",
    "TokenVectors",
    "Vectors",
    "Wiring",
    "embedder_config",
    "make_embedder",
    "unit_rows",
]

Factory = Callable[[ModelConfig, int | None, Wiring], Embedder]

_BUNDLED = (
    ModelConfig(provider="wordllama", model="wordllama", dims=WordLlamaEmbedder.dims, matryoshka=True),
    ModelConfig(provider="fake", model="fake", dim=64),
)

EMBEDDERS: Mapping[str, ModelConfig] = MappingProxyType(
    {config.name: config for config in (*_BUNDLED, *voyage.CATALOGUE, *cohere.CATALOGUE, *openai.CATALOGUE)}
)
"""The models that are known by name."""


def _remote(kind: type[RemoteEmbedder]) -> Factory:
    def make(config: ModelConfig, dim: int | None, wiring: Wiring) -> Embedder:
        wanted = config.default_dim if dim is None else dim
        if wanted is None:
            raise InputError(
                f"The dimension of {config.name} is not known.",
                where="dim",
                do="Give dim, or dims of the model.",
            )
        return kind(config, wanted, wiring)

    return make


PROVIDERS: Mapping[str, Factory] = MappingProxyType(
    {
        "voyage": _remote(voyage.VoyageEmbedder),
        "cohere": _remote(cohere.CohereEmbedder),
        "openai": _remote(openai.OpenAIEmbedder),
        "onnx": lambda config, dim, _: onnx.OnnxEmbedder(config, dim),
        "sentence-transformers": lambda config, dim, _: sentence_transformers.SentenceTransformersEmbedder(
            config, dim
        ),
        "fastembed": lambda config, dim, _: fastembed.FastEmbedEmbedder(config, dim),
        "wordllama": lambda config, dim, _: WordLlamaEmbedder(max(config.dims) if dim is None else dim),
        "fake": lambda config, dim, _: FakeEmbedder((config.dim or 64) if dim is None else dim),
    }
)
"""What `ModelConfig.provider` may be for an embedder."""


def embedder_config(model: str | ModelConfig) -> ModelConfig:
    """What is known of a model before it is made; needs neither a key nor a package.

    Raises:
        UnknownNameError: If the name is not in `EMBEDDERS`, or the provider not in `PROVIDERS`.
    """
    return named(model, EMBEDDERS, PROVIDERS, "embedder")


def make_embedder(model: str | ModelConfig, dim: int | None = None, **wired: Unpack[Wired]) -> Embedder:
    """Make an embedder.

    Args:
        model: A key of `EMBEDDERS`, or the configuration of any other model.
        dim: Its dimension; the model's default if not given.

    Raises:
        UnknownNameError: If the name or the provider is not registered.
        InputError: If the embedder lacks the dimension.
        ProviderError: If there is no key, or a package that it needs is not installed.
    """
    config = embedder_config(model)
    made = PROVIDERS[config.provider](config, dim, wiring_of(wired))
    made.journal = wired.get("journal")
    return made
