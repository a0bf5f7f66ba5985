"""How grades of other scales become 1..5 of the rubric: mappings as data, chosen or given, always said."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import polars as pl

from core.errors import InputError
from core.importers.read.text import quoted

GRADE_MAPPINGS: Mapping[str, Mapping[int, int]] = MappingProxyType(
    {
        "1-5": {1: 1, 2: 2, 3: 3, 4: 4, 5: 5},
        "binary": {0: 1, 1: 5},
        "0-2": {0: 1, 1: 3, 2: 5},
        "0-3": {0: 1, 1: 3, 2: 4, 3: 5},
        "0-4": {0: 1, 1: 2, 2: 3, 3: 4, 4: 5},
        "1-5 reversed": {1: 5, 2: 4, 3: 3, 4: 2, 5: 1},
    }
)
_BY_HIGHEST = {1: "binary", 2: "0-2", 3: "0-3", 4: "0-4"}
_PAIR = re.compile(r"\s*(-?\d+)\s*(?:→|->|=)\s*([1-5])\s*")


@dataclass(frozen=True, slots=True)
class GradeMapping:
    """A mapping that was decided: its readable text, its pairs, and how it was decided.

    A negative grade that has no pair of its own becomes 1, the lowest of the rubric.
    """

    text: str
    pairs: Mapping[int, int]
    note: str

    def apply(self, raw: pl.Expr) -> pl.Expr:
        """Grades 1..5 (Int8) of raw integer grades; null where a grade has no pair."""
        mapped = raw.replace_strict(dict(self.pairs), default=None, return_dtype=pl.Int8)
        return pl.when(mapped.is_null() & (raw < 0)).then(pl.lit(1, pl.Int8)).otherwise(mapped)


def decide(wanted: str | None, values: set[int], where: str, *, from_zero: bool = False) -> GradeMapping:
    """Choose the mapping of a golden set."""
    chosen, note = (
        (wanted, f"{where}: grades are mapped as asked") if wanted else _by_values(values, where, from_zero)
    )
    pairs = GRADE_MAPPINGS.get(chosen) or _parse(chosen, where)
    unplaced = sorted(value for value in values if value >= 0 and value not in pairs)
    if unplaced:
        shown_values = ", ".join(map(str, unplaced[:8]))
        raise InputError(
            f"Grades {shown_values} have no place in the mapping {chosen!r}.", where=where, do=_advice(values)
        )
    text = _text(chosen, pairs)
    return GradeMapping(text, pairs, f"{note}; mapping {text}.")


def mapping_text(name: str) -> str:
    """A named mapping as it is recorded with a golden set, for example ``0-2: 0→1, 1→3, 2→5``."""
    return _text(name, GRADE_MAPPINGS[name])


def _text(name: str, pairs: Mapping[int, int]) -> str:
    written = ", ".join(f"{raw}→{grade}" for raw, grade in sorted(pairs.items()))
    if name == "1-5":
        return name
    return f"{name}: {written}" if name in GRADE_MAPPINGS else written


def _by_values(values: set[int], where: str, from_zero: bool) -> tuple[str, str]:
    graded = {value for value in values if value >= 0}
    highest = max(graded, default=1)
    if 0 not in graded and (highest == 5 or (1 < highest < 5 and not from_zero)):
        sure = "" if highest == 5 else f" (ambiguous: only {', '.join(map(str, sorted(graded)))} occur)"
        return "1-5", f"{where}: grades taken as they are{sure}"
    if graded <= {0, 1}:
        return "binary", f"{where}: grades are binary"
    if highest in _BY_HIGHEST:
        unseen = "" if 0 in graded else ", though no 0 occurs"
        return _BY_HIGHEST[highest], f"{where}: grades run from 0 to {highest}{unseen}"
    found = ", ".join(map(str, sorted(values)[:12]))
    raise InputError(f"No grade mapping fits the grades {found}.", where=where, do=_advice(values))


def _advice(values: set[int]) -> str:
    example = ", ".join(
        f"{value}→{min(5, max(1, index + 1))}" for index, value in enumerate(sorted(values)[:9])
    )
    return f"Choose one of {', '.join(GRADE_MAPPINGS)}, or write your own, for example: {example}."


def _parse(text: str, where: str) -> dict[int, int]:
    matches = [_PAIR.fullmatch(part) for part in text.split(",")]
    if not all(matches):
        raise InputError(f"{quoted(text)} is not a grade mapping.", where=where, do=_advice({0, 1, 2}))
    return {int(match[1]): int(match[2]) for match in matches if match}
