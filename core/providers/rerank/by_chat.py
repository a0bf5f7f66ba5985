"""What rerankers that ask a chat model share: how passages are shown, and how ratings become scores.

Source: LeVine and Varjavand, "Relevance isn't all you need", §2 (criteria), appendix C.4 (relevance alone).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from core.providers.base import Amount, Reply, carrying
from core.providers.chat.ask import Chat, Task, ask, in_sequence, mark_for, marked
from core.providers.chat.reading import Row, read_ratings, rows_schema
from core.providers.rerank.base import Reranker, Scores

HIGHEST_RELEVANCE = 10
HIGHEST_CRITERION = 5
WEIGHT = 0.5
THRESHOLD = 3
"""The paper's figures: §2.1, items 2 and 3 (w = 0.5 in all of its experiments); E.2, instruction 1."""
HIGHEST_WEIGHT = 1.0
"""Ours, for weights that a model chooses: twice the paper's, so that no quality outweighs relevance."""


@dataclass(frozen=True, slots=True)
class Criterion:
    """A quality of a passage beyond relevance, rated 0 to 5."""

    name: str  # one to a few words
    meaning: str  # what a high and a low rating mean
    weight: float = WEIGHT  # what a point of its rating adds to the score, 0 to `HIGHEST_WEIGHT`


AUTHORITY = "Authority"
FIVE: tuple[Criterion, ...] = (
    Criterion("Depth", "5: treats the subject thoroughly, from several sides; 0: only touches it."),
    Criterion("Range of views", "5: gives several positions or sources; 0: knows only one side."),
    Criterion("Precision", "5: clear, concrete and to the point of the question; 0: vague or general."),
    Criterion(AUTHORITY, "5: a recognised, citable source speaks; 0: the source is unknown or doubtful."),
    Criterion("Currency", "5: current, refers to recent work, data or events; 0: outdated, or undated."),
)
"""The five fixed criteria (§2.1, item 1; appendix E.2): depth, diversity of perspectives, clarity and
specificity, authoritativeness, recency."""


def composite(
    relevance: float, ratings: Sequence[float], weights: Sequence[float], *, threshold: float = THRESHOLD
) -> float:
    """The final score of a passage: relevance + Σ weight · rating (§2.1, item 3)."""
    if relevance < threshold:
        return -math.inf
    return relevance + math.fsum(weight * rating for weight, rating in zip(weights, ratings, strict=True))


_MARK_TOKENS = 32  # what the marks around one text cost
_ROW_TOKENS = 4  # what one number of an answer costs, with its comma
_SPARE_TOKENS = 64


class ChatReranker(Reranker):
    """A reranker that asks a chat model for ratings.

    A passage for which no rating can be read, even after the model was told what was wrong, has no score: it
    stays behind the others in the order of retrieval, and is counted in the details.
    """

    selective = True
    method: str

    def __init__(self, chat: Chat) -> None:
        self.chat = chat
        self.name = f"{self.method}:{chat.name}"
        self.provider, self.item, self.local = self.method, chat.item, chat.local
        self.concurrency = chat.concurrency

    def count_tokens(self, text: str) -> int:
        """Tokens of a text between marks."""
        return self.chat.count_tokens(text) + _MARK_TOKENS

    def ready(self) -> None:
        """Look the chat model's key up."""
        self.chat.ready()

    def interrupt(self) -> None:
        """End waits that are under way."""
        self.chat.interrupt()

    def close(self) -> None:
        """Let go of the chat model's connections."""
        self.chat.close()

    def _rate(
        self,
        system: str,
        texts: Mapping[str, str],
        passages: Sequence[str],
        highest: Sequence[float],
        *,
        fits: Callable[[Row], bool] | None = None,
        fewest: int | None = None,
        extra: str = "",
    ) -> Reply[dict[int, Row]]:
        """Ratings by passage, counted from 0; those that can be read."""
        reply = ask(
            self.chat,
            Task(
                system,
                shown(texts, passages),
                lambda answer: read_ratings(answer, len(passages), highest, fits=fits),
                _answer_tokens(len(passages), len(highest)),
                rows_schema(len(highest), fewest=fewest),
            ),
            extra=extra,
        )
        reading = reply.value
        details = dict(reply.details) | ({"problem": reading.problem} if reading.problem else {})
        rows = {number - 1: row for number, row in reading.value.items()}
        return carrying(reply, rows, details)

    def _expected(
        self, system: str, query_tokens: float, passage_tokens: Sequence[float], columns: int
    ) -> tuple[Amount, ...]:
        """Usage of one prompt, as an estimate, without a second turn."""
        texts = query_tokens + sum(passage_tokens) + _MARK_TOKENS * (1 + len(passage_tokens))
        answer = len(passage_tokens) * _ROW_TOKENS * (1 + columns)
        return self.chat.expected(self.chat.count_tokens(system) + texts, answer)


def shown(texts: Mapping[str, str], passages: Sequence[str]) -> str:
    """The message that shows texts by their labels, and passages, numbered from 1, each between marks."""
    mark = mark_for(*texts.values(), *passages)
    parts = [marked(label, text, mark) for label, text in texts.items()]
    parts += [marked(f"passage {number}", text, mark) for number, text in enumerate(passages, 1)]
    return "\n\n".join(parts)


def scores_of(rows: Mapping[int, Row], count: int, score: Callable[[Row], float]) -> Scores:
    """float64 [count]: the score of each row, NaN where there is none."""
    scores = np.full(count, np.nan)
    for at, row in rows.items():
        scores[at] = score(row)
    return scores


def _answer_tokens(passages: int, columns: int) -> int:
    """The most tokens that an answer of the right form takes, with room for white space and names."""
    return _SPARE_TOKENS + 2 * passages * _ROW_TOKENS * (1 + columns)


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
