"""``formats [NAME]``: what can be imported, or everything about one format."""

from __future__ import annotations

from typing import Annotated

import polars as pl
import typer

from core.cli.output import Format, FormatOption, emit
from core.errors import UnknownNameError
from core.importers import FORMATS
from core.views.add.imports import described, format_table


def run(
    name: Annotated[
        str | None, typer.Argument(help="One format, as for import --as.", show_default=False)
    ] = None,
    form: FormatOption = Format.TABLE,
) -> None:
    """List the formats that can be imported, or say what is taken of one and what is left out."""
    if name is None:
        rows = format_table()
        emit(rows.select("as", "format", "brings") if form is Format.TABLE else rows, form)
        return
    known = [each.name for each in FORMATS]
    if name not in known:
        raise UnknownNameError("format", name, known)
    emit(pl.DataFrame(described(name), schema=["what", "how"], orient="row"), form)
