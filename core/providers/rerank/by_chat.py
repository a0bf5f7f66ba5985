"""What rerankers that ask a chat model share: how passages are shown, and how ratings become scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from core.providers.base import Amount, Reply, carrying
from core.providers.chat.ask import Task, ask
from core.providers.chat.base import Chat
from core.providers.chat.marks import mark_for, marked
from core.providers.chat.reading import Row, read_ratings, rows_schema
from core.providers.rerank.base import Reranker, Scores

_MARK_TOKENS = 32  # what the marks around one text cost
_ROW_TOKENS = 4  # what one number of an answer costs, with its comma
_SPARE_TOKENS = 64


class ChatReranker(Reranker):
    """A reranker that asks a chat model for ratings.

    A passage for which no rating can be read, even after the model was told what was wrong, has no score: it
    stays behind the others in the order of retrieval, and is counted in the details.

    Args:
        chat: The model.
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
        """Ratings by passage, counted from 0; those that can be read.

        Args:
            system: Instructions.
            texts: What is shown before the passages, by label; "question" is the query.
            passages: The passages.
            highest: Highest rating per column.
            fits: Whether a row of ratings has the right length.
            fewest: The fewest ratings of a row.
            extra: See `Reranker.score_batch`.
        """
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
