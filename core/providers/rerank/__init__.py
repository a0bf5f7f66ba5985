"""Rerankers: one class per vendor or local engine, one line each in the registry.

A model is named as in papers and price books ("rerank-2.5"), a chat model's way of reranking by the way and
the chat model ("rebel-one-turn:gpt-4o-mini"); any other is given by a `ModelConfig`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Unpack

from core.plugins import loaded, subclass_of
from core.providers.chat import chat_config, make_chat
from core.providers.chat.ask import Chat
from core.providers.config import ModelConfig, named, vendor_models
from core.providers.remote import Wired
from core.providers.rerank import by_chat, lexical, local, remote, surface
from core.providers.rerank.base import Reranked, Reranker, Scores
from core.providers.rerank.criteria import Criteria, own_criteria

__all__ = [
    "BY_CHAT",
    "PROVIDERS",
    "RERANKERS",
    "Reranked",
    "Reranker",
    "Scores",
    "make_reranker",
    "reranker_config",
]

RERANKERS: Mapping[str, ModelConfig] = MappingProxyType(
    {
        **{
            name: ModelConfig(provider=name, model=name)
            for name in ("none", "bm25", "tf-idf", "rebel-rules", "fake")
        },
        **vendor_models("rerank"),
    }
)
"""The models that are known by name."""

_OWN = {
    "voyage": remote.VoyageReranker,
    "cohere": remote.CohereReranker,
    "onnx": local.OnnxReranker,
    "late-interaction": local.LateInteractionReranker,
    "sentence-transformers": local.SentenceTransformersReranker,
    "none": local.NoReranker,
    "bm25": lexical.Bm25Reranker,
    "tf-idf": lexical.TfIdfReranker,
    "rebel-rules": surface.SurfaceReranker,
    "fake": local.FakeReranker,
}

PROVIDERS: Mapping[str, Callable[[ModelConfig, Wired], Reranker]] = MappingProxyType(
    {**_OWN, **loaded("clq.providers", subclass_of(Reranker), _OWN, part="rerank")}
)
"""Values that `ModelConfig.provider` may have for a reranker that is not a chat model."""

BY_CHAT: Mapping[str, Callable[[Chat, Criteria, int], by_chat.ChatReranker]] = MappingProxyType(
    {kind.method: kind for kind in by_chat.KINDS}
)
"""Ways of reranking by a chat model; a reranker is named "<way>:<chat model>"."""


def reranker_config(
    model: str | ModelConfig, models: Mapping[str, ModelConfig] | None = None
) -> tuple[str, ModelConfig]:
    """Return a reranker's configuration before it is made; needs neither a key nor a package.

    Args:
        model: A key of `models` or of `RERANKERS`, a way of `BY_CHAT` with the name of a chat model, or a
            configuration.

    Returns:
        The way of `BY_CHAT`, or "" for others; and the model, or the chat model for such a way.

    Raises:
        UnknownNameError: If the name, the way or the provider is not known.
    """
    known = {**RERANKERS, **(models or {})}
    if isinstance(model, str) and model not in known:
        way, _, chat = model.partition(":")
        if way in BY_CHAT:
            return way, chat_config(chat, models)
    return "", named(model, known, PROVIDERS, "reranker", [f"{way}:<chat model>" for way in BY_CHAT])


def make_reranker(
    model: str | ModelConfig,
    *,
    models: Mapping[str, ModelConfig] | None = None,
    ready: bool = True,
    **wired: Unpack[Wired],
) -> Reranker:
    """Make a reranker.

    Args:
        ready: Whether to look up the key, or load the model, at once; False = only to plan with it, as its
            attributes, `expected` and `count_tokens` need neither.

    Raises:
        UnknownNameError: If the name, the way or the provider is not registered.
        ProviderError: If there is no key, or a package that it needs is not installed.
        InputError: If a file of a local model is missing.
    """
    way, config = reranker_config(model, models)
    if way:  # the chat model stores its replies, so that the reranker need not
        chat = make_chat(config, ready=False, **wired)
        asked = BY_CHAT[way](chat, own_criteria(config.criteria), config.rounds)
        asked.reasons = config.reasons
        reranker: Reranker = asked
    else:
        reranker = PROVIDERS[config.provider](config, wired)
    if ready:
        reranker.ready()
    return reranker
