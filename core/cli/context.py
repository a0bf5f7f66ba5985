"""The parts shared by commands: printing, shared options.

Commands print a table for people, JSON or CSV for programs; messages go to standard error.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import polars as pl
import typer
from rich.console import Console
from rich.table import Table

from core.bidi import escaped
from core.importers.read.text import shown
from core.views.text import ruled, to_csv

_CELL = 200  # Maximum characters of a cell on a terminal
_WHOLE = 1 << 20  # Maximum characters of a piped cell, and line: nothing is cut or folded
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


def _plain(value: Any) -> Any:  # noqa: ANN401
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value.isoformat() if isinstance(value, datetime) else value


def _table(rows: pl.DataFrame) -> None:
    most = _CELL if sys.stdout.isatty() else _WHOLE
    heads = [(name, dtype.is_numeric()) for name, dtype in rows.schema.items()]
    lay([ruled(heads, ([_cell(value, most) for value in row] for row in rows.iter_rows()))])


def lay(pieces: Iterable[str | Table]) -> None:
    """Print lines, and tables as wide as the output."""
    for piece in pieces:
        if isinstance(piece, str):
            typer.echo(piece)
        else:
            Console(width=None if sys.stdout.isatty() else _WHOLE, highlight=False).print(piece)


def _cell(value: Any, most: int) -> str:  # noqa: ANN401
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, float):
        return f"{value:,.0f}" if 1e4 <= abs(value) < 1e15 else f"{value:.4g}"
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M")
    return shown(value, most)


SpecArgument = Annotated[
    Path, typer.Argument(help="A specification: .toml, .yaml or .json.", show_default=False)
]
MaybeSpec = Annotated[
    Path | None, typer.Argument(help="A specification: .toml, .yaml or .json.", show_default=False)
]
BudgetOption = Annotated[
    float | None, typer.Option(min=0, help="The most dollars in all, instead of the specification's.")
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Say what it takes; spend and write nothing.")]
YesOption = Annotated[bool, typer.Option("--yes", help="Do not ask at the terminal before it costs.")]
RunsOption = Annotated[
    list[str] | None, typer.Option("--run", help="A run by id or label; may be repeated. Default: all.")
]
CollectionOption = Annotated[str | None, typer.Option(help="Only runs of this collection.")]
