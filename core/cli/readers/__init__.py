"""``readers …``: scores of answers by k; have models answer from the passages of runs."""

from __future__ import annotations

import typer

from core.cli.readers import job, show
from core.cli.runs.paid import add_commands

app = typer.Typer(
    help="Readers: what the passages are worth to the answer. `readers --run R` scores them by k, "
    "`readers run SPEC` has models answer from the final rankings of stored runs.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.callback(invoke_without_command=True)(show.show)
add_commands(app, job.WORK)
