"""``record PATH…`` and ``snapshot PATH``: a decision, or a whole workspace, as files for others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import polars as pl
import typer

from core.cli.answers.deciding import Question, deciding
from core.cli.output import Format, FormatOption, emit
from core.errors import InputError
from core.files import write_text

DashboardOption = Annotated[
    str, typer.Option("--dashboard", help="Address of the dashboard that the link in the file opens.")
]
ReplaceOption = Annotated[bool, typer.Option("--replace", help="Replace a file that is there.")]


@deciding
def record(
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

    endings = [_destination(path, ENDINGS, overwrite=replace_) for path in paths]
    case = question.on_store(ctx.obj)
    case = replace(case, command=command(case))
    found, address, now = case.decided(), pinned_link(case, dashboard), datetime.now(UTC)
    rows = []
    for path, ending in zip(paths, endings, strict=True):
        size = write_text(path, record_file(ending, case, found, address=address, made_at=now))
        rows.append((str(path), size))
    emit(pl.DataFrame(rows, schema=["written", "bytes"], orient="row"), form)


@deciding
def snapshot(
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

    _destination(path, (".html",), overwrite=replace_)
    case = question.on_store(ctx.obj)
    case = replace(case, command=command(case))
    address = pinned_link(case, dashboard)
    text = snapshot_file(case, case.decided(), address=address, made_at=datetime.now(UTC))
    rows = [(str(path), write_text(path, text))]
    emit(pl.DataFrame(rows, schema=["written", "bytes"], orient="row"), form)


def _destination(path: Path, endings: Sequence[str], *, overwrite: bool) -> str:
    """Check where a file is to go."""
    ending = path.suffix.lower()
    if ending not in endings:
        raise InputError(
            f"A file ending in {ending or 'nothing'} is not written.",
            where=str(path),
            do=f"Choose {', '.join(endings)}.",
        )
    if not path.parent.is_dir():
        raise InputError("The folder does not exist.", where=str(path.parent), do="Make it first.")
    if path.exists() and not (overwrite and path.is_file()):
        raise InputError("The path exists already.", where=str(path), do="Choose another, or add --replace.")
    return ending
