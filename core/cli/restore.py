"""``restore RUN…``: bring deleted runs back."""

from __future__ import annotations

from typing import Annotated

import polars as pl
import typer

from core.cli.context import Context, resolve_runs
from core.cli.output import Format, FormatOption, emit


def run(
    ctx: typer.Context,
    runs: Annotated[list[str], typer.Argument(help="Ids or labels of deleted runs.", show_default=False)],
    form: FormatOption = Format.TABLE,
) -> None:
    """Restore deleted runs."""
    context: Context = ctx.obj
    removed = context.store().read().runs(removed=True)
    ids = resolve_runs(removed, runs)
    with context.write("restore", ", ".join(ids)) as writer:
        writer.restore_runs(ids)
    emit(
        removed.filter(pl.col("run_id").is_in(ids)).select("run_id", "label", status=pl.lit("restored")), form
    )
