"""A table with the meaning of its columns and the way its numbers are read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import polars as pl

from core.errors import InputError
from core.importers.base import LeftOut, Look, Options, counted
from core.importers.formats.table.gridded import GridCells, grid_of, owned_by, refuse_two_ways
from core.importers.formats.table.long import widened
from core.importers.formats.table.pivoted import (
    by_patterns,
    pivot,
    unpivoted,
    which_measure,
    without_stars,
)
from core.importers.formats.table.placed import named_by_place
from core.importers.formats.table.rowed import OpenRowError, rowed
from core.importers.formats.table.suited import suited, within_ranges
from core.importers.meaning import SAME, Meaning, TableAs, meaning
from core.importers.naming import named, normal
from core.importers.read.member import Member
from core.importers.read.number_format import NOTHING, Numbers, numbers_in, signed_percent
from core.importers.read.rows import identified, refuse
from core.importers.read.tabular import Table, as_text
from core.importers.read.text import listed, no_column, place, shown
from core.importers.report import TAKEN, FileReport, settled

NEEDS = (
    "query_id and passage_id with rank, score or grade; query_id with an answer, latency or usage; "
    "or stacks with a measure, a latency or a price"
)
_OF_STACKS = ("run", "n", "measure", "value")
_WHAT = {"query_id": "queries", "passage_id": "passages"}
_OF_WORDS = r"\s|\p{Han}|\p{Hiragana}|\p{Thai}"
_MOSTLY = 0.5  # Share of cells with several words from which on a column holds texts, not names


@dataclass(frozen=True, slots=True)
class Opened:
    """A table with the meaning of its columns."""

    member: Member  # the file
    table: Table  # its rows; for a large one, its first rows
    means: Meaning  # the meaning of its columns
    large: str | None = None  # how a large table is read, block by block; None if `table` is all of it
    later: dict[str, str] = field(default_factory=dict)  # columns that occur only in a later block
    numbers: Numbers = field(default_factory=Numbers)  # how its numbers were read
    # columns of the file the table was made from, each with the reason it is left out; None = the table's own
    own: Mapping[str, str] | None = None
    left_out: tuple[LeftOut, ...] = ()
    texts: Mapping[str, pl.DataFrame] = field(default_factory=dict)  # texts beside ids, as in `Import`

    @property
    def notes(self) -> tuple[str, ...]:
        """Describe the changes made to the numbers."""
        return self.numbers.notes

    @property
    def verdicts(self) -> dict[str, str]:
        """Why each column is left out, or that it is taken."""
        if self.own is not None:
            return dict(self.own)
        return {column: self.means.ignored.get(column, TAKEN) for column in self.table.rows.columns}

    @property
    def file_report(self) -> FileReport:
        """Every column of the file, taken or left out."""
        known = self.verdicts
        return settled(self.member.name, "column", {**known, **self.later}, known)


def beside_ids(table: Table, means: Meaning) -> dict[str, pl.DataFrame]:
    """Return the texts that a table gives with ids: for "queries" and "passages" the id and the text."""
    found = {}
    for role, column in means.texts.items():
        rows = table.taking({"id": means.roles[role], "text": column}).drop("line").drop_nulls()
        rows = rows.unique("id", keep="first", maintain_order=True)
        words = rows["text"].str.contains(_OF_WORDS).mean()
        if isinstance(words, float) and words >= _MOSTLY:
            found[_WHAT[role]] = rows
    return found


def opened_as(member: Member, table: Table, options: Options) -> Opened:
    """Return a table, read already, with the meaning of its columns."""
    opened = _as_meant(member, table, options)
    said, _ = without_stars(in_ms(table, options.table_as(member.name)), table.rows.columns)
    return replace(opened, texts=beside_ids(table, meaning(table.rows.columns, said, member.name)))


def in_ms(table: Table, said: TableAs) -> TableAs:
    """Return a table's settings, with columns of durations as times in milliseconds."""
    spans = [column for column, dtype in table.rows.schema.items() if dtype == pl.Duration]
    told = {}
    for column in set(spans) - {*said.columns.values(), *said.without}:
        value = named(column, column) or named(f"{normal(column)}_ms", column)
        if value and (value.measure == "ms" or value.measure.startswith("latency_")):
            told[replace(value, factor=1.0).name] = column
    return replace(said, columns={**told, **said.columns}) if told else said


def _ids_missing(table: Table, means: Meaning) -> Table:
    """Return a table with NaN ids as missing, because an empty id among floats becomes NaN."""
    ids = [column for role, column in means.roles.items() if role in ("query_id", "passage_id", "run")]
    floats = [column for column in ids if table.rows.schema[column].is_float()]
    if not floats:
        return table
    return Table(table.name, table.rows.with_columns(pl.col(floats).fill_nan(None)), table.lines)


def _as_meant(member: Member, table: Table, options: Options) -> Opened:
    said, stars = without_stars(in_ms(table, options.table_as(member.name)), table.rows.columns)
    means = meaning(table.rows.columns, said, member.name)
    if stars:
        return _unpivoted(member, table, said, by_patterns(table, means, stars))
    if grid := grid_of(table.rows.columns, means, said):
        return _unpivoted(member, table, said, owned_by(grid))
    if means.kind in (None, "costs"):
        refuse_two_ways(table.rows.columns, means, said, member.name)
    return _opened(member, table, said)


