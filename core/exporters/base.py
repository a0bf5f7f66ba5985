"""What exporters share: what was written, scores that keep the order."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import polars as pl

from core.errors import InputError
from core.records import Batch
from core.tables import TABLES

_LONGEST_NAME = 80


@dataclass(frozen=True, slots=True)
class Written:
    """What an export holds."""

    counts: Mapping[str, int] = field(default_factory=dict)  # rows by what they are
    notes: tuple[str, ...] = ()  # what was decided, and what the format cannot hold, as sentences


def rows_of(batch: Batch, table: str) -> pl.DataFrame:
    """The rows of a table of the batch; none where it has none."""
    found = batch.frames.get(table)
    return pl.DataFrame(schema=TABLES[table]) if found is None else found.lazy().collect()


def file_names(ids: Iterable[str]) -> dict[str, str]:
    """A safe and unique file name, without ending, for every id."""
    names: dict[str, str] = {}
    for each in ids:
        name = re.sub(r"[^\w.-]+", "-", each).strip("-.")[:_LONGEST_NAME].strip("-.") or "unnamed"
        taken = {known.lower() for known in names.values()}  # some file systems do not tell case
        tried, number = name, 2
        while tried.lower() in taken:
            tried, number = f"{name}-{number}", number + 1
        names[each] = tried
    return names


def scored(batch: Batch, *, fractions: bool = False) -> tuple[pl.DataFrame, int]:
    """The final rankings with scores whose order is that of the ranks, under trec_eval's rule too.

    trec_eval reads scores in single precision, sorts by them, and breaks ties by descending passage id. A run
    keeps its scores where they fall strictly, in single precision, down every ranking; otherwise all its
    scores become length of the ranking + 1.5 − rank.
    """
    rows = rows_of(batch, "rankings").filter(pl.col("stage") == "final").sort("run_id", "query_id", "rank")
    of_list = ["run_id", "query_id"]
    single = pl.col("score").cast(pl.Float32)
    falls = single.is_finite() & (single < single.shift(1).over(of_list)).fill_null(value=True)
    keeps = falls.fill_null(value=False).all().over("run_id")
    if fractions:
        keeps &= (pl.col("score") != pl.col("score").round()).any().over("run_id")
    made = rows.with_columns(keeps.alias("keeps"))
    new = pl.len().over(of_list) + 1.5 - pl.col("rank").rank("ordinal").over(of_list)
    score = pl.when("keeps").then(pl.col("score")).otherwise(new.cast(pl.Float64))
    replaced = made.filter(~pl.col("keeps"))["run_id"].n_unique()
    return made.select(*of_list, "rank", "passage_id", score.alias("score")), replaced


def given_grades(batch: Batch) -> pl.DataFrame:
    """golden_set_id, query_id, passage_id and grade, as given where that is known of a whole golden set."""
    rows = rows_of(batch, "judgements").sort("golden_set_id", "query_id", "passage_id")
    known = pl.col("raw").is_not_null().all().over("golden_set_id")
    grade = pl.when(known).then(pl.col("raw")).otherwise(pl.col("grade").cast(pl.Int16))
    return rows.select("golden_set_id", "query_id", "passage_id", grade.alias("grade"))


def mappings(batch: Batch) -> tuple[str, ...]:
    """How the exported grades became 1..5 here, where that is not as they are."""
    changed = [each for each in batch.golden_sets if each.mapping != "1-5"]
    return tuple(
        f"Grades of {each.golden_set_id} are as given; here they count as {each.mapping}." for each in changed
    )


def parted(rows: pl.DataFrame, owner: str) -> Iterator[tuple[str, pl.DataFrame]]:
    """The rows of each owner, with a file name for it."""
    names = file_names(rows[owner].unique(maintain_order=True))
    for (of,), part in rows.partition_by(owner, as_dict=True, maintain_order=True).items():
        yield names[str(of)], part


def as_runs(batch: Batch, name: str, grades: pl.DataFrame, rankings: pl.DataFrame, replaced: str) -> Written:
    """What a format of runs and qrels holds; `replaced`: what is said of new scores, if there are any."""
    notes = [*mappings(batch), *not_held(batch, ("rankings", "judgements"), name)]
    pools = rows_of(batch, "rankings").filter(pl.col("stage") == "pool").height
    if pools:
        notes.append(f"{pools:,} rows of candidate pools are left out: a {name} run is one ranking.")
    counts = {"runs": rankings["run_id"].n_unique(), "rankings": rankings.height}
    return Written({**counts, "judgements": grades.height}, (*notes, *([replaced] if replaced else ())))


def not_held(batch: Batch, held: Iterable[str], name: str) -> tuple[str, ...]:
    """What of the batch the format has no place for."""
    kept = set(held)
    rest = [
        f"{rows.lazy().select(pl.len()).collect().item():,} {table}"
        for table, rows in batch.frames.items()
        if table not in kept
    ]
    return (f"{name} has no place for: {', '.join(rest)}.",) if rest else ()


def refuse_ids(rows: pl.DataFrame, column: str, pattern: str, what: str) -> None:
    """Refuse ids that the format cannot hold."""
    bad = rows.filter(pl.col(column).str.contains(pattern))[column]
    if len(bad):
        raise InputError(
            f"The {column.replace('_', ' ')} {bad[0][:80]!r} {what}.",
            do="Export the own format, which holds any id.",
        )
