"""``golden status``: the builds of golden sets that were begun, and how far each is."""

from __future__ import annotations

import typer

from core.cli.context import Context
from core.cli.output import Format, FormatOption, emit
from core.views.golden.build import landing, words


def run(ctx: typer.Context, form: FormatOption = Format.TABLE) -> None:
    """List the builds that were begun, newest first."""
    context: Context = ctx.obj
    known = landing.known(context.store().path)
    emit(words.table([(one.name, one.status) for one in known]), form, empty="No golden set was built here.")
