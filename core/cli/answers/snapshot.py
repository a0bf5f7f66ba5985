"""``snapshot PATH``: a workspace as one file that needs no network."""

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
    path: Annotated[Path, typer.Argument(help="A new file: .html.", show_default=False)],
    question: Question,
    *,
    dashboard: DashboardOption = "http://localhost:8501/",
    replace_: ReplaceOption = False,
    form: FormatOption = Format.TABLE,
) -> None:
    """Write a workspace as one HTML file: the answer, frontier, headroom, K curves, stacks and evidence."""
    from core.report.files import command, pinned_link, snapshot_file  # noqa: PLC0415

    destination(path, (".html",), overwrite=replace_)
    case = question.on_store(ctx.obj)
    case = replace(case, command=command(case))
    address = pinned_link(case, dashboard)
    text = snapshot_file(case, case.decided(), address=address, made_at=datetime.now(UTC))
    rows = [(str(path), write_text(path, text))]
    emit(pl.DataFrame(rows, schema=["written", "bytes"], orient="row"), form)
