"""What the rows of each bulk table must satisfy before they are stored.

Structure (columns, types) is checked on the frame; content is checked by the database on the staged file, so
that frames larger than memory pass too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import duckdb
import polars as pl

from core.answers import EARLIER, KEY, MODES
from core.errors import InputError, UnknownNameError
from core.records import Basis
from core.tables import TABLES, Frame

_SPAN = ("start_char >= 0 AND end_char > start_char", "the span is empty or begins before the document")
_GRADE = ("grade BETWEEN 1 AND 5", "grade is not within 1 to 5")
_QUOTED_MODES = ", ".join(f"'{mode}'" for mode in MODES)
_ANSWERED = (
    ("k >= 0", "k is negative"),
    ('"pass" >= 1', "pass is less than 1"),
    ("isfinite(temperature) AND temperature >= 0", "temperature is negative or not a number"),
    (f"mode IN ({_QUOTED_MODES})", "mode is unknown"),
)
_DIAGNOSED = (
    *("collection_id", "diagnosis", "embedder", "dim", "language"),
    *("run", "condition", "measure"),
)
_QUOTED_BASES = ", ".join(f"'{basis.value}'" for basis in Basis)


@dataclass(frozen=True, slots=True)
class Rules:
    """Declared rules of one table."""

    kind: str  # what the rows belong to: collection, golden_set or run
    required: tuple[str, ...]  # columns that are never null; texts among them that are ids are never empty
    unique: tuple[tuple[str, ...], ...]  # sets of columns that name a row
    order: tuple[str, ...]  # how rows are sorted on disk; the first column is the owner's id
    checks: tuple[tuple[str, str], ...] = ()  # SQL condition (true or null = fine) and what it says in words
    grows: bool = False  # whether an owner may get more rows later; all of its parts count, not the last

    @property
    def owner(self) -> str:
        """The column with the id of the record that a row belongs to."""
        return self.order[0]


RULES: Mapping[str, Rules] = MappingProxyType(
    {
        "queries": Rules(
            "collection",
            ("collection_id", "query_id", "text"),
            (("collection_id", "query_id"),),
            ("collection_id", "query_id"),
        ),
        "passages": Rules(
            "collection",
            ("collection_id", "passage_id", "text"),
            (("collection_id", "passage_id"),),
            ("collection_id", "passage_id"),
            (("tokens >= 0", "tokens is negative"),),
        ),
        "judgements": Rules(
            "golden_set",
            ("golden_set_id", "query_id", "passage_id", "grade"),
            (("golden_set_id", "query_id", "passage_id"),),
            ("golden_set_id", "query_id", "passage_id"),
            (_GRADE,),
        ),
        "rankings": Rules(
            "run",
            ("run_id", "query_id", "stage", "rank", "passage_id"),
            (("run_id", "stage", "query_id", "passage_id"), ("run_id", "stage", "query_id", "rank")),
            ("run_id", "stage", "query_id", "rank"),
            (
                ("rank >= 1", "rank is less than 1"),
                ("stage IN ('pool', 'final')", "stage is neither 'pool' nor 'final'"),
            ),
        ),
        "timings": Rules(
            "run",
            ("run_id", "query_id", "stage", "repeat", "ms"),
            (("run_id", "stage", "query_id", "repeat"),),
            ("run_id", "stage", "query_id", "repeat"),
            (
                ("repeat >= 1", "repeat is less than 1"),
                ("isfinite(ms) AND ms >= 0", "ms is negative or not a number"),
            ),
        ),
        "usage": Rules(
            "run",
            ("run_id", "stage", "item", "unit", "basis"),
            (("run_id", "stage", "item", "unit", "query_id"),),
            ("run_id", "stage", "item", "unit", "query_id"),
            (
                ("isfinite(amount) AND amount >= 0", "amount is negative or not a number"),
                (f"basis IN ({_QUOTED_BASES})", "basis is unknown"),
            ),
        ),
        "aggregates": Rules(
            "run",
            ("run_id", "measure", "value"),
            (("run_id", "measure", "k", "stage", "source"),),
            ("run_id", "measure", "k", "stage", "source"),
            (
                ("isfinite(value)", "value is not a number"),
                ("k >= 1", "k is less than 1"),
                ("n >= 0", "n is negative"),
            ),
        ),
        "signals": Rules(
            "run",
            ("run_id", "query_id", "signal", "value"),
            (("run_id", "signal", "k", "query_id"),),
            ("run_id", "signal", "k", "query_id"),
            (("isfinite(value)", "value is not a number"), ("k >= 1", "k is less than 1")),
        ),
        "answers": Rules(
            "run",
            ("run_id", "query_id"),
            (KEY,),
            KEY,
            (
                *_ANSWERED,
                ("input_tokens >= 0", "input_tokens is negative"),
                ("output_tokens >= 0", "output_tokens is negative"),
                ("isfinite(first_token_ms) AND first_token_ms >= 0", "first_token_ms is not a time"),
                ("isfinite(ms) AND ms >= 0", "ms is negative or not a number"),
                ("isfinite(usd) AND usd >= 0", "usd is negative or not a number"),
            ),
            grows=True,
        ),
        "answer_scores": Rules(
            "run",
            ("run_id", "scorer", "value"),
            ((*KEY, "scorer", "judge"),),
            (*KEY, "scorer", "judge"),
            (*_ANSWERED, ("isfinite(value)", "value is not a number"), ("n >= 0", "n is negative")),
            grows=True,
        ),
        "gold_answers": Rules(
            "collection",
            ("collection_id", "query_id", "answer"),
            (("collection_id", "query_id", "answer"),),
            ("collection_id", "query_id", "answer"),
        ),
        "diagnostics": Rules(
            "collection",
            ("collection_id", "diagnosis", "condition", "measure", "value"),
            (_DIAGNOSED,),
            _DIAGNOSED,
            (
                ("isfinite(value)", "value is not a number"),
                ("run >= 1", "run is less than 1"),
                ("n >= 0", "n is negative"),
            ),
        ),
        "chunks": Rules(
            "collection",
            ("collection_id", "passage_id", "source", "start_char", "end_char"),
            (("collection_id", "passage_id"),),
            ("collection_id", "passage_id"),
            (_SPAN,),
        ),
        "spans": Rules(
            "golden_set",
            ("golden_set_id", "query_id", "source", "start_char", "end_char", "grade"),
            (("golden_set_id", "query_id", "source", "start_char", "end_char"),),
            ("golden_set_id", "query_id", "source", "start_char", "end_char"),
            (_SPAN, _GRADE),
        ),
        "gradings": Rules(
            "golden_set",
            ("golden_set_id", "query_id", "passage_id", "judge"),
            (),
            ("golden_set_id", "query_id", "passage_id", "judge", "at"),
            (
                _GRADE,
                ("isfinite(seconds) AND seconds >= 0", "seconds is negative or not a number"),
                ("input_tokens >= 0", "input_tokens is negative"),
                ("output_tokens >= 0", "output_tokens is negative"),
                ("isfinite(usd) AND usd >= 0", "usd is negative or not a number"),
            ),
        ),
        "orders": Rules(
            "golden_set",
            ("golden_set_id", "query_id", "passage_id", "rank", "score"),
            (("golden_set_id", "query_id", "passage_id"), ("golden_set_id", "query_id", "rank")),
            ("golden_set_id", "query_id", "rank"),
            (
                ("rank >= 1", "rank is less than 1"),
                ("isfinite(score)", "score is not a number"),
                ("exposures >= 0 AND locks >= 0 AND contradictions >= 0", "a count is negative"),
                ("isfinite(information) AND information >= 0", "information is negative or not a number"),
            ),
        ),
    }
)

GROWING = tuple(table for table, rules in RULES.items() if rules.grows)


def names(columns: Iterable[str]) -> str:
    """Declared columns as SQL writes them; one of them may be a word of SQL ("at")."""
    return ", ".join(f'"{column}"' for column in columns)


_LATER = {"answers": pl.Schema({**TABLES["answers"], **EARLIER})}
"""Tables that had other columns in the last release, with those of then and of now."""
_TYPES = {
    pl.String: "VARCHAR",
    pl.Float64: "DOUBLE",
    pl.Int64: "BIGINT",
    pl.Int32: "INTEGER",
    pl.Int16: "SMALLINT",
    pl.Boolean: "BOOLEAN",
}


def rows_of(table: str, files: str) -> str:
    """The rows of a table's files as SQL; what a part of an earlier release lacks is null."""
    if table not in _LATER:
        return f"read_parquet({files})"
    nulls = ", ".join(f'NULL::{_TYPES[type(kind)]} AS "{name}"' for name, kind in _LATER[table].items())
    read = f"SELECT * FROM read_parquet({files}, union_by_name = true)"  # noqa: S608 - own names
    return f"(SELECT {nulls} WHERE false UNION ALL BY NAME {read})"


