"""Chat models: one class per vendor or local engine, one line each in the registry.

A model is named as in price books ("gpt-4o-mini"); any other is given by a `ModelConfig`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Unpack

from core.plugins import loaded, subclass_of
from core.providers.chat import openai
from core.providers.chat.ask import Chat
from core.providers.chat.fake import FakeChat
from core.providers.config import ModelConfig, named, vendor_models
from core.providers.remote import Wired

__all__ = ["CHATS", "PROVIDERS", "Chat", "FakeChat", "chat_config", "make_chat"]

CHATS: Mapping[str, ModelConfig] = MappingProxyType(
    {"fake": ModelConfig(provider="fake", model="fake"), **vendor_models("chat")}
)
"""The models that are known by name."""

_OWN = {
    "openai": openai.OpenAIChat,
    "fake": lambda _config, _wired: FakeChat(),
}

PROVIDERS: Mapping[str, Callable[[ModelConfig, Wired], Chat]] = MappingProxyType(
    {**_OWN, **loaded("clq.providers", subclass_of(Chat), _OWN, part="chat")}
)
"""Values that `ModelConfig.provider` may have for a chat model."""


def chat_config(model: str | ModelConfig, models: Mapping[str, ModelConfig] | None = None) -> ModelConfig:
    """Return a model's configuration before it is made; needs neither a key nor a package.

    Raises:
        UnknownNameError: If the name is in neither `models` nor `CHATS`, or the provider not in `PROVIDERS`.
    """
    return named(model, {**CHATS, **(models or {})}, PROVIDERS, "chat model")


def make_chat(
    model: str | ModelConfig,
    *,
    models: Mapping[str, ModelConfig] | None = None,
    ready: bool = True,
    **wired: Unpack[Wired],
) -> Chat:
    """Make a chat model.

    Args:
        ready: Whether to look up the key at once; planning with False needs no key.

    Raises:
        UnknownNameError: If the name or the provider is not registered.
        ProviderError: If there is no key, or a package that it needs is not installed.
    """
    config = chat_config(model, models)
    chat = PROVIDERS[config.provider](config, wired)
    if ready:
        chat.ready()
    return chat
