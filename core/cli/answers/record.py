"""``record PATH…``: what was decided, from what and how surely, as a file for others."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import polars as pl
import typer

from core.cli.answers.deciding import Question, deciding
from core.cli.answers.files import DashboardOption, ReplaceOption, destination
from core.cli.output import Format, FormatOption, emit
from core.files import write_text


@deciding
def run(
    ctx: typer.Context,
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="PATH…", help="New files: .html, .md or .json.", show_default=False),
    ],
    question: Question,
    *,
    dashboard: DashboardOption = "http://localhost:8501/",
    replace_: ReplaceOption = False,
    form: FormatOption = Format.TABLE,
) -> None:
    """Write the decision with its evidence as one HTML file that needs no network, as Markdown or as JSON."""
    from core.report.files import ENDINGS, command, pinned_link, record_file  # noqa: PLC0415

    endings = [destination(path, ENDINGS, overwrite=replace_) for path in paths]
    case = question.on_store(ctx.obj)
    case = replace(case, command=command(case))
    found, address, now = case.decided(), pinned_link(case, dashboard), datetime.now(UTC)
    rows = []
    for path, ending in zip(paths, endings, strict=True):
        size = write_text(path, record_file(ending, case, found, address=address, made_at=now))
        rows.append((str(path), size))
    emit(pl.DataFrame(rows, schema=["written", "bytes"], orient="row"), form)
