"""Measures stretches of a text in tokens: exactly where a vocabulary is at hand, else by their bytes."""

from __future__ import annotations

import functools
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from core.errors import UnknownNameError
from core.providers.tokens import BYTES_PER_TOKEN, ESTIMATE, VOCABULARIES, encoding_of

TOKENIZERS = (*VOCABULARIES, ESTIMATE)
_BLOCK = 200_000  # Characters that are encoded at once; the library refuses a million
_BREAK = re.compile(r"\n(?=\S)|(?<=\S)(?= \S)")

Positions = NDArray[np.int64]
Encode = Callable[[str], list[int]]


class Gauge(ABC):
    """Measures one text."""

    def __init__(self, text: str) -> None:
        self.text = text

    @abstractmethod
    def count(self, start: int, end: int, prefix: str = "") -> int:
        """Tokens of ``prefix + text[start:end]``."""

    @abstractmethod
    def about(self, start: int, end: int) -> int:
        """Tokens of the whole text that ``text[start:end]`` has a part in: nearly its own."""

    @abstractmethod
    def reach(self, start: int, tokens: int) -> int:
        """About how far so many tokens from `start` on reach; at least one character."""

    @abstractmethod
    def back(self, end: int, tokens: int) -> int:
        """About where a stretch of so many tokens begins that ends at `end`."""


class _Estimate(Gauge):
    """A token per four bytes of UTF-8."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._bytes = _byte_ends(text)  # [k] = bytes before character k

    def count(self, start: int, end: int, prefix: str = "") -> int:
        size = int(self._bytes[end] - self._bytes[start]) + len(prefix.encode("utf-8", "replace"))
        return -(-size // BYTES_PER_TOKEN)

    def about(self, start: int, end: int) -> int:
        return self.count(start, end)

    def reach(self, start: int, tokens: int) -> int:
        limit = self._bytes[start] + tokens * BYTES_PER_TOKEN
        return max(int(np.searchsorted(self._bytes, limit, side="right")) - 1, start + 1)

    def back(self, end: int, tokens: int) -> int:
        limit = self._bytes[end] - tokens * BYTES_PER_TOKEN
        return min(int(np.searchsorted(self._bytes, limit, side="left")), end)


class _Vocabulary(Gauge):
    """The tokens of a model.

    A stretch that begins or ends within a token of the whole text has other tokens there: counts are exact,
    reaches are near.
    """

    def __init__(self, text: str, encode: Encode, lengths: Positions) -> None:
        super().__init__(text)
        self._encode = encode
        ids = [token for start, end in _blocks(text) for token in encode(text[start:end])]
        byte_ends = np.cumsum(lengths[np.array(ids, dtype=np.int64)])
        # A token that ends within a character ends, for our purposes, before it.
        self._ends: Positions = np.searchsorted(_byte_ends(text), byte_ends, side="right") - 1

    def count(self, start: int, end: int, prefix: str = "") -> int:
        parts = [self.text[left:right] for left, right in _blocks(self.text, start, end)] or [""]
        parts[0] = prefix + parts[0]
        return sum(len(self._encode(part)) for part in parts)

    def about(self, start: int, end: int) -> int:
        first, last = np.searchsorted(self._ends, (start, end), side="right")
        return int(last - first) + 1

    def reach(self, start: int, tokens: int) -> int:
        first = int(np.searchsorted(self._ends, start, side="right"))
        last = min(first + tokens, len(self._ends)) - 1
        return max(int(self._ends[last]) if last >= 0 else start, start + 1)

    def back(self, end: int, tokens: int) -> int:
        last = int(np.searchsorted(self._ends, end, side="left"))
        before = last - tokens
        return min(int(self._ends[before]), end) if before >= 0 else 0


class Tokenizer:
    """What counts tokens."""

    def __init__(self, name: str) -> None:
        if name not in TOKENIZERS:
            raise UnknownNameError("tokenizer", name, TOKENIZERS)
        self.name = name
        self.exact = name != ESTIMATE

    def measure(self, text: str) -> Gauge:
        """A gauge of a text."""
        if not self.exact:
            return _Estimate(text)
        return _Vocabulary(text, *_vocabulary(self.name))


@functools.lru_cache
def _vocabulary(name: str) -> tuple[Encode, Positions]:
    """How a vocabulary encodes, and the bytes of each of its tokens."""
    encoding = encoding_of(name)
    lengths = np.array([len(token) for token in encoding.token_byte_values()], dtype=np.int64)
    return encoding.encode_ordinary, lengths


def _byte_ends(text: str) -> Positions:
    """[k] = bytes of UTF-8 before character k, for k from 0 to the length."""
    if text.isascii():
        return np.arange(len(text) + 1, dtype=np.int64)
    data = np.frombuffer(text.encode("utf-8", "replace"), dtype=np.uint8)
    starts = np.flatnonzero((data & 0xC0) != 0x80)
    return np.append(starts, len(data)).astype(np.int64)


def _blocks(text: str, start: int = 0, end: int | None = None) -> Iterator[tuple[int, int]]:
    """Stretches that can be encoded apart: cut where no token crosses, if there is such a place."""
    end = len(text) if end is None else end
    cuts = [start]
    while end - cuts[-1] > _BLOCK:
        limit = cuts[-1] + _BLOCK
        found = None
        for found in _BREAK.finditer(text, limit - _BLOCK // 10, limit):  # noqa: B007 - the last one
            pass
        cuts.append(found.end() if found else limit)
    return pairwise([*cuts, end])
