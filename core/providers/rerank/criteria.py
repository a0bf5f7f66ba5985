"""Criteria that passages are rated on beyond relevance: five fixed ones, and those a first turn infers.

REBEL's first turn (LeVine and Varjavand, "Relevance isn't all you need", §2.2, E.1) infers which qualities
beyond relevance a good source should have, and the weight of each. The first turn for relevance alone (C.4)
infers what a passage must speak about; it has no worked examples, as in the paper. The prompts are ours.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from core.providers.base import Amount, Reply
from core.providers.chat.ask import NOTICE, Chat, ChatTask, ask, mark_for, marked
from core.providers.chat.reading import NUMBER, AnswerReading, bare, json_value, object_schema
from core.providers.config import RatedOn

WEIGHT = 0.5
"""The paper's weight in all of its experiments (§2.1, item 3)."""
HIGHEST_WEIGHT = 1.0
"""Our bound for weights that a model chooses: twice the paper's, so that no quality outweighs relevance."""
HIGHEST_RELEVANCE = 10
HIGHEST_CRITERION = 5
THRESHOLD = 3
"""The paper's figures: §2.1, items 2 and 3; E.2, instruction 1."""
AUTHORITY = "Authority"
MOST_CRITERIA = 5
USUAL_ANSWER_TOKENS = 120
_LONGEST_NAME = 60
_LONGEST_MEANING = 300
_ANSWER_TOKENS = 600
_LINE = re.compile(r"(?:\d{1,2}\s*[.):]|[-*])\s*([^:]{1,200}):\s*(\S.*)")
_WEIGHTED = re.compile(rf"(.*)\(\s*({NUMBER})\s*\)[\s*_]*")
_QUALITIES = f"""You prepare the rating of sources. Given a question, you decide which qualities, beside being
relevant, make a text a good source for answering exactly this question, and how much each counts.

{NOTICE}

Work out first what the question asks for and what an answer to it must stand on: facts that change,
disputed opinions, steps to follow, comparisons, definitions. Then choose 2 to {MOST_CRITERIA} qualities that
follow from it, the most important first. Each can be rated from 0 to 5 by reading a text; say what earns 5
and what earns 0. Give each a weight from 0 to {HIGHEST_WEIGHT:g}: the points that one point of its rating
adds to the text's relevance, which is rated from 0 to 10. 0.5 is usual; more for what an answer fails
without, less for what only helps. Do not name relevance itself, and do not answer the question.

Answer with one numbered line per quality and nothing else: a short name, its weight in parentheses, a colon,
what 5 and 0 mean.

Question: Is it safe to take ibuprofen with blood thinners?
1. Medical authority (0.9): 5: guidelines, trials or a drug's official leaflet; 0: hearsay or advertising.
2. Currency (0.5): 5: reflects present guidance; 0: superseded, or undated.
3. Risk detail (0.6): 5: names doses, patients at risk and what happens; 0: only "ask a doctor".

Question: Why did the Hanseatic League decline?
1. Historical detail (0.6): 5: dates, places and events that can be checked; 0: only generalities.
2. Range of explanations (0.5): 5: weighs several causes or schools; 0: one cause without discussion.

Question: How do I rename a column of a table in SQL without losing data?
1. Instruction (0.8): 5: complete commands that can be run; 0: says only that it is possible.
2. Coverage of systems (0.4): 5: tells differing databases or versions apart; 0: does not say what it is for.
3. Caution (0.3): 5: says what can go wrong and how to go back; 0: no word about it.

If you are asked for JSON: {{"criteria": [{{"name": "Currency", "meaning": "5: …; 0: …", "weight": 0.5}}]}}"""
_POINTS = f"""You prepare the rating of sources. Given a question, you decide what a text must speak about to
be relevant to exactly this question.

{NOTICE}

Work out first what the question asks for, what its words mean there, and which statements an answer must
rest on. Then name 1 to {MOST_CRITERIA} points that a relevant text speaks about, the most important first.
Relevance is all that counts: name nothing about a text's age, length, style or source. Do not answer the
question.

Answer with one numbered line per point and nothing else: a short name, a colon, what a text says that meets
it.
If you are asked for JSON: {{"criteria": [{{"name": "…", "meaning": "…"}}]}}"""
REFINE = """

Between the marks named earlier stands your earlier answer. Keep, word for word, what is right for the
question; correct, add or leave out only what makes the rating of sources better. Answer with the whole
again."""
"""Addition to the prompt of a further round (appendix G.2, progressive refinement)."""
_Entry = tuple[str, str, float | None]  # a name, a meaning, and a weight if it has a usable one


