"""Relevance alone by a chat model: each passage by itself, or all in one prompt, in one turn or two.

The listwise forms are REBEL without its criteria, to tell apart what criteria and what turns bring (LeVine
and Varjavand, "Relevance isn't all you need", appendices C.3 and C.4): the same scale, and the same passages
are discarded. The prompts are ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from core.providers.base import Amount, Reply, carrying, total
from core.providers.chat.ask import NOTICE
from core.providers.rerank.base import Scores
from core.providers.rerank.by_chat import (
    HIGHEST_RELEVANCE,
    THRESHOLD,
    ChatReranker,
    ListwiseReranker,
    both_turns,
    listed,
    scores_of,
)
from core.providers.rerank.infer import POINTS, USUAL_ANSWER_TOKENS

_SCALE = """\
10: it answers the question directly and fully.
7: it answers the main part of the question.
4: it is about the question's subject and helps only indirectly.
0: it has nothing to do with the question.
Judge what the passage says, not how long or well written it is. Fractions such as 6.5 are allowed."""

_SYSTEM = f"""You rate how well a passage serves as a source for answering a question.

{NOTICE}

Rate the passage's relevance from 0 to {HIGHEST_RELEVANCE}:
{_SCALE}

Answer with one line and nothing else: the passage's number, a colon, the rating. Example:
1: 7
If you are asked for JSON: {{"ratings": [[1, 7]]}}"""

_SYSTEM_ALL = f"""You rate how well passages serve as sources for answering a question.

{NOTICE}

Go through the passages one by one. Read each fully, make out what it says about the question, and rate its
relevance from 0 to {HIGHEST_RELEVANCE}, independently of the other passages:
{_SCALE}
Where points stand between marks of their own, they are what a relevant passage speaks about, the most
important first: the more of them it meets, the higher its relevance.
Passages below {THRESHOLD} are discarded; leaving them out and ordering the rest is done elsewhere.

Answer with one line per passage and nothing else: its number, a colon, its relevance. Every passage has
exactly one line. Example for two passages:
1: 8
2: 1
If you are asked for JSON: {{"ratings": [[1, 8], [2, 1]]}}"""


class RelevanceReranker(ChatReranker):
    """One prompt per passage, so that its rating does not depend on the passages beside it."""

    method = "relevance"
    pointwise = True
    batch_items = 1

    def score_batch(self, query: str, passages: Sequence[str], *, extra: str = "") -> Reply[Scores]:
        """Rate one passage: 0 to 10, or NaN."""
        reply = self._rate(_SYSTEM, {"question": query}, passages, [HIGHEST_RELEVANCE], extra=extra)
        return carrying(reply, scores_of(reply.value, len(passages), lambda row: row[0]))

    def expected(self, query_tokens: float, passage_tokens: Sequence[float]) -> tuple[Amount, ...]:
        """A prompt per passage."""
        return total(
            [Reply(None, self._expected(_SYSTEM, query_tokens, [tokens], 1)) for tokens in passage_tokens]
        )


class RelevanceOneTurn(ListwiseReranker):
    """All passages in one prompt."""

    method = "relevance-one-turn"

    def score_batch(self, query: str, passages: Sequence[str], *, extra: str = "") -> Reply[Scores]:
        """Rate passages in one prompt; see `ListwiseReranker`."""
        return self._scored(_SYSTEM_ALL, {"question": query}, passages, extra=extra)

    def expected(self, query_tokens: float, passage_tokens: Sequence[float]) -> tuple[Amount, ...]:
        """One prompt for all."""
        return self._expected(_SYSTEM_ALL, query_tokens, passage_tokens, 1)


class RelevanceTwoTurn(ListwiseReranker):
    """What makes a passage relevant is inferred from the query in a first turn, used in a second.

    Where nothing can be read from the first turn, the second is that of one turn, and the details say so.
    """

    method = "relevance-two-turn"
    turns = 2

    def score_batch(self, query: str, passages: Sequence[str], *, extra: str = "") -> Reply[Scores]:
        """Infer what to look for, then rate in one prompt; time and usage are those of both turns."""
        inferred = POINTS.infer(self.chat, query, extra=extra)
        points = inferred.value.value.criteria
        told: dict[str, Any] = {"points": [each.name for each in points]}
        texts = {"question": query}
        if points:
            texts["points"] = listed(points)
        else:
            told["points_problem"] = inferred.value.problem
        return both_turns(inferred, self._scored(_SYSTEM_ALL, texts, passages, extra=extra), told)

    def expected(self, query_tokens: float, passage_tokens: Sequence[float]) -> tuple[Amount, ...]:
        """Both prompts."""
        first = Reply(None, POINTS.expected(self.chat, query_tokens))
        asked = query_tokens + USUAL_ANSWER_TOKENS
        second = self._expected(_SYSTEM_ALL, asked, passage_tokens, 1)
        return total([first, Reply(None, second)])
