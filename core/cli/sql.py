"""``sql``: an SQL query on the store; ``store views``: the same tables for DuckDB itself."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import polars as pl
import typer

from core.cli.base import Context
from core.cli.context import Format, FormatOption, emit
from core.files import write_out
from core.store.query import MEMORY, SECONDS, query, statements


def run(
    ctx: typer.Context,
    sql: Annotated[str, typer.Argument(help="One SELECT, FROM or WITH.", show_default=False)],
    *,
    seconds: Annotated[float, typer.Option(min=0.1, help="How long it may take.")] = SECONDS,
    memory: Annotated[str, typer.Option(help="How much it may hold: 500MB, 4GB.")] = MEMORY,
    form: FormatOption = Format.TABLE,
) -> None:
    """Answer SQL over the store's live results (runs, queries, judgements, rankings, scores…); read-only."""
    context: Context = ctx.obj
    emit(query(context.store(), sql, seconds=seconds, memory=memory), form, empty="No rows.")


def views(
    ctx: typer.Context,
    target: Annotated[Path, typer.Argument(help="The file to write.")] = Path("store.sql"),
    form: FormatOption = Format.TABLE,
) -> None:
    """Write views over the current revision as SQL for DuckDB: duckdb -init store.sql."""
    context: Context = ctx.obj
    store = context.store()
    snapshot = store.read()
    size = write_out(target, statements(snapshot, store.path))
    emit(pl.DataFrame({"written": [str(target)], "revision": [snapshot.revision], "bytes": [size]}), form)
