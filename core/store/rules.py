"""Rules that the rows of each bulk table must satisfy before they are stored.

Structure (columns, types) is checked on the frame; content is checked by the database on the staged file, so
that frames larger than memory pass too.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import duckdb
import polars as pl

from core.answers import EARLIER, KEY, MODES
from core.errors import InputError, UnknownNameError
from core.filters import Kind
from core.records import Basis
from core.tables import NUGGETS, TABLES, Frame

_Check = tuple[str, str]  # SQL condition (true or null = fine) and what is wrong otherwise, of the column {0}
_COUNT: _Check = ("{0} >= 0", "{0} is negative")
_ORDINAL: _Check = ("{0} >= 1", "{0} is less than 1")
_NUMBER: _Check = ("isfinite({0})", "{0} is not a number")
_AMOUNT: _Check = ("isfinite({0}) AND {0} >= 0", "{0} is negative or not a number")
_CHECKS: Mapping[str, _Check] = {
    **dict.fromkeys(("rank", "repeat", "place", "pass", "run", "k"), _ORDINAL),
    **dict.fromkeys(("tokens", "input_tokens", "output_tokens", "n"), _COUNT),
    **dict.fromkeys(("exposures", "locks", "contradictions"), _COUNT),
    **dict.fromkeys(("amount", "ms", "first_token_ms", "seconds", "usd"), _AMOUNT),
    **dict.fromkeys(("temperature", "information"), _AMOUNT),
    "value": _NUMBER,
    "grade": ("{0} BETWEEN 1 AND 5", "{0} is not within 1 to 5"),
    "basis": (f"{{0}} IN {tuple(basis.value for basis in Basis)}", "{0} is unknown"),
    "mode": (f"{{0}} IN {MODES}", "{0} is unknown"),
    "start_char": ("{0} >= 0 AND end_char > {0}", "the span is empty or begins before the document"),
}
"""Checks of a column in every table that has it."""
_KEY = " ".join(KEY)
_DIAGNOSED = "collection_id diagnosis embedder dim language run condition measure"
_SPAN = "golden_set_id query_id source start_char end_char"
_OF_QUERY = "golden_set_id query_id passage_id"
_RANKED = "run_id stage query_id"
_LATER = {
    "answers": pl.Schema({**TABLES["answers"], **EARLIER}),
    "timings": TABLES["timings"],
    "ratings": TABLES["ratings"],
}
"""Tables that had other columns in the last release, each with the columns of both releases."""
_TYPES = {
    pl.String: "VARCHAR",
    pl.Float64: "DOUBLE",
    pl.Int64: "BIGINT",
    pl.Int32: "INTEGER",
    pl.Int16: "SMALLINT",
    pl.Boolean: "BOOLEAN",
}
_LONG = ("title", "text", "tags", "answer", "note", "judge")  # Columns not shown for a refused row


@dataclass(frozen=True, slots=True)
class TableRules:
    """Declared rules of one table."""

    order: tuple[str, ...]  # how rows are sorted on disk; the first column is the owner's id
    required: tuple[str, ...]  # columns that are never null; ids among them are never empty texts
    unique: tuple[tuple[str, ...], ...]  # sets of columns that identify a row
    checks: Mapping[str, _Check]  # checks of this table alone, by column
    grows: bool  # whether an owner may get more rows later; then all of its parts count, not only the last

    @property
    def owner(self) -> str:
        """The column with the id of the record that a row belongs to."""
        return self.order[0]

    @property
    def kind(self) -> str:
        """Return the kind of record that the rows belong to: collection, golden_set or run."""
        return self.owner.removesuffix("_id")

    @property
    def replaced(self) -> bool:
        """Whether an owner's rows may be replaced: an earlier part still holds those of before."""
        return self.kind != "run" and not self.grows