def composite(
    relevance: float, ratings: Sequence[float], weights: Sequence[float], *, threshold: float = THRESHOLD
) -> float:
    """Return the final score of a passage: relevance + Σ weight · rating (§2.1, item 3)."""
    if relevance < threshold:
        return -math.inf
    return relevance + math.fsum(weight * rating for weight, rating in zip(weights, ratings, strict=True))


@dataclass(frozen=True, slots=True)
class Criterion:
    """A quality of a passage beyond relevance, rated 0 to 5."""

    name: str  # one to a few words
    meaning: str  # what a high and a low rating mean
    weight: float = WEIGHT  # what a point of its rating adds to the score, 0 to `HIGHEST_WEIGHT`


Criteria = tuple[Criterion, ...]


def own_criteria(given: Sequence[RatedOn]) -> Criteria:
    """Return the criteria in a model's configuration."""
    return tuple(Criterion(each.name, each.meaning, each.weight) for each in given)


def told(
    criteria: Sequence[Criterion],
    origin: str,
    ratings: Sequence[Sequence[float] | None],
    reasons: Sequence[str | None] = (),
) -> dict[str, Any]:
    """Return the details of a reply that are needed to reweigh the ratings.

    Args:
        origin: As in the table "criteria".
        ratings: Per passage, in the order given: its relevance, then a rating on each criterion; the first
            alone if it was discarded, None if it cannot be read.
        reasons: Why, per passage, if the model was asked.
    """
    named = [[criterion.name, criterion.meaning, criterion.weight] for criterion in criteria]
    rows = [None if row is None else [float(rating) for rating in row] for row in ratings]
    why = {"reasons": list(reasons)} if any(reasons) else {}
    return {"rated": {"criteria": named, "origin": origin, "ratings": rows, **why}}


FIVE: tuple[Criterion, ...] = (
    Criterion("Depth", "5: treats the subject thoroughly, from several sides; 0: only touches it."),
    Criterion("Range of views", "5: gives several positions or sources; 0: knows only one side."),
    Criterion("Precision", "5: clear, concrete and to the point of the question; 0: vague or general."),
    Criterion(AUTHORITY, "5: a recognised, citable source speaks; 0: the source is unknown or doubtful."),
    Criterion("Currency", "5: current, refers to recent work, data or events; 0: outdated, or undated."),
)
"""The five fixed criteria (§2.1, item 1; appendix E.2): depth, diversity of perspectives, clarity and
specificity, authoritativeness, recency."""


def listed(criteria: Sequence[Criterion]) -> str:
    """Format the criteria for the prompt, without their weights, as the sum is made here."""
    return "\n".join(
        f"{number}. {criterion.name}: {criterion.meaning}" for number, criterion in enumerate(criteria, 1)
    )


class Inferred(NamedTuple):
    """Criteria that were inferred from a query."""

    criteria: tuple[Criterion, ...]  # at most `MOST_CRITERIA`, possibly none
    weighted: bool  # whether the weights are the model's; otherwise all are equal


