"""What calls will use, counted before they are made, by the counters that reserve the budget of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.providers.base import Amount
from core.providers.config import ModelConfig
from core.providers.rerank import Reranker
from core.providers.tokens import counter
from core.records import Basis

SAMPLE = 20_000
"""Of a larger corpus so many passages are counted, evenly spread, and the sum is scaled."""

Lengths = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Counted:
    """Tokens of many texts.

    Attributes:
        tokens: Their sum.
        lengths: int64 [n], of the texts that were counted.
        texts: How many texts it is the sum of; equal ones and those without content are counted once or not.
        exact: Whether a vocabulary counted every one of them.
        note: How it was counted, for people.
    """

    tokens: float
    lengths: Lengths
    texts: int
    exact: bool
    note: str


def count_texts(
    texts: Sequence[str], tokenizer: str | None, prefix: str = "", *, sample: int = SAMPLE
) -> Counted:
    """Tokens that embedding texts takes.

    Args:
        texts: Any number of texts; equal ones are sent once, and those of white space not at all.
        tokenizer: The vocabulary of the model; None = an estimate.
        prefix: What the model puts before each text.
        sample: How many are counted at most; more are estimated from so many of them.
    """
    distinct = list(dict.fromkeys(text for text in texts if text.strip()))
    counts, chosen = counter(tokenizer), distinct
    if len(distinct) > sample:
        chosen = [distinct[at] for at in np.linspace(0, len(distinct) - 1, sample).astype(int)]
    lengths = np.array([counts.count(prefix + text) for text in chosen], dtype=np.int64)
    whole = len(chosen) == len(distinct)
    note = counts.note if whole else _joined(counts.note, f"from a sample of {sample:,} passages")
    scale = len(distinct) / len(chosen) if chosen else 0.0
    return Counted(float(lengths.sum()) * scale, lengths, len(distinct), counts.exact and whole, note)


def embedding(config: ModelConfig, tokens: float) -> Amount:
    """Usage of embedding texts of so many tokens."""
    return Amount(config.price_item, "input_tokens", tokens, Basis.MODELLED)


def reranking(reranker: Reranker, query: str, passages: Sequence[str]) -> tuple[Amount, ...]:
    """Usage of reranking these passages; nothing where there are none, since then nothing is asked."""
    if not passages:
        return ()
    return reranker.expected(reranker.count_tokens(query), [reranker.count_tokens(each) for each in passages])


def typical(lengths: Lengths, k: int) -> list[float]:
    """Lengths of k passages that are not known: spread as in the corpus, and as long on average.

    Args:
        lengths: int64 [n ≥ 1], tokens of passages of the corpus.
        k: How many.
    """
    spread = np.quantile(lengths, (np.arange(k) + 0.5) / k)
    even: list[float] = (spread * (lengths.mean() / spread.mean()) if spread.any() else spread).tolist()
    return even


def _joined(*notes: str) -> str:
    return ", ".join(note for note in notes if note)