def _rules(
    order: str,
    required: str,
    *,
    unique: tuple[str, ...] | None = None,
    checks: Mapping[str, _Check] | None = None,
    grows: bool = False,
) -> TableRules:
    """Build rules from lists of columns; the sort key identifies a row, unless `unique` says otherwise."""
    keys = (order,) if unique is None else unique
    return TableRules(
        tuple(order.split()),
        tuple(required.split()),
        tuple(tuple(key.split()) for key in keys),
        checks or {},
        grows,
    )


RULES: Mapping[str, TableRules] = {
    "queries": _rules("collection_id query_id", "collection_id query_id text"),
    "passages": _rules("collection_id passage_id", "collection_id passage_id text"),
    "judgements": _rules(_OF_QUERY, f"{_OF_QUERY} grade"),
    "rankings": _rules(
        f"{_RANKED} rank",
        f"{_RANKED} rank passage_id",
        unique=(f"{_RANKED} passage_id", f"{_RANKED} rank"),
        checks={"stage": ("{0} IN ('pool', 'final')", "{0} is neither 'pool' nor 'final'")},
    ),
    "timings": _rules(f"{_RANKED} repeat", f"{_RANKED} repeat ms"),
    "usage": _rules("run_id stage item unit query_id", "run_id stage item unit basis"),
    "aggregates": _rules("run_id measure k stage source", "run_id measure value"),
    "signals": _rules("run_id signal k query_id", "run_id query_id signal value"),
    "criteria": _rules(
        "run_id query_id position", "run_id position criterion weight", checks={"weight": _NUMBER}
    ),
    "ratings": _rules(
        "run_id query_id passage_id position",
        "run_id query_id passage_id position rating",
        checks={"rating": _NUMBER},
    ),
    "answers": _rules(_KEY, "run_id query_id", checks={"k": _COUNT}, grows=True),
    "answer_scores": _rules(f"{_KEY} scorer judge", "run_id scorer value", checks={"k": _COUNT}, grows=True),
    "gold_answers": _rules("collection_id query_id answer", "collection_id query_id answer"),
    "clusters": _rules("collection_id query_id kind", "collection_id query_id kind cluster", grows=True),
    "passage_metadata": _rules("collection_id passage_id", "collection_id passage_id metadata"),
    "query_filters": _rules("collection_id query_id", "collection_id query_id filter"),
    "fields": _rules(
        "collection_id field",
        "collection_id field permission",
        checks={"kind": (f"{{0}} IN {tuple(kind.value for kind in Kind)}", "{0} is unknown")},
    ),
    "diagnostics": _rules(_DIAGNOSED, "collection_id diagnosis condition measure value"),
    "chunks": _rules("collection_id passage_id", "collection_id passage_id source start_char end_char"),
    "spans": _rules(_SPAN, f"{_SPAN} grade"),
    "nuggets": _rules(
        "golden_set_id query_id nugget passage_id",
        "golden_set_id query_id nugget text vital",
        checks={
            "nugget": (f"{{0}} BETWEEN 0 AND {NUGGETS - 1}", f"{{0}} is not within 0 to {NUGGETS - 1}"),
            "support": ("{0} BETWEEN 0 AND 1", "{0} is not within 0 to 1"),
        },
    ),
    "gradings": _rules(f"{_OF_QUERY} judge at", f"{_OF_QUERY} judge", unique=()),
    "orders": _rules(
        "golden_set_id query_id rank",
        f"{_OF_QUERY} rank score",
        unique=(_OF_QUERY, "golden_set_id query_id rank"),
        checks={"score": _NUMBER},
    ),
}

_Place = TypeVar("_Place", bound=Hashable)


def readable(table: str, held: Iterable[tuple[str, _Place]]) -> list[tuple[list[str], list[_Place]]]:
    """Return owners and files that one statement may read together.

    Where rows may be replaced, a file is read only for the owners whose current rows it holds: beside them
    may lie the replaced rows of others.

    Args:
        held: Each owner with a file that holds its current rows.
    """
    lots: dict[_Place | None, tuple[dict[str, None], dict[_Place, None]]] = {}
    for owner, place in held:
        owners, places = lots.setdefault(place if RULES[table].replaced else None, ({}, {}))
        owners[owner] = places[place] = None
    return [(list(owners), list(places)) for owners, places in lots.values()]