def conform(table: str, rows: Frame) -> pl.LazyFrame:
    """Give a frame the declared columns and types; only casts that lose nothing."""
    if table not in TABLES:
        raise UnknownNameError("table", table, TABLES)
    lazy = rows.lazy()
    found, wanted = lazy.collect_schema(), TABLES[table]
    missing = [name for name in wanted if name not in found]
    extra = [name for name in found if name not in wanted]
    if missing or extra:
        problem = f"No column {missing[0]!r}." if missing else f"Unknown column {extra[0]!r}."
        raise InputError(problem, where=table, do=f"Found: {', '.join(found) or 'none'}.")
    for name, dtype in wanted.items():
        if not _fits(found[name], dtype):
            raise InputError(
                f"Column {name!r} is {found[name]}; it must be {dtype}.", where=table, do="Convert it first."
            )
    return lazy.select(pl.col(name).cast(dtype) for name, dtype in wanted.items())


def _fits(found: pl.DataType, wanted: pl.DataType) -> bool:
    """Whether a cast keeps every value (integers that are out of range raise when it runs)."""
    if found == wanted or isinstance(found, pl.Null):
        return True
    if isinstance(wanted, pl.List):
        return isinstance(found, pl.List) and _fits(_inner(found), _inner(wanted))
    if isinstance(wanted, pl.String):
        return isinstance(found, pl.Categorical | pl.Enum)
    return found.is_integer() or (wanted.is_float() and found.is_float())