@dataclass(frozen=True, slots=True)
class FirstTurn:
    """A prompt that infers named texts from a query."""

    system: str  # instructions
    weighted: bool  # whether each has a weight

    def infer(
        self, chat: Chat, query: str, *, before: Sequence[Criterion] = (), extra: str = ""
    ) -> Reply[AnswerReading[Inferred]]:
        """Ask a chat model; if nothing, or not every weight, is usable, the problem says why.

        Args:
            before: The previously inferred criteria, to be refined.
        """
        entry = {"name": {"type": "string"}, "meaning": {"type": "string"}}
        if self.weighted:
            entry["weight"] = {"type": "number"}
        several = {"type": "array", "items": object_schema(entry), "minItems": 1, "maxItems": MOST_CRITERIA}
        schema = object_schema({"criteria": several})
        earlier = "\n".join(self._line(*each) for each in enumerate(before, 1))
        mark = mark_for(query, *filter(None, [earlier]))
        user = marked("question", query, mark) + (f"\n\n{marked('earlier', earlier, mark)}" if before else "")
        system = self.system + (REFINE if before else "")
        return ask(chat, ChatTask(system, user, self.read, _ANSWER_TOKENS, schema), extra=extra)

    def _line(self, number: int, criterion: Criterion) -> str:
        weight = f" ({criterion.weight:g})" if self.weighted else ""
        return f"{number}. {criterion.name}{weight}: {criterion.meaning}"

    def expected(self, chat: Chat, query_tokens: float) -> tuple[Amount, ...]:
        """Return the estimated usage of this turn."""
        return chat.expected(chat.count_tokens(self.system) + query_tokens, USUAL_ANSWER_TOKENS)

    def read(self, answer: str) -> AnswerReading[Inferred]:
        """Read JSON or numbered lines; texts are cut to a bounded length, weights are used all or none."""
        text = bare(answer)
        entries, problem = _json_entries(text) if text[:1] in {"{", "["} else _line_entries(text)
        named = _distinct(entries)
        if not named:
            return AnswerReading(Inferred((), weighted=False), problem or "it names nothing to rate", 0)
        if len(named) > MOST_CRITERIA:
            problem, named = f"it names more than {MOST_CRITERIA}", named[:MOST_CRITERIA]
        weights = [weight for _, _, weight in named if weight is not None]
        wrong = _wrong(weights, len(named)) if self.weighted else ""
        weighted = self.weighted and not wrong
        used = weights if weighted else [WEIGHT] * len(named)
        criteria = tuple(
            Criterion(name, meaning, weight) for (name, meaning, _), weight in zip(named, used, strict=True)
        )
        usable = len(criteria) * (2 if weighted else 1)
        return AnswerReading(Inferred(criteria, weighted), "; ".join(filter(None, (problem, wrong))), usable)


QUALITIES = FirstTurn(_QUALITIES, weighted=True)
POINTS = FirstTurn(_POINTS, weighted=False)


def _wrong(weights: Sequence[float], count: int) -> str:
    if len(weights) < count:
        return f"{count - len(weights)} of {count} weights are not a number from 0 to {HIGHEST_WEIGHT:g}"
    return "" if any(weights) else "all weights are 0"


def _distinct(entries: Sequence[_Entry]) -> list[_Entry]:
    """Return usable entries, each name once, without relevance, which is rated anyway."""
    named: dict[str, _Entry] = {}
    for name, meaning, weight in entries:
        short = " ".join(name.split())[:_LONGEST_NAME].strip(" *_")
        description = " ".join(meaning.split())[:_LONGEST_MEANING]
        if short and description and short.lower() != "relevance":
            named.setdefault(short.lower(), (short, description, weight))
    return list(named.values())


def _weight(value: object) -> float | None:
    """Return a weight within bounds, or None if it is not a number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= HIGHEST_WEIGHT:
        return None
    return float(value)


def _json_entries(text: str) -> tuple[list[_Entry], str]:
    try:
        value = json_value(text)
    except ValueError:
        return [], "it is not valid JSON"
    given = value.get("criteria") if isinstance(value, Mapping) else value
    if not isinstance(given, list):
        return [], 'it has no list "criteria"'
    entries = [
        (entry["name"], entry["meaning"], _weight(entry.get("weight")))
        for entry in given
        if isinstance(entry, Mapping)
        and isinstance(entry.get("name"), str)
        and isinstance(entry.get("meaning"), str)
    ]
    return entries, "" if len(entries) == len(given) else "not every entry has a name and a meaning"


def _line_entries(text: str) -> tuple[list[_Entry], str]:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    matches = [match for line in lines if (match := _LINE.fullmatch(line))]
    heads = [_name_and_weight(match[1]) for match in matches]
    entries = [(name, match[2], weight) for (name, weight), match in zip(heads, matches, strict=True)]
    wrong = len(lines) - len(matches)
    return entries, f"{wrong} of its lines are not a number, a name, a colon and a meaning" if wrong else ""


def _name_and_weight(head: str) -> tuple[str, float | None]:
    """Split the text before the colon, such as "Currency (0.5)", into the name and the weight."""
    match = _WEIGHTED.fullmatch(head)
    return (match[1], _weight(float(match[2]))) if match else (head, None)
