"""``export PATH``: write the store, or part of it, in a format of the field, or log it to MLflow."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import polars as pl
import typer

from core.analysis.export import MEASURES, batch_of, tracked
from core.analysis.workspace.resolve import golden_set_of
from core.analysis.workspace.scope import Scope, resolve_runs
from core.cli.base import Context, complain, require_collection
from core.cli.context import Format, emit
from core.cli.deciding.ship import ship
from core.errors import InputError
from core.exporters import FORMATS, write
from core.exporters.mlflow import send
from core.importers.read.text import shown
from core.metrics import parse_list
from core.prices import DEFAULT_BOOK
from core.store import Snapshot

_LINE = 2000
_HELP = "; ".join(f"{name}: {each.holds}" for name, each in FORMATS.items())


class As(StrEnum):
    """The format to write; or how to print the result, as with every other command."""

    OWN = "own"
    TREC = "trec"
    BEIR = "beir"
    RANX = "ranx"
    MLFLOW = "mlflow"
    TABLE = "table"
    JSON = "json"
    CSV = "csv"


_PRINTED = {As.TABLE: Format.TABLE, As.JSON: Format.JSON, As.CSV: Format.CSV}


def run(
    ctx: typer.Context,
    path: Annotated[
        str,
        typer.Argument(
            help="A new folder, or a file that ends in .zip; for mlflow the address of the tracking server.",
            show_default=False,
        ),
    ],
    stack: Annotated[
        str | None,
        typer.Argument(
            help="After “stack”: the run whose stack is written to run elsewhere.", show_default=False
        ),
    ] = None,
    *,
    kind: Annotated[
        str,
        typer.Option("--as", help="stack: python, langchain, llama-index, haystack or elasticsearch."),
    ] = "python",
    to: Annotated[
        Path | None, typer.Option(help="stack: the new folder, by default its id.", show_default=False)
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="stack: run what is in the folder, and compare its orders.")
    ] = False,
    python: Annotated[
        str, typer.Option(help="stack: the interpreter that checks it.", show_default=False)
    ] = "",
    run_: Annotated[list[str] | None, typer.Option("--run", help="Only this run; may be repeated.")] = None,
    collection: Annotated[str | None, typer.Option(help="Only this collection.")] = None,
    form: Annotated[
        list[As] | None,
        typer.Option(
            "--format",
            help=f"{_HELP}; mlflow: metrics and parameters. table, json or csv print the counts so.",
            show_default=False,
        ),
    ] = None,
    experiment: Annotated[str, typer.Option(help="mlflow: name of the experiment.")] = "CLQ Explorer",
    measures: Annotated[str, typer.Option(help="mlflow: measures with cutoffs.")] = MEASURES,
    golden_set: Annotated[str | None, typer.Option(help="mlflow: the judgements.")] = None,
    prices: Annotated[str, typer.Option(help="mlflow: price book.")] = DEFAULT_BOOK,
) -> None:
    """Export collections, golden sets and runs; import reads them back, the own format as they were.

    ``export stack NAME`` writes the stack of a run as a folder that runs without this program.
    """
    context: Context = ctx.obj
    if stack is not None:
        if path != "stack":
            raise typer.BadParameter(f"{path} takes no {stack}; stack does.", param_hint="PATH")
        printed = next((_PRINTED[option] for option in form or () if option in _PRINTED), Format.TABLE)
        ship(context, stack, kind, to, check=check, python=python, form=printed)
        return
    named = [option for option in form or () if option not in _PRINTED] or [As.OWN]
    if len(named) > 1:
        raise InputError(f"Two formats: {', '.join(named)}.", do="Export them one after the other.")
    snapshot = context.store().read()
    ids = resolve_runs(snapshot.runs(collection), run_) if run_ else None
    if named == [As.MLFLOW]:
        book = context.book(prices)
        runs = [
            run
            for scope in _scopes(snapshot, ids, collection, golden_set)
            for run in tracked(snapshot, scope, parse_list(measures), book)
        ]
        counts = {"runs": len(send(runs, path, experiment))}
    else:
        batch = batch_of(snapshot, run_ids=ids, collection_id=collection)
        written = write(batch, Path(path), named[0].value)
        counts = dict(written.counts)
        for note in written.notes:
            complain(shown(note, _LINE))
    printed = next((_PRINTED[option] for option in form or () if option in _PRINTED), Format.TABLE)
    emit(pl.DataFrame({"what": list(counts), "count": list(counts.values())}), printed)


def _scopes(
    snapshot: Snapshot, ids: list[str] | None, collection: str | None, golden_set: str | None
) -> list[Scope]:
    require_collection(snapshot, collection)
    runs = snapshot.runs(collection)
    if ids is not None:
        runs = runs.filter(pl.col("run_id").is_in(ids))
    if runs.is_empty():
        raise InputError("There is no run to log.", do="Import or run something first.")
    return [
        Scope(str(name), golden_set_of(snapshot, str(name), golden_set), tuple(rows["run_id"]))
        for (name,), rows in runs.partition_by("collection_id", as_dict=True, maintain_order=True).items()
    ]
