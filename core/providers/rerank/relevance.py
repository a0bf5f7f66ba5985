"""Plain relevance by a chat model: each passage by itself, 0 to 10."""

from __future__ import annotations

from collections.abc import Sequence

from core.providers.base import Amount, Reply, carrying, total
from core.providers.chat.marks import NOTICE
from core.providers.rerank.base import Scores
from core.providers.rerank.by_chat import ChatReranker, scores_of
from core.providers.rerank.criteria import HIGHEST_RELEVANCE

_SYSTEM = f"""You rate how well a passage serves as a source for answering a question.

{NOTICE}

Rate the passage's relevance from 0 to 10:
10: it answers the question directly and fully.
7: it answers the main part of the question.
4: it is about the question's subject and helps only indirectly.
0: it has nothing to do with the question.
Judge what the passage says, not how long or well written it is. Fractions such as 6.5 are allowed.

Answer with one line and nothing else: the passage's number, a colon, the rating. Example:
1: 7
If you are asked for JSON: {{"ratings": [[1, 7]]}}"""


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
