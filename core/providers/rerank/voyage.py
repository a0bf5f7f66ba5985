"""Voyage AI's rerankers, through its own client.

1,000 passages and 600,000 tokens a call (query tokens × passages + their tokens), context lengths and pace:
docs.voyageai.com, "Rerankers" and "Rate limits" (basic tier), read in November 2026. No limits of rerank-3
were found: those of rerank-2.5 are taken. Texts beyond the context length are cut by the vendor, which does
not say so. The second generation is counted with the vocabulary of the Voyage 3 family, of the same time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from core.providers.base import Amount
from core.providers.calls import Limits, Secret
from core.providers.config import ModelConfig
from core.providers.remote import voyage_client
from core.providers.rerank.places import Received, RemoteReranker
from core.records import Basis


def _model(name: str, max_tokens: int, tpm: int, tokenizer: str | None = "voyage3_base") -> ModelConfig:
    return ModelConfig(
        provider="voyage",
        model=name,
        tokenizer=tokenizer,
        max_tokens=max_tokens,
        limits=Limits(requests_per_minute=2000, tokens_per_minute=tpm),
    )


CATALOGUE = (
    # The vocabulary of the third generation is not at hand.
    _model("rerank-3", 32_000, 2_000_000, tokenizer=None),
    _model("rerank-3-lite", 32_000, 4_000_000, tokenizer=None),
    _model("rerank-2.5", 32_000, 2_000_000),
    _model("rerank-2.5-lite", 32_000, 4_000_000),
    _model("rerank-2", 16_000, 2_000_000),
    _model("rerank-2-lite", 8_000, 4_000_000),
)


class VoyageReranker(RemoteReranker):
    """One of Voyage's models; billed per token, the query's counted with every passage."""

    usual_tokens = 600_000

    def connect(self, key: Secret | None) -> Any:  # noqa: ANN401
        """Make the client."""
        return voyage_client(self._line, key)

    def send(self, query: str, passages: list[str]) -> Received:
        """One attempt."""
        answer = self.client.rerank(query, passages, model=self._config.model, truncation=True)
        used = Amount(self.item, "input_tokens", float(answer.total_tokens), Basis.MEASURED)
        return Received(
            [each.index for each in answer.results], [each.relevance_score for each in answer.results], [used]
        )

    def expected(self, query_tokens: float, passage_tokens: Sequence[float]) -> tuple[Amount, ...]:
        """Query tokens × passages + their tokens."""
        tokens = query_tokens * len(passage_tokens) + sum(passage_tokens)
        return (Amount(self.item, "input_tokens", float(tokens), Basis.MODELLED),)
