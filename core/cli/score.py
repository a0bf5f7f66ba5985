"""``score``: measures of runs, as means with intervals, per query, or per query at every cutoff.

``measures [MEASURE]``: the available measures, or one with its worked example.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import polars as pl
import typer

from core.analysis.scoring.files import in_parts, score_files, write_parquet
from core.analysis.scoring.stored import score_stored
from core.analysis.scoring.table import Over
from core.analysis.workspace.choices import as_reported, only_reported
from core.analysis.workspace.resolve import golden_set_of, longest
from core.analysis.workspace.scope import resolve_runs
from core.cli.base import Context, complain, require_collection
from core.cli.context import CollectionOption, Format, FormatOption, RunsOption, emit
from core.errors import InputError
from core.importers import Import, Options, load
from core.importers.read.ordering import TieOrder
from core.metrics import Measure, parse_list, understood
from core.store import Snapshot
from core.tables import frame
from core.views.measures.words import explained, measure_table

_LISTED = ("measure", "says", "formula", "parameters", "range", "better")
_OF_FILES = ("--qrels", "--grades", "--tie-order")


def listed(
    ctx: typer.Context,
    measure: Annotated[
        str | None,
        typer.Argument(
            help='One measure, for example "RA-nWG" or "RBP(p=0.5)@3": its definition and a worked example.',
            show_default=False,
        ),
    ] = None,
    form: FormatOption = Format.TABLE,
) -> None:
    """List the measures, those that runs of the store came with too, or explain one to recompute by hand."""
    context: Context = ctx.obj
    reported = only_reported(context.store().read())
    if measure is not None:
        known = reported.filter(measure=measure.strip().partition("@")[0])
        emit(explained(understood(measure)) if known.is_empty() else as_reported(known), form)
        return
    rows = pl.concat([measure_table(), reported.select("measure", "says")], how="diagonal")
    rows = rows.with_columns(pl.all().fill_null(""))
    emit(rows.select(_LISTED) if form is Format.TABLE else rows, form)


def run(
    ctx: typer.Context,
    files: Annotated[
        list[Path] | None,
        typer.Argument(help="Files to score as they are; nothing is read from the store or written to it."),
    ] = None,
    *,
    measures: Annotated[
        str,
        typer.Option(
            help='Measures with cutoffs, for example "RA-nWG@10,N-Recall4+@30,PROC[RA-nWG]@10"; set_recall '
            "counts all that is ranked.",
            show_default=False,
        ),
    ],
    qrels: Annotated[
        Path | None, typer.Option(help="With files: the judgements, unless they are among the files.")
    ] = None,
    grades: Annotated[
        str | None, typer.Option(help="With files: how grades become 1-5, as import has it.")
    ] = None,
    tie_order: Annotated[
        TieOrder, typer.Option(help="With files: whose order equal scores have, as import has it.")
    ] = "file",
    runs: RunsOption = None,
    collection: CollectionOption = None,
    golden_set: Annotated[
        str | None, typer.Option(help="The judgements; by default the only one of the collection.")
    ] = None,
    per_query: Annotated[bool, typer.Option("--per-query", help="One row per query, not the mean.")] = False,
    every_k: Annotated[
        Path | None,
        typer.Option(
            help="Write the values of every query at every K to this Parquet file; measures need no cutoff."
        ),
    ] = None,
    queries: Annotated[
        Over | None,
        typer.Option(
            help="Which judged queries count. shared: those that every run was asked; a run with fewer than "
            "10 in common has no value. own: of each run those it was asked. all: every one, 0 where a run "
            "ranks nothing. Default: shared where runs were asked different ones, else all; own with "
            "--every-k.",
            show_default=False,
        ),
    ] = None,
    form: FormatOption = Format.TABLE,
) -> None:
    """Score runs: value, n and 95 % interval of the mean; empty with a reason where unknown."""
    if files:
        _refuse(("--run", runs), ("--collection", collection), ("--every-k", every_k))
        options = Options(collection_id="files", grades=grades, tie_order=tie_order)
        loaded = load([*files, *([qrels] if qrels else [])], options)
        for note in loaded.notes:
            if "--tie-order" in note:
                _tell(note)
        table = score_files(
            loaded,
            parse_list(measures, lambda: longest(_rankings(loaded))),
            golden_set_id=golden_set,
            per_query=per_query,
            over=queries,
            tell=_tell,
        )
        emit(table, form)
        return
    _refuse(("--qrels", qrels), ("--grades", grades), ("--tie-order", tie_order != "file"))
    context: Context = ctx.obj
    snapshot = context.store().read()
    require_collection(snapshot, collection)
    known = snapshot.runs(collection)
    if runs:
        known = known.filter(pl.col("run_id").is_in(resolve_runs(known, runs)))
    if every_k:
        if queries is Over.SHARED:
            raise InputError(
                "--every-k has the values of every run's own queries.",
                do="Leave --queries out, or say all to have 0 for queries that a run does not rank.",
            )
        asked_only = queries is not Over.ALL
        emit(
            _written(snapshot, known, golden_set, parse_list(measures), every_k, asked_only=asked_only), form
        )
        return
    table = score_stored(
        snapshot, known, measures, golden_set=golden_set, per_query=per_query, over=queries, tell=_tell
    )
    emit(table, form, empty="No runs.")


def _tell(words: str) -> None:
    complain(f"note: {words}")


def _rankings(loaded: Import) -> pl.DataFrame:
    found = loaded.frames.get("rankings")
    return frame("rankings", []) if found is None else found.lazy().collect()


def _written(
    snapshot: Snapshot,
    runs: pl.DataFrame,
    golden_set: str | None,
    measures: Sequence[Measure],
    path: Path,
    *,
    asked_only: bool,
) -> pl.DataFrame:
    """Write the values of the ranked runs, and report the number of rows."""
    ranked = runs.filter("has_rankings")
    tables = (
        table
        for (name,), of in ranked.partition_by("collection_id", as_dict=True, maintain_order=True).items()
        if (golden := golden_set_of(snapshot, str(name), golden_set)) is not None
        for table in in_parts(snapshot, of["run_id"].to_list(), golden, measures, asked_only=asked_only)
    )
    return pl.DataFrame({"file": [str(path)], "rows": [write_parquet(tables, path)]})


def _refuse(*given: tuple[str, object]) -> None:
    """Refuse options that belong to the other way of scoring."""
    for name, value in given:
        if value:
            raise InputError(
                f"{name} does not go with {'the store' if name in _OF_FILES else 'files'}.",
                do="Name files to score them as they are, or leave the files out to score the store's runs.",
            )
