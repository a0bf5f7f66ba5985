"""REBEL: passages rated on relevance and on further criteria, all of them in one prompt.

Source: LeVine and Varjavand, "Relevance isn't all you need", §2.1 (one turn, five fixed criteria), §2.2 (two
turns, criteria inferred from the query), appendix E. The scoring rule is the paper's, see
`core.providers.rerank.criteria`; the prompts are ours. Two things differ: the model writes down its ratings
and the sum is made here, where the paper lets the model add up; and the first turn infers criteria, which are
put into a second prompt of ours, where the paper lets the model write the whole second prompt.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from core.providers.base import Amount, Reply, carrying, total
from core.providers.chat.ask import in_sequence
from core.providers.chat.base import Chat
from core.providers.chat.marks import NOTICE
from core.providers.chat.reading import Row
from core.providers.rerank.base import Scores
from core.providers.rerank.by_chat import ChatReranker, scores_of
from core.providers.rerank.criteria import (
    AUTHORITY,
    FIVE,
    HIGHEST_CRITERION,
    HIGHEST_RELEVANCE,
    THRESHOLD,
    Criterion,
    composite,
)
from core.providers.rerank.infer import expected_criteria, infer_criteria

MOST_PASSAGES = 100
_ANSWER_SHARE = 0.75  # of the context, what the prompt may fill


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


def listed(criteria: Sequence[Criterion]) -> str:
    """The criteria as they stand in the prompt."""
    return "\n".join(f"{number}. {each.name}: {each.meaning}" for number, each in enumerate(criteria, 1))


class RebelReranker(ChatReranker):
    """What both forms share: rating under given criteria, and the paper's score."""

    pointwise = False
    batch_items = MOST_PASSAGES

    def __init__(self, chat: Chat) -> None:
        super().__init__(chat)
        if chat.context_tokens is not None:
            self.batch_tokens = int(chat.context_tokens * _ANSWER_SHARE)

    def _scored(
        self, criteria: Sequence[Criterion], query: str, passages: Sequence[str], extra: str
    ) -> Reply[Scores]:
        """Composite scores under these criteria; ties go to authority, else to the first criterion.

        The paper (E.2, instruction 5) prefers the more authoritative passage or any other consistent rule.
        """
        highest = [HIGHEST_RELEVANCE, *[HIGHEST_CRITERION] * len(criteria)]

        def fits(row: Row) -> bool:
            return len(row) == len(highest) or (len(row) == 1 and row[0] < THRESHOLD)

        texts = {"question": query, "qualities": listed(criteria)}
        reply = self._rate(_SYSTEM, texts, passages, highest, fits=fits, fewest=1, extra=extra)
        names = [each.name for each in criteria]
        column = 1 + (names.index(AUTHORITY) if AUTHORITY in names else 0)
        ties = scores_of(reply.value, len(passages), lambda row: row[column] if len(row) > column else 0.0)
        details = {**reply.details, "ties": np.nan_to_num(ties).tolist()}
        scores = scores_of(reply.value, len(passages), lambda row: composite(row[0], row[1:]))
        return carrying(reply, scores, details)

    def _prompt(self, query_tokens: float, passage_tokens: Sequence[float]) -> tuple[Amount, ...]:
        """Usage of rating under five criteria, as an estimate."""
        qualities = self.chat.count_tokens(listed(FIVE))
        return self._expected(_SYSTEM, query_tokens + qualities, passage_tokens, 1 + len(FIVE))


class RebelOneTurn(RebelReranker):
    """The five fixed criteria."""

    method = "rebel-one-turn"

    def score_batch(self, query: str, passages: Sequence[str], *, extra: str = "") -> Reply[Scores]:
        """Rate passages in one prompt; see `RebelReranker`."""
        return self._scored(FIVE, query, passages, extra)

    def expected(self, query_tokens: float, passage_tokens: Sequence[float]) -> tuple[Amount, ...]:
        """One prompt for all."""
        return self._prompt(query_tokens, passage_tokens)


class RebelTwoTurn(RebelReranker):
    """Criteria inferred from the query in a first turn, used in a second.

    Where no criteria can be read from the first turn, the five fixed ones are used, and the details say so.
    """

    method = "rebel-two-turn"

    def score_batch(self, query: str, passages: Sequence[str], *, extra: str = "") -> Reply[Scores]:
        """Infer criteria, then rate passages in one prompt; time and usage are those of both turns."""
        inferred = infer_criteria(self.chat, query, extra=extra)
        criteria = inferred.value.value
        rated = self._scored(criteria or FIVE, query, passages, extra)
        both = in_sequence([inferred, rated])
        told: dict[str, Any] = {"criteria": [each.name for each in criteria or FIVE]}
        if not criteria:
            told["criteria_problem"] = inferred.value.problem
        details = {**rated.details, **both.details, **told}
        return carrying(both, rated.value, details)

    def expected(self, query_tokens: float, passage_tokens: Sequence[float]) -> tuple[Amount, ...]:
        """Both prompts."""
        first = Reply(None, expected_criteria(self.chat, query_tokens))
        second = Reply(None, self._prompt(query_tokens, passage_tokens))
        return total([first, second])
