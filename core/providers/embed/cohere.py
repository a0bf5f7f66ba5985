"""Cohere's embedding models, through the second version of its API.

Dimensions and the 96 texts of a call: docs.cohere.com, "Embed"; 2,000 texts a minute: "Rate limits"; read in
November 2026. Tokens are counted by the vendor: its vocabularies are not at hand here.
"""

from __future__ import annotations

from typing import Any

from core.providers.base import Purpose
from core.providers.calls import Limits, Secret
from core.providers.config import ModelConfig
from core.providers.embed.remote import Received, RemoteEmbedder
from core.providers.remote import cohere_client

_LIMITS = Limits(items_per_minute=2000)


def _third(name: str, dim: int) -> ModelConfig:
    return ModelConfig(
        provider="cohere", model=name, dims=(dim,), normalised=False, max_tokens=512, limits=_LIMITS
    )


CATALOGUE = (
    ModelConfig(
        provider="cohere",
        model="embed-v4.0",
        dims=(256, 512, 1024, 1536),
        matryoshka=True,
        max_tokens=128_000,
        limits=_LIMITS,
    ),
    _third("embed-english-v3.0", 1024),
    _third("embed-multilingual-v3.0", 1024),
    _third("embed-english-light-v3.0", 384),
    _third("embed-multilingual-light-v3.0", 384),
)


class CohereEmbedder(RemoteEmbedder):
    """One of Cohere's models."""

    usual_items = 96
    usual_types = {Purpose.PASSAGE: "search_document", Purpose.QUERY: "search_query"}  # noqa: RUF012

    def connect(self, key: Secret | None) -> Any:  # noqa: ANN401
        """Make the client."""
        return cohere_client(self._line, key)

    def send(self, texts: list[str], purpose: Purpose) -> Received:
        """One attempt."""
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
        return Received(answer.embeddings.float_, billed.input_tokens if billed else None)
