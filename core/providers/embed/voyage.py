"""Voyage AI's embedding models, through its own client.

Dimensions, batch limits and pace: docs.voyageai.com, "Text embeddings" and "Rate limits" (basic tier), read
in November 2026. Vectors have unit length; 256 to 2048 dimensions are Matryoshka.
"""

from __future__ import annotations

from typing import Any

from core.providers.base import Purpose
from core.providers.calls import Limits, Secret
from core.providers.config import ModelConfig
from core.providers.embed.remote import Received, RemoteEmbedder
from core.providers.remote import voyage_client

_DIMS = (256, 512, 1024, 2048)


def _model(name: str, batch_tokens: int, tpm: int, tokenizer: str | None = "voyage3_base") -> ModelConfig:
    return ModelConfig(
        provider="voyage",
        model=name,
        dim=1024,
        dims=_DIMS,
        matryoshka=True,
        tokenizer=tokenizer,
        batch_tokens=batch_tokens,
        max_tokens=32_000,
        limits=Limits(requests_per_minute=2000, tokens_per_minute=tpm),
    )


CATALOGUE = (
    _model("voyage-3-large", 120_000, 3_000_000),
    _model("voyage-3.5", 320_000, 8_000_000),
    _model("voyage-3.5-lite", 1_000_000, 16_000_000),
    _model("voyage-code-3", 120_000, 3_000_000),
    # The vocabulary of the fourth generation is not at hand.
    _model("voyage-4-large", 120_000, 3_000_000, tokenizer=None),
    _model("voyage-4", 320_000, 8_000_000, tokenizer=None),
    _model("voyage-4-lite", 1_000_000, 16_000_000, tokenizer=None),
)


class VoyageEmbedder(RemoteEmbedder):
    """One of Voyage's models."""

    usual_items = 1000
    usual_tokens = 120_000
    usual_types = {Purpose.PASSAGE: "document", Purpose.QUERY: "query"}  # noqa: RUF012

    def connect(self, key: Secret | None) -> Any:  # noqa: ANN401
        """Make the client."""
        return voyage_client(self._line, key)

    def send(self, texts: list[str], purpose: Purpose) -> Received:
        """One attempt."""
        answer = self.client.embed(
            texts,
            model=self._config.model,
            input_type=self.input_type(purpose),
            truncation=True,
            output_dimension=self.asked_dim,
        )
        return Received(answer.embeddings, answer.total_tokens)
