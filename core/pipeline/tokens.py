"""The terms of a whole corpus, as numbers: every word is looked up once, every distinct word stemmed once."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import partial
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from core.pipeline.processes import end_with_parent
from core.pipeline.text import Analyzer

BLOCK = 20_000
"""Texts that one task takes."""

PARALLEL_FROM = 100_000
"""From how many texts on several processes pay for being started (about a second)."""


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of texts.

    Attributes:
        ids: int32 [sum of `lengths`], the terms of all texts, one text after the other.
        lengths: int64 [texts], how many terms each text has.
        vocabulary: Term to its number, which counts from 0 in the order of first appearance.
    """

    ids: NDArray[np.int32]
    lengths: NDArray[np.int64]
    vocabulary: dict[str, int]


_Part = tuple[NDArray[np.int32], NDArray[np.int64], list[str]]


def tokenise(texts: Sequence[str], analyzer: Analyzer, *, workers: int | None = None) -> Terms:
    """The terms of texts, the same as `Analyzer.terms` of each.

    Args:
        texts: Any number of texts.
        analyzer: How text becomes terms.
        workers: Processes that share the work; by default one below `PARALLEL_FROM` texts, else one per
            usable core.

    Returns:
        The terms; equal whatever the number of processes.
    """
    blocks = [texts[start : start + BLOCK] for start in range(0, len(texts), BLOCK)]
    count = min(_workers(len(texts)) if workers is None else workers, len(blocks))
    task = partial(_part, analyzer)
    if count > 1 and not multiprocessing.current_process().daemon:
        try:
            context = multiprocessing.get_context("spawn")
            with ProcessPoolExecutor(count, context, initializer=end_with_parent) as pool:
                return _merged(pool.map(task, blocks))
        except BrokenProcessPool:
            pass  # processes cannot be started here (a script from standard input, a sandbox): one is enough
    return _merged(map(task, blocks))


def _workers(texts: int) -> int:
    if texts < PARALLEL_FROM:
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Numbers(dict[str, int]):
    """Numbers words in the order in which they are first asked for."""

    def __missing__(self, word: str) -> int:
        number = self[word] = len(self)
        return number


def _part(analyzer: Analyzer, texts: Sequence[str]) -> _Part:
    words = _Numbers()
    numbers = [list(map(words.__getitem__, analyzer.words(text))) for text in texts]
    lengths = np.fromiter(map(len, numbers), np.int64, len(numbers))
    flat = np.fromiter(chain.from_iterable(numbers), np.int32, int(lengths.sum()))

    kept = [word for word in words if not analyzer.is_stop_word(word)]
    terms = _Numbers()
    term_of_word = np.full(len(words) + 1, -1, dtype=np.int32)
    term_of_word[[words[word] for word in kept]] = [terms[stem] for stem in analyzer.stems(kept)]
    ids = term_of_word[flat]
    counted = ids >= 0
    ends = np.concatenate(([0], np.cumsum(counted)))[np.cumsum(lengths)]
    return ids[counted], np.diff(ends, prepend=0), list(terms)


def _merged(parts: Iterable[_Part]) -> Terms:
    vocabulary = _Numbers()
    ids: list[NDArray[np.int32]] = [np.empty(0, dtype=np.int32)]
    lengths: list[NDArray[np.int64]] = [np.empty(0, dtype=np.int64)]
    for part_ids, part_lengths, terms in parts:
        ids.append(np.array([vocabulary[term] for term in terms], dtype=np.int32)[part_ids])
        lengths.append(part_lengths)
    return Terms(np.concatenate(ids), np.concatenate(lengths), dict(vocabulary))
