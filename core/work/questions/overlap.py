"""Share of a question's words that are in its quote: an advantage for keyword search."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from core.pipeline.index.terms import Analyzer
from core.work.questions.drafts import Draft

STRONG, SOME = 0.8, 0.5  # Mean overlaps from which on a set favours BM25 strongly, and somewhat (ours)


def overlap(draft: Draft, analyzer: Analyzer) -> float | None:
    """Return the share of a question's distinct terms that its quotes hold, 0..1; None without a quote."""
    asked = set(analyzer.terms(draft.text))
    if not asked or not draft.quotes:
        return None
    held = {term for quote in draft.quotes for term in analyzer.terms(quote.text)}
    return len(asked & held) / len(asked)


def mean_overlap(drafts: Sequence[Draft], analyzer: Analyzer) -> float | None:
    """Return the mean over the questions that have a quote; None if none has."""
    known = [share for draft in drafts if (share := overlap(draft, analyzer)) is not None]
    return float(np.mean(known)) if known else None


def favours(mean: float | None) -> str:
    """Describe how much a set favours keyword search."""
    if mean is None:
        return "overlap with the quotes is not known"
    how = "strongly" if mean >= STRONG else "somewhat" if mean >= SOME else "little"
    return f"{mean:.0%} of a question's words stand in its quote: it favours BM25 {how}"
