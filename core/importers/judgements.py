"""Judgements of any format into a golden set: integer grades, a mapping to 1..5, no contradiction."""

from __future__ import annotations

import polars as pl

from core.errors import InputError
from core.importers.base import Import, LeftOut, Options, slug
from core.importers.fields import numbers
from core.importers.grades import decide
from core.importers.text import place, quoted, shown
from core.records import GoldenSet
from core.tables import frame

_RAW = pl.Int16
_RAW_MOST = 32_767


def golden_set(rows: pl.DataFrame, name: str, stem: str, options: Options, judge: str = "") -> Import:
    """Make a golden set of judged pairs.

    Args:
        rows: query_id, passage_id, grade (text or number), line; `judge` if passages name theirs.
        name: File, for messages.
        stem: Names the golden set where the options do not.
        options: Its grade mapping, golden set and collection.
        judge: Who judged, in words.

    Returns:
        The golden set with its judgements; notes say how grades were mapped.

    Raises:
        InputError: A grade is no integer or is empty, a pair is judged twice, no mapping fits.
    """
    raw = numbers(rows, "grade", name, whole=True)
    rows = rows.with_columns(raw.alias("raw"))
    _refuse(rows.filter(pl.col("raw").is_null()), name, "The grade is empty.", column="grade")
    _refuse(rows.filter(pl.col("raw").abs() > _RAW_MOST), name, "The grade is out of range.", column="grade")
    if rows.select(pl.struct("query_id", "passage_id").n_unique()).item() < rows.height:
        again = rows.filter(~pl.struct("query_id", "passage_id").is_first_distinct())
        pair = again.row(0, named=True)
        found = f"Passage {quoted(pair['passage_id'])} is judged twice for query {quoted(pair['query_id'])}."
        _refuse(again, name, found)
    mapping = decide(options.grades, set(rows["raw"].unique().to_list()), name)
    collection = options.collection_id or "imported"
    chosen = options.golden_set_id or f"{collection}-{slug('qrels' if stem == collection else stem)}"
    negative = rows.filter((pl.col("raw") < 0) & ~pl.col("raw").is_in(list(mapping.pairs)))
    notes = [mapping.note]
    if negative.height:
        notes.append(f"{name}: {negative.height} negative grades count as 1, the lowest.")
    made = rows.with_columns(
        mapping.apply(pl.col("raw")).alias("grade"),
        pl.col("raw").cast(_RAW),
        pl.lit(slug(chosen)).alias("golden_set_id"),
    )
    golden = GoldenSet(
        golden_set_id=slug(chosen),
        collection_id=collection,
        name=shown(chosen),
        mapping=mapping.text,
        judge=judge,
    )
    return Import(
        golden_sets=(golden,), frames={"judgements": frame("judgements", made.to_dict())}, notes=tuple(notes)
    )


def _refuse(bad: pl.DataFrame, name: str, found: str, column: str | None = None) -> None:
    if bad.height:
        raise InputError(found, where=place(name, bad["line"][0], column))


def without_empty_ids(rows: pl.DataFrame, name: str, columns: tuple[str, ...]) -> pl.DataFrame:
    """The rows as they are, refused if a query or passage id is empty."""
    for column in columns:
        empty = rows.filter(pl.col(column).is_null() | (pl.col(column) == ""))
        _refuse(empty, name, "The id is empty.", column=column)
    return rows


def left_out(count: int, reason: str, first: str = "") -> tuple[LeftOut, ...]:
    """One entry, or none if nothing was left out."""
    return (LeftOut(count, reason, first),) if count else ()
