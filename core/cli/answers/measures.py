"""``measures [MEASURE]``: what can be computed, or one measure with its worked example."""

from __future__ import annotations

from typing import Annotated

import polars as pl
import typer

from core.cli.context import Context
from core.cli.output import Format, FormatOption, emit
from core.metrics import Measure
from core.views.measures.words import explained, measure_table
from core.views.scoring.reported import as_reported, only_reported

_SHOWN = ("measure", "says", "formula", "parameters", "range", "better")


def run(
    ctx: typer.Context,
    measure: Annotated[
        str | None,
        typer.Argument(
            help='One measure, for example "RA-nWG" or "RBP(p=0.5)@3": its definition and a worked example.',
            show_default=False,
        ),
    ] = None,
    form: FormatOption = Format.TABLE,
) -> None:
    """List the measures, those that runs of the store came with too, or explain one to recompute by hand."""
    context: Context = ctx.obj
    told = only_reported(context.store().read())
    if measure is not None:
        known = told.filter(measure=measure.strip().partition("@")[0])
        emit(explained(Measure.parse(measure)) if known.is_empty() else as_reported(known), form)
        return
    rows = pl.concat([measure_table(), told.select("measure", "says")], how="diagonal")
    rows = rows.with_columns(pl.all().fill_null(""))
    emit(rows.select(_SHOWN) if form is Format.TABLE else rows, form)
