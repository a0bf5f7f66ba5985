"""What rerankers share that show a chat model all passages in one prompt: limits, turns, the paper's score.

Source: LeVine and Varjavand, "Relevance isn't all you need", §2 (criteria), appendix C.4 (relevance alone).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from core.providers.base import Reply, carrying
from core.providers.chat.ask import in_sequence
from core.providers.chat.base import Chat
from core.providers.chat.reading import Row
from core.providers.rerank.base import Scores
from core.providers.rerank.by_chat import ChatReranker, scores_of
from core.providers.rerank.criteria import (
    AUTHORITY,
    HIGHEST_CRITERION,
    HIGHEST_RELEVANCE,
    THRESHOLD,
    Criterion,
    composite,
)

MOST_PASSAGES = 100
_ANSWER_SHARE = 0.75  # of the context, what the prompt may fill


def listed(criteria: Sequence[Criterion]) -> str:
    """The criteria as they stand in the prompt; their weights do not, as the sum is made here."""
    return "\n".join(f"{number}. {each.name}: {each.meaning}" for number, each in enumerate(criteria, 1))


class ListwiseReranker(ChatReranker):
    """Rates all passages in one prompt, and discards those of too little relevance."""

    pointwise = False
    batch_items = MOST_PASSAGES

    def __init__(self, chat: Chat) -> None:
        super().__init__(chat)
        if chat.context_tokens is not None:
            self.batch_tokens = int(chat.context_tokens * _ANSWER_SHARE)

    def _scored(
        self,
        system: str,
        texts: Mapping[str, str],
        passages: Sequence[str],
        criteria: Sequence[Criterion] = (),
        *,
        extra: str = "",
    ) -> Reply[Scores]:
        """Composite scores under these criteria; ties go to authority, else to the first criterion.

        The paper (E.2, instruction 5) prefers the more authoritative passage or any other consistent rule;
        without criteria the order of retrieval stays.
        """
        highest = [HIGHEST_RELEVANCE, *[HIGHEST_CRITERION] * len(criteria)]

        def fits(row: Row) -> bool:
            return len(row) == len(highest) or (len(row) == 1 and row[0] < THRESHOLD)

        reply = self._rate(system, texts, passages, highest, fits=fits, fewest=1, extra=extra)
        names = [each.name for each in criteria]
        column = 1 + (names.index(AUTHORITY) if AUTHORITY in names else 0)
        ties = scores_of(reply.value, len(passages), lambda row: row[column] if len(row) > column else 0.0)
        weights = [each.weight for each in criteria]
        scores = scores_of(reply.value, len(passages), lambda row: composite(row[0], row[1:], weights))
        return carrying(reply, scores, {**reply.details, "ties": np.nan_to_num(ties).tolist()})


def both_turns(first: Reply[Any], second: Reply[Scores], told: Mapping[str, Any]) -> Reply[Scores]:
    """The scores of the second turn, with time and usage of both, and what is told of the first."""
    both = in_sequence([first, second])
    return carrying(both, second.value, {**second.details, **both.details, **told})
