"""Resolves by its cells what the column names of a table leave open."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import polars as pl

from core.errors import InputError
from core.importers.judgements import said_by_name
from core.importers.meaning import NUMBERS_ROWS, OF_STACKS, Meaning, judged_by
from core.importers.naming import PARAMETERS, NamedValue, is_share, normal, range_of
from core.importers.read.number_format import OpenNumbersError, Reading
from core.importers.read.ranges import Figures, as_shares, question, refuse_outside, verdict
from core.importers.read.tabular import Table
from core.importers.read.text import place, shown
from core.importers.report import AS_YOU_WISH, UNKNOWN
from core.records import group_kind

_BEIR = {"query-id", "corpus-id", "score"}  # Columns of its qrels
_PERCENTILES = ("latency_p50", "latency_p95", "latency_p99")
_MOST_GRADE = 5  # Highest grade in columns that no name marks as grades
_SEVERAL = frozenset({"repeat", "k", "pass", "reader", "prompt", "temperature", "answer_mode", "judge"})
"""Columns that distinguish several rows of a query without being stacks."""
FIGURE = r"(?i)^(?:[-+€£]|(?:us)?\$|usd)?\s*\d[\d.,\s'’]*(?:e[+-]?\d+)?\s*(?:%|[$€£]|usd)?$"
DIGITS = rf"{FIGURE}|^(?:nan|inf)$"  # matches cells that hold a number
_SEVERAL_GROUPS = "one of several that may group the questions: say which (--column 'cluster=…')"
_NO_GROUP = {
    "other": "names no group of questions: it differs within a question",
    "one": "names no group of questions: it is the same for all",
    "each": "names no group of questions: it differs for each",
}


def suited(
    means: Meaning, table: Table, percent: Collection[str] = (), said: Collection[str] = ()
) -> Meaning:
    """Settle by cells what column names leave open: percentages, and the columns that name stacks.

    Args:
        percent: Columns whose cells have a percent sign.
        said: Meanings for which the user has named the column.
    """
    if means.kind == "rankings" and "score" not in said and _grades(means, table):
        means.roles["grade"] = means.roles.pop("score")
    if means.kind is None and {"query_id", "passage_id"} <= means.roles.keys():
        labels = _labels(means, table)
        judged_by(means, labels if len(labels) > 1 else [])
    if (index := means.axes.get("index")) and counts_rows(table, index):
        means.ignored[means.axes.pop("index")] = NUMBERS_ROWS
    if means.kind == "aggregates":
        if not means.axes:
            _name_stacks(means, table)
        _set_apart(means, table)
    if means.kind in ("costs", "answers"):
        _name_owners(means, table)
        _grouped(means, table)
    for values in (means.aggregates, means.scores):
        for number, (value, figures) in enumerate(zip(values, figures_of(table, values), strict=True)):
            signed = value.column in percent and is_share(value)
            if value.factor == 1.0 and (signed or verdict(figures) == "percent"):
                values[number] = replace(value, factor=0.01)
    return means


def _grades(means: Meaning, table: Table) -> bool:
    """Return whether scores of passages are grades: integers, in qrels by file name or in BEIR's form."""
    if means.roles.keys() != {"query_id", "passage_id", "score"}:
        return False
    judged = said_by_name(table.name) or ("qrels" if set(table.rows.columns) == _BEIR else None)
    cells = table.taking({"cell": means.roles["score"]})["cell"].cast(pl.Float64, strict=False)
    return judged == "qrels" and not cells.null_count() and bool((cells == cells.floor()).all())


def figures_of(table: Table, values: Sequence[NamedValue]) -> list[Figures]:
    """Return numbers of columns with the measures they may be; cells that are not numbers are null."""
    if not values:
        return []
    height, names = table.rows.height, {f"{number}": value.column for number, value in enumerate(values)}
    cells = pl.concat(table.taking(names).select(list(names)).get_columns()).cast(pl.Float64, strict=False)
    scaled = cells * np.repeat([value.factor for value in values], height)
    finite = pl.select(pl.when(scaled.is_finite()).then(scaled)).to_series()

    def where(row: int, column: str) -> str:
        return place(table.name, table.lines[row], column)

    return [
        Figures(
            value.column,
            column,
            range_of(value),
            value.factor == 1.0 and is_share(value),
            partial(where, column=value.column),
        )
        for value, column in zip(
            values, (finite.slice(number * height, height) for number in range(len(values))), strict=True
        )
    ]


