"""Rewrites of a query before it is searched: none, hygiene, rules, or by a chat model.

A chat model may be asked to restate a query, to write a passage that answers it, or to vary it. A rewrite
that cannot be used never reaches the search: the cleaned query is taken instead, and the details say why.

Restating follows the CLQ paper, §4.4.1. A hypothetical passage (HyDE: Gao et al., 2023) is searched in place
of the query, by its words and by its vector; several queries are searched one by one and their rankings fused
by reciprocal rank. A reranker always judges against the query itself, restated or not.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Unpack

from core.errors import UnknownNameError
from core.pipeline.query.denoise import denoise, hygiene
from core.providers.base import Amount, Model, Reply, carrying, timed
from core.providers.chat import Chat, chat_config, make_chat
from core.providers.chat.ask import NOTICE, ByChat, ChatTask, ask, mark_for, marked
from core.providers.chat.reading import AnswerReading, bare, json_value, object_schema
from core.providers.config import ModelConfig
from core.providers.remote import Wired
from core.records import Basis, JsonMap

RESTATE, HYDE, MULTI_QUERY = "chat", "hyde", "multi-query"  # Ways; a rewrite is named "<way>:<chat model>"
QUERIES = 4
"""Queries that are searched under "multi-query": the one that was typed, and three that a model wrote."""

_LONGEST = 200  # characters that a rewritten query may always have
_LONGEST_RATIO = 2  # beyond them, how many times the query's own length
_LONGEST_PASSAGE = 3000
_WORD = re.compile(r"\w")
_LABEL = re.compile(r"\A(?:search )?(?:query|question)\s*:\s*", re.IGNORECASE)
_LISTED = re.compile(r"\A(?:[-*•]|\d+[.)])\s+")
_QUOTED = re.compile(r"\A[\"“«](.*)[\"”»]\Z", re.DOTALL)

_RESTATE = f"""\
You prepare questions for a search engine. You are given what a person typed; you write down the
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
_HYDE = f"""You help a search engine. You are given a question; you write the passage that a good document
would answer it with, so that real passages like it can be found.

{NOTICE}

- One paragraph of three to six sentences, in the language of the question and in the style of a document.
- Keep every name, number, date, code and quoted term of the question.
- Where you do not know, write what such a passage would plausibly say. Nobody reads it; it is only searched
  with.

Answer with the passage alone. If you are asked for JSON: {{"passage": "…"}}"""
_VARY = f"""You help a search engine. You are given a question; you write {QUERIES - 1} other search queries
that find passages which answer it.

{NOTICE}

- Each looks at the need from another side or says it in other words; each stands alone.
- Keep the language of the question, and its names, numbers, dates and codes wherever you use them.

Answer with one query on each line and nothing else. If you are asked for JSON: {{"queries": ["…", "…"]}}"""
_STRING = {"type": "string"}
_ANSWER_TOKENS = 400
REWRITES: Mapping[str, Callable[[str], str]] = MappingProxyType(
    {"none": lambda query: query, "hygiene": hygiene, "rules": denoise}
)
"""Rewrites without a model: none; cleaned Unicode and white space; English and French small talk removed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteWay:
    """A way to ask a chat model for a rewrite, and to read its answer."""

    system: str  # instructions
    schema: JsonMap  # what a JSON answer looks like
    read: Callable[[str, str, str], AnswerReading[str]]  # of answer, cleaned query, mark
    answer: Callable[[int], int]  # usual length of an answer in characters, given the query's


def way_of(name: str) -> str:
    """Return the method behind a rewrite's name, or the name itself if no model is used."""
    return name.partition(":")[0]


def read_query(answer: str, clean: str, mark: str) -> AnswerReading[str]:
    """Read one query from JSON or from a single line."""
    text, problem = _text(answer, "query")
    if not problem and len(text.splitlines()) > 1 and not bare(answer).startswith("{"):
        problem = "it is more than one line"
    query = hygiene(_QUOTED.sub(r"\1", _LABEL.sub("", text.strip())))
    return _usable(query, problem or _problem(query, _most(clean), mark))


def _usable(text: str, problem: str) -> AnswerReading[str]:
    return AnswerReading("" if problem else text, problem, 0 if problem else 1)


def _passage(answer: str, _: str, mark: str) -> AnswerReading[str]:
    text, problem = _text(answer, "passage")
    passage = hygiene(text)
    return _usable(passage, problem or _problem(passage, _LONGEST_PASSAGE, mark))


def _queries(answer: str, clean: str, mark: str) -> AnswerReading[str]:
    text = bare(answer)
    lines: object = text.splitlines()
    if text.startswith("{"):
        value = _value(text)
        lines = value.get("queries") if isinstance(value, Mapping) else None
    if not isinstance(lines, list):
        return _usable("", 'it has no list "queries"')
    lines = [line for line in lines if isinstance(line, str)]
    cleaned = (hygiene(_QUOTED.sub(r"\1", _LISTED.sub("", line.strip()))) for line in lines)
    usable = [
        query
        for query in dict.fromkeys(cleaned)
        if query != clean and not _problem(query, _most(clean), mark)
    ]
    problem = "" if usable else "it has no query that can be used"
    return _usable("\n".join([clean, *usable[: QUERIES - 1]]), problem)


