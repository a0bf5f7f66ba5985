"""Cohere's rerankers, through the second version of its API.

1,000 passages a call and 4,096 tokens of each by default: docs.cohere.com, "Rerank" and the API reference,
read in November 2026. Up to the fourth generation a query with up to 100 passages is one search unit, a
passage longer than 500 tokens (query included) counting once per started 500; the fifth is billed by tokens.
Tokens are counted by the vendor: its vocabularies are not at hand here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from core.prices.calculator import TOKENS_PER_DOCUMENT, search_units
from core.providers.base import Amount
from core.providers.calls import Limits, Secret
from core.providers.config import ModelConfig
from core.providers.remote import cohere_client
from core.providers.rerank.places import Received, RemoteReranker
from core.records import Basis

_READ_TOKENS = 4096
_BY_TOKENS = "rerank-v5"
_LIMITS = Limits(requests_per_minute=1000)


def _model(name: str, max_tokens: int) -> ModelConfig:
    return ModelConfig(provider="cohere", model=name, max_tokens=max_tokens, limits=_LIMITS)


CATALOGUE = (
    _model("rerank-v5.0-pro", 32_768),
    _model("rerank-v5.0-fast", 32_768),
    _model("rerank-v4.0-pro", 32_768),
    _model("rerank-v4.0-fast", 32_768),
    _model("rerank-v3.5", 4_096),
    _model("rerank-english-v3.0", 4_096),
    _model("rerank-multilingual-v3.0", 4_096),
)


class CohereReranker(RemoteReranker):
    """One of Cohere's models."""

    def connect(self, key: Secret | None) -> Any:  # noqa: ANN401
        """Make the client."""
        return cohere_client(self._line, key)

    def send(self, query: str, passages: list[str]) -> Received:
        """One attempt."""
        answer = self.client.rerank(
            model=self._config.model, query=query, documents=passages, max_tokens_per_doc=_READ_TOKENS
        )
        billed = answer.meta.billed_units if answer.meta else None
        return Received(
            [each.index for each in answer.results],
            [each.relevance_score for each in answer.results],
            self._billed(billed),
        )

    def expected(self, query_tokens: float, passage_tokens: Sequence[float]) -> tuple[Amount, ...]:
        """Search units, or tokens, of one query."""
        read = [min(query_tokens + tokens, _READ_TOKENS) for tokens in passage_tokens]
        if self._config.model.startswith(_BY_TOKENS):
            return (Amount(self.item, "input_tokens", float(sum(read)), Basis.MODELLED),)
        parts = sum(max(1, math.ceil(tokens / TOKENS_PER_DOCUMENT)) for tokens in read)
        return (Amount(self.item, "search_units", search_units(parts), Basis.MODELLED),)

    def _billed(self, billed: Any) -> list[Amount] | None:  # noqa: ANN401 - the client's type
        """What the vendor says it bills, in its own units; None when it says nothing."""
        said = [(unit, getattr(billed, unit, None)) for unit in ("search_units", "input_tokens")]
        amounts = [Amount(self.item, unit, float(n), Basis.MEASURED) for unit, n in said if n is not None]
        return amounts or None