def _unpivoted(member: Member, table: Table, said: TableAs, owned: Mapping[str, Mapping[str, str]]) -> Opened:
    """Turn a table with a column for each stack into one with a row for each stack and query."""
    twice = [column for column in table.rows.columns if column in owned]
    rows = unpivoted(replace(table, rows=table.rows.drop(twice)), owned)
    opened = _opened(member, rows, said)
    verdicts = opened.verdicts
    meant = {column: measure for measure, columns in owned.items() for column in columns.values()}
    own = {column: verdicts.get(meant.get(column, column), TAKEN) for column in table.rows.columns}
    return replace(opened, own=own | dict.fromkeys(twice, SAME.format("columns of stacks")))


def _opened(member: Member, table: Table, said: TableAs) -> Opened:
    """Return a table with a row for each stack, query or passage."""
    means = meaning(table.rows.columns, said, member.name)
    known = {*table.rows.columns, *(named_in(table, means) if means.is_long else ())}
    for column in said.numbers:
        if column not in known:
            raise no_column(column, table.rows.columns, member.name)
    read = numbers_in(table, means.numbers, said.numbers, asking=True, name=member.name)
    plain = read.read(table)
    means = means if means.is_long else rowed(plain, means, said)
    plain, nameless = _of_named(_ids_missing(plain, means), means)
    if means.is_long and plain.rows.height:
        widened = _widened(Opened(member, plain, means, numbers=read), said, _percent_of(table, means, said))
        return replace(widened, left_out=(*nameless, *widened.left_out))
    means = suited(means, plain, read.percent, said.columns)
    if means.kind is None:
        raise incomplete(means, plain)
    if not table.rows.height:
        raise InputError("The table has no rows.", where=member.name)
    plain = within_ranges(plain, means, said.numbers, member.name)
    if means.kind != "rankings" or "passage_id" in means.roles:
        return Opened(member, plain, means, numbers=read, left_out=nameless)
    for column in means.places.values():
        means.ignored.pop(column, None)
    own = {column: means.ignored.get(column, TAKEN) for column in plain.rows.columns}
    named, means.roles["passage_id"] = named_by_place(plain, means)
    return Opened(member, named, means, numbers=read, own=own)


def _of_named(table: Table, means: Meaning) -> tuple[Table, tuple[LeftOut, ...]]:
    """Return a table of queries without the few rows that name none (failures), and count these rows."""
    column = means.roles.get("query_id")
    if column is None or not (means.kind in ("costs", "answers") or means.is_long):
        return table, ()
    named = table.taking({"id": column})["id"].is_not_null()
    if named.all() or named.sum() * 2 <= named.len():
        return table, ()
    lines = table.lines.filter(~named)
    left = LeftOut(
        lines.n_unique(), f"rows without a query in `{shown(column)}`", place(table.name, lines[0])
    )
    return Table(table.name, table.rows.filter(named), table.lines.filter(named)), (left,)


def named_in(table: Table, means: Meaning) -> list[str]:
    """Return the names of the measures in the rows of a long table."""
    return [str(name) for name in as_text(table.rows[means.roles["measure"]]).drop_nulls().unique()]


def _percent_of(table: Table, means: Meaning, said: TableAs) -> set[str]:
    """Return the measures of a long table that are in percent: by their signs, or as the user said.

    Raises:
        InputError: Only some cells of a measure have a percent sign.
    """
    column = means.roles["value"]
    cells = table.taking({"name": means.roles["measure"], "cell": column}).drop_nulls()
    cells = cells.filter(~pl.col("cell").str.to_lowercase().is_in(NOTHING))
    cells = cells.with_columns(signed=signed_percent(cells["cell"]))
    way = said.numbers
    told = {name for name in named_in(table, means) if way.get(name, way.get(column)) == "percent"}
    some = cells.group_by("name").agg(
        pl.col("signed").any().alias("any"), pl.col("signed").all().alias("all")
    )
    part = some.filter(pl.col("any") & ~pl.col("all") & ~pl.col("name").is_in(told))["name"]
    refuse(
        cells.filter(pl.col("name").is_in(part.implode()) & ~pl.col("signed")),
        "Some cells of the measure {name} have a percent sign, others none: {cell}.",
        table.name,
        column,
        do="Give all of them one, or none.",
    )
    return told | {*some.filter("all")["name"]}