def within_ranges(table: Table, means: Meaning, said: Mapping[str, Reading], name: str) -> Table:
    """Check the figures of a table against the ranges of their measures.

    Returns:
        The table, with shares where the user said that only numbers above 1 are percent.

    Raises:
        OpenNumbersError: Some numbers of a share are above 1, and others are not.
        InputError: A measure cannot have one of the numbers.
    """
    values = [*means.aggregates, *means.scores]
    shares = [value for value in values if said.get(value.column) == "share"]
    if shares:
        cells = [as_shares(figures.values).cast(pl.String) for figures in figures_of(table, shares)]
        kept = [table.rows[value.column] for value in shares]
        cells = [
            pl.select(pl.coalesce(made, old)).to_series().alias(old.name)
            for made, old in zip(cells, kept, strict=True)
        ]
        table = replace(table, rows=table.rows.with_columns(cells))
    found = figures_of(table, values)
    asked = [figures for figures in found if verdict(figures) == "open"]
    if asked:
        first = asked[0].values
        raise OpenNumbersError(name, asked[0].where((first <= 1).arg_max() or 0), [*map(question, asked)])
    refuse_outside(found)
    by_figure = dict(zip(((value.stage, value.measure) for value in values), found, strict=True))
    for (stage, measure), lower in by_figure.items():
        for above in _PERCENTILES[_PERCENTILES.index(measure) + 1 :] if measure in _PERCENTILES else ():
            if upper := by_figure.get((stage, above)):
                _refuse_disorder(lower, measure, upper, above)
    return table


def _refuse_disorder(lower: Figures, measure: str, upper: Figures, above: str) -> None:
    """Refuse the first row whose lower percentile exceeds a higher one."""
    for at in (upper.values < lower.values).arg_true().head(1):
        low, high = (name.removeprefix("latency_") for name in (measure, above))
        problem = f"The {high}, {upper.values[at]:.10g} ms, is below the {low}, {lower.values[at]:.10g} ms."
        do = f"Correct it, or leave the column out (--without '{shown(upper.column)}')."
        raise InputError(problem, where=upper.where(at), do=do)


def _labels(means: Meaning, table: Table) -> list[str]:
    """Return columns without a meaning that hold grades: whole numbers from 0 to 5, not all equal."""
    labels = []
    for column in [name for name, why in means.ignored.items() if why == UNKNOWN]:
        cells = table.taking({"cell": column})["cell"].drop_nulls()
        values = cells.cast(pl.Float64, strict=False)
        whole = (
            not values.null_count() and (values.is_between(0, _MOST_GRADE) & (values == values.floor())).all()
        )
        if whole and values.n_unique() > 1:
            labels.append(column)
    return labels


def _name_stacks(means: Meaning, table: Table) -> None:
    """Name stacks by the first unassigned column of words, adding further ones until no name repeats."""
    if means.also:  # as the user says
        return
    words = _words(means, table)
    first = [means.roles["run"]] if "run" in means.roles else words[:1]
    if not first:
        return
    means.roles["run"] = first[0]
    means.also.extend(_telling(table, first, words)[1:])
    for column in {first[0], *means.also} & means.ignored.keys():
        del means.ignored[column]


def _set_apart(means: Meaning, table: Table) -> None:
    """Name stacks by the parameters that differ, if nothing else names them or names repeat."""
    named = [*filter(None, [means.roles.get("run")]), *means.also, *means.axes.values()]
    if named and _different(table, named) == table.rows.height:
        return
    figures = {value.column for value in means.aggregates}
    columns = table.rows.columns
    head = columns[: next((at for at, column in enumerate(columns) if column in figures), 0)]
    free = [
        column
        for column, why in means.ignored.items()
        if (normal(column) in PARAMETERS and why != AS_YOU_WISH) or (why == UNKNOWN and column in head)
    ]
    differ = [column for column in columns if column in free and _differs(means, table, column)]
    if differ and _different(table, [*named, *differ]) == table.rows.height:
        means.settings.extend(differ)
        for column in differ:
            del means.ignored[column]


