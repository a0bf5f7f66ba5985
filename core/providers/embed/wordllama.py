"""Static embeddings by wordllama: the mean of token vectors whose table ships inside the wheel.

Model: L2-supercat, trained as Matryoshka embeddings, so that the first 64 or 128 of its 256 dimensions are
embeddings by themselves. Nothing is downloaded.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from core.errors import ClqError
from core.providers.base import Purpose
from core.providers.embed.base import LocalEmbedder
from core.providers.embed.batches import Vectors, require_dim, unit_rows


class WordLlamaEmbedder(LocalEmbedder):
    """wordllama L2-supercat at 64, 128 or 256 dimensions, unit length."""

    name = provider = "wordllama"
    dims = (64, 128, 256)
    full_dim = 256
    batch_items = 16  # measured: padding to the longest text of a larger batch costs more than it saves

    def __init__(self, dim: int = full_dim) -> None:
        require_dim(self.name, dim, self.dims)
        self.dim = dim
        self._model = _load(self.full_dim, dim)

    def encode(self, texts: Sequence[str], purpose: Purpose) -> Vectors:  # noqa: ARG002 - one for both
        """Mean of the token vectors of each text: float32 [len(texts), dim], unit rows."""
        pooled = self._model.embed(list(texts), norm=False, batch_size=self.batch_items)
        return unit_rows(np.asarray(pooled, dtype=np.float32))


def _load(full_dim: int, dim: int) -> Any:  # noqa: ANN401 - the package has no types
    with _root_logger_unchanged():
        import wordllama  # noqa: PLC0415 - slow, and only needed with this embedder

    # Without cache_dir it looks for the tokenizer beside the user's other downloads, and then on a hub.
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
    # wordllama calls logging.basicConfig at import, which would make every library of the process talk.
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    try:
        yield
    finally:
        root.setLevel(level)
        root.handlers[:] = handlers