def _text(answer: str, key: str) -> tuple[str, str]:
    """Return a plain text, or one under a JSON key, and the reason if there is none."""
    text = bare(answer)
    if not text.startswith("{"):
        return text, ""
    value = _value(text)
    if value is None:
        return "", "it is not valid JSON"
    stated = value.get(key) if isinstance(value, Mapping) else None
    return (stated, "") if isinstance(stated, str) else ("", f'it has no text "{key}"')


def _value(text: str) -> object:
    try:
        return json_value(text)
    except ValueError:
        return None


def _most(clean: str) -> int:
    return max(_LONGEST, _LONGEST_RATIO * len(clean))


def _problem(text: str, most: int, mark: str) -> str:
    if not _WORD.search(text):
        return "it is empty"
    if len(text) > most:
        return f"it is longer than {most} characters"
    return "it repeats the marks" if mark in text else ""


WAYS: Mapping[str, RewriteWay] = MappingProxyType(
    {
        RESTATE: RewriteWay(
            system=_RESTATE,
            schema=object_schema({"query": _STRING}),
            read=read_query,
            answer=lambda length: length,
        ),
        HYDE: RewriteWay(
            system=_HYDE,
            schema=object_schema({"passage": _STRING}),
            read=_passage,
            answer=lambda length: length + 500,
        ),
        MULTI_QUERY: RewriteWay(
            system=_VARY,
            schema=object_schema({"queries": {"type": "array", "items": _STRING}}),
            read=_queries,
            answer=lambda length: (QUERIES - 1) * length,
        ),
    }
)


class Rewrite(Model, ABC):
    """Turns a query into the one that is searched."""

    @abstractmethod
    def rewrite(self, query: str, *, extra: str = "") -> Reply[str]:
        """Rewrite a query."""

    def expected(self, query: str) -> tuple[Amount, ...]:  # noqa: ARG002 - most use no more than time
        """Estimate the usage of rewriting a query."""
        return (Amount(self.item, "cpu_ms", None, Basis.MODELLED),)


class LocalRewrite(Rewrite):
    """A function of the text."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._change = REWRITES[name]

    def rewrite(self, query: str, *, extra: str = "") -> Reply[str]:  # noqa: ARG002
        """Apply the function, with the processor time that it took."""
        reply = timed(lambda: self._change(query))
        text, details = reply.value, dict[str, object]()
        if not text and query:
            text, details["fallback"] = hygiene(query), "nothing but small talk"
        return carrying(reply, text, {**details, "changed": text != query})


class ChatRewrite(ByChat, Rewrite):
    """Asks a chat model for the text to search with."""

    def __init__(self, chat: Chat, way: str = RESTATE) -> None:
        super().__init__(chat)
        self.name, self._way = f"{way}:{chat.name}", WAYS[way]

    def rewrite(self, query: str, *, extra: str = "") -> Reply[str]:
        """Ask the model, once more if its answer cannot be used, and fall back to the cleaned query."""
        clean = hygiene(query)
        if not _WORD.search(clean):
            return Reply(clean, attempts=0, fresh=False, details=_details(query, clean, "it holds no word"))
        reply = ask(self.chat, self._task(clean), extra=extra)
        text = reply.value.value or clean
        reason = "" if reply.value.value else reply.value.problem
        return carrying(reply, text, {**reply.details, **_details(query, text, reason)})

    def expected(self, query: str) -> tuple[Amount, ...]:
        """Return one prompt, and an answer of the usual length."""
        tokens = self._task(hygiene(query)).tokens(self.chat)
        answer = self._way.answer(len(query)) / max(len(query), 1)
        return self.chat.expected(tokens, round(answer * self.chat.count_tokens(query)))

    def _task(self, clean: str) -> ChatTask[str]:
        mark, way = mark_for(clean), self._way
        asked, tokens = marked("question", clean, mark), _ANSWER_TOKENS + way.answer(len(clean))
        return ChatTask(way.system, asked, lambda answer: way.read(answer, clean, mark), tokens, way.schema)


def _details(query: str, text: str, reason: str) -> dict[str, object]:
    return {"changed": text != query} | ({"fallback": reason} if reason else {})


def rewrite_config(name: str, models: Mapping[str, ModelConfig] | None = None) -> ModelConfig | None:
    """Return the chat model behind a rewrite; needs no key."""
    if name in REWRITES:
        return None
    way, _, chat = name.partition(":")
    if way not in WAYS:
        raise UnknownNameError("rewrite", name, [*REWRITES, *(f"{known}:<chat model>" for known in WAYS)])
    return chat_config(chat, models)


def make_rewrite(
    name: str, *, models: Mapping[str, ModelConfig] | None = None, ready: bool = True, **wired: Unpack[Wired]
) -> Rewrite:
    """Make a rewrite."""
    config = rewrite_config(name, models)
    if config is None:
        return LocalRewrite(name)
    chat = make_chat(config, ready=ready, **wired)
    return ChatRewrite(chat, way_of(name))
