"""Any service that speaks OpenAI's embeddings API: OpenAI itself, or a server at another address.

Dimensions and limits: platform.openai.com, "Vector embeddings" and the API reference, read in November 2026.
A server at another address is sent a key only when its configuration names one.
"""

from __future__ import annotations

from typing import Any

from core.providers.base import Purpose
from core.providers.calls import Limits, Secret
from core.providers.config import ModelConfig
from core.providers.embed.remote import Received, RemoteEmbedder
from core.providers.remote import openai_client

_LIMITS = Limits(requests_per_minute=3000, tokens_per_minute=1_000_000)


def _model(name: str, dims: tuple[int, ...]) -> ModelConfig:
    return ModelConfig(
        provider="openai",
        model=name,
        dims=dims,
        matryoshka=True,
        tokenizer="cl100k_base",
        max_tokens=8191,
        limits=_LIMITS,
    )


CATALOGUE = (
    _model("text-embedding-3-small", (256, 512, 1024, 1536)),
    _model("text-embedding-3-large", (256, 512, 1024, 1536, 3072)),
)


class OpenAIEmbedder(RemoteEmbedder):
    """A model of a service that speaks OpenAI's language."""

    usual_items = 2048
    usual_tokens = 300_000

    def connect(self, key: Secret | None) -> Any:  # noqa: ANN401
        """Make the client."""
        return openai_client(self._line, key)

    def send(self, texts: list[str], purpose: Purpose) -> Received:
        """One attempt."""
        optional: dict[str, Any] = {} if self.asked_dim is None else {"dimensions": self.asked_dim}
        word = self.input_type(purpose)
        if word is not None:  # not OpenAI's own, but many servers tell passages and queries apart so
            optional["extra_body"] = {"input_type": word}
        answer = self.client.embeddings.create(
            model=self._config.model, input=texts, timeout=self._line.caller.timeout_s, **optional
        )
        tokens = answer.usage.prompt_tokens if answer.usage else None
        return Received(
            [each.embedding for each in answer.data], tokens, [each.index for each in answer.data]
        )
