"""A document while it is cut, and the measuring of its stretches in tokens.

Tokens are counted exactly where a vocabulary is available, otherwise estimated by the bytes of the text.
"""

from __future__ import annotations

import functools
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.providers.tokens import BYTES_PER_TOKEN, ESTIMATE, VOCABULARIES, encoding_of
from core.records import JsonMap

TOKENIZERS = (*VOCABULARIES, ESTIMATE)
CRUMB = " > "
_BLOCK = 200_000  # Characters that are encoded at once; the library refuses a million
_BREAK = re.compile(r"\n(?=\S)|(?<=\S)(?= \S)")
_MARGIN = 8
_WORD_START = re.compile(r"\S")

Span = tuple[int, int]  # First character and the one after the last
Positions = NDArray[np.int64]
Encode = Callable[[str], list[int]]


class Gauge:
    """Measures one text, at one token per four bytes of UTF-8."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._bytes = _byte_ends(text)  # [k] = bytes before character k

    def count(self, start: int, end: int, prefix: str = "") -> int:
        """Return tokens of ``prefix + text[start:end]``."""
        size = int(self._bytes[end] - self._bytes[start]) + len(prefix.encode("utf-8", "replace"))
        return -(-size // BYTES_PER_TOKEN)

    def about(self, start: int, end: int) -> int:
        """Return the tokens of the whole text that ``text[start:end]`` overlaps: nearly its own number."""
        return self.count(start, end)

    def reach(self, start: int, tokens: int) -> int:
        """Return about where a stretch of this many tokens from `start` ends; at least one character on."""
        limit = self._bytes[start] + tokens * BYTES_PER_TOKEN
        return max(int(np.searchsorted(self._bytes, limit, side="right")) - 1, start + 1)

    def back(self, end: int, tokens: int) -> int:
        """Return about where a stretch of this many tokens that ends at `end` begins."""
        limit = self._bytes[end] - tokens * BYTES_PER_TOKEN
        return min(int(np.searchsorted(self._bytes, limit, side="left")), end)


class _Vocabulary(Gauge):
    """Measures one text in the tokens of a model.

    A stretch that begins or ends within a token of the whole text has other tokens there, so counts are exact
    and reaches approximate.
    """

    def __init__(self, text: str, encode: Encode, lengths: Positions) -> None:
        super().__init__(text)
        self._encode = encode
        ids = [token for start, end in _blocks(text) for token in encode(text[start:end])]
        byte_ends = np.cumsum(lengths[np.array(ids, dtype=np.int64)])
        # A token that ends within a character ends, for our purposes, before it.
        self._ends: Positions = np.searchsorted(self._bytes, byte_ends, side="right") - 1

    def count(self, start: int, end: int, prefix: str = "") -> int:
        parts = [self.text[left:right] for left, right in _blocks(self.text, start, end)] or [""]
        parts[0] = prefix + parts[0]
        return sum(len(self._encode(part)) for part in parts)

    def about(self, start: int, end: int) -> int:
        first, last = np.searchsorted(self._ends, (start, end), side="right")
        return int(last - first) + 1

    def reach(self, start: int, tokens: int) -> int:
        first = int(np.searchsorted(self._ends, start, side="right"))
        last = min(first + tokens, len(self._ends)) - 1
        return max(int(self._ends[last]) if last >= 0 else start, start + 1)

    def back(self, end: int, tokens: int) -> int:
        last = int(np.searchsorted(self._ends, end, side="left"))
        before = last - tokens
        return min(int(self._ends[before]), end) if before >= 0 else 0


def gauge(tokenizer: str, text: str) -> Gauge:
    """Measure a text; `TOKENIZERS` are known."""
    return Gauge(text) if tokenizer == ESTIMATE else _Vocabulary(text, *_vocabulary(tokenizer))


@functools.lru_cache
def _vocabulary(name: str) -> tuple[Encode, Positions]:
    """Return a vocabulary's encoder, and the bytes of each of its tokens."""
    encoding = encoding_of(name)
    lengths = np.array([len(token) for token in encoding.token_byte_values()], dtype=np.int64)
    return encoding.encode_ordinary, lengths


def _byte_ends(text: str) -> Positions:
    """Return [k] = bytes of UTF-8 before character k, for k from 0 to the length."""
    if text.isascii():
        return np.arange(len(text) + 1, dtype=np.int64)
    data = np.frombuffer(text.encode("utf-8", "replace"), dtype=np.uint8)
    starts = np.flatnonzero((data & 0xC0) != 0x80)
    return np.append(starts, len(data)).astype(np.int64)


