"""Counts tokens: exactly where a model's vocabulary is available, otherwise as an estimate that says so.

tiktoken counts if its vocabulary is in its cache and sound, so that it needs no network; otherwise the same
vocabulary from the bpe-openai package does. Nothing is downloaded. "voyage3_base" is the vocabulary of the
Voyage 3 family; its counts have not been checked against those that Voyage bills. Without a vocabulary, four
bytes of UTF-8 count as one token: about four characters of English, fewer of scripts that need more bytes.
"""

from __future__ import annotations

import functools
import hashlib
import math
import os
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.errors import UnknownNameError
from core.extras import installed

ESTIMATE = "estimate"
BYTES_PER_TOKEN = 4
VOCABULARIES = ("o200k_base", "cl100k_base", "voyage3_base")
UNCHECKED = ("voyage3_base",)  # Vocabularies whose counts were not compared with the vendor's own
_SHA256 = {
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
}
"""Digests of tiktoken's files; it downloads again what differs."""
_ADDRESS = "https://openaipublic.blob.core.windows.net/encodings/{}.tiktoken"  # its digest names the file
_CACHES = ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR")


@dataclass(frozen=True, slots=True)
class TokenCounter:
    """Counts the tokens of a text."""

    name: str  # the vocabulary, or "estimate"
    exact: bool  # whether it is a vocabulary
    count: Callable[[str], int]  # tokens of a text, without the special ones that a model may add

    @property
    def note(self) -> str:
        """Return a caveat about the counts, or "" if they are exact."""
        if not self.exact:
            return f"estimated: one token per {BYTES_PER_TOKEN} bytes"
        return "not checked against the vendor's own count" if self.name in UNCHECKED else ""

    def ceiling(self, text: str) -> int:
        """Return the most tokens that the vendor can count, which a budget reserves.

        A token covers at least one byte, so bytes bound any vocabulary; a few more cover added tokens.
        """
        if not self.exact:
            return len(_bytes(text)) + 16
        if self.name in UNCHECKED:
            return math.ceil(self.count(text) * 1.1) + 16
        return self.count(text) + 4


@functools.lru_cache
def counter(name: str | None) -> TokenCounter:
    """Return the counter of a vocabulary.

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
    if not _in_cache(name) and not installed("bpe_openai"):
        return counter(ESTIMATE)
    encode = encoding_of(name).encode_ordinary
    return TokenCounter(name, exact=True, count=lambda text: len(encode(text)))


def encoding_of(name: str) -> Any:  # noqa: ANN401 - the packages have no types in common
    """Return a vocabulary by name: tiktoken's own from its cache, otherwise bpe-openai's."""
    if _in_cache(name):
        import tiktoken  # noqa: PLC0415 - needed only here

        return tiktoken.get_encoding(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # it loads its data in a deprecated way
        import bpe_openai  # noqa: PLC0415 - half a second to load, needed only here

        return bpe_openai.get_encoding(name)


def _in_cache(name: str) -> bool:
    """Return whether tiktoken has a vocabulary in its cache, so that it needs no network."""
    folder = next((os.environ[cache] for cache in _CACHES if cache in os.environ), None)
    where = Path(tempfile.gettempdir()) / "data-gym-cache" if folder is None else Path(folder)
    file = where / hashlib.sha1(_ADDRESS.format(name).encode(), usedforsecurity=False).hexdigest()
    if folder == "" or name not in _SHA256 or not file.is_file():
        return False
    return hashlib.sha256(file.read_bytes()).hexdigest() == _SHA256[name]


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")