def _inner(dtype: pl.List) -> pl.DataType:
    inner = dtype.inner
    return inner if isinstance(inner, pl.DataType) else inner()


def check(cursor: duckdb.DuckDBPyConnection, table: str, staged: Path) -> None:
    """Check the content of a staged file."""
    rules = RULES[table]
    broken = [(f"{name} IS NULL", f"{name} is missing") for name in rules.required]
    ids = [name for name in rules.required if name.endswith("_id")]
    broken += [(f"{name} = ''", f"{name} is empty") for name in ids]
    broken += [(f"NOT ({condition})", words) for condition, words in rules.checks]
    counted = ", ".join(f"count_if({condition})" for condition, _ in broken)
    counts = cursor.execute(f"SELECT {counted} FROM read_parquet(?)", [str(staged)]).fetchall()[0]  # noqa: S608
    for (condition, words), count in zip(broken, counts, strict=True):
        if count:
            example = f"SELECT * FROM read_parquet(?) WHERE {condition} LIMIT 1"  # noqa: S608
            raise _refused(cursor, table, example, staged, f"{words} in {count} rows")
    for columns in rules.unique:
        key = names(columns)
        # Rows with different hashes are different: a fraction of the memory that the texts themselves take.
        hashed = f"SELECT hash({key}) AS h FROM read_parquet(?)"  # noqa: S608 - own names
        alike = f"SELECT 1 FROM ({hashed}) GROUP BY h HAVING count(*) > 1 LIMIT 1"  # noqa: S608
        if not cursor.execute(alike, [str(staged)]).fetchall():
            continue
        repeated = f"FROM read_parquet(?) GROUP BY {key} HAVING count(*) > 1 LIMIT 1"
        if cursor.execute(f"SELECT 1 {repeated}", [str(staged)]).fetchall():
            example = f"SELECT any_value(COLUMNS(*)) {repeated}"
            raise _refused(cursor, table, example, staged, f"more than one row has this {', '.join(columns)}")


def _refused(
    cursor: duckdb.DuckDBPyConnection, table: str, example: str, staged: Path, words: str
) -> InputError:
    row = cursor.sql(example, params=[str(staged)]).pl().row(0, named=True)
    shown = ", ".join(f"{name} {row[name]!r}" for name in row if name.endswith("_id") or name in _SHOWN)
    return InputError(
        f"{words[0].upper()}{words[1:]}; for example {shown}.", where=table, do="Nothing was written."
    )


_SHOWN = (
    "stage",
    "rank",
    "grade",
    "repeat",
    "ms",
    "item",
    "unit",
    "amount",
    "basis",
    "measure",
    "k",
    "value",
    "tokens",
    "signal",
    "source",
    "start_char",
    "end_char",
    "reader",
    "prompt",
    "temperature",
    "mode",
    "pass",
    "scorer",
)
