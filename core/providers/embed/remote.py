"""Embedders of vendors: everything but the one HTTP attempt that each of them writes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from core.errors import ProviderError
from core.providers.base import Amount, Purpose, Reply, joined
from core.providers.config import ModelConfig
from core.providers.embed.base import Embedder
from core.providers.embed.batches import Room, Sizes, Vectors, require_dim, shortened
from core.providers.remote import Remote, Wiring
from core.records import Basis, JsonMap


@dataclass(frozen=True, slots=True)
class Received:
    """What one answer of a vendor held."""

    vectors: Sequence[Sequence[float]]  # one row of numbers per result
    tokens: float | None  # what the vendor counted, or None when it did not say
    places: Sequence[int] | None = None  # which text each result belongs to, where the vendor says


class RemoteEmbedder(Remote, Embedder):
    """A vendor's model."""

    usual_items = 100
    usual_tokens: int | None = None
    usual_types: dict[Purpose, str] | None = None

    def __init__(self, config: ModelConfig, dim: int, wiring: Wiring) -> None:
        if config.dims:
            require_dim(config.name, dim, config.dims)
        self._reach(config, wiring)
        self.dim, self.full_dim = dim, config.full_dim(dim)
        self.normalised, self.journal, line = config.normalised, wiring.journal, self._line
        self.batch_items = config.batch_items or self.usual_items
        self.batch_tokens = line.within(config.batch_tokens or self.usual_tokens)
        # Most servers of one's own answer one call after the other: a second one would only wait.
        alone = not line.place.known and "concurrency" not in config.limits.model_fields_set
        self.concurrency = 1 if alone else config.limits.concurrency
        room = (self.batch_items, self.batch_tokens)
        self._sizes = None if line.place.known else Sizes(room)
        self.ahead = 2 if line.place.known else 1
        self.ready()

    @abstractmethod
    def send(self, texts: list[str], purpose: Purpose) -> Received:
        """One HTTP attempt; whatever it raises is judged by `core.providers.calls.failure`."""

    def params(self, purpose: Purpose) -> JsonMap:
        """What a vector depends on besides the model and the text."""
        config = self._config
        asked = self.full_dim if config.cut == "here" else self.dim
        return {
            "dim": self.dim,
            "asked": asked,
            "type": self.input_type(purpose),
            "prefix": config.prefixes.get(purpose, ""),
        }

    def input_type(self, purpose: Purpose) -> str | None:
        """What the vendor calls a passage or a query; None = it is not told."""
        types = self._config.input_types if self._config.input_types is not None else self.usual_types
        return (types or {}).get(purpose)

    @property
    def asked_dim(self) -> int | None:
        """The dimension to ask the vendor for; None = not to be mentioned."""
        config = self._config
        return self.dim if config.cut == "vendor" and len(config.dims) > 1 else None

    def room(self) -> Room:
        """The most texts and tokens of the next batch: what the vendor takes, or what was found out."""
        return self._sizes.room() if self._sizes else super().room()

    def too_much(self, texts: Sequence[str]) -> None:
        """Take note that these texts were too much for one call."""
        if self._sizes:
            middle = len(texts) // 2
            self._sizes.at_most(middle, sum(map(self.count_tokens, texts[middle:])))

    def embed_batch(self, texts: Sequence[str], purpose: Purpose) -> Reply[Vectors]:
        """Embed a batch."""
        return self._ask(list(texts), purpose)

    def _ask(self, texts: list[str], purpose: Purpose) -> Reply[Vectors]:
        sent = [self._config.prefixes.get(purpose, "") + text for text in texts]
        tokens = sum(map(self._line.counter.count, sent))
        most = sum(map(self._line.counter.ceiling, sent))
        reply = self._line.caller.call(
            lambda: self.send(sent, purpose),
            tokens=tokens,
            items=len(sent),
            expected=[Amount(self.item, "input_tokens", most, Basis.MODELLED)],
            usage=lambda received: [self._used(received, tokens)],
            meter=self._line.wiring.meter,
            divisible=len(sent) > 1,
        )
        if self._sizes:
            self._sizes.took(tokens, reply.ms / 1000)
        return self._complete(texts, purpose, reply)

    def _used(self, received: Received, estimate: float) -> Amount:
        if received.tokens is None:
            return Amount(self.item, "input_tokens", estimate, Basis.MODELLED)
        return Amount(self.item, "input_tokens", float(received.tokens), Basis.MEASURED)

    def _complete(self, texts: list[str], purpose: Purpose, reply: Reply[Received]) -> Reply[Vectors]:
        """Put results in their places; where the vendor says which they are, only those missing are asked."""
        received = reply.value
        count = len(received.vectors)
        places = list(range(count)) if received.places is None else list(received.places)
        known = len(set(places)) == count and all(0 <= at < len(texts) for at in places)
        if not known or count == 0 or (count < len(texts) and received.places is None):
            raise ProviderError(
                f"{count} results came for {len(texts)} texts.",
                kind="count",
                where=self._config.name,
                do="Try again; if it stays so, this service cannot be used for this.",
            )
        rows = self._rows(received)
        if count == len(texts):
            return _as(reply, rows[np.argsort(places)])
        rest = [at for at in range(len(texts)) if at not in set(places)]
        more = self._ask([texts[at] for at in rest], purpose)
        whole = joined([_as(reply, rows), more])
        return _as(whole, whole.value[np.argsort([*places, *rest])])

    def _rows(self, received: Received) -> Vectors:
        rows = np.asarray(received.vectors, dtype=np.float32)
        if rows.ndim != 2:
            return rows
        # Some vendors send vectors whose length is off by rounding, or by design after a cut of theirs.
        wanted = self.dim if self._config.cut == "here" else rows.shape[1]
        return shortened(rows, wanted, scale=self.normalised)


def _as(reply: Reply[Any], value: Vectors) -> Reply[Vectors]:
    return Reply(value, reply.usage, reply.ms, reply.waited_ms, reply.attempts, reply.fresh)
