"""Real questions from a log: near copies are merged with their frequency, personal data masked, strata drawn.

Head and tail are distinguished: the head are the most frequent questions that make up half of the traffic.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from core.arrays import Floats, Ints
from core.bidi import strip_bidi_controls
from core.errors import InputError
from core.importers import ReadLimits
from core.importers.naming import roles_by
from core.importers.read.source import opened
from core.importers.read.tabular import kind_of, read_table
from core.importers.read.text import no_column, whole
from core.pipeline.index.terms import Analyzer
from core.pipeline.sweep.sources import Shelf, on_shelf
from core.work.questions.drafts import LOG, Draft, generator
from core.work.questions.masking import mask
from core.work.questions.rules import near_copies
from core.work.questions.spec import LogSource

HEAD, TAIL = "head", "tail"
_HEAD_SHARE = 0.5  # Of the traffic (ours)
_LONG = 5  # Number of terms from which on a question is long (ours)
_COUNTED = {"text": pl.String(), "often": pl.Int64()}
_ROLES = {
    "text": ("query", "text", "question", "q", "search", "search_query", "query_text", "keywords", "input"),
    "frequency": ("frequency", "count", "times", "n"),
}


@dataclass(frozen=True, slots=True)
class LoggedQuestions:
    """People's questions."""

    questions: tuple[tuple[str, int], ...]  # distinct ones with their counts, the most frequent first
    rows: int  # number of rows
    masked: int  # number of masked pieces of personal data

    def head(self) -> int:
        """Return how many of the first questions make up half of the traffic."""
        running = np.cumsum([often for _, often in self.questions])
        return int(np.searchsorted(running, _HEAD_SHARE * running[-1])) + 1


def read_log(source: LogSource, shelf: Shelf | None, analyzer: Analyzer) -> LoggedQuestions:
    """Read people's questions, mask personal data, and merge near copies.

    Raises:
        InputError: If there is no such column, no question, or no such list or model of names.
    """
    rows = list(_stored(source, shelf) if source.path is None else _table(source))
    said = [" ".join(strip_bidi_controls(text).split()) for text, _ in rows]
    clean, hidden = mask(said, listed=source.mask, names=source.names)
    same = pl.DataFrame({"text": clean, "often": [often for _, often in rows]}, _COUNTED)
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
    return LoggedQuestions(tuple(merged), same.height, hidden)


def _table(source: LogSource) -> Iterator[tuple[str, int]]:
    assert source.path is not None  # noqa: S101 - the caller sees to it
    with opened([source.path], ReadLimits()) as (archive,):
        member = archive.members[0]
        kind = kind_of(member)
        if kind is None and len(archive.members) == 1 and member.name.lower().endswith((".csv", ".txt")):
            yield from _lines(whole(member).decode("utf-8-sig"), source.column)
            return
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


def _lines(text: str, column: str | None) -> Iterator[tuple[str, int]]:
    """Yield the lines of a single-column file; its first is left out if it is the column's name."""
    lines = [line.strip().strip('"').strip() for line in text.splitlines()]
    if lines and lines[0].casefold() in {name.casefold() for name in (*_ROLES["text"], column or "")}:
        del lines[0]
    yield from ((line, 1) for line in lines)


def _stored(source: LogSource, shelf: Shelf | None) -> Iterator[tuple[str, int]]:
    name = str(source.stored)
    frames = on_shelf(shelf, name).collection(name).frames
    if "queries" in frames:
        yield from ((text or "", 1) for text in frames["queries"].lazy().collect()["text"])


def strata(
    asked: LoggedQuestions, count: int, analyzer: Analyzer, seed: str, topics: Ints | None = None
) -> list[Draft]:
    """Draw questions of head and tail, short and long, in equal parts as far as there are enough.

    Args:
        topics: Number of each question's topic; topics take turns within a part; None = all have the same.
    """
    head = asked.head()
    about = np.zeros(len(asked.questions), np.int64) if topics is None else topics
    cells: dict[tuple[str, bool], list[int]] = {}
    drafts = []
    for place, (text, often) in enumerate(asked.questions):
        part = HEAD if place < head else TAIL
        drafts.append(Draft(text=text, kind=LOG, frequency=often, part=part))
        cells.setdefault((part, len(analyzer.terms(text)) >= _LONG), []).append(place)
    chance = generator(seed, "log").random(len(drafts))
    drawn = [_by_topic(np.array(places), about, chance) for places in cells.values()]
    deepest = max(map(len, drawn))
    turns = (places[turn] for turn in range(deepest) for places in drawn if turn < len(places))
    return [drafts[place] for place, _ in zip(turns, range(count), strict=False)]


def _by_topic(places: Ints, topics: Ints, chance: Floats) -> Ints:
    """Order positions such that topics take turns, at random within each."""
    rows = pl.DataFrame({"place": places, "topic": topics[places], "chance": chance[places]}).sort("chance")
    rows = rows.with_columns(turn=pl.int_range(pl.len()).over("topic"))
    return rows.sort("turn", "chance")["place"].to_numpy()
