"""Plain tables, CSV, TSV, JSON, JSONL, Parquet: rankings, judgements, timings, usage, or results per stack.

Columns are recognised by name (`core.importers.naming`) or as the user maps them. A table of rankings may
contain latency and usage of its queries, repeated on each of their rows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

import polars as pl

from core.errors import InputError
from core.importers.base import LIKELY, LOOK_ROWS, RESEMBLES, TOLD, Format, Import, Look, Options, merged
from core.importers.formats.table.aggregated import stack_results
from core.importers.formats.table.opened import (
    NEEDS,
    Opened,
    incomplete,
    keyed,
    looked_at,
    lost_measures,
    opened_as,
    recognised,
    seen,
    stacks_of,
)
from core.importers.formats.table.pivoted import pivot
from core.importers.formats.table.placed import told_of
from core.importers.formats.table.queries import measured, of_queries
from core.importers.formats.table.turned import turned
from core.importers.formats.table.unfolded import flattened
from core.importers.judgements import golden_set
from core.importers.meaning import TableAs, meaning
from core.importers.read.member import Archive, Member
from core.importers.read.ordering import Ordered
from core.importers.read.rows import identified, is_large, numbers, read_blocks, refuse, without_repeats
from core.importers.read.streamed import Streamed, ordered_blocks
from core.importers.read.tabular import READ_ERRORS, Table, columns, kind_of, read_table
from core.importers.read.text import shown
from core.importers.report import TAKEN
from core.importers.runs import collection_of, imported_run, rankings, run_labels
from core.records import Run

__all__ = ["Opened", "TableFormat", "opened_as", "recognised", "stacks_of"]
_LISTED = 5  # Number of columns of grades that a note names


class TableFormat(Format):
    """Tables whose columns show what they hold."""

    name, title = "table", "Table (CSV, TSV, JSON, JSONL, Parquet)"
    takes = dict.fromkeys(
        ("rankings", "judgements", "answers", "answer_scores", "timings", "usage", "aggregates", "signals"),
        "",
    )
    recognised = "A table that has the columns of one of the kinds"
    traps: tuple[str, ...] = (
        "A number that its measure cannot have is refused by its cell; shares beside percent are asked.",
        "Columns whose names say nothing in English, German, French, Spanish, Italian, Portuguese or Dutch "
        "are left out by name.",
        "Numbers with a unit in each cell (120 ms) are refused, or left out by name.",
    )
    maps_columns = in_ranges = True

    def sniff(self, probe: Archive) -> float:
        if len(probe.members) != 1:
            return 0.0
        names = _names(probe.members[0])
        if len(names) < 2:
            return RESEMBLES / 2 if kind_of(probe.members[0]) == "json" and self.why_not(probe) else 0.0
        means = meaning(names, TableAs(), probe.name)
        if means.kind is None and {"query_id", "passage_id"} <= means.roles.keys():
            with suppress(*READ_ERRORS, InputError):
                means = looked_at(_first(probe.members[0]), TableAs(), probe.name)
        if means.kind and means.plain:
            return LIKELY
        if self._stacks(probe) or self._turned(probe):
            return LIKELY
        # A header with known names, or cells between commas, suggests a table more than a number of fields
        # suggests TREC.
        return RESEMBLES + 0.1 if len(means.roles) > 1 or _is_parted(probe.members[0]) else RESEMBLES / 2

    def why_not(self, probe: Archive) -> str:
        try:
            first = _first(probe.members[0])
            return str(incomplete(meaning(first.rows.columns, TableAs(), probe.name), first))
        except (*READ_ERRORS, InputError) as error:
            return str(error) if isinstance(error, InputError) else ""

    def _stacks(self, probe: Archive) -> list[str]:
        """Return the columns that may each hold the results of a stack; see `pivot`."""
        means = meaning(_names(probe.members[0]), TableAs(), probe.name)
        if means.kind is None and "query_id" in means.roles:
            with suppress(*READ_ERRORS, InputError):
                return pivot(_first(probe.members[0]), means)
        return []

    def _turned(self, probe: Archive) -> bool:
        """Return whether the rows are measures of stacks; see `turned`."""
        with suppress(*READ_ERRORS, InputError):
            first = _first(probe.members[0])
            return turned(first) is not first
        return False

    def look(self, archive: Archive, options: Options) -> Look:
        member = archive.members[0]
        if kind_of(member) is None:
            return super().look(archive, options)
        return seen(turned(_first(member)), options.table_as(member.name), member.name)

    def read(self, archives: Sequence[Archive], options: Options) -> Import:
        """Read all tables; those of costs belong to the runs of the same name."""
        opened = [self.open_table(archive.members[0], options) for archive in archives]
        parts = [Import(collections=collection_of(options, "imported: table"))]
        by_kind: dict[str | None, list[Opened]] = defaultdict(list)
        for table in opened:
            by_kind[table.means.kind].append(table)
        runs = _rankings(by_kind["rankings"], options, parts)
        parts += [of_queries(table, runs, options) for table in (*by_kind["costs"], *by_kind["answers"])]
        parts += [_judgements(judgement, options) for judgement in by_kind["judgements"]]
        parts += [
            stack_results(aggregate.member, aggregate.table, aggregate.means, options)
            for aggregate in by_kind["aggregates"]
        ]
        notes = tuple(note for table in opened for note in table.notes)
        left_out = tuple(lost for table in opened for lost in table.left_out)
        file_reports = tuple(table.file_report for table in opened)
        parts += [Import(texts=table.texts) for table in opened if table.texts]
        parts.append(Import(reports=file_reports, notes=notes, left_out=left_out))
        return merged(parts)

    def open_table(self, member: Member, options: Options) -> Opened:
        """Return the table of a file, with the meaning of its columns."""
        kind = kind_of(member)
        if kind not in ("parquet", None) and is_large(member):
            first = opened_as(member, _first(member), options)
            if first.means.kind == "rankings" and first.own is None:
                return replace(first, large=kind)
        table = read_table(member, kind, do=f"A table needs {NEEDS}.")
        return self.upright(member, replace(table, rows=flattened(table.rows)), options)

    def upright(self, member: Member, table: Table, options: Options) -> Opened:
        """Return a table, read already, with measures as columns, and the meaning of its columns."""
        upright = turned(table)
        opened = opened_as(member, upright, options)
        if upright is table:
            return opened
        lost = lost_measures(opened.means.ignored, upright.rows.columns, member.name)
        return replace(opened, own=dict.fromkeys(table.rows.columns, TAKEN), left_out=lost)


def _first(member: Member) -> Table:
    """Return the first rows of a table, with nested objects unfolded."""
    table = read_table(member, kind_of(member), LOOK_ROWS)
    return replace(table, rows=flattened(table.rows))


def _names(member: Member) -> list[str]:
    """Return the column names of a possible table, with nested objects unfolded."""
    if kind_of(member) in ("json", "jsonl"):
        with suppress(*READ_ERRORS, InputError):
            return _first(member).rows.columns
    return columns(member)


def _is_parted(member: Member) -> bool:
    """Return whether visible delimiters separate the cells of all first rows."""
    with suppress(*READ_ERRORS, InputError):
        return kind_of(member) in (",", ";", "|") and _first(member).rows.height > 0
    return False


def _rankings(tables: list[Opened], options: Options, parts: list[Import]) -> dict[str, Run]:
    """Add the contents of ranking tables to `parts`, and return their runs by their own names."""
    orders = [_ordered(table, options) for table in tables]
    own = [(name, opened.member.stem) for opened, (done, _) in zip(tables, orders, strict=True)
           for name in sorted(done.rules)]  # fmt: skip
    labels = iter(run_labels(own, options))
    known: dict[str, Run] = {}
    for opened, (done, costs) in zip(tables, orders, strict=True):
        depths = _depths(done)
        said = dict(sorted(options.table_as(opened.member.name).columns.items()))
        runs = {
            run: imported_run(
                options,
                next(labels),
                opened.member.digest,
                importer="table",
                decided={"order": done.rules[run], "run": run, "columns": said},
                pool=(options.pool or f"imported@{depths[run]}") if run in depths else None,
            )
            for run in sorted(done.rules)
        }
        ids = {name: run.run_id for name, run in runs.items()}
        told = told_of(opened.table, opened.means) if opened.large is None else TOLD.to_frame()
        parts += [Import(runs=tuple(runs.values()), told=told), rankings(done, ids)]
        parts.append(measured(replace(opened, table=costs), ids, per_row=False))
        known |= runs
    return known


def _ordered(opened: Opened, options: Options) -> tuple[Ordered | Streamed, Table]:
    """Return rankings in order, and the table of what their queries took, with or without repeats."""
    if opened.large is None:
        rows = _ranked(opened)
        return ordered_blocks([rows], opened.member.name, rows.height, options.tie_order), opened.table
    costs: list[pl.DataFrame] = []
    means, kind = opened.means, opened.large
    roles = [means.roles[role] for role in ("run", "query_id", "repeat") if role in means.roles]
    kept = [*roles, *means.items.values(), *(timing.column for timing in (*means.timings, *means.usage))]

    def blocks() -> Iterator[pl.DataFrame]:
        for block in read_blocks(opened.member, kind):
            table = opened.numbers.read(block)
            opened.later.update(dict.fromkeys(table.rows.columns, ""))
            if means.timings or means.usage:
                costs.append(without_repeats(table.taking({name: name for name in kept})))
            yield _ranked(replace(opened, table=table))

    done = ordered_blocks(blocks(), opened.member.name, options.limits.rows_in_memory, options.tie_order)
    if not costs:
        return done, opened.table
    rows = without_repeats(pl.concat(costs))
    return done, Table(opened.member.name, rows.drop("line"), rows["line"])


def _ranked(opened: Opened) -> pl.DataFrame:
    name = opened.member.name
    rows = keyed(opened, "run", "query_id", "passage_id", "rank", "score", "stage")
    rows = rows.with_columns(
        pl.col("stage").str.to_lowercase().fill_null("final"), numbers(rows, "score", name)
    )
    bad = rows.filter(~pl.col("stage").is_in(["pool", "final"]))
    refuse(bad, "The stage of a ranking is {stage}; it is pool or final.", name, "stage")
    return rows.with_columns(numbers(rows, "rank", name, whole=True))


def _depths(done: Ordered | Streamed) -> dict[str, int]:
    pool = pl.col("stage") == "pool"
    frames = done.rows.frames if isinstance(done, Streamed) else (done.rows.lazy(),)
    deepest = [frame.filter(pool).group_by("run").agg(pl.col("rank").max()).collect() for frame in frames]
    return dict(pl.concat(deepest).group_by("run").agg(pl.col("rank").max()).iter_rows())


def _judgements(opened: Opened, options: Options) -> Import:
    if opened.means.labels:
        return _labelled(opened, options)
    chosen = {"query_id", "passage_id", "grade", "judge"} & opened.means.roles.keys()
    rows = opened.table.taking({role: opened.means.roles[role] for role in sorted(chosen)})
    identified(rows, opened.member.name, "query_id", "passage_id")
    return golden_set(rows, opened.member.name, opened.member.stem, options)


def _labelled(opened: Opened, options: Options) -> Import:
    """Make a golden set of each column of grades, named after it; an empty cell is unjudged."""
    name, table, labels = opened.member.name, opened.table, opened.means.labels
    pair = {role: opened.means.roles[role] for role in ("query_id", "passage_id")}
    rows = identified(table.taking(pair), name, *pair)
    parts = []
    for label in labels:
        grades = table.taking({label: label})
        numbers(grades, label, name, whole=True)  # refuses a bad cell under the name of its column
        parts.append(rows.with_columns(grade=grades[label], judge=pl.lit(label)))
    imported = golden_set(pl.concat(parts).drop_nulls("grade"), name, opened.member.stem, options)
    listed = ", ".join(f"`{shown(label)}`" for label in labels[:_LISTED])
    more = f" (+{len(labels) - _LISTED} more)" if labels[_LISTED:] else ""
    return replace(imported, notes=(f"{name}: {listed}{more} hold grades, each of a judge.", *imported.notes))