def _widened(long: Opened, said: TableAs, percent: set[str]) -> Opened:
    """Turn a long table into one with a column for each measure."""
    made, name = widened(long.table, long.means), long.member.name
    columns = [column for column in made.table.rows.columns if column not in made.counts.values()]
    there = {meant: column for meant, column in said.columns.items() if column in columns}
    percent |= long.numbers.percent
    said = replace(said, columns=there)
    means = suited(rowed(made.table, meaning(columns, said, name), said), made.table, percent)
    means.counts.update(made.counts)
    if means.kind is None:
        raise incomplete(means, made.table)
    upright = within_ranges(made.table, means, said.numbers, name)
    own = {column: long.means.ignored.get(column, TAKEN) for column in long.table.rows.columns}
    kept = [column for column in columns if column not in made.measures]
    own |= {**made.gone, **{column: means.ignored.get(column, TAKEN) for column in kept}}
    lost = lost_measures({**made.measures, **means.ignored}, made.measures, name)
    return replace(long, table=upright, means=means, own=own, left_out=lost)


def lost_measures(why: Mapping[str, str], measures: Iterable[str], name: str) -> tuple[LeftOut, ...]:
    """Return the measures that are left out, for files whose measures are not columns."""
    lost = {measure: why[measure] for measure in measures if why.get(measure, TAKEN) != TAKEN}
    return counted({f"measure `{shown(measure)}`: {reason}": 1 for measure, reason in lost.items()}, name)


def looked_at(table: Table, said: TableAs, name: str, columns: Sequence[str] | None = None) -> Meaning:
    """Return the meaning of the columns as far as the first rows show it; no number is refused."""
    said, _ = without_stars(in_ms(table, said), columns or table.rows.columns)
    means = meaning(columns or table.rows.columns, said, name)
    if means.is_long:
        return means
    kinds = {column: kind for column, kind in means.numbers.items() if column in table.rows.columns}
    try:
        read = numbers_in(table, kinds, said.numbers, asking=False, name=name)
    except InputError:
        return suited(means, table, said=said.columns)
    plain = read.read(table)
    try:
        means = rowed(plain, means, said)
    except OpenRowError:
        means = replace(means, is_open=True)
    return suited(means, plain, read.percent, said.columns)


def seen(table: Table, said: TableAs, name: str) -> Look:
    """Describe the first rows of a table."""
    columns = tuple(table.rows.columns)
    means = looked_at(table, said, name)
    grid = grid_in(columns, said, name)
    return Look(table.texts, columns, means.names, "query" if grid else means.is_row, grid)


def recognised(columns: Sequence[str], rows: pl.DataFrame, said: TableAs, name: str) -> dict[str, str]:
    """Return meaning → column for a table whose first rows are known.

    Args:
        columns: Names as in the file.
        name: File, for messages.

    Raises:
        InputError: A mapped column or meaning does not exist.
    """
    lines = pl.Series("line", range(2, rows.height + 2), dtype=pl.Int64)
    return looked_at(Table(name, rows, lines), said, name, columns).names


def grid_in(columns: Sequence[str], said: TableAs, name: str) -> GridCells:
    """Find the columns of a table that each name a stack and a measure."""
    said, stars = without_stars(said, columns)
    return {} if stars else grid_of(columns, meaning(columns, said, name), said)


def stacks_of(columns: Sequence[str], rows: pl.DataFrame, name: str) -> list[str]:
    """Find the columns of a table that, by its first rows, may each hold the results of a stack."""
    lines = pl.Series("line", range(2, rows.height + 2), dtype=pl.Int64)
    return pivot(Table(name, rows, lines), meaning(columns, TableAs(), name))


def incomplete(means: Meaning, table: Table) -> InputError:
    """Return an error on the missing column of the closest kind of table."""
    if means.row == "stack" or of_stacks(means):
        return no_figure(table.rows.columns, table.name)
    if stacks := pivot(table, means):
        return which_measure(stacks, table.name)
    missing = next((role for role in ("query_id", "passage_id") if role not in means.roles), "rank")
    return no_column(missing, table.rows.columns, table.name, f"Map the columns. A table needs {NEEDS}.")


def of_stacks(means: Meaning) -> bool:
    """Return whether the known columns belong to stacks rather than to queries or passages."""
    known = means.roles.keys()
    return bool(means.axes or "run" in known) and known <= set(_OF_STACKS)


def no_figure(columns: Sequence[str], name: str) -> InputError:
    """Return the refusal of a table of stacks without a known figure."""
    return InputError(
        f"No column is known to hold a measure, a latency or a price; found: {listed(columns)}.",
        where=name,
        do="A table of stacks needs one, such as nDCG@10, latency_p95_ms or usd_per_query: rename the column "
        "or say what it holds (--column 'nDCG@10=…').",
    )


def keyed(opened: Opened, *roles: str) -> pl.DataFrame:
    """Return the columns of the roles as text, `line`, and always `run` (empty = the file has one run)."""
    chosen = {role: opened.means.roles[role] for role in roles if role in opened.means.roles}
    absent = [pl.lit(None, pl.String).alias(role) for role in roles if role not in chosen]
    also = {f"run {place}": column for place, column in enumerate(opened.means.also)}
    rows = opened.table.taking(chosen | also).with_columns(absent).with_columns(pl.col("run").fill_null(""))
    if also:
        rows = rows.with_columns(run=pl.concat_str("run", *also, separator=" · ", ignore_nulls=True))
    return identified(rows, opened.member.name, *sorted({"query_id", "passage_id"} & set(roles)))
