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
from core.cli.base import JSON_VERSION, complain
from core.importers.read.text import shown
from core.report.narrow import fit
from core.views.text import ruled, to_csv

_CELL = 200  # Maximum characters of a cell on a terminal
_WHOLE = 1 << 20  # Maximum characters of a piped cell, and line: nothing is cut or folded
_READABLE = 200  # Characters of a line up to which a piped table is for people, too


class Format(StrEnum):
    """How a result is printed."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


FormatOption = Annotated[Format, typer.Option("--format", help="How to print the result.")]


def emit(rows: pl.DataFrame, form: Format, *, empty: str = "Nothing.") -> None:
    """Print a frame to standard output."""
    if form is Format.JSON:
        typer.echo(escaped(json.dumps(_as_json(rows), ensure_ascii=False, indent=2, allow_nan=False)))
    elif form is Format.CSV:
        typer.echo(to_csv(rows), nl=False)
    elif rows.is_empty():
        typer.echo(empty)
    else:
        _table(rows)


def _as_json(rows: pl.DataFrame) -> object:
    objects = [{name: _plain(value) for name, value in row.items()} for row in rows.to_dicts()]
    version = JSON_VERSION.get()
    return objects if version == 1 else {"format": "clq-explorer/rows", "version": version, "rows": objects}


def _plain(value: Any) -> Any:  # noqa: ANN401
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value.isoformat() if isinstance(value, datetime) else value


def _table(rows: pl.DataFrame) -> None:
    most = _CELL if sys.stdout.isatty() else _WHOLE
    heads = [(name, dtype.is_numeric()) for name, dtype in rows.schema.items()]
    lay([ruled(heads, ([_cell(value, most) for value in row] for row in rows.iter_rows()))])


def lay(pieces: Iterable[str | Table], *, wide: bool = False) -> None:
    """Print lines, and tables: on a terminal the columns that fit, unless wide, in a pipe all.

    What is left out, and a pipe's lines too long to be read, are reported on standard error.
    """
    console = Console(highlight=False)
    folded, left, widest = sys.stdout.isatty() and not wide, [], 0
    for piece in pieces:
        if isinstance(piece, str):
            typer.echo(piece)
        elif folded:
            left += fit(piece, console)
            console.print(piece)
        else:
            width = console.measure(piece, options=console.options.update_width(_WHOLE)).maximum
            Console(width=width, highlight=False).print(piece)
            widest = max(widest, width)
    if left:
        names = ", ".join(dict.fromkeys(left))
        complain(f"note: left out at {console.width} columns: {names}; --format csv has all.")
    elif widest > _READABLE and not sys.stdout.isatty():
        complain(f"note: lines of {widest:,} characters; --format csv or json is for programs.")


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
