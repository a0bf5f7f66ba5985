"""Counts tokens: exactly where a model's vocabulary is at hand, else as an estimate that says so.

Vocabularies come with the bpe-openai package, nothing is downloaded. "voyage3_base" is the vocabulary of the
Voyage 3 family; its counts have not been checked against those that Voyage bills. Without a vocabulary, four
bytes of UTF-8 count as one token: about four characters of English, and fewer of scripts that cost more.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from core.errors import UnknownNameError

ESTIMATE = "estimate"
BYTES_PER_TOKEN = 4
VOCABULARIES = ("o200k_base", "cl100k_base", "voyage3_base")
UNCHECKED = ("voyage3_base",)  # Vocabularies whose counts were not compared with the vendor's own


@dataclass(frozen=True, slots=True)
class TokenCounter:
    """Counts the tokens of a text."""

    name: str  # what counts: a vocabulary, or "estimate"
    exact: bool  # whether it is a vocabulary
    count: Callable[[str], int]  # tokens of a text, without the special ones that a model may add

    @property
    def note(self) -> str:
        """What is to be known about the counts, for people; nothing where they are beyond doubt."""
        if not self.exact:
            return f"estimated: one token per {BYTES_PER_TOKEN} bytes"
        return "not checked against the vendor's own count" if self.name in UNCHECKED else ""

    def ceiling(self, text: str) -> int:
        """The most tokens that the vendor can count; what a budget reserves.

        A token covers at least one byte, so bytes bound any vocabulary; a few more for what is added around.
        """
        if not self.exact:
            return len(_bytes(text)) + 16
        if self.name in UNCHECKED:
            return math.ceil(self.count(text) * 1.1) + 16
        return self.count(text) + 4


@functools.lru_cache
def counter(name: str | None) -> TokenCounter:
    """The counter of a vocabulary.

    Args:
        name: One of `VOCABULARIES`; None or "estimate" = the estimate.

    Raises:
        UnknownNameError: If there is no such vocabulary.
    """
    if name is None or name == ESTIMATE:
        estimate = lambda text: math.ceil(len(_bytes(text)) / BYTES_PER_TOKEN)  # noqa: E731
        return TokenCounter(ESTIMATE, exact=False, count=estimate)
    if name not in VOCABULARIES:
        raise UnknownNameError("vocabulary", name, (*VOCABULARIES, ESTIMATE))
    encode = encoding_of(name).encode_ordinary
    return TokenCounter(name, exact=True, count=lambda text: len(encode(text)))


def encoding_of(name: str) -> Any:  # noqa: ANN401 - the package has no types
    """Return the vocabulary of a name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # it loads its data in an older way
        import bpe_openai  # noqa: PLC0415 - half a second to load, needed only here

        return bpe_openai.get_encoding(name)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")
