"""Embedders that run here: what they use is processor time."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Sequence

from core.providers.base import Amount, Purpose, Reply
from core.providers.embed.base import Embedder
from core.providers.embed.vectors import Vectors
from core.records import Basis


class LocalEmbedder(Embedder):
    """Times `encode`; the processor time is that of the whole process, so nothing else should be at work."""

    @abstractmethod
    def encode(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        """Embed a batch; see `Embedder.embed_batch`."""

    def embed_batch(self, texts: Sequence[str], purpose: Purpose) -> Reply[Vectors]:
        """Embed a batch, with the milliseconds of processor time that it took."""
        cpu, start = time.process_time(), time.perf_counter()
        vectors = self.encode(texts, purpose)
        ms, cpu_ms = (time.perf_counter() - start) * 1000, (time.process_time() - cpu) * 1000
        return Reply(vectors, (Amount(self.item, "cpu_ms", cpu_ms, Basis.MEASURED),), ms)
