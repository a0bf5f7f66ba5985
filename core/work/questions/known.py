"""Questions without any model: known-item queries, and headings and titles as queries.

Known-item queries are drawn as Azzopardi, de Rijke and Balog simulate them (*Building simulated queries for
known-item topics*, SIGIR 2007): a document is chosen, a length, and terms of the mixture
``(1 − noise)·p(t | document) + noise·p(t | collection)``, where p(t | document) prefers terms that are
frequent in it and rare elsewhere (popular and discriminative). A stretch of a document stands for the item.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import PurePosixPath

import numpy as np
import polars as pl

from core.bidi import strip_bidi_controls
from core.pipeline.index.terms import tokenise
from core.work.questions.drafts import Draft, DraftMaterial, Quote, generator, sampled

KNOWN_ITEM, HEADINGS = "known-item", "headings"
NOISE = 0.2  # Share of the collection's language model in the mixture (ours)
MEAN_TERMS = 4.0  # Mean of the Poisson distribution of lengths (ours)
_LEAST, _MOST = 2, 12
_TITLE = 120  # Maximum characters of a heading used as a query
_LINE = re.compile(r"[^\n]*(?:\n|\Z)(?: {0,3}(?:=+|-+)[ \t]*(?:\n|\Z))?")  # including its underline


def known_items(material: DraftMaterial, seed: str) -> Iterator[Draft]:
    """Yield a query for every stretch, evenly spread over the sources."""
    items, analyzer = material.items, material.analyzer
    terms = tokenise([item.text for item in items], analyzer)
    ends = np.cumsum(terms.lengths)
    size = len(terms.vocabulary)
    of = np.repeat(np.arange(len(items)), terms.lengths)
    pairs = np.unique(of * np.int64(size) + terms.ids)
    rarity = np.log(len(items) / np.bincount(pairs % size, minlength=size)) + 1.0 / len(items)
    overall = np.bincount(terms.ids, minlength=size) / max(1, terms.ids.size)
    names = list(terms.vocabulary)
    written: dict[str, str] = {}
    for at, item in sampled(items, seed):
        own = np.bincount(terms.ids[ends[at] - terms.lengths[at] : ends[at]], minlength=size) * rarity
        chances = (1 - NOISE) * own / own.sum() + NOISE * overall
        draw = generator(seed, item.source, str(item.start))
        wanted = min(_MOST, max(_LEAST, int(draw.poisson(MEAN_TERMS))), int((chances > 0).sum()))
        drawn = draw.choice(size, size=wanted, replace=False, p=chances / chances.sum())
        spelled = _spelled(material, item.text)
        words = [
            spelled.get(names[number]) or _elsewhere(material, names[number], written) for number in drawn
        ]
        yield Draft(text=strip_bidi_controls(" ".join(words)), kind=KNOWN_ITEM, quotes=(item,))


def _spelled(material: DraftMaterial, text: str) -> dict[str, str]:
    analyzer = material.analyzer
    counted = Counter(word for word in analyzer.words(text) if not analyzer.is_stop_word(word))
    words = sorted(counted, key=lambda word: (counted[word], word))
    return dict(zip(analyzer.stems(words), words, strict=True))


def _elsewhere(material: DraftMaterial, term: str, known: dict[str, str]) -> str:
    """Return the spelling of a term in the first stretch that has it."""
    if not known:
        for item in reversed(material.items):
            known.update(_spelled(material, item.text))
    return known.get(term, term)


def headings(material: DraftMaterial, seed: str) -> Iterator[Draft]:
    """Yield headings and titles as queries; the answer is the beginning of the text below.

    If several documents share a heading, it is preceded by its document's title. The name of a file is no
    title.
    """
    asked = [found for found in _headed(material) if found[1]]
    often = Counter(heading.casefold() for heading, _, _ in asked)
    by_item: dict[Quote, str] = {}
    for heading, title, item in asked:
        alone = often[heading.casefold()] == 1 or not title or title == heading
        by_item.setdefault(item, heading if alone else f"{title}: {heading}")
    for _, item in sampled(list(by_item), seed):
        yield Draft(text=by_item[item], kind="heading", quotes=(item,))


def _headed(material: DraftMaterial) -> Iterator[tuple[str, str, Quote]]:
    """Yield headings with the title of their document and the stretch that begins below."""
    by_source: dict[str, list[Quote]] = {}
    for item in material.items:
        by_source.setdefault(item.source, []).append(item)
    rows = material.documents.select("source", "title", "text", pl.col("headings").fill_null([]))
    for source, title, text, found in rows.iter_rows():
        items, name = by_source.get(source, []), _clean(title or "")
        whole = (
            "" if title == _name_of_file(source) else name
        )  # it would be found by what stands before texts
        places = [(one["start"], _clean(one["title"])) for one in found] or [(-1, whole)]
        for (start, heading), (end, _) in zip(places, [*places[1:], (len(text), "")], strict=True):
            below = _line_end(text, start)
            inside = [item for item in items if start <= item.start < end]
            if inside and material.analyzer.terms(heading):
                item = next((item for item in inside if item.start >= below), inside[0])
                yield heading, name, _below(item, below)


def _name_of_file(source: str) -> str | None:
    """Return the bare name that a file without a title is given as its title; None for other sources."""
    path = PurePosixPath(source)
    return path.stem if path.suffix else None


def _line_end(text: str, start: int) -> int:
    line = _LINE.match(text, max(start, 0))
    return 0 if start < 0 or line is None else line.end()


def _below(item: Quote, start: int) -> Quote:
    """Return a stretch without its initial heading."""
    if start <= item.start or start >= item.end:
        return item
    text = item.text[start - item.start :]
    blank = len(text) - len(text.lstrip())
    return Quote(item.source, start + blank, item.end, text[blank:]) if text.strip() else item


def _clean(heading: str) -> str:
    return " ".join(strip_bidi_controls(heading).split())[:_TITLE]