GROWING = tuple(table for table, rules in RULES.items() if rules.grows)


def names(columns: Iterable[str]) -> str:
    """Return declared columns quoted for SQL, since a name may be a keyword ("at")."""
    return ", ".join(f'"{column}"' for column in columns)


def rows_of(table: str, files: str) -> str:
    """Return the rows of a table's files as SQL; columns that an earlier release did not write are null."""
    if table not in _LATER:
        return f"read_parquet({files})"
    nulls = ", ".join(f'NULL::{_TYPES[type(kind)]} AS "{name}"' for name, kind in _LATER[table].items())
    read = f"SELECT * FROM read_parquet({files}, union_by_name = true)"  # noqa: S608 - own names
    return f"(SELECT {nulls} WHERE false UNION ALL BY NAME {read})"


def conform(table: str, rows: Frame) -> pl.LazyFrame:
    """Convert a frame to the declared columns and types, by lossless casts only."""
    if table not in TABLES:
        raise UnknownNameError("table", table, TABLES)
    lazy = rows.lazy()
    present, wanted = lazy.collect_schema(), TABLES[table]
    missing = [name for name in wanted if name not in present]
    extra = [name for name in present if name not in wanted]
    if missing or extra:
        problem = f"No column {missing[0]!r}." if missing else f"Unknown column {extra[0]!r}."
        raise InputError(problem, where=table, do=f"Found: {', '.join(present) or 'none'}.")
    for name, dtype in wanted.items():
        if not _fits(present[name], dtype):
            raise InputError(
                f"Column {name!r} is {present[name]}; it must be {dtype}.",
                where=table,
                do="Convert it first.",
            )
    return lazy.select(pl.col(name).cast(dtype) for name, dtype in wanted.items())


def _fits(present: pl.DataType, wanted: pl.DataType) -> bool:
    """Return whether a cast keeps every value (integers that are out of range raise when it runs)."""
    if present == wanted or isinstance(present, pl.Null):
        return True
    if isinstance(wanted, pl.List):
        return isinstance(present, pl.List) and _fits(_inner(present), _inner(wanted))
    if isinstance(wanted, pl.String):
        return isinstance(present, pl.Categorical | pl.Enum)
    return present.is_integer() or (wanted.is_float() and present.is_float())


def _inner(dtype: pl.List) -> pl.DataType:
    inner = dtype.inner
    return inner if isinstance(inner, pl.DataType) else inner()


def check(cursor: duckdb.DuckDBPyConnection, table: str, staged: Path) -> None:
    """Check the content of a staged file."""
    rules = RULES[table]
    broken = [(f"{name} IS NULL", f"{name} is missing") for name in rules.required]
    broken += [(f"{name} = ''", f"{name} is empty") for name in rules.required if name.endswith("_id")]
    for name in TABLES[table]:
        if rule := rules.checks.get(name) or _CHECKS.get(name):
            condition, words = rule
            broken.append((f"NOT ({condition.format(names([name]))})", words.format(name)))
    counted = ", ".join(f"count_if({condition})" for condition, _ in broken)
    counts = cursor.execute(f"SELECT {counted} FROM read_parquet(?)", [str(staged)]).fetchall()[0]  # noqa: S608
    for (condition, words), count in zip(broken, counts, strict=True):
        if count:
            example = f"SELECT * FROM read_parquet(?) WHERE {condition} LIMIT 1"  # noqa: S608
            raise _refused(cursor, table, example, staged, f"{words} in {count} rows")
    for columns in rules.unique:
        key = names(columns)
        # Rows with different hashes are different; hashes take a fraction of the memory of the texts.
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
    shown = ", ".join(
        f"{name} {value!r}" for name, value in row.items() if value is not None and name not in _LONG
    )
    return InputError(
        f"{words[0].upper()}{words[1:]}; for example {shown}.", where=table, do="Nothing was written."
    )
