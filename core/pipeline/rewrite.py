"""What is done to a query before it is searched: nothing, hygiene, rules, or a rewrite by a chat model.

The last follows the CLQ paper, §4.4.1: extract the core information need and restate it. A rewrite that
cannot be used never reaches the search: the cleaned query is taken instead, and the details say why.
"""

from __future__ import annotations

import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from types import MappingProxyType

from core.errors import UnknownNameError
from core.pipeline.denoise import denoise, hygiene
from core.providers.base import Amount, Meter, Reply, carrying
from core.providers.calls import Caller, Journal, Keys
from core.providers.chat import Chat, chat_config, make_chat
from core.providers.chat.ask import Task, ask
from core.providers.chat.marks import NOTICE, mark_for, marked
from core.providers.chat.reading import Reading, bare, json_value, object_schema
from core.providers.config import ModelConfig
from core.records import Basis

BY_CHAT = "chat"
"""A rewrite by a chat model is named "chat:<chat model>"."""

_LONGEST = 200  # characters that a rewrite may always have
_LONGEST_RATIO = 2  # beyond them, how many times the query's own length
_ANSWER_TOKENS = 400
_WORD = re.compile(r"\w")
_LABEL = re.compile(r"\A(?:search )?(?:query|question)\s*:\s*", re.IGNORECASE)
_QUOTED = re.compile(r"\A[\"“«](.*)[\"”»]\Z", re.DOTALL)
_SCHEMA = object_schema({"query": {"type": "string"}})

_SYSTEM = f"""You prepare questions for a search engine. You are given what a person typed; you write down the
information that the person needs, as one clear search query.

{NOTICE}

- Leave out greetings, thanks, apologies, filler words, emoji, and whatever the person tells about themselves
  that does not change what is to be found.
- Keep every name, number, date, code, quoted term, negation and condition exactly as it is written.
- Keep the language of the question. Spell out what "it" or "this" refers to where the text itself says so.
- Add nothing: no synonyms, no explanations, no guesses. Never answer the question.
- If it is already clear, repeat it unchanged.

Answer with the query alone, on one line, without quotation marks.
If you are asked for JSON: {{"query": "…"}}"""


class Rewrite(ABC):
    """Turns a query into the one that is searched.

    Attributes:
        name: As it stands in `Stack.spec["rewrite"]`.
        item: What price books name its usage.
        local: Whether it runs here, so that nothing is paid per call.
    """

    name: str
    item: str = "local-cpu"
    local: bool = True

    @abstractmethod
    def rewrite(self, query: str, *, extra: str = "") -> Reply[str]:
        """Rewrite a query.

        Args:
            query: As the person typed it.
            extra: Tells calls apart that are to be made again although nothing differs ("repeat 2").

        Returns:
            The text to search for. `details` hold "changed", and "fallback" with the reason where the
            rewrite could not be used and the cleaned query stands in for it.

        Raises:
            ProviderError: If a chat model gives no answer.
        """

    def expected(self, query: str) -> tuple[Amount, ...]:  # noqa: ARG002 - most use no more than time
        """Usage of rewriting a query, as an estimate."""
        return (Amount(self.item, "cpu_ms", None, Basis.MODELLED),)

    def ready(self) -> None:  # noqa: B027 - most are
        """Look up the key: whatever is missing is found before anything is asked."""

    def close(self) -> None:  # noqa: B027 - most have nothing to close
        """Let go of connections."""

    def interrupt(self) -> None:  # noqa: B027 - most wait for nobody
        """End waits for a vendor that are under way."""


class LocalRewrite(Rewrite):
    """A function of the text.

    Args:
        name: Registry name.
        change: The function; what it makes empty falls back to the cleaned query.
    """

    def __init__(self, name: str, change: Callable[[str], str]) -> None:
        self.name = name
        self._change = change

    def rewrite(self, query: str, *, extra: str = "") -> Reply[str]:  # noqa: ARG002
        """Apply the function, with the processor time that it took."""
        cpu, start = time.process_time(), time.perf_counter()
        text = self._change(query)
        details: dict[str, object] = {}
        if not text and query:
            text, details["fallback"] = hygiene(query), "nothing but small talk"
        ms, cpu_ms = (time.perf_counter() - start) * 1000, (time.process_time() - cpu) * 1000
        details["changed"] = text != query
        return Reply(text, (Amount(self.item, "cpu_ms", cpu_ms, Basis.MEASURED),), ms, details=details)


