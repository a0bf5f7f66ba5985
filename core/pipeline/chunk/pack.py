"""Packs neighbouring units (sentences, lines, words) into passages, with whole units as overlap."""

from __future__ import annotations

from collections.abc import Sequence

from core.pipeline.chunk.base import Span, Work


def pack(work: Work, units: Sequence[Span], overlap: int) -> list[Span]:
    """Join units in order, as many as fit.

    Args:
        work: The document.
        units: Stretches without blanks at their ends, in order; one that is too long is cut between words.
        overlap: The most tokens that a passage repeats of the one before it; whole units only.

    Returns:
        Spans that fit. Neighbours overlap where the repeated units leave room for a new one.
    """
    units = _fitting(work, units)
    starts = [start for start, _ in units]
    spans: list[Span] = []
    first = 0
    while first < len(units):
        last = _last(work, units, first)
        start, end = starts[first], units[last][1]
        spans.append((start, end))
        if last + 1 == len(units):
            break
        begin = work.overlap_from(start, end, overlap)
        following = last + 1
        again = next((unit for unit in range(first + 1, following) if starts[unit] >= begin), following)
        while again < following and not work.fits(starts[again], units[following][1]):
            again += 1
        first = again
    return spans


def _fitting(work: Work, units: Sequence[Span]) -> list[Span]:
    return [
        part
        for start, end in units
        for part in ([(start, end)] if work.fits(start, end) else work.cut(start, end))
    ]


def _last(work: Work, units: Sequence[Span], first: int) -> int:
    """The last unit that fits into a passage that begins with the first."""
    start = units[first][0]
    far = work.reach(start, units[-1][1])
    last = first
    while last + 1 < len(units) and units[last + 1][1] <= far:
        last += 1
    while last > first and not work.fits(start, units[last][1]):
        last -= 1
    return last
