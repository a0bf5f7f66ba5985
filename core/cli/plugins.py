"""``plugins``: the additions of other packages, and why any of them is left out."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import polars as pl
import typer

from core.cli.context import Format, FormatOption, emit
from core.plugins import plugins
from core.tables import schema

_SHOWN = schema("group name package problem")


def run(
    *,
    check: Annotated[
        bool, typer.Option("--check", help="Try each on data of its kind; exit with 1 for a fault.")
    ] = False,
    form: FormatOption = Format.TABLE,
) -> None:
    """List plug-ins: what other packages add by entry points, and why one is not loaded."""
    found = plugins()
    if check:
        from core.conformance import faults  # noqa: PLC0415

        found = tuple(replace(each, problem=each.problem or " ".join(faults(each))) for each in found)
    rows = pl.DataFrame(
        [[getattr(each, name) for name in _SHOWN] for each in found], schema=_SHOWN, orient="row"
    )
    emit(rows, form, empty="No plug-in. docs/plugins.md says how a package adds one.")
    if check and any(each.problem for each in found):
        raise typer.Exit(1)
