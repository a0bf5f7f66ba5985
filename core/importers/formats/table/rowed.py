"""Decides whether the rows of a table of measures are stacks or queries if no column name says so.

The cells decide: questions are distinct, long, and end with a question mark; a hit rate of 0.6 covers many
queries, one of 0 or 1 may cover a single query.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from core.errors import InputError
from core.importers.meaning import Meaning, RowMeaning, TableAs, meaning
from core.importers.naming import PARAMETERS, USD_PER_1K, normal
from core.importers.read.tabular import Table
from core.importers.read.text import quoted, shown
from core.importers.report import UNKNOWN

_WEAK = frozenset({"name", "label"})  # Names for stacks, but also for much else
_ID = "id"
_MOST_STACKS = 30  # Rows up to which words under an unknown name are names of stacks
_LEAST = 5  # Rows from which on measures of only 0 and 1 belong to single queries
_ASKED = r"[?？؟][\s\"'”’)]*$"
_LONG, _WORDS = 25, 4  # Characters and words of a text, on average
_NUMBERED = r"(?i)^(?:[a-z]{0,12}[-_. ]?\d+|[0-9a-f-]{16,})$"
_OF_FIELD = (
    r"(?i)(?:^|[^a-z])(?:bm25|bm42|tf-?idf|dense|sparse|hybrid|fusion|rrf|splade|colbert|baseline|vectors?"
    r"|semantic|lexical|keyword|naive|rag|rerank\w*|embed\w*|chunk\w*|hnsw|ivf\w*|ann|flat|exact|top[-_ ]?k"
    r"|gpt|llama|claude|gemini|mistral|qwen|cohere|voyage|openai|ada|bge|e5|gte|minilm|mpnet|jina|nomic|faiss"
    r"|elastic\w*|qdrant|milvus|pgvector|stack|system|config|pipeline|method|variant|setup|v\d+)(?:[^a-z]|$)"
)
"""Words that occur in names of stacks, but hardly in questions."""
_ONE_OR_NONE, _RECIPROCAL = frozenset({"hit", "success"}), frozenset({"rr", "mrr"})


class OpenRowError(InputError):
    """Rows may be stacks or queries, and neither was chosen."""

    ways: tuple[RowMeaning, ...] = ("stack", "query")

    def __init__(self, name: str, column: str, cells: Sequence[str]) -> None:
        some = ", ".join(map(quoted, cells))
        super().__init__(
            f"A row may be a stack or a query: `{shown(column)}` holds {some}.",
            where=name,
            do="Say which (--row stack or --row query).",
        )
        self.name = name


def rowed(table: Table, means: Meaning, said: TableAs) -> Meaning:
    """Return the meaning of the columns, including the query column if the rows are queries.

    Raises:
        OpenRowError: The rows may also be stacks.
    """
    if means.row == "stack" or "query_id" in means.roles or means.kind not in (None, "aggregates"):
        return means
    if means.row != "query" and (means.kind is None or "run" in said.columns or not table.rows.height):
        return means
    column = _queries(table, means)
    if column is None:
        return means
    return meaning(
        table.rows.columns, replace(said, columns={**said.columns, "query_id": column}), table.name
    )


def _queries(table: Table, means: Meaning) -> str | None:
    """Return the column that names the queries, or None if rows are stacks."""
    run = means.roles.get("run")
    free = [column for column, why in means.ignored.items() if why == UNKNOWN]
    counts = [column for column in [means.roles.get("n")] if column and _asks(table, column)]
    if run and normal(run) not in _WEAK:
        apart = [column for column in free if _distinct(table, run, column)]
        queries = [column for column in apart if _asks(table, column) or _is_id(table, column)]
        return None if _distinct(table, run) and means.row is None else next(iter(queries), None)
    first = sorted(free, key=lambda column: (normal(column) != _ID, _is_number(table, column)))
    named = [*([run] if run else []), *first, *counts]
    there = [column for column in named if _distinct(table, column)]
    if asked := next((column for column in there if _asks(table, column)), None):
        return asked
    there = [column for column in there if column in (run, *free) and _is_name(table, column)]
    if means.row == "query":
        return next(iter(there), None)
    return _undecided(table, means, there[0]) if there and not _of_stacks(table, means, free) else None


def _undecided(table: Table, means: Meaning, column: str) -> str | None:
    """Return the column that may name queries, though it may name stacks as well."""
    cells = _cells(table, column)
    if _singly(table, means) or _is_long(cells):
        return column
    unsure = _is_id(table, column) or _is_number(table, column) or len(cells) > _MOST_STACKS
    if (normal(column) in _WEAK or unsure) and len(cells) > 1:
        raise OpenRowError(table.name, column, cells.head(3).to_list())
    return None


def _of_stacks(table: Table, means: Meaning, free: Sequence[str]) -> bool:
    """Return whether the rows hold axes, parameters, words of the field, or figures over many queries."""
    settings = {normal(column) for column in [*free, *means.roles.values()]} & PARAMETERS
    over = [value for value in means.aggregates if value.measure in ("latency_p95", "latency_p99")]
    over += [value for value in means.aggregates if value.measure == USD_PER_1K and not value.assumed]
    if means.axes or settings or over or "n" in means.roles:
        return True
    words = [_cells(table, column) for column in [*free, *filter(None, [means.roles.get("run")])]]
    words = [cells for cells in words if not _is_long(cells)]
    return any(cells.str.contains(_OF_FIELD).any() for cells in words) or _averaged(table, means)


def _averaged(table: Table, means: Meaning) -> bool:
    """Return whether a figure cannot belong to a single query."""
    return any(not fits.all() for fits, _ in _single(table, means))


def _singly(table: Table, means: Meaning) -> bool:
    """Return whether figures belong to single queries: several rows of hits and misses."""
    both = [cells.n_unique() > 1 and bool((cells == 0).any()) for _, cells in _single(table, means)]
    return table.rows.height >= _LEAST and any(both) and not _averaged(table, means)


def _single(table: Table, means: Meaning) -> list[tuple[pl.Series, pl.Series]]:
    """Return measures with few possible values per query: whether each cell has one, and the cells."""
    found = []
    for value in means.aggregates:
        measure = value.measure.lower()
        cells = _cells(table, value.column).cast(pl.Float64, strict=False).drop_nulls()
        if not cells.len() or not cells.is_between(0, 1).all() or value.factor != 1:
            continue
        if measure in _ONE_OR_NONE:
            found.append((cells.is_in([0.0, 1.0]), cells))
        if measure in _RECIPROCAL:
            whole = (1 / cells.clip(0.01)).round()
            found.append(((cells < 0.07) | ((cells - 1 / whole).abs() < 0.006), cells))
    return found


def _cells(table: Table, column: str) -> pl.Series:
    return table.taking({"cell": column})["cell"].drop_nulls()


def _distinct(table: Table, *columns: str) -> bool:
    """Return whether no row repeats in some columns, ignoring empty cells."""
    rows = (
        table.taking({str(place): column for place, column in enumerate(columns)}).drop("line").drop_nulls()
    )
    return rows.n_unique() == rows.height > table.rows.height / 2


def _asks(table: Table, column: str) -> bool:
    cells = _cells(table, column)
    return cells.len() > 0 and cells.str.contains(_ASKED).sum() * 2 >= cells.len()


def _is_long(cells: pl.Series) -> bool:
    """Return whether cells are sentences rather than names, in a script with blanks between words."""
    if not cells.len() or cells.str.contains(_OF_FIELD).any():
        return False
    words = cells.str.count_matches(r"\S+").sum() / cells.len()
    return words >= _WORDS and cells.str.len_chars().sum() / cells.len() >= _LONG


def _is_id(table: Table, column: str) -> bool:
    """Return whether a column is called id and may be one, or has numbered texts such as q1."""
    numbered = _cells(table, column).str.contains(_NUMBERED).all()
    return normal(column) == _ID or (numbered and not _is_number(table, column))


def _is_name(table: Table, column: str) -> bool:
    """Return whether a column may name rows: by words, or by whole numbers if it is the first."""
    if not _is_number(table, column) or normal(column) == _ID:
        return True
    return column == table.rows.columns[0] and bool(_cells(table, column).str.contains(r"^\d+$").all())


def _is_number(table: Table, column: str) -> bool:
    return bool(_cells(table, column).cast(pl.Float64, strict=False).is_not_null().any())
