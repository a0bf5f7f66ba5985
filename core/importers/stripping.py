"""Ids that carry more than those of their collection: a beginning or an end that is taken off."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import polars as pl

from core.errors import InputError, UnknownNameError
from core.importers.base import Import
from core.importers.read.text import quoted
from core.tables import TABLES, altered

ID_COLUMNS: Mapping[str, str] = {"queries": "query_id", "passages": "passage_id"}
"""What can be stripped → its column."""
STAR = "*"
_OWN = {"queries", "passages", "chunks"}  # Tables that say what the ids of a collection are


def stripped(made: Import, patterns: Mapping[str, str]) -> Import:
    """Take a beginning and an end off the ids that rankings, judgements, answers and costs name."""
    frames = dict(made.frames)
    for what, pattern in patterns.items():
        if what not in ID_COLUMNS:
            raise UnknownNameError("ids to strip", what, ID_COLUMNS)
        begin, star, end = pattern.partition(STAR)
        if not star or STAR in end:
            raise InputError(
                f"{quoted(pattern)} is no pattern.", do=f"Write one {STAR} for what stays: doc-{STAR}."
            )
        column = ID_COLUMNS[what]
        kept = pl.col(column).str.strip_prefix(begin).str.strip_suffix(end)
        for table in [each for each in frames if column in TABLES[each] and each not in _OWN]:
            _fits(frames[table].lazy(), column, begin, end, pattern)
            frames[table] = altered(frames[table], kept)
    return replace(made, frames=frames) if patterns else made


def _fits(rows: pl.LazyFrame, column: str, begin: str, end: str, pattern: str) -> None:
    known = pl.col(column)
    longer = known.str.len_chars() > len(begin) + len(end)
    fits = known.str.starts_with(begin) & known.str.ends_with(end) & longer
    other = rows.filter(~fits).select(column).head(1).collect()
    if other.height:
        raise InputError(
            f"{quoted(other.item())} does not fit {quoted(pattern)}.", do="Give a pattern that all ids fit."
        )


def patterns(pairs: Sequence[str]) -> dict[str, str]:
    """Patterns that are written as ``passages=doc-*``.

    Raises:
        InputError: One is not written so.
    """
    bad = next((pair for pair in pairs if "=" not in pair), None)
    if bad is not None:
        raise InputError(f"{quoted(bad)} is no what=pattern.", do=f"For example passages=doc-{STAR}.")
    return {what.strip(): pattern for what, _, pattern in (pair.partition("=") for pair in pairs)}
