"""Any service that speaks OpenAI's chat completions: OpenAI itself, or a server at another address.

A server at another address is sent a key only when its configuration names one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from core.errors import ProviderError
from core.providers.base import Amount, Reply, carrying
from core.providers.calls import call_key, text_hash
from core.providers.calls.journal import once
from core.providers.chat.ask import Chat, chars_per_second
from core.providers.config import ModelConfig
from core.providers.remote import Remote, Wired
from core.records import Basis, JsonMap, now

_MESSAGE_TOKENS = 8  # Tokens that a message costs beside its text, with a margin


@dataclass(frozen=True, slots=True)
class _Answer:
    text: str
    input_tokens: float | None
    output_tokens: float | None
    finish_reason: str


class OpenAIChat(Remote, Chat):
    """A model of a service that speaks OpenAI's protocol."""

    def __init__(self, config: ModelConfig, wired: Wired) -> None:
        self._reach(config, wired)
        self._journal = wired.get("journal")
        self.context_tokens = config.max_tokens
        self.concurrency = config.limits.concurrency

    def complete(
        self,
        system: str,
        user: str,
        *,
        max_tokens: int,
        temperature: float = 0.0,
        json_schema: JsonMap | None = None,
        extra: str = "",
    ) -> Reply[str]:
        """Answer one message; see `Chat.complete`. A stored answer is not paid again."""
        params = self._params(max_tokens, temperature, json_schema)
        key = call_key(self.provider, self.name, params, [text_hash(system), text_hash(user)], extra)
        ask = lambda: self._ask(system, user, params)  # noqa: E731
        return once(self._journal, key, lambda text: isinstance(text, str), ask)

    def _params(self, max_tokens: int, temperature: float, json_schema: JsonMap | None) -> dict[str, Any]:
        """Return the request's fields beside the texts; the answer depends on them."""
        options = self._config.chat
        params: dict[str, Any] = {options.answer_limit: max_tokens + options.thinking_tokens}
        if options.temperature:
            params["temperature"] = temperature
        if json_schema is not None and options.json_mode == "schema":
            schema = {"name": "answer", "schema": dict(json_schema), "strict": True}
            params["response_format"] = {"type": "json_schema", "json_schema": schema}
        elif json_schema is not None and options.json_mode == "object":
            params["response_format"] = {"type": "json_object"}
        return params

    def _ask(self, system: str, user: str, params: dict[str, Any]) -> Reply[str]:
        limit = params[self._config.chat.answer_limit]
        texts = (system, user)
        asked = sum(self.counter.count(text) + _MESSAGE_TOKENS for text in texts)
        most = sum(self.counter.ceiling(text) + _MESSAGE_TOKENS for text in texts)
        reply = self._caller.call(
            lambda: self._send(system, user, params),
            tokens=asked + limit,
            expected=self.expected(most, limit),
            usage=lambda answer: self._used(answer, asked),
            meter=self._meter,
        )
        answer = reply.value
        characters = len(answer.text)
        details = {
            "characters": characters,
            "chars_per_second": chars_per_second(characters, reply.ms),
            "finish_reason": answer.finish_reason,
            "at": now().isoformat(),
        }
        return carrying(reply, answer.text, details)

    def _send(self, system: str, user: str, params: dict[str, Any]) -> _Answer:
        messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
        answer = self.client.chat.completions.create(
            model=self._config.model, messages=messages, timeout=self._caller.timeout_s, **params
        )
        if not answer.choices:
            raise ProviderError("The answer holds no message.", kind="count", where=self.name)
        choice, usage = answer.choices[0], answer.usage
        return _Answer(
            choice.message.content or "",
            usage.prompt_tokens if usage else None,
            usage.completion_tokens if usage else None,
            choice.finish_reason or "",
        )

    def _used(self, answer: _Answer, asked: float) -> Sequence[Amount]:
        said = (answer.input_tokens, answer.output_tokens)
        guessed = self.expected(asked, self.counter.count(answer.text))
        return [
            guess if n is None else Amount(self.item, guess.unit, float(n), Basis.MEASURED)
            for n, guess in zip(said, guessed, strict=True)
        ]
