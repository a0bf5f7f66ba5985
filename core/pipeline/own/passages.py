"""Passages of an answer in the corpus: known by their ids, else by their text; what is neither is counted."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import polars as pl

_BLANKS = re.compile(r"\s+")
NAMED = 5  # Passages that match nothing, by name, of one answer
_SHOWN = 60

Hit = Sequence[Any]
"""Candidate ids, score or None, text or None."""


def plain_text(text: str) -> str:
    """Return a text as texts are compared: blanks made one, none at the ends."""
    return _BLANKS.sub(" ", text).strip()


@dataclass(slots=True)
class Placed:
    """Passages of an answer that are in the corpus, and how many are not."""

    passages: list[int] = field(default_factory=list)  # positions in the corpus, best first
    scores: list[float | None] = field(default_factory=list)
    unmatched: int = 0  # passages that match nothing
    repeated: int = 0  # passages that stood further up already
    by_text: int = 0  # passages that were known by their text only
    named: list[str] = field(default_factory=list)  # some that match nothing


class Shelf:
    """The passages of a corpus, to look answers up in."""

    def __init__(self, passage_ids: pl.Series, texts: pl.Series) -> None:
        self._ids, self._texts = passage_ids, texts

    @cached_property
    def _by_id(self) -> dict[str, int]:
        return {name: at for at, name in enumerate(self._ids)}

    @cached_property
    def _by_text(self) -> dict[str, int]:
        """Position by text, with its title before it and without; the first of equal ones."""
        places: dict[str, int] = {}
        for at, text in enumerate(self._texts):
            head, _, rest = text.partition("\n")
            for form in (
                plain_text(text),
                plain_text(rest) if rest else "",
                plain_text(head) if not rest else "",
            ):
                if form:
                    places.setdefault(form, at)
        return places

    def place(self, hits: Sequence[Hit]) -> Placed:
        """Look passages up; of one that stands twice the first counts."""
        placed, seen = Placed(), set[int]()
        for ids, score, text in hits:
            at = next((self._by_id[name] for name in ids if name in self._by_id), None)
            if at is None and text:
                at = self._by_text.get(plain_text(text))
                placed.by_text += at is not None
            if at is None:
                placed.unmatched += 1
                if len(placed.named) < NAMED:
                    placed.named.append(str(ids[0] if ids else text)[:_SHOWN])
            elif at in seen:
                placed.repeated += 1
            else:
                seen.add(at)
                placed.passages.append(at)
                placed.scores.append(score)
        return placed