class ChatRewrite(Rewrite):
    """Extracts and restates the information need by a chat model.

    Args:
        chat: The model.
    """

    def __init__(self, chat: Chat) -> None:
        self.name = f"{BY_CHAT}:{chat.name}"
        self.item, self.local = chat.item, chat.local
        self._chat = chat

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
        """One prompt, and an answer as long as the query."""
        asked = self._task(hygiene(query))
        tokens = self._chat.count_tokens(asked.system) + self._chat.count_tokens(asked.user)
        return self._chat.expected(tokens, self._chat.count_tokens(query))

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
        mark = mark_for(clean)
        most = max(_LONGEST, _LONGEST_RATIO * len(clean))

        def read(answer: str) -> Reading[str]:
            return read_query(answer, most=most, mark=mark)

        return Task(_SYSTEM, marked("question", clean, mark), read, _ANSWER_TOKENS + len(clean), _SCHEMA)


def read_query(answer: str, *, most: int, mark: str) -> Reading[str]:
    """Read one query from JSON or from a single line.

    Args:
        answer: What the model said.
        most: The most characters of a query.
        mark: The mark around the question; an answer that repeats it is none.

    Returns:
        The query, cleaned; empty when the answer cannot be used, and the problem says why.
    """
    text = bare(answer)
    if text.startswith("{"):
        try:
            value = json_value(text)
        except ValueError:
            return Reading("", "it is not valid JSON", 0)
        found = value.get("query") if isinstance(value, Mapping) else None
        if not isinstance(found, str):
            return Reading("", 'it has no text "query"', 0)
        text = found
    elif len(text.splitlines()) > 1:
        return Reading("", "it is more than one line", 0)
    query = hygiene(_QUOTED.sub(r"\1", _LABEL.sub("", text.strip())))
    problem = ""
    if not _WORD.search(query):
        problem = "it is empty"
    elif len(query) > most:
        problem = f"it is longer than {most} characters"
    elif mark in query:
        problem = "it repeats the marks"
    return Reading("" if problem else query, problem, 0 if problem else 1)


def _told(query: str, text: str, reason: str) -> dict[str, object]:
    return {"changed": text != query} | ({"fallback": reason} if reason else {})


REWRITES: Mapping[str, Callable[[str], str]] = MappingProxyType(
    {"none": lambda query: query, "hygiene": hygiene, "rules": denoise}
)
"""Rewrites without a model: as it is; Unicode and white space; English and French small talk taken out."""


def rewrite_config(name: str, models: Mapping[str, ModelConfig] | None = None) -> ModelConfig | None:
    """The chat model behind a rewrite; needs no key.

    Args:
        name: A key of `REWRITES`, or "chat:<chat model>".
        models: Configurations of models that no catalogue has, by name.

    Returns:
        Its configuration; None for a rewrite without a model.

    Raises:
        UnknownNameError: If the name or the chat model is not known.
    """
    if name in REWRITES:
        return None
    way, _, chat = name.partition(":")
    if way != BY_CHAT:
        raise UnknownNameError("rewrite", name, [*REWRITES, f"{BY_CHAT}:<chat model>"])
    return chat_config(chat, models)


def make_rewrite(
    name: str,
    *,
    models: Mapping[str, ModelConfig] | None = None,
    keys: Keys | None = None,
    journal: Journal | None = None,
    meter: Meter | None = None,
    caller: Caller | None = None,
    ready: bool = True,
) -> Rewrite:
    """Make a rewrite.

    Args:
        name: See `rewrite_config`.
        models: See `rewrite_config`.
        keys: Where keys are looked up; the environment and secrets.toml by default.
        journal: Where replies of a chat model are kept and looked up.
        meter: What watches the spending.
        caller: Sends the calls of a remote model; the one that the process shares for it by default.
        ready: Look the key up at once; False = to plan with it, which needs no key.

    Raises:
        UnknownNameError: If the name or the chat model is not known.
        ProviderError: If there is no key, or a package that it needs is not installed.
    """
    config = rewrite_config(name, models)
    if config is None:
        return LocalRewrite(name, REWRITES[name])
    chat = make_chat(config, keys=keys, journal=journal, meter=meter, caller=caller, ready=ready)
    return ChatRewrite(chat)