def _differs(means: Meaning, table: Table, column: str) -> bool:
    """Return whether a column is full, varies, and isn't a row number."""
    cells = table.taking({"cell": column})["cell"]
    numbering = normal(column) not in PARAMETERS and means.row != "stack" and counts_rows(table, column)
    return not cells.null_count() and cells.n_unique() > 1 and not numbering


def _name_owners(means: Meaning, table: Table) -> None:
    """Name the stacks of repeating queries by the columns of words, or axes, that make them unique."""
    query = means.roles["query_id"]
    if means.roles.keys() & {"run", *_SEVERAL} or _different(table, [query]) == table.rows.height:
        return
    axes = [column for column, why in means.ignored.items() if why == OF_STACKS]
    words = [*axes, *_words(means, table)]
    if means.kind == "answers":  # the text of an answer may differ in every row
        words = [column for column in words if _different(table, [column]) * 2 <= table.rows.height]
    chosen = _telling(table, [query], words)[1:]
    if not chosen:
        return
    means.roles["run"] = chosen[0]
    means.also.extend(chosen[1:])
    for column in chosen:
        means.ignored.pop(column, None)


def _grouped(means: Meaning, table: Table) -> None:
    """Find the column with the group of each question; if several are possible, none is taken."""
    if "cluster" in means.roles:
        return
    free = {column: kind for column in table.rows.columns if (kind := group_kind(normal(column)))}
    free = {
        column: kind
        for column, kind in free.items()
        if means.ignored.get(column, "") not in ("", AS_YOU_WISH)
    }
    reasons = {column: _no_group(means, table, column) for column in free}
    fitting = [column for column, why in reasons.items() if not why]
    means.ignored.update({column: _NO_GROUP[why] for column, why in reasons.items() if why})
    if len(fitting) > 1:
        means.ignored.update(dict.fromkeys(fitting, _SEVERAL_GROUPS))
    elif fitting:
        means.roles["cluster"] = fitting[0]
        del means.ignored[fitting[0]]


def _no_group(means: Meaning, table: Table, column: str) -> str:
    """Return the key in `_NO_GROUP` for why a column does not group the questions, or "" if it does."""
    rows = (
        table.taking({"query": means.roles["query_id"], "group": column}).drop("line").drop_nulls().unique()
    )
    queries, groups = rows["query"].n_unique(), rows["group"].n_unique()
    if queries < rows.height:
        return "other"
    return "one" if groups < 2 else "each" if groups == queries else ""


def _words(means: Meaning, table: Table) -> list[str]:
    """Return the columns without a meaning that hold words in every row."""
    words = []
    for column in [name for name, why in means.ignored.items() if why == UNKNOWN]:
        cells = table.taking({"cell": column})["cell"]
        if not cells.null_count() and not cells.str.contains(DIGITS).any():
            words.append(column)
    return words


def _telling(table: Table, first: list[str], words: Sequence[str]) -> list[str]:
    """Add columns of words to the first ones until no row repeats; keep the first ones if some still do."""
    chosen, known = first, _different(table, first)
    for column in [word for word in words if word not in first]:
        if known < table.rows.height and (more := _different(table, [*chosen, column])) > known:
            chosen, known = [*chosen, column], more
    return chosen if known == table.rows.height else first


def counts_rows(table: Table, column: str) -> bool:
    """Return whether a column numbers the rows from 0 or 1, like an index that became a column."""
    cells = table.taking({"cell": column})["cell"].cast(pl.Int64, strict=False)
    return cells.to_list() in (list(range(cells.len())), list(range(1, cells.len() + 1)))


def _different(table: Table, columns: list[str]) -> int:
    return table.taking({str(place): column for place, column in enumerate(columns)}).drop("line").n_unique()
