"""Vendors' embedders: their common base, and the HTTP request of each.

Sources, read in November 2026: docs.voyageai.com, "Text embeddings"; docs.cohere.com, "Embed" (96 texts per
call); platform.openai.com, "Vector embeddings" and the API reference. Any service may speak OpenAI's
protocol; a server at another address is sent a key only if its configuration names one. Cohere counts tokens
itself: its vocabularies are not available here.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from core.arrays import Vectors
from core.errors import InputError
from core.providers.base import Amount, Purpose, Reply, carrying, joined
from core.providers.config import ModelConfig
from core.providers.embed.base import Embedder
from core.providers.embed.batches import Room, Sizes, require_dim, shortened
from core.providers.remote import Remote, Wired
from core.records import Basis, JsonMap


@dataclass(frozen=True, slots=True)
class ReceivedVectors:
    """Contents of one answer of a vendor."""

    vectors: Sequence[Sequence[float]]  # one row of numbers per result
    tokens: float | None  # the vendor's count, or None if it did not state one
    places: Sequence[int] | None = None  # which text each result belongs to, if the vendor states it


class RemoteEmbedder(Remote, Embedder):
    """A vendor's model."""

    usual_items = 100
    usual_tokens: int | None = None
    usual_types: dict[Purpose, str] | None = None

    def __init__(self, config: ModelConfig, dim: int | None, wired: Wired) -> None:
        dim = config.default_dim if dim is None else dim
        if dim is None:
            raise InputError(
                f"The dimension of {config.name} is not known.",
                where="dim",
                do="Give dim, or dims of the model.",
            )
        if config.dims:
            require_dim(config.name, dim, config.dims)
        self._reach(config, wired)
        self.dim, self.full_dim = dim, config.full_dim(dim)
        self.normalised, known = config.normalised, self._place.known
        self.batch_items = config.batch_items or self.usual_items
        self.batch_tokens = self._within(config.batch_tokens or self.usual_tokens)
        # Most private servers answer one call after the other: a second one would only wait.
        alone = not known and "concurrency" not in config.limits.model_fields_set
        self.concurrency = 1 if alone else config.limits.concurrency
        self._sizes = None if known else Sizes((self.batch_items, self.batch_tokens))
        self.ahead = 2 if known else 1
        self.ready()

    @abstractmethod
    def send(self, texts: list[str], purpose: Purpose) -> ReceivedVectors:
        """Make one HTTP attempt; whatever it raises is judged by `core.providers.calls.failure`."""

    def params(self, purpose: Purpose) -> JsonMap:
        """Return what a vector depends on besides the model and the text."""
        config = self._config
        asked = self.full_dim if config.cut == "here" else self.dim
        return {
            "dim": self.dim,
            "asked": asked,
            "type": self.input_type(purpose),
            "prefix": config.prefixes.get(purpose, ""),
        }

    def input_type(self, purpose: Purpose) -> str | None:
        """Return the vendor's word for a passage or a query; None = it is not sent."""
        types = self._config.input_types if self._config.input_types is not None else self.usual_types
        return (types or {}).get(purpose)

    @property
    def asked_dim(self) -> int | None:
        """The dimension to ask the vendor for; None = not to be mentioned."""
        config = self._config
        return self.dim if config.cut == "vendor" and len(config.dims) > 1 else None

    def room(self) -> Room:
        """Return the most texts and tokens of a batch: the vendor's limit, or one learned from errors."""
        return self._sizes.room() if self._sizes else super().room()

    def too_much(self, texts: Sequence[str]) -> None:
        """Record that these texts were too much for one call."""
        if self._sizes:
            middle = len(texts) // 2
            self._sizes.at_most(middle, sum(map(self.count_tokens, texts[middle:])))

    def embed_batch(self, texts: Sequence[str], purpose: Purpose) -> Reply[Vectors]:
        """Embed a batch; ask again only for what the vendor leaves out."""
        sent = [self._config.prefixes.get(purpose, "") + text for text in texts]
        tokens = sum(map(self.counter.count, sent))
        most = sum(map(self.counter.ceiling, sent))
        reply = self._caller.call(
            lambda: self.send(sent, purpose),
            tokens=tokens,
            items=len(sent),
            expected=[Amount(self.item, "input_tokens", most, Basis.MODELLED)],
            usage=lambda received: [self._used(received, tokens)],
            meter=self._meter,
            divisible=len(sent) > 1,
        )
        if self._sizes:
            self._sizes.took(tokens, reply.ms / 1000)
        return self._complete(texts, purpose, reply)

    def _used(self, received: ReceivedVectors, estimate: float) -> Amount:
        if received.tokens is None:
            return Amount(self.item, "input_tokens", estimate, Basis.MODELLED)
        return Amount(self.item, "input_tokens", float(received.tokens), Basis.MEASURED)

    def _complete(
        self, texts: Sequence[str], purpose: Purpose, reply: Reply[ReceivedVectors]
    ) -> Reply[Vectors]:
        """Assign results to texts; if the vendor states which is which, retry only missing texts."""
        received = reply.value
        count = len(received.vectors)
        places = list(range(count)) if received.places is None else list(received.places)
        self._require_places(places, texts, whole=received.places is None)
        rows = self._rows(received)
        if count == len(texts):
            return carrying(reply, rows[np.argsort(places)])
        rest = [at for at in range(len(texts)) if at not in set(places)]
        more = self.embed_batch([texts[at] for at in rest], purpose)
        both = np.concatenate([rows, more.value])
        return joined([reply, more], both[np.argsort([*places, *rest])])

    def _rows(self, received: ReceivedVectors) -> Vectors:
        rows = self._numbers(received.vectors, np.float32)
        if rows.ndim != 2:
            return rows
        # Some vendors' vectors are not of unit length, because of rounding, or by design after shortening.
        wanted = self.dim if self._config.cut == "here" else rows.shape[1]
        return shortened(rows, wanted, scale=self.normalised)


