"""REBEL's sum over ratings that rules derive from the text, without a model.

Criteria, scale, threshold and sum are those of LeVine and Varjavand, "Relevance isn't all you need" (§2.1);
the rules are ours, and see only the surface: use them to see what weights do, and as a baseline for models.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from core.arrays import Floats
from core.providers.rerank.base import Scores
from core.providers.rerank.criteria import (
    AUTHORITY,
    FIVE,
    HIGHEST_CRITERION,
    HIGHEST_RELEVANCE,
    THRESHOLD,
    composite,
    told,
)
from core.providers.rerank.local import LocalReranker
from core.records import JsonMap

_WORDS = re.compile(r"[^\W_]+")
_FIGURES = re.compile(r"\b\d+(?:[.,]\d+)?\b|`[^`\n]+`|\b\w+\([^)\n]*\)")
_VIEWS = re.compile(
    r"\b(?:but|however|although|whereas|instead|alternatively|unless|otherwise|versus|or"
    r"|mais|cependant|toutefois|sinon|tandis|plutôt|ou)\b",
    re.IGNORECASE,
)
_SOURCES = re.compile(
    r"https?://|\bdoi\b|\bet al\b|\[\d{1,3}\]|\([^()\n]{2,40}\b(?:1[6-9]|20)\d\d\)"
    r"|\b(?:see also|according to|references?|selon|d'après|voir aussi)\b",
    re.IGNORECASE,
)
_YEARS = re.compile(r"(?<![\d.])(?:19|20)\d\d(?![\d.])")
_WORDS_OF_A_POINT = 25  # a text of 25 words has depth 1, of 75 words 2, of 775 words 5
_YEARS_OF_A_POINT = 5


class SurfaceReranker(LocalReranker):
    """A reranker by rules; relevance counts shared words of the question, rare ones more, up to 10."""

    provider = "rebel-rules"
    pointwise = False
    selective = True
    batch_items = 1_000_000

    def params(self) -> JsonMap:
        """Return the weights."""
        return {"weights": [criterion.weight for criterion in FIVE]}

    def score(self, query: str, passages: Sequence[str]) -> tuple[Scores, dict[str, Any]]:
        """Add up the ratings; ties go to authority."""
        rated = ratings(query, passages)
        weights = [criterion.weight for criterion in FIVE]
        scores = np.array([composite(row[0], row[1:], weights) for row in rated.tolist()], dtype=np.float64)
        column = 1 + [criterion.name for criterion in FIVE].index(AUTHORITY)
        rows = [row if row[0] >= THRESHOLD else row[:1] for row in rated.tolist()]
        return scores, {**told(FIVE, "fixed", rows), "ties": rated[:, column].tolist()}


def ratings(query: str, passages: Sequence[str]) -> Floats:
    """Rate passages: float64 [passages, 6], relevance 0 to 10, then the five criteria 0 to 5."""
    bags = [Counter(_WORDS.findall(passage.lower())) for passage in passages]
    lengths = np.array([bag.total() for bag in bags], dtype=np.float64)
    per_100 = 100 / np.maximum(lengths, 100)
    counts = np.array(
        [[len(found.findall(text)) for found in (_VIEWS, _FIGURES, _SOURCES)] for text in passages]
    )
    counts = counts.reshape(len(passages), 3)
    columns = (
        np.log2(1 + lengths / _WORDS_OF_A_POINT),
        counts[:, 0],
        counts[:, 1] * per_100,
        counts[:, 2],
        _currency(passages),
    )
    rated = np.clip(np.column_stack(columns), 0, HIGHEST_CRITERION)
    return np.column_stack((HIGHEST_RELEVANCE * _share(query, bags), np.round(rated, 1))).round(2)


def _share(query: str, bags: Sequence[Counter[str]]) -> Floats:
    asked = list(dict.fromkeys(_WORDS.findall(query.lower())))
    if not asked or not bags:
        return np.zeros(len(bags))
    has = np.array([[word in bag for word in asked] for bag in bags], dtype=np.float64)
    rare = np.log((len(bags) + 1) / (has.sum(axis=0) + 1)) + 1e-3
    worth = has @ rare
    return np.asarray(worth / max(float(worth.max()), 1e-9))


def _currency(passages: Sequence[str]) -> Floats:
    """Rate the latest year in each passage against the latest of all; 0 if it names none."""
    latest = np.array([max(map(int, _YEARS.findall(text)), default=0) for text in passages], dtype=np.float64)
    behind = latest.max(initial=0) - latest
    return np.where(latest > 0, HIGHEST_CRITERION - behind / _YEARS_OF_A_POINT, 0.0)
