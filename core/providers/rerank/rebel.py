"""REBEL: passages rated on relevance and on further criteria, all of them in one prompt.

Source: LeVine and Varjavand, "Relevance isn't all you need", §2.1 (one turn, five fixed criteria), §2.2 (two
turns, criteria and their weights inferred from the query), appendix E. The scoring rule is the paper's, see
`core.providers.rerank.by_chat`; the prompts are ours. Two things differ: the model writes down its ratings
and the sum is made here, where the paper lets the model add up; and the first turn infers criteria, which are
put into a second prompt of ours, where the paper lets the model write the whole second prompt.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from core.providers.base import Amount, Reply, total
from core.providers.chat.ask import NOTICE
from core.providers.rerank.base import Scores
from core.providers.rerank.by_chat import (
    FIVE,
    HIGHEST_CRITERION,
    HIGHEST_RELEVANCE,
    THRESHOLD,
    Criterion,
    ListwiseReranker,
    both_turns,
    listed,
)
from core.providers.rerank.infer import QUALITIES

_SYSTEM = f"""You rate passages as sources for answering a question.

{NOTICE}

Between the marks of the qualities stand the qualities to rate, one per line, with what 5 and 0 mean.
Go through the passages one by one. For each:
1. Read it fully and make out what it says about the question.
2. Rate its relevance from 0 (about something else) to {HIGHEST_RELEVANCE} (answers it directly and fully).
3. If its relevance is below {THRESHOLD}, it is discarded: go to the next passage.
4. Rate it from 0 to {HIGHEST_CRITERION} on each quality, independently of the others and of its relevance.
Adding up and ordering is done elsewhere.

Answer with one line per passage and nothing else: its number, a colon, its relevance, then its rating on each
quality in their order, separated by commas. Write a discarded passage's relevance alone. Every passage has
exactly one line. Example for two passages and three qualities, the second passage discarded:
1: 8, 4, 2, 5
2: 1
If you are asked for JSON: {{"ratings": [[1, 8, 4, 2, 5], [2, 1]]}}"""


class _Rebel(ListwiseReranker):
    def _rated(
        self, criteria: Sequence[Criterion], query: str, passages: Sequence[str], extra: str
    ) -> Reply[Scores]:
        texts = {"question": query, "qualities": listed(criteria)}
        return self._scored(_SYSTEM, texts, passages, criteria, extra=extra)

    def _expected_rated(self, query_tokens: float, passage_tokens: Sequence[float]) -> tuple[Amount, ...]:
        """Usage of rating under five criteria."""
        qualities = self.chat.count_tokens(listed(FIVE))
        return self._expected(_SYSTEM, query_tokens + qualities, passage_tokens, 1 + len(FIVE))


class RebelOneTurn(_Rebel):
    """The five fixed criteria, all of the paper's weight."""

    method = "rebel-one-turn"

    def score_batch(self, query: str, passages: Sequence[str], *, extra: str = "") -> Reply[Scores]:
        """Rate passages in one prompt; see `ListwiseReranker`."""
        return self._rated(FIVE, query, passages, extra)

    def expected(self, query_tokens: float, passage_tokens: Sequence[float]) -> tuple[Amount, ...]:
        """One prompt for all."""
        return self._expected_rated(query_tokens, passage_tokens)


class RebelTwoTurn(_Rebel):
    """Criteria and a weight for each inferred from the query in a first turn, used in a second.

    Where no criteria can be read from the first turn, the five fixed ones are used; where a weight cannot be
    used, all are equal. The details say either.
    """

    method = "rebel-two-turn"
    turns = 2

    def score_batch(self, query: str, passages: Sequence[str], *, extra: str = "") -> Reply[Scores]:
        """Infer criteria, then rate passages in one prompt; time and usage are those of both turns."""
        inferred = QUALITIES.infer(self.chat, query, extra=extra)
        reading = inferred.value
        criteria = reading.value.criteria or FIVE
        told: dict[str, Any] = {
            "criteria": [each.name for each in criteria],
            "weights": [each.weight for each in criteria],
            "equal_weights": int(not reading.value.weighted),
        }
        if not (reading.value.criteria and reading.value.weighted):
            told["criteria_problem"] = reading.problem
        return both_turns(inferred, self._rated(criteria, query, passages, extra), told)

    def expected(self, query_tokens: float, passage_tokens: Sequence[float]) -> tuple[Amount, ...]:
        """Both prompts."""
        first = Reply(None, QUALITIES.expected(self.chat, query_tokens))
        return total([first, Reply(None, self._expected_rated(query_tokens, passage_tokens))])
