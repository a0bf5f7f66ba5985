"""``measures [MEASURE]``: what can be computed, or one measure with its worked example."""

from __future__ import annotations

from typing import Annotated

import typer

from core.cli.output import Format, FormatOption, emit
from core.metrics import Measure
from core.views.reference import explained, measure_table

_SHOWN = ("measure", "says", "formula", "parameters", "range", "better")


def run(
    measure: Annotated[
        str | None,
        typer.Argument(
            help='One measure, for example "RA-nWG" or "RBP(p=0.5)@3": its definition and a worked example.',
            show_default=False,
        ),
    ] = None,
    form: FormatOption = Format.TABLE,
) -> None:
    """List the measures, or explain one so that it can be recomputed by hand."""
    if measure is not None:
        emit(explained(Measure.parse(measure)), form)
        return
    rows = measure_table()
    emit(rows.select(_SHOWN) if form is Format.TABLE else rows, form)
