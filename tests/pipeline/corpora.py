"""Small collections for the tests of the pipeline."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from core.pipeline.ranking import Hits
from core.tables import frame

WORDS = [
    *("read", "write", "group", "sort", "join", "filter", "cache", "plot"),
    *("array", "frame", "column", "row", "lazy", "eager", "window", "mean"),
]


def passages(texts: Sequence[str], titles: Sequence[str | None] | None = None) -> pl.DataFrame:
    return frame(
        "passages",
        [
            {
                "collection_id": "c",
                "passage_id": f"p{at:03}",
                "title": titles[at] if titles else None,
                "text": text,
                "tokens": None,
                "tokenizer": None,
                "source": None,
            }
            for at, text in enumerate(texts)
        ],
    )


def queries(texts: Sequence[str]) -> pl.DataFrame:
    return frame(
        "queries",
        [
            {"collection_id": "c", "query_id": f"q{at:02}", "text": text, "tags": []}
            for at, text in enumerate(texts)
        ],
    )


def random_texts(count: int, seed: int) -> list[str]:
    draw = np.random.default_rng(seed)
    return [" ".join(draw.choice(WORDS, size=draw.integers(2, 12))) for _ in range(count)]


def unit_vectors(count: int, dim: int, seed: int) -> np.ndarray:
    vectors = np.random.default_rng(seed).standard_normal((count, dim)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def hits(*positions: int) -> Hits:
    """A ranking of these passages with scores that fall by one."""
    return Hits(np.array(positions, dtype=np.int64), np.arange(len(positions), 0, -1, dtype=np.float64))
