"""The judged side of the join: queries, grades and counts of one golden set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from core.store.read.codes import Filed, coded

Five = tuple[float, float, float, float, float]
LINEAR: Five = (1.0, 2.0, 3.0, 4.0, 5.0)


@dataclass(frozen=True, slots=True)
class Judged:
    """What a golden set judges; rows of one query follow one another."""

    query_ids: tuple[str, ...]  # the judged queries, sorted
    counts: npt.NDArray[np.int32]  # int32 [queries, 5], judged passages with grade 1..5 (read-only)
    ids: pa.Array  # passage ids (Arrow large_string), the judged ones among them
    start: npt.NDArray[np.int64]  # int64 [queries + 1], first row of each query
    code: npt.NDArray[np.int32]  # int32 [rows], place in `ids`
    grade: npt.NDArray[np.int8]  # int8 [rows]
    gains: Five = LINEAR  # what a passage of grade 1..5 gains, in the scale that the judges used


@lru_cache(maxsize=64)
def judged(golden_set_id: str, judgements: Sequence[Filed]) -> Judged:
    """Read a golden set; kept, for files of a store never change."""
    if not judgements:
        nothing = np.zeros(0, dtype=np.int32)
        ids = pa.array([], type=pa.large_string())
        counts = np.zeros((0, 5), dtype=np.int32)
        return Judged((), counts, ids, np.zeros(1, dtype=np.int64), nothing, nothing.astype(np.int8))
    (file,) = judgements  # all rows that one golden set has are in one part
    part = coded(file)
    assert part.grade is not None  # noqa: S101 - a part of judgements
    assert part.raw is not None  # noqa: S101
    lists = np.flatnonzero(part.owner == part.owners.index(golden_set_id))
    first, last = part.start[lists[0]], part.start[lists[-1] + 1]
    start = np.append(part.start[lists], last) - first
    grade = np.asarray(part.grade[first:last])
    query = np.repeat(np.arange(len(lists)), np.diff(start))
    counts = np.bincount(query * 5 + grade - 1, minlength=len(lists) * 5).reshape(-1, 5).astype(np.int32)
    counts.flags.writeable = False
    return Judged(
        query_ids=tuple(part.queries[place] for place in part.query[lists]),
        counts=counts,
        ids=part.ids,
        start=start,
        code=part.code[first:last],
        grade=grade,
        gains=gains_of(grade, part.raw[first:last]),
    )


def gains_of(grade: npt.NDArray[np.int8], raw: npt.NDArray[np.int16]) -> Five:
    """What a passage of grade 1..5 gains: the grade as it was given, below 0 as 0.

    Only where that is one number per grade and rises with the grade; else (a reversed scale, or two given
    grades that were mapped to one) the grade itself. A grade that does not occur has the gain of the next
    lower one that does.
    """
    if np.array_equal(grade, raw):
        return LINEAR
    given = np.maximum(raw, 0)
    gains, last = [], 0.0
    for each in range(1, 6):
        found = np.unique(given[grade == each])
        if len(found) > 1 or (len(found) == 1 and found[0] < last):
            return LINEAR
        last = float(found[0]) if len(found) else last
        gains.append(last)
    one, two, three, four, five = gains
    return one, two, three, four, five
