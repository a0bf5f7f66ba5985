"""Drafted questions, their source material, and the sampling of texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, get_args

import numpy as np
import polars as pl

from core.arrays import Ints
from core.errors import InputError
from core.pipeline.chunk import chunk
from core.pipeline.chunk.methods import LANGUAGES as CUT_IN
from core.pipeline.index.terms import LANGUAGES, Analyzer
from core.records import Collection, short_hash

DraftKind = Literal["fact", "typed", "several passages", "comparison", "unanswerable"]
KINDS: tuple[DraftKind, ...] = get_args(DraftKind)  # Kinds of question for a model
UNANSWERABLE, LOG = "unanswerable", "log"  # Kinds without a quote
ITEM_TOKENS = 120  # Maximum tokens of a stretch that a question is drawn from (ours)
_LEAST_TERMS = 6  # Distinct terms below which a stretch has too little content for a question
_READ = 200  # Number of texts whose words determine the language


@dataclass(frozen=True, slots=True)
class Quote:
    """A stretch of a document: ``document[start:end]`` is the text."""

    source: str
    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A drafted question."""

    text: str
    kind: str  # "known-item", "heading", "log", or one of `KINDS`
    quotes: tuple[Quote, ...] = ()  # Location of its answer; none if there is no answer, or it is unknown
    answer: str = ""  # The right answer in words, if a model gave one
    model: str = ""  # Its author; "" = none, it follows from the text
    prompt: str = ""  # Hash of the instructions
    usd: float | None = None  # Its cost; None = unknown, or nothing was paid
    frequency: int = 1  # Number of times it was asked, in a log
    part: str = ""  # Head or tail of a log
    twin_of: str = ""  # The question that it paraphrases


@dataclass(frozen=True)
class DraftMaterial:
    """Documents, and the stretches of them that questions can be about."""

    documents: pl.DataFrame = field(repr=False)  # Columns of `core.pipeline.documents.SCHEMA`
    language: str  # For stemmer and stop words
    size: int = ITEM_TOKENS  # Maximum tokens of a stretch

    @cached_property
    def analyzer(self) -> Analyzer:
        """The analyzer that splits its texts into terms."""
        return Analyzer(self.language)

    @cached_property
    def texts(self) -> dict[str, str]:
        """The documents by name."""
        return dict(self.documents.select("source", "text").iter_rows())

    @cached_property
    def items(self) -> tuple[Quote, ...]:
        """Stretches of whole sentences, in document order; copies of a text only once.

        Raises:
            InputError: If no document has text.
        """
        cut = self.language if self.language in CUT_IN else "other"
        way = {
            "method": "sentence",
            "size": self.size,
            "overlap": 0,
            "metadata": "none",
            "language": cut,
            "tokenizer": "estimate",
        }
        whole = Collection(collection_id="questions", name="questions")
        chunks = chunk(self.documents, way, collection=whole).chunks
        places = chunks.select("source", "start_char", "end_char").iter_rows()
        quotes = (Quote(name, start, end, self.texts[name][start:end]) for name, start, end in places)
        seen = {" ".join(quote.text.split()): quote for quote in quotes}
        found = tuple(quote for quote in seen.values() if self._says_enough(quote.text))
        if not found:
            raise InputError(
                "The documents say too little to ask about.",
                where="texts",
                do=f"A stretch needs {_LEAST_TERMS} different words that are not stop words.",
            )
        return found

    def _says_enough(self, text: str) -> bool:
        return len(set(self.analyzer.terms(text))) >= _LEAST_TERMS

    @property
    def digest(self) -> str:
        """The identity of the texts."""
        return short_hash(*(part for row in self.documents.select("source", "text").rows() for part in row))


def language_of(texts: Sequence[str]) -> str:
    """Return the language whose stop words are the largest share of the words; English if there are none."""
    step = max(1, len(texts) // _READ)
    words = [word for text in texts[::step] for word in Analyzer("none").words(text[:2_000])]
    shares = {name: sum(map(Analyzer(name).is_stop_word, words)) for name in LANGUAGES if name != "none"}
    best = max(shares, key=lambda name: (shares[name], name == "english"))
    return best if shares[best] else "english"


def generator(*seeds: str) -> np.random.Generator:
    """Return a random generator seeded by texts."""
    return np.random.default_rng(int(short_hash(*seeds), 16))


def sampled(items: Sequence[Quote], seed: str, topics: Ints | None = None) -> Iterator[tuple[int, Quote]]:
    """Yield all stretches with their positions, such that the first ones are as evenly spread as possible.

    Topics take turns, and sources within a topic, at random.

    Args:
        topics: Number of each stretch's topic; None = all have the same.
    """
    chance = generator(seed, "sample").random(len(items))
    rows = pl.DataFrame(
        {
            "at": np.arange(len(items)),
            "source": [item.source for item in items],
            "topic": np.zeros(len(items), dtype=np.int64) if topics is None else topics,
            "chance": chance,
        }
    ).sort("chance")
    rows = rows.with_columns(turn=pl.int_range(pl.len()).over("source"))
    rows = rows.sort("turn", "chance").with_columns(again=pl.int_range(pl.len()).over("topic"))
    yield from ((at, items[at]) for at in rows.sort("again", "turn", "chance")["at"])


def first(drafts: Iterable[Draft], count: int) -> list[Draft]:
    """Return the first drafts with distinct texts."""
    kept: dict[str, Draft] = {}
    for draft in drafts:
        kept.setdefault(draft.text.casefold(), draft)
        if len(kept) >= count:
            break
    return list(kept.values())
