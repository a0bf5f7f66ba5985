"""Columns that each name a stack and a measure, as in notebooks: ``bm25_ndcg@10`` or the reverse."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from core.errors import InputError
from core.importers.meaning import Meaning, TableAs
from core.importers.naming import FLATTENED, USD_PER_1K, NamedValue, is_quality, named, role_of, usage_of
from core.importers.read.text import shown
from core.stats.latency import AFTER_RETRIEVAL

GridCells = Mapping[str, tuple[str, str]]
"""Column → its measure, spelled as in the name, and its stack."""
_CUT = re.compile(r"\s*[_\-./:|]\s*|\s+")
_FIGURES = re.compile(
    r"(?:.*_)?(?:std|sd|stdev|stddev|var|sem|ci|low|lower|high|upper|min|max|count|mean|avg|median|p\d+|delta"
    r"|diff|err|error|rank|n)(?:_.*)?|[k@]?\d+",
    re.IGNORECASE,
)
"""Words that indicate another figure of the same stack, and cutoffs."""
_STAGES = frozenset({*AFTER_RETRIEVAL, "retrieve", "retrieval", "rerank", "embed", "search", "pool", "final"})
_NAMED = 3  # Number of columns that a message names


def grid_of(columns: Sequence[str], means: Meaning, said: TableAs) -> GridCells:
    """Find the columns of several stacks and the same measures, if rows are queries.

    Returns:
        Any columns with two levels, as in pandas; among other names only clear cases: at least two stacks, at
        least two measures per stack, a quality among them, and no other figure.
    """
    roles = means.roles.keys()
    if "query_id" not in roles or roles & {"run", "passage_id", "answer"} or said.row not in (None, "query"):
        return {}
    free = [column for column in columns if column not in {*said.columns.values(), *means.roles.values()}]
    if levels := _levels(free):
        return _without(levels, said)
    for measure_first in (False, True):
        found = _split(free, measure_first=measure_first)
        if _is_full(found, means):
            return _without(found, said)
    return {}


def owned_by(grid: GridCells) -> dict[str, dict[str, str]]:
    """Return, for every measure, the column of each stack."""
    owned: dict[str, dict[str, str]] = {}
    for column, (measure, stack) in grid.items():
        owned.setdefault(measure, {})[stack] = column
    return owned


def _without(grid: GridCells, said: TableAs) -> GridCells:
    return {column: pair for column, pair in grid.items() if column not in said.without}


def _levels(columns: Sequence[str]) -> GridCells:
    """Return the columns of a two-level header of measures and stacks."""
    pairs = [(column, match) for column in columns if (match := FLATTENED.fullmatch(column.strip()))]
    for measure, stack in (("first", "second"), ("second", "first")):
        known = [(column, match) for column, match in pairs if named(match[measure], match[measure])]
        stacks = {match[stack] for _, match in known}
        if len(stacks) > 1 and not any(named(match[stack], match[stack]) for _, match in pairs):
            return {column: (match[measure], match[stack]) for column, match in known}
    return {}


def _split(columns: Sequence[str], *, measure_first: bool) -> GridCells:
    """Return the columns with a measure at one end and a possible stack at the other."""
    found = {}
    for column in columns:
        whole = _figure(column)
        if whole and is_quality(whole):
            continue
        cuts = [(column[: cut.start()], column[cut.end() :]) for cut in _CUT.finditer(column.strip())]
        pairs = [pair for pair in (reversed(cuts) if measure_first else cuts) if all(pair)]
        ends = [pair if measure_first else pair[::-1] for pair in pairs]
        pair = next(((measure, stack) for measure, stack in ends if _figure(measure) and _stack(stack)), None)
        if pair:
            found[column] = pair
    return found


def _figure(name: str) -> NamedValue | None:
    """Return the meaning of a name: a known measure, or time, price or usage of the whole path."""
    value = usage_of(name, name) or named(name, name)
    if value is None or value.stage not in (None, "total"):
        return None
    return value if value.stage or is_quality(value) else None


def _stack(name: str) -> bool:
    known = named(name, name) or usage_of(name, name) or role_of(name)
    return not known and not _FIGURES.fullmatch(name)


def _is_full(grid: GridCells, means: Meaning) -> bool:
    stacks = {stack for _, stack in grid.values()}
    measures = {measure: _figure(measure) for measure, _ in grid.values()}
    values = (*means.timings, *means.usage, *means.scores, *means.aggregates)
    return (
        min(len(stacks), len(measures)) > 1
        and len(set(grid.values())) == len(grid) == len(stacks) * len(measures)
        and any(value and is_quality(value) for value in measures.values())
        and not stacks <= _STAGES
        and all(value.column in grid for value in values)
    )


def refuse_two_ways(columns: Sequence[str], means: Meaning, said: TableAs, name: str) -> None:
    """Refuse columns such as `hybrid nDCG@10` and `bm25 nDCG@10`: one measure of two stacks, or two of one.

    Raises:
        InputError: There are such columns, without given meanings, and no column names the stacks.
    """
    if means.roles.keys() & {"run", "passage_id", "answer"} or "query_id" not in means.roles:
        return
    mapped = {*said.columns.values(), *said.without}
    free = [column for column in columns if column not in mapped | {*means.roles.values()}]
    for measure_first in (False, True):
        found = _split(free, measure_first=measure_first)
        if {stack for _, stack in found.values()} <= _STAGES:
            continue
        for measure, of in owned_by(found).items():
            if len(of) > 1 and _tells(measure, list(of.values())):
                raise _two_ways(measure, of, name)


def _tells(measure: str, columns: Sequence[str]) -> bool:
    """Return whether a measure describes stacks rather than stages: a quality, or a price after a blank."""
    value = _figure(measure)
    blank = all(column.endswith(f" {measure}") for column in columns)
    return value is not None and (is_quality(value) or (blank and value.measure == USD_PER_1K))


def _two_ways(measure: str, of: Mapping[str, str], name: str) -> InputError:
    stack, first = next(iter(of.items()))
    pattern = f"*{first[len(stack) :]}" if first.startswith(stack) else f"{first[: -len(stack)]}*"
    return InputError(
        f"The columns {ticked(list(of.values()))} may be {shown(measure)} of {len(of)} stacks, or "
        f"{len(of)} measures of one.",
        where=name,
        do=f"Of stacks: --column '{shown(measure)}={shown(pattern)}'. Of one: --column "
        f"'{shown(first)}={shown(first)}'.",
    )


def ticked(columns: Sequence[str]) -> str:
    """List column names in ticks, but only the first of many."""
    names = ", ".join(f"`{shown(column)}`" for column in columns[:_NAMED])
    return f"{names}{f' (+{len(columns) - _NAMED} more)' if columns[_NAMED:] else ''}"
