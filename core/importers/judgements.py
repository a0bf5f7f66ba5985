"""Judgements of any format into a golden set: integer grades, a mapping to 1..5, no contradiction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import polars as pl

from core.errors import InputError
from core.importers.base import Import, LeftOut, Options, chosen_id, slug
from core.importers.grades import decide
from core.importers.read.fields import numbers
from core.importers.read.text import place, quoted, shown
from core.records import GoldenSet
from core.tables import frame

_RAW = pl.Int16
_RAW_MOST = 32_767
_JUDGED: Mapping[str, tuple[str, ...]] = {
    "judgements": ("query_id", "passage_id"),
    "spans": ("query_id", "source", "start_char", "end_char"),
}
"""What a judge may judge once only, by table."""


def golden_set(
    rows: pl.DataFrame,
    name: str,
    stem: str,
    options: Options,
    judge: str = "",
    *,
    table: Literal["judgements", "spans"] = "judgements",
    from_zero: bool = False,
) -> Import:
    """Make a golden set of judged pairs; one per judge where several judged the same pair."""
    raw = numbers(rows, "grade", name, whole=True)
    rows = rows.with_columns(raw.alias("raw"))
    _refuse(rows.filter(pl.col("raw").is_null()), name, "The grade is empty.", column="grade")
    _refuse(rows.filter(pl.col("raw").abs() > _RAW_MOST), name, "The grade is out of range.", column="grade")
    several = _several_judges(rows, name, _JUDGED[table])
    mapping = decide(options.grades, set(rows["raw"].unique().to_list()), name, from_zero=from_zero)
    collection = options.collection_id or "imported"
    own = slug(stem)
    chosen = f"{collection}-{'qrels' if own == collection else own}"
    named = options.golden_set_id or chosen
    chosen = chosen_id(named, {chosen})
    negative = rows.filter((pl.col("raw") < 0) & ~pl.col("raw").is_in(list(mapping.pairs)))
    notes = [mapping.note]
    if negative.height:
        notes.append(f"{name}: {negative.height} negative grades count as 1, the lowest.")
    ids = {each: f"{chosen}-{slug(each)}" for each in several} or {judge: chosen}
    if several:
        what = "passages" if table == "judgements" else table
        notes.append(f"{name}: {what} were judged by several, so each judge is a golden set of its own.")
    of_judge = pl.col("judge") if several else pl.lit(judge)
    made = rows.with_columns(
        mapping.apply(pl.col("raw")).alias("grade"),
        pl.col("raw").cast(_RAW),
        of_judge.replace_strict(ids, return_dtype=pl.String).alias("golden_set_id"),
    )
    golden = tuple(
        GoldenSet(
            golden_set_id=golden_id,
            collection_id=collection,
            name=shown(f"{named}-{each}" if several else named),
            mapping=mapping.text,
            judge=shown(each),
        )
        for each, golden_id in ids.items()
    )
    return Import(golden_sets=golden, frames={table: frame(table, made.to_dict())}, notes=tuple(notes))


def _several_judges(rows: pl.DataFrame, name: str, pair: Sequence[str]) -> list[str]:
    """The judges, where several judged one pair; else none."""
    if rows.select(pl.struct(pair).n_unique()).item() == rows.height:
        return []
    named = "judge" in rows.columns and not rows["judge"].null_count()
    key = [*pair, "judge"] if named else pair
    again = rows.filter(~pl.struct(key).is_first_distinct())
    if again.height:
        row = again.row(0, named=True)
        who = f" by {quoted(row['judge'])}" if named else ""
        found = f"{_judged(row)} judged twice{who} for query {quoted(row['query_id'])}."
        do = "Keep one judgement of each, or leave the file out (--skip)."
        raise InputError(found, where=place(name, row["line"]), do=do)
    return [str(judge) for judge in rows["judge"].unique().sort()]


def _judged(row: Mapping[str, Any]) -> str:
    """What was judged, for a message."""
    if "passage_id" in row:
        return f"Passage {quoted(row['passage_id'])} is"
    return f"Characters {row['start_char']} to {row['end_char']} of {quoted(row['source'])} are"


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
