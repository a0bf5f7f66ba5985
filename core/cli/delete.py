"""``delete RUN…``: hide runs; ``restore`` brings them back."""

from __future__ import annotations

from typing import Annotated

import polars as pl
import typer

from core.cli.context import Context, resolve_runs
from core.cli.output import Format, FormatOption, emit


def run(
    ctx: typer.Context,
    runs: Annotated[list[str], typer.Argument(help="Run ids, or labels of one run.", show_default=False)],
    form: FormatOption = Format.TABLE,
) -> None:
    """Delete runs; their rows stay, earlier revisions show them, and restore brings them back."""
    context: Context = ctx.obj
    known = context.store().read().runs()
    ids = resolve_runs(known, runs)
    with context.write("delete", ", ".join(ids)) as writer:
        writer.remove_runs(ids)
    emit(known.filter(pl.col("run_id").is_in(ids)).select("run_id", "label", status=pl.lit("deleted")), form)
