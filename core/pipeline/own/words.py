"""A text found among others by its words, ignoring blanks, formatting marks and case."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

import numpy as np

_WORD = re.compile(r"[^\W_]+")
_ENDS = 6  # Words at either end by which a text is found that is not there word by word
_LEAST = 3 * _ENDS  # Least words of a text that is searched for by its ends
_MOST = 200_000_000  # Maximum characters of texts that are searched together
_SHORTEST = 5  # Least words of a text that is searched for within another


def in_line(text: str) -> str:
    """Return the words of a text, each between blanks; empty if it has none."""
    words = _WORD.findall(text)
    return f" {' '.join(words).casefold()} " if words else ""


class Worded:
    """A text with the place of each of its words."""

    def __init__(self, text: str) -> None:
        found = [(match[0].casefold(), *match.span()) for match in _WORD.finditer(text)]
        words = [word for word, _, _ in found]
        self.line = f" {' '.join(words)} " if words else ""
        self._begins = np.cumsum([1, *(len(word) + 1 for word in words)])
        self._spans = [(start, end) for _, start, end in found]

    def find(self, line: str) -> tuple[int, int] | None:
        """Return the position of words in characters of the text; the words are in the form of `in_line`.

        A long text that is not there word by word is found by its beginning and its end, if the text between
        them is about as long.
        """
        at = self.line.find(line)
        if at >= 0:
            return self._characters(at, at + len(line))
        words = line.split()
        if len(words) < _LEAST:
            return None
        head, tail = (f" {' '.join(part)} " for part in (words[:_ENDS], words[-_ENDS:]))
        begin = self.line.find(head)
        end = self.line.find(tail, begin) if begin >= 0 else -1
        if end < 0:
            return None
        between = self.line[begin : end + len(tail)]
        alike = 0.5 <= len(between) / len(line) <= 1.5
        return self._characters(begin, begin + len(between)) if alike else None

    def _characters(self, begin: int, end: int) -> tuple[int, int]:
        first, last = np.searchsorted(self._begins, (begin + 1, end)).tolist()
        return self._spans[first][0], self._spans[last - 1][1]


class PlacedTexts:
    """Texts by their position."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts
        self._worded: dict[int, Worded] = {}

    def worded(self, at: int) -> Worded:
        """Return a text with the places of its words."""
        if at not in self._worded:
            self._worded[at] = Worded(self._texts[at])
        return self._worded[at]

    def holding(self, line: str, among: Iterable[int] | None = None) -> int | None:
        """Return the first text that contains words, among some, or among all if these are few enough."""
        if among is not None:
            return next((at for at in among if line in self.worded(at).line), None)
        whole, begins = self._together
        place = whole.find(line)
        return None if place < 0 else bisect_right(begins, place) - 1

    def within(self, line: str) -> Iterator[int]:
        """Yield the texts that occur within words, word by word."""
        words = line.split()
        for at in range(len(words) - _SHORTEST + 1):
            for text in self._beginnings.get(" ".join(words[at : at + _SHORTEST]), ()):
                if self.worded(text).line in line:
                    yield text

    @cached_property
    def _together(self) -> tuple[str, list[int]]:
        """Return all words in one line, and the start of each text's words."""
        if sum(map(len, self._texts)) > _MOST:
            return "", []
        lines = [in_line(text) + "\n" for text in self._texts]
        return "".join(lines), np.cumsum([0, *map(len, lines)])[:-1].tolist()

    @cached_property
    def _beginnings(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for at, text in enumerate(self._texts):
            words = in_line(text[: 40 * _SHORTEST]).split()[:_SHORTEST]
            if len(words) == _SHORTEST:
                found.setdefault(" ".join(words), []).append(at)
        return found
