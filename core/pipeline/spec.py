"""The stacks of the demo, which also serve where a few of every kind are wanted."""

from __future__ import annotations

from collections.abc import Sequence

from core.pipeline.sweep.expand import grid as expand_axes
from core.pipeline.sweep.fields import Encoder, Index
from core.pipeline.sweep.model import Axes
from core.records import Stack

DEPTHS = (20, 50, 100, 200)


def grid(
    *,
    embedder: str = "wordllama",
    dims: Sequence[int] = (64, 128, 256),
    indexes: Sequence[str] = ("flat", "hnsw-f32", "int8"),
    depths: Sequence[int] = DEPTHS,
) -> list[Stack]:
    """BM25, every dense combination, and the fusion of BM25 with each of them, at every candidate depth.

    Args:
        embedder: A registered embedder.
        dims: Its dimensions.
        indexes: Kinds of dense index.
        depths: Candidate depths K.

    Returns:
        (1 + 2 · dims · indexes) · depths stacks; 76 by default.
    """
    return expand_axes(
        Axes(
            embedder=(Encoder(name=embedder),),
            dim=tuple(dims),
            index=tuple(Index(name=name) for name in indexes),
            candidates=tuple(depths),
        )
    )