class VoyageEmbedder(RemoteEmbedder):
    """One of Voyage's models; vectors have unit length."""

    usual_items = 1000
    usual_tokens = 120_000
    usual_types = {Purpose.PASSAGE: "document", Purpose.QUERY: "query"}  # noqa: RUF012

    def send(self, texts: list[str], purpose: Purpose) -> ReceivedVectors:
        """Return one attempt."""
        answer = self.client.embed(
            texts,
            model=self._config.model,
            input_type=self.input_type(purpose),
            truncation=True,
            output_dimension=self.asked_dim,
        )
        return ReceivedVectors(answer.embeddings, answer.total_tokens)


class CohereEmbedder(RemoteEmbedder):
    """One of Cohere's models, through the second version of its API."""

    usual_items = 96
    usual_types = {Purpose.PASSAGE: "search_document", Purpose.QUERY: "search_query"}  # noqa: RUF012

    def send(self, texts: list[str], purpose: Purpose) -> ReceivedVectors:
        """Return one attempt."""
        optional = {} if self.asked_dim is None else {"output_dimension": self.asked_dim}
        answer = self.client.embed(
            model=self._config.model,
            texts=texts,
            input_type=self.input_type(purpose),
            embedding_types=["float"],
            truncate="END",
            **optional,
        )
        billed = answer.meta.billed_units if answer.meta else None
        return ReceivedVectors(answer.embeddings.float_, billed.input_tokens if billed else None)


class OpenAIEmbedder(RemoteEmbedder):
    """A model of a service that speaks OpenAI's protocol."""

    usual_items = 2048
    usual_tokens = 300_000

    def send(self, texts: list[str], purpose: Purpose) -> ReceivedVectors:
        """Return one attempt."""
        optional: dict[str, Any] = {} if self.asked_dim is None else {"dimensions": self.asked_dim}
        word = self.input_type(purpose)
        if word is not None:  # not OpenAI's own, but many servers distinguish passages and queries so
            optional["extra_body"] = {"input_type": word}
        answer = self.client.embeddings.create(
            model=self._config.model, input=texts, timeout=self._caller.timeout_s, **optional
        )
        tokens = answer.usage.prompt_tokens if answer.usage else None
        return ReceivedVectors(
            [entry.embedding for entry in answer.data], tokens, [entry.index for entry in answer.data]
        )
