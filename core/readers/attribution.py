"""Find the passage behind each sentence of an answer, after it was written (Palmieri, §6.2.2).

The answer is cut into sentences; each is compared with the passages that were sent, and the most similar one
is its probable source. A sentence that joins several passages still has only one source.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from core.readers.scoring import CITED, cited

Embed = Callable[[Sequence[str]], NDArray[np.float32]]
"""Texts → vectors [texts, dim] of unit length, or of zeros."""
_LEADING = re.compile(rf"^(?:\s*{CITED.pattern})+")
_CITING = re.compile(rf"\s*{CITED.pattern}")
_WORD = re.compile(r"\w")
KINDS = {
    "answer": pl.Int64(), "place": pl.Int32(), "text": pl.String(), "cited": pl.List(pl.Int32()),
    "source": pl.Int32(), "similarity": pl.Float64(),
}  # fmt: skip


class Statement(NamedTuple):
    """A sentence of an answer."""

    text: str  # without the numbers in its citations
    cited: frozenset[int]  # numbers of passages


def statements(answer: str, language: str = "en") -> list[Statement]:
    """Cut an answer into sentences; numbers after a full stop belong to the sentence before it.

    Args:
        language: The language whose abbreviations do not end a sentence.
    """
    import sentencex  # noqa: PLC0415 - a compiled library, needed only here

    cut = [
        answer[boundary["start_index"] : boundary["end_index"]]
        for boundary in sentencex.get_sentence_boundaries(language, answer)
    ]
    sentences: list[Statement] = []
    for part in cut:
        leading = _LEADING.match(part)
        if leading and sentences:
            sentences[-1] = sentences[-1]._replace(cited=sentences[-1].cited | cited(leading.group()))
        rest = part[leading.end() :] if leading and sentences else part
        text = " ".join(_CITING.sub("", rest).split())
        if _WORD.search(text):
            sentences.append(Statement(text, cited(rest)))
    return sentences


def attribute(answers: Sequence[str], sent: Sequence[Sequence[str]], embed: Embed) -> pl.DataFrame:
    """Find the most similar passage of every sentence, by the cosine of their vectors.

    Args:
        answers: Texts.
        sent: The passages from which each was written, in order.

    Returns:
        A row per sentence of an answer with passages: answer (its position in the list, from 0), place
        (from 1), text, cited (numbers of passages), source (number of the passage, from 1; the first of equal
        ones) and similarity; both null if either has no vector.
    """
    cut = [statements(answer) if passages else [] for answer, passages in zip(answers, sent, strict=True)]
    texts = dict.fromkeys(statement.text for part in cut for statement in part)
    texts |= dict.fromkeys(
        text for passages, part in zip(sent, cut, strict=True) if part for text in passages
    )
    place = {text: at for at, text in enumerate(texts)}
    vectors = embed(list(texts)) if texts else np.zeros((0, 1), dtype=np.float32)
    rows = []
    for answer, (part, passages) in enumerate(zip(cut, sent, strict=True)):
        if not part:
            continue
        own = vectors[[place[statement.text] for statement in part]]
        like = own @ vectors[[place[text] for text in passages]].T
        best, known = like.argmax(axis=1), np.asarray(own.any(axis=1))
        for at, statement in enumerate(part):
            source, value = (int(best[at]) + 1, float(like[at, best[at]])) if known[at] else (None, None)
            rows.append((answer, at + 1, statement.text, sorted(statement.cited), source, value))
    return pl.DataFrame(rows, schema=KINDS, orient="row")
