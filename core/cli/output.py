"""How commands print: a table for people, JSON or CSV for programs; messages go to standard error."""

from __future__ import annotations

import json
import math
import sys
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

import polars as pl
import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from core.importers.read.text import shown
from core.views.text import to_csv
from core.written import escaped, upright

_CELL = 200
_PIPED_WIDTH = 240
"""Columns of a table that is not printed to a terminal, so that ids are not broken over lines."""


class Format(StrEnum):
    """How a result is printed."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


FormatOption = Annotated[Format, typer.Option("--format", help="How to print the result.")]


def emit(rows: pl.DataFrame, form: Format, *, empty: str = "Nothing.") -> None:
    """Print a frame to standard output."""
    if form is Format.JSON:
        objects = [{name: _plain(value) for name, value in row.items()} for row in rows.to_dicts()]
        typer.echo(escaped(json.dumps(objects, ensure_ascii=False, indent=2, allow_nan=False)))
    elif form is Format.CSV:
        typer.echo(to_csv(rows), nl=False)
    elif rows.is_empty():
        typer.echo(empty)
    else:
        _table(rows)


def complain(message: str) -> None:
    """Say something on standard error."""
    typer.echo(upright(message), err=True)


def _plain(value: Any) -> Any:  # noqa: ANN401
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value.isoformat() if isinstance(value, datetime) else value


def _table(rows: pl.DataFrame) -> None:
    console = Console(width=None if sys.stdout.isatty() else _PIPED_WIDTH, highlight=False)
    table = Table(box=SIMPLE_HEAD)
    for name, dtype in rows.schema.items():
        table.add_column(Text(name), justify="right" if dtype.is_numeric() else "left", overflow="fold")
    for row in rows.iter_rows():
        # Text objects: nothing in a cell is read as markup.
        table.add_row(*(Text(_cell(value)) for value in row))
    console.print(table)


def _cell(value: Any) -> str:  # noqa: ANN401
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, float):
        return f"{value:,.0f}" if 1e4 <= abs(value) < 1e15 else f"{value:.4g}"
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M")
    return shown(value, _CELL)


class Ties(StrEnum):
    """Whose order passages with equal scores have: the file's own ranks, or trec_eval's."""

    FILE = "file"
    TREC_EVAL = "trec_eval"
