"""Real questions of a log: near copies are one with their frequency, personal data is masked, strata drawn.

Head and tail are told apart: the head are the most frequent questions that make up half of the traffic.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from core.errors import InputError
from core.golden.questions.drafts import LOG, Draft, generator
from core.golden.questions.rules import near_copies
from core.golden.questions.spec import LogSource
from core.importers import Limits
from core.importers.naming import roles_by
from core.importers.read.source import opened
from core.importers.read.tabular import kind_of, read_table
from core.importers.read.text import no_column
from core.pipeline.index.terms import Analyzer
from core.pipeline.sweep.sources import Shelf, on_shelf
from core.written import upright

HEAD, TAIL = "head", "tail"
_HEAD_SHARE = 0.5  # Of the traffic (ours)
_LONG = 5  # Terms from which on a question is long (ours)
_ROLES = {
    "text": ("query", "text", "question", "q", "search", "search_query", "keywords", "input"),
    "frequency": ("frequency", "count", "times", "n"),
}
_CARD = re.compile(r"(?<![\w.])\d(?:[ -]?\d){12,18}(?!\w)")
_MASKS: Sequence[tuple[str, re.Pattern[str]]] = (
    ("[email]", re.compile(r"[\w.+%-]+@[\w-]+(?:\.[\w-]+)+")),
    ("[iban]", re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){3,7}(?: ?[A-Z0-9]{1,3})?\b")),
    (
        "[ip]",
        re.compile(r"(?<![\w.])(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)(?![\w.])"),
    ),
    ("[ip]", re.compile(r"(?<![\w:])(?:[0-9a-fA-F]{1,4}:){3,7}(?::?[0-9a-fA-F]{1,4}){1,4}(?![\w:])")),
    (
        "[phone]",
        re.compile(
            r"(?<![\w.])(?:\+\d{1,3}[ .-]?(?:\(0\)[ .-]?)?|\(?0)\d{1,4}\)?(?:[ .-]?\d{2,4}){2,5}(?!\w)"
        ),
    ),
    ("[phone]", re.compile(r"(?<![\w.-])(?:\(\d{3}\) ?|\d{3}[.-])\d{3}[.-]\d{4}(?![\w-])")),
)


def masked(text: str) -> tuple[str, int]:
    """Return a text with e-mail addresses, cards, accounts, IP and phone numbers masked, and how many.

    Digits are a card's where their check digit is right (Luhn). Names and street addresses stay.
    """
    count = 0

    def card(found: re.Match[str]) -> str:
        nonlocal count
        digits = [int(digit) for digit in found[0] if digit.isdigit()]
        doubled = [
            digit if at % 2 == 0 else sum(divmod(2 * digit, 10)) for at, digit in enumerate(digits[::-1])
        ]
        right = sum(doubled) % 10 == 0
        count += right
        return "[card]" if right else found[0]

    text = _CARD.sub(card, text)
    for mask, pattern in _MASKS:
        text, times = pattern.subn(mask, text)
        count += times
    return text, count


@dataclass(frozen=True, slots=True)
class Asked:
    """What people asked."""

    questions: tuple[tuple[str, int], ...]  # different ones with how often, the most frequent first
    rows: int  # how many there were
    masked: int  # pieces of personal data that were masked

    def head(self) -> int:
        """How many of the first make up half of the traffic."""
        running = np.cumsum([often for _, often in self.questions])
        return int(np.searchsorted(running, _HEAD_SHARE * running[-1])) + 1


def read_log(source: LogSource, shelf: Shelf | None, analyzer: Analyzer) -> Asked:
    """Read what people asked, mask it, and merge near copies.

    Raises:
        InputError: If there is no such column, or no question.
    """
    rows = _stored(source, shelf) if source.path is None else _table(source)
    clean, hidden = [], 0
    for text, often in rows:
        said, times = masked(" ".join(upright(text).split()))
        hidden += times
        clean.append((said, often))
    same = pl.DataFrame(clean, schema={"text": pl.String, "often": pl.Int64}, orient="row")
    same = same.filter(pl.col("text") != "").with_columns(key=pl.col("text").str.to_lowercase())
    counted = same.group_by("key", maintain_order=True).agg(pl.col("text").first(), pl.col("often").sum())
    counted = counted.sort("often", descending=True, maintain_order=True)
    texts, times_asked = counted["text"].to_list(), counted["often"].to_list()
    if not texts:
        raise InputError("The log holds no questions.", where=source.stored or str(source.path))
    copies = near_copies(texts, analyzer)
    for place, first in copies.items():
        times_asked[first] += times_asked[place]
    merged = [(texts[at], times_asked[at]) for at in range(len(texts)) if at not in copies]
    merged.sort(key=lambda pair: -pair[1])
    return Asked(tuple(merged), same.height, hidden)


def _table(source: LogSource) -> Iterator[tuple[str, int]]:
    assert source.path is not None  # noqa: S101 - the caller sees to it
    with opened([source.path], Limits()) as (archive,):
        member = archive.members[0]
        kind = kind_of(member)
        if len(archive.members) > 1 or kind is None:
            raise InputError(
                "This is not a table.", where=member.name, do="Name a CSV, TSV, JSONL or Parquet file."
            )
        table = read_table(member, kind)
        given = {"text": source.column} if source.column else {}
        roles = roles_by(table.rows.columns, given, _ROLES, member.name)
        if "text" not in roles:
            raise no_column(
                "text", table.rows.columns, member.name, "Name the column (log.column, --column)."
            )
        rows = table.taking(roles)
    often = rows["frequency"] if "frequency" in rows.columns else pl.Series([1] * rows.height)
    counts = often.cast(pl.Float64, strict=False).fill_null(1).clip(1).cast(pl.Int64)
    yield from zip(rows["text"].fill_null(""), counts, strict=True)


def _stored(source: LogSource, shelf: Shelf | None) -> Iterator[tuple[str, int]]:
    name = str(source.stored)
    frames = on_shelf(shelf, name).collection(name).frames
    if "queries" in frames:
        yield from ((text or "", 1) for text in frames["queries"].lazy().collect()["text"])


def strata(asked: Asked, count: int, analyzer: Analyzer, seed: str) -> list[Draft]:
    """Draw questions: of head and tail, short and long in equal parts as far as there are enough."""
    head = asked.head()
    cells: dict[tuple[str, bool], list[Draft]] = {}
    for place, (text, often) in enumerate(asked.questions):
        part = HEAD if place < head else TAIL
        draft = Draft(text=text, kind=LOG, frequency=often, part=part)
        cells.setdefault((part, len(analyzer.terms(text)) >= _LONG), []).append(draft)
    chance = generator(seed, "log")
    drawn = {cell: [drafts[at] for at in chance.permutation(len(drafts))] for cell, drafts in cells.items()}
    deepest = max(map(len, drawn.values()))
    turns = (drafts[turn] for turn in range(deepest) for drafts in drawn.values() if turn < len(drafts))
    return [draft for draft, _ in zip(turns, range(count), strict=False)]
