"""What is done to a query before it is searched: nothing, hygiene, rules, or a rewrite by a chat model.

What a chat model is asked for stands in `core.pipeline.query.ways`. A rewrite that cannot be used never
reaches the search: the cleaned query is taken instead, and the details say why.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Unpack

from core.errors import UnknownNameError
from core.pipeline.query.denoise import denoise, hygiene
from core.pipeline.query.ways import RESTATE, WAYS, way_of
from core.providers.base import Amount, Model, Reply, carrying, timed
from core.providers.chat import Chat, chat_config, make_chat
from core.providers.chat.ask import Task, ask, mark_for, marked
from core.providers.config import ModelConfig
from core.providers.remote import Wired
from core.records import Basis

_ANSWER_TOKENS = 400
_WORD = re.compile(r"\w")


class Rewrite(Model, ABC):
    """Turns a query into the one that is searched."""

    @abstractmethod
    def rewrite(self, query: str, *, extra: str = "") -> Reply[str]:
        """Rewrite a query."""

    def expected(self, query: str) -> tuple[Amount, ...]:  # noqa: ARG002 - most use no more than time
        """Usage of rewriting a query, as an estimate."""
        return (Amount(self.item, "cpu_ms", None, Basis.MODELLED),)


class LocalRewrite(Rewrite):
    """A function of the text."""

    def __init__(self, name: str, change: Callable[[str], str]) -> None:
        self.name = name
        self._change = change

    def rewrite(self, query: str, *, extra: str = "") -> Reply[str]:  # noqa: ARG002
        """Apply the function, with the processor time that it took."""
        reply = timed(lambda: self._change(query))
        text, details = reply.value, dict[str, object]()
        if not text and query:
            text, details["fallback"] = hygiene(query), "nothing but small talk"
        return carrying(reply, text, {**details, "changed": text != query})


class ChatRewrite(Rewrite):
    """Asks a chat model for what is to be searched."""

    def __init__(self, chat: Chat, way: str = RESTATE) -> None:
        self.name = f"{way}:{chat.name}"
        self.item, self.local = chat.item, chat.local
        self._chat, self._way = chat, WAYS[way]

    def rewrite(self, query: str, *, extra: str = "") -> Reply[str]:
        """Ask the model, once more if its answer cannot be used, and fall back to the cleaned query."""
        clean = hygiene(query)
        if not _WORD.search(clean):
            return Reply(clean, attempts=0, fresh=False, details=_told(query, clean, "it holds no word"))
        reply = ask(self._chat, self._task(clean), extra=extra)
        text = reply.value.value or clean
        reason = "" if reply.value.value else reply.value.problem
        return carrying(reply, text, {**reply.details, **_told(query, text, reason)})

    def expected(self, query: str) -> tuple[Amount, ...]:
        """One prompt, and an answer of the usual length."""
        asked = self._task(hygiene(query))
        tokens = self._chat.count_tokens(asked.system) + self._chat.count_tokens(asked.user)
        answer = self._way.answer(len(query)) / max(len(query), 1)
        return self._chat.expected(tokens, round(answer * self._chat.count_tokens(query)))

    def ready(self) -> None:
        """Look the chat model's key up."""
        self._chat.ready()

    def close(self) -> None:
        """Let go of the chat model's connections."""
        self._chat.close()

    def interrupt(self) -> None:
        """End waits that are under way."""
        self._chat.interrupt()

    def _task(self, clean: str) -> Task[str]:
        mark, way = mark_for(clean), self._way
        tokens = _ANSWER_TOKENS + way.answer(len(clean))
        return Task(
            way.system,
            marked("question", clean, mark),
            lambda answer: way.read(answer, clean, mark),
            tokens,
            way.schema,
        )


def _told(query: str, text: str, reason: str) -> dict[str, object]:
    return {"changed": text != query} | ({"fallback": reason} if reason else {})


REWRITES: Mapping[str, Callable[[str], str]] = MappingProxyType(
    {"none": lambda query: query, "hygiene": hygiene, "rules": denoise}
)
"""Rewrites without a model: as it is; Unicode and white space; English and French small talk taken out."""


def rewrite_config(name: str, models: Mapping[str, ModelConfig] | None = None) -> ModelConfig | None:
    """The chat model behind a rewrite; needs no key."""
    if name in REWRITES:
        return None
    way, _, chat = name.partition(":")
    if way not in WAYS:
        raise UnknownNameError("rewrite", name, [*REWRITES, *(f"{each}:<chat model>" for each in WAYS)])
    return chat_config(chat, models)


def make_rewrite(
    name: str,
    *,
    models: Mapping[str, ModelConfig] | None = None,
    ready: bool = True,
    **wired: Unpack[Wired],
) -> Rewrite:
    """Make a rewrite."""
    config = rewrite_config(name, models)
    if config is None:
        return LocalRewrite(name, REWRITES[name])
    chat = make_chat(config, ready=ready, **wired)
    return ChatRewrite(chat, way_of(name))
