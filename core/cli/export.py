"""``export PATH``: write the store, or a part of it, in the own format."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import polars as pl
import typer

from core.cli.context import Context, resolve_runs
from core.cli.output import Format, FormatOption, emit
from core.importers import Import
from core.importers import export as write
from core.views.export import batch_of


def run(
    ctx: typer.Context,
    path: Annotated[
        Path, typer.Argument(help="A new folder, or a file that ends in .zip.", show_default=False)
    ],
    run_: Annotated[list[str] | None, typer.Option("--run", help="Only this run; may be repeated.")] = None,
    collection: Annotated[str | None, typer.Option(help="Only this collection.")] = None,
    form: FormatOption = Format.TABLE,
) -> None:
    """Export collections, golden sets and runs; import reads them back as they were."""
    context: Context = ctx.obj
    snapshot = context.store().read()
    ids = resolve_runs(snapshot.runs(collection), run_) if run_ else None
    batch = batch_of(snapshot, run_ids=ids, collection_id=collection)
    write(batch, path)
    made = Import(
        collections=batch.collections, golden_sets=batch.golden_sets, runs=batch.runs, frames=batch.frames
    )
    emit(pl.DataFrame({"what": list(made.taken), "count": list(made.taken.values())}), form)
