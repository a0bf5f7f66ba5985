"""Embedders: one file per vendor or local engine, one line each in the registry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from core.errors import UnknownNameError
from core.providers.embed.base import Embedder
from core.providers.embed.fake import FakeEmbedder
from core.providers.embed.vectors import Vectors, unit_rows
from core.providers.embed.wordllama import WordLlamaEmbedder

__all__ = ["EMBEDDERS", "Embedder", "Vectors", "make_embedder", "unit_rows"]

EMBEDDERS: Mapping[str, Callable[[int], Embedder]] = MappingProxyType(
    {
        "wordllama": WordLlamaEmbedder,
        "fake": FakeEmbedder,
    }
)


def make_embedder(name: str, dim: int) -> Embedder:
    """Make a registered embedder.

    Args:
        name: A key of `EMBEDDERS`.
        dim: Its dimension.

    Raises:
        UnknownNameError: If the name is not registered.
        InputError: If the embedder lacks the dimension.
    """
    if name not in EMBEDDERS:
        raise UnknownNameError("embedder", name, EMBEDDERS)
    return EMBEDDERS[name](dim)