def _blocks(text: str, start: int = 0, end: int | None = None) -> Iterator[tuple[int, int]]:
    """Return stretches that can be encoded separately, cut where no token crosses if such a place exists."""
    end = len(text) if end is None else end
    cuts = [start]
    while end - cuts[-1] > _BLOCK:
        limit = cuts[-1] + _BLOCK
        breaks = [match.end() for match in _BREAK.finditer(text, limit - _BLOCK // 10, limit)]
        cuts.append(breaks[-1] if breaks else limit)
    return pairwise([*cuts, end])


class ChunkWork:
    """One document while it is cut."""

    def __init__(self, row: Mapping[str, Any], options: JsonMap) -> None:
        self.text: str = row["text"]
        self.title: str = " ".join((row["title"] or "").split())
        self.headings = [
            (heading["start"], heading["level"], heading["title"]) for heading in row["headings"] or ()
        ]
        self.pages: list[int] = list(row["pages"] or ())
        self.options = options  # all options of the chunker
        self.gauge = gauge(options["tokenizer"], self.text)
        self._nothing = gauge(options["tokenizer"], "")
        self._starts = [start for start, _, _ in self.headings]
        self._crumbs: dict[tuple[int, int], str] = {}
        self._costs: dict[str, int] = {}
        self._counted: dict[Span, int] = {}

    def trimmed(self, start: int, end: int) -> Span:
        """Return the span without the blanks at its ends; empty (start = end) when it is all blank."""
        part = self.text[start:end]
        left = len(part) - len(part.lstrip())
        return start + left, max(start + left, start + len(part.rstrip()))

    def sections(self) -> list[Span]:
        """Return the document cut before each heading."""
        edges = [0, *(start for start in self._starts if start > 0), len(self.text)]
        return list(pairwise(edges))

    def metadata(self, start: int) -> str:
        """Return the text put before a passage that begins here; it may be empty.

        It takes at most half of the size; the least specific headings are left out first.
        """
        section = bisect_right(self._starts, start)
        page = bisect_right(self.pages, start)
        if (section, page) not in self._crumbs:
            path = self._path(section, page)
            while path and self._cost(CRUMB.join(path)) > self.options["size"] // 2:
                path = path[1:]
            self._crumbs[section, page] = CRUMB.join(path)
        return self._crumbs[section, page]

    def _path(self, section: int, page: int) -> list[str]:
        wanted = self.options["metadata"]
        if wanted == "none":
            return []
        path = [self.title] if self.title else []
        if wanted == "title":
            return path
        stack: list[tuple[int, str]] = []
        for _, level, title in self.headings[:section]:
            stack = [heading for heading in stack if heading[0] < level] + [(level, title)]
        if stack and [stack[0][1]] == path:  # the first heading is the title
            path = []
        path += [title for _, title in stack]
        return [*path, f"page {page}"] if self.pages else path

    def _cost(self, crumb: str) -> int:
        """Return the tokens of metadata with the line end after it."""
        if crumb and crumb not in self._costs:
            self._costs[crumb] = self._nothing.count(0, 0, f"{crumb}\n")
        return self._costs.get(crumb, 0)

    def tokens(self, start: int, end: int) -> int:
        """Return the tokens of the passage made of these characters, its metadata included."""
        span = start, end = self.trimmed(start, end)
        if span not in self._counted:
            crumb = self.metadata(start)
            self._counted[span] = self.gauge.count(start, end, f"{crumb}\n" if crumb else "")
        return self._counted[span]

    def fits(self, start: int, end: int) -> bool:
        """Return whether these characters make a passage that is not too long.

        If they are clearly short, the tokens of the whole text decide, which is faster; finished passages are
        counted exactly.
        """
        limit: int = self.options["size"]
        about = self.gauge.about(start, end) + self._cost(self.metadata(start))
        return about + _MARGIN <= limit or self.tokens(start, end) <= limit

    def reach(self, start: int, end: int) -> int:
        """Return how far a passage that begins here can reach, at most to `end`; at least one character."""
        start, limit = min(self.trimmed(start, end)[0], end - 1), self.options["size"]
        far = min(self.gauge.reach(start, limit - self._cost(self.metadata(start))), end)
        while far > start + 1 and (over := self.tokens(start, far) - limit) > 0:
            far = max(start + 1, min(self.gauge.back(far, over), far - 1))
        return far

    def cut(self, start: int, end: int) -> list[Span]:
        """Return passages of the largest size that end between words, where there are any."""
        spans = []
        while start < end:
            far = self.reach(start, end)
            if far < end:
                blank = max(self.text.rfind(mark, start + 1, far + 1) for mark in " \n\t")
                far = blank if blank > start + (far - start) // 2 else far
            spans.append((start, far))
            start = self.trimmed(far, end)[0]
        return spans

    def overlap_from(self, start: int, end: int, tokens: int) -> int:
        """Return where the last `tokens` before `end` begin, at `start` at the earliest."""
        end = self.trimmed(start, end)[1]
        begin = max(self.gauge.back(end, tokens), start) if tokens > 0 else end
        while (begin := next_word(self.text, begin, end)) < end:
            over = self.gauge.count(begin, end) - tokens
            if over <= 0:
                break
            begin = max(begin + 1, self.gauge.reach(begin, over))
        return begin


def next_word(text: str, start: int, end: int) -> int:
    """Return where the next text begins, or `end` if the rest is blank."""
    match = _WORD_START.search(text, start, end)
    return match.start() if match else end
