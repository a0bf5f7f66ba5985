"""REBEL's first turn: which qualities beyond relevance a good source for a question should have (§2.2)."""

from __future__ import annotations

import re
from collections.abc import Mapping

from core.providers.base import Amount, Reply
from core.providers.chat.ask import Task, ask
from core.providers.chat.base import Chat
from core.providers.chat.marks import NOTICE, mark_for, marked
from core.providers.chat.reading import Reading, bare, json_value, object_schema
from core.providers.rerank.criteria import Criterion

MOST_CRITERIA = 5
_LONGEST_NAME = 60
_LONGEST_MEANING = 300
_ANSWER_TOKENS = 600
_USUAL_ANSWER_TOKENS = 120
_LINE = re.compile(r"(?:\d{1,2}\s*[.):]|[-*])\s*([^:]{1,200}):\s*(\S.*)")
_SCHEMA = object_schema(
    {
        "criteria": {
            "type": "array",
            "items": object_schema({"name": {"type": "string"}, "meaning": {"type": "string"}}),
            "minItems": 1,
            "maxItems": MOST_CRITERIA,
        }
    }
)

SYSTEM = f"""You prepare the rating of sources. Given a question, you decide which qualities, beside being
relevant, make a text a good source for answering exactly this question.

{NOTICE}

Work out first what the question asks for and what an answer to it must stand on: facts that change,
disputed opinions, steps to follow, comparisons, definitions. Then choose 2 to {MOST_CRITERIA} qualities that
follow from it, the most important first. Each can be rated from 0 to 5 by reading a text; say what earns 5
and what earns 0. Do not name relevance itself, and do not answer the question.

Answer with one numbered line per quality and nothing else: a short name, a colon, what 5 and 0 mean.

Question: Is it safe to take ibuprofen with blood thinners?
1. Medical authority: 5: guidelines, trials or a drug's official leaflet; 0: hearsay or advertising.
2. Currency: 5: reflects present guidance; 0: superseded, or undated.
3. Risk detail: 5: names doses, patients at risk and what happens; 0: only "ask a doctor".

Question: Why did the Hanseatic League decline?
1. Historical detail: 5: dates, places and events that can be checked; 0: only generalities.
2. Range of explanations: 5: weighs several causes or schools; 0: one cause without discussion.

Question: How do I rename a column of a table in SQL without losing data?
1. Instruction: 5: complete commands that can be run; 0: says only that it is possible.
2. Coverage of systems: 5: tells differing databases or versions apart; 0: does not say what it is for.
3. Caution: 5: says what can go wrong and how to go back; 0: no word about it.

If you are asked for JSON: {{"criteria": [{{"name": "Currency", "meaning": "5: …; 0: …"}}]}}"""


def infer_criteria(chat: Chat, query: str, *, extra: str = "") -> Reply[Reading[tuple[Criterion, ...]]]:
    """Ask a chat model for the criteria of a query.

    Args:
        chat: The model.
        query: The query.
        extra: See `Chat.complete`.

    Returns:
        1 to `MOST_CRITERIA` criteria; none where nothing could be read, and the problem says why.
    """
    user = marked("question", query, mark_for(query))
    return ask(chat, Task(SYSTEM, user, read_criteria, _ANSWER_TOKENS, _SCHEMA), extra=extra)


def expected_criteria(chat: Chat, query_tokens: float) -> tuple[Amount, ...]:
    """Usage of the first turn, as an estimate."""
    return chat.expected(chat.count_tokens(SYSTEM) + query_tokens, _USUAL_ANSWER_TOKENS)


def read_criteria(answer: str) -> Reading[tuple[Criterion, ...]]:
    """Read criteria from JSON or numbered lines; the text in them is cut to a bounded length.

    Args:
        answer: What the model said.

    Returns:
        The criteria that can be used, and what is wrong with the answer.
    """
    text = bare(answer)
    pairs, problem = _json_pairs(text) if text[:1] in {"{", "["} else _line_pairs(text)
    criteria: dict[str, Criterion] = {}
    for name, meaning in pairs:
        short = " ".join(name.split())[:_LONGEST_NAME].strip(" *_")
        told = " ".join(meaning.split())[:_LONGEST_MEANING]
        if short and told and short.lower() != "relevance":
            criteria.setdefault(short.lower(), Criterion(short, told))
    found = tuple(criteria.values())
    if not found:
        problem = problem or "it names no quality"
    elif len(found) > MOST_CRITERIA:
        problem, found = f"it names more than {MOST_CRITERIA} qualities", found[:MOST_CRITERIA]
    return Reading(found, problem, len(found))


def _json_pairs(text: str) -> tuple[list[tuple[str, str]], str]:
    try:
        value = json_value(text)
    except ValueError:
        return [], "it is not valid JSON"
    given = value.get("criteria") if isinstance(value, Mapping) else value
    if not isinstance(given, list):
        return [], 'it has no list "criteria"'
    pairs = [
        (each["name"], each["meaning"])
        for each in given
        if isinstance(each, Mapping)
        and isinstance(each.get("name"), str)
        and isinstance(each.get("meaning"), str)
    ]
    return pairs, "" if len(pairs) == len(given) else "not every entry has a name and a meaning"


def _line_pairs(text: str) -> tuple[list[tuple[str, str]], str]:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    found = [match for line in lines if (match := _LINE.fullmatch(line))]
    pairs = [(match[1], match[2]) for match in found]
    wrong = len(lines) - len(found)
    return pairs, f"{wrong} of its lines are not a number, a name, a colon and a meaning" if wrong else ""
