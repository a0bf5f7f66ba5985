"""``doctor``: is the store whole, what does it hold, what is missing."""

from __future__ import annotations

import polars as pl
import typer

from core.cli.context import Context
from core.cli.output import Format, FormatOption, emit
from core.store.doctor import Report, examine


def run(ctx: typer.Context, form: FormatOption = Format.TABLE) -> None:
    """Examine the store; exit code 1 if something is damaged."""
    context: Context = ctx.obj
    report = examine(context.store())
    emit(_rows(report), form)
    if not report.sound:
        raise typer.Exit(1)


def _rows(report: Report) -> pl.DataFrame:
    rows = [
        ("store", "path", str(report.path), ""),
        ("store", "revision", str(report.revision), ""),
        ("store", "schema", f"{report.schema} (this release writes {report.newest_schema})", ""),
        *(("count", name, str(count), "") for name, count in report.counts.items()),
        *((each.level.value, "", each.found, each.do) for each in report.findings),
        ("verdict", "", "sound" if report.sound else "damaged", ""),
    ]
    return pl.DataFrame(rows, schema=["kind", "what", "found", "do"], orient="row")
