"""Tables of single queries: their scores, times and usage, and their answers."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from core.importers.base import Import, LeftOut, Options, counted, frames_of, merged
from core.importers.formats.table.aggregated import (
    ANSWER_ROLES,
    answers,
    filled,
    grade_column,
    own_costs,
    said_of,
    timings,
    usage,
)
from core.importers.formats.table.opened import Opened, keyed
from core.importers.naming import USD_PER_1K, normal
from core.importers.read.rows import again, numbers, refuse
from core.importers.runs import imported_run, run_labels
from core.records import Run, group_kind
from core.tables import TABLES, frame

_OF_NONE = "a query has several answers, and it is of none of them alone"
_QUERY = ("run_id", "query_id")
_OUTRIGHT = "Leave out what is repeated, or number the passes in a column `pass`."


def of_queries(opened: Opened, known: dict[str, Run], options: Options) -> Import:
    """Return timings and usage of queries, and their answers; timings only if each query has one."""
    runs, ids = _owners(opened, known, options)
    groups = Import(frames=frames_of(clusters=_groups(opened, options)))
    if opened.means.kind == "costs":
        figures = (scored(opened, ids), measured(opened, ids, per_row=True))
        return merged((Import(runs=runs), *figures, groups))
    rows = keyed(opened, "run", "query_id", *ANSWER_ROLES)
    own, taken = own_costs(opened.table, opened.means)
    rows = rows.join(own, on="line", how="left", maintain_order="left")
    named = rows.with_columns(pl.col("run").replace_strict(ids, return_dtype=pl.String).alias("run_id"))
    several = rows.select(pl.struct("run", "query_id").n_unique()).item() < rows.height
    costs = {value.column for value in (*opened.means.timings, *opened.means.usage, *opened.means.scores)}
    parts = [Import(runs=runs), answers(named, opened.member.name), groups]
    if {"grade", "score"} <= opened.means.roles.keys():
        unused = "score" if grade_column(rows) == "grade" else "grade"
        opened.means.ignored[opened.means.roles[unused]] = "the grades of answers are in another column"
    if several:
        costs |= {*opened.means.items.values(), *filter(None, [opened.means.roles.get("repeat")])}
        opened.means.ignored.update(dict.fromkeys(sorted(costs - taken), _OF_NONE))
    elif costs:
        parts += [scored(opened, ids), measured(opened, ids, per_row=True)]
    return merged(parts)


def _groups(opened: Opened, options: Options) -> pl.DataFrame:
    """Return the group of each question, from a column.

    Raises:
        InputError: The column that the user named holds two groups for a question.
    """
    means = opened.means
    if "cluster" not in means.roles:
        return frame("clusters", [])
    column = means.roles["cluster"]
    rows = keyed(opened, "run", "query_id", "cluster").drop_nulls("cluster")
    rows = rows.unique(["query_id", "cluster"], keep="first", maintain_order=True)
    said = "The question {query_id} is in a second group, {cluster}."
    refuse(
        again(rows, "query_id"), said, opened.member.name, column, do="Name a column that groups questions."
    )
    rows = rows.with_columns(
        collection_id=pl.lit(options.collection_id), kind=pl.lit(group_kind(normal(column)) or "cluster")
    )
    return frame("clusters", rows.select(*TABLES["clusters"]).to_dict())


def _owners(
    opened: Opened, known: dict[str, Run], options: Options
) -> tuple[tuple[Run, ...], dict[str, str]]:
    """Return the runs that a table without rankings belongs to.

    These are the runs that had to be made, and own name → run id.
    """
    own = [str(run) for run in keyed(opened, "run", "query_id")["run"].unique().sort()]
    if own == [""] and len(known) == 1:
        return (), {"": next(iter(known.values())).run_id}
    fresh = [run for run in own if run not in known]
    labels = run_labels([(run, opened.member.stem) for run in fresh], options)
    runs = {
        run: imported_run(options, label, opened.member.digest, importer="table", decided={"run": run})
        for run, label in zip(fresh, labels, strict=True)
    }
    ids = {run: (known | runs)[run].run_id for run in own}
    known |= {name: run for name, run in runs.items() if name}
    return tuple(runs.values()), ids


def measured(opened: Opened, ids: Mapping[str, str], *, per_row: bool) -> Import:
    """Return times and usage; `per_row` as in `core.importers.formats.table.aggregated.timings`."""
    if not opened.means.timings and not opened.means.usage:
        return Import()
    keys = _keys(opened, ids)
    return merged(read(opened.table, opened.means, keys, per_row=per_row) for read in (timings, usage))


def _keys(opened: Opened, ids: Mapping[str, str]) -> pl.DataFrame:
    """Return run_id, query_id, repeat, measured_at and line of every row."""
    keys = keyed(opened, "run", "query_id", "repeat", "measured_at")
    return keys.with_columns(
        pl.col("run").replace_strict(ids, return_dtype=pl.String).alias("run_id"),
        numbers(keys, "repeat", opened.member.name, whole=True),
    )


def scored(opened: Opened, ids: Mapping[str, str]) -> Import:
    """Return scores of queries as signals, with their means; for prices only the means.

    Raises:
        InputError: A stack has two rows for a query that no pass number distinguishes.
    """
    table, means = opened.table, opened.means
    if not means.scores:
        return Import()
    keys = _keys(opened, ids)
    twice = again(keys, *_QUERY, "repeat")
    which = "Pass {repeat} of the query" if "repeat" in means.roles else "The query"
    refuse(twice, f"{which} {{query_id}} of the stack {{run}} stands twice.", table.name, do=_OUTRIGHT)
    signals: list[pl.DataFrame] = []
    figures: list[pl.DataFrame] = []
    left: list[LeftOut] = []
    for value in means.scores:
        known, missing = filled(table, value, keys)
        left += counted(missing, table.name)
        single = known.group_by(*_QUERY, maintain_order=True).agg(pl.col("value").mean())
        named = {"k": pl.lit(value.k, pl.Int32), "signal": pl.lit(value.measure)}
        signals.append(single.with_columns(**named) if value.measure != USD_PER_1K else single.clear())
        means_of = (pl.col("value").mean(), pl.len().alias("n"))
        fixed = {"stage": pl.lit(value.stage, pl.String), "source": pl.lit("imported")}
        of_run = single.group_by("run_id", maintain_order=True).agg(means_of)
        figures.append(of_run.with_columns(**fixed, k=named["k"], measure=named["signal"]))
    notes = [f"{table.name}: {said}" for value in means.scores for said in said_of(value)]
    if twice.is_empty() and keys.select(_QUERY).is_duplicated().any():
        notes.append(f"{table.name}: the score of a query is the mean of its passes.")
    frames = frames_of(signals=pl.concat(signals, how="diagonal"), aggregates=pl.concat(figures))
    return Import(frames=frames, notes=tuple(notes), left_out=tuple(left))
