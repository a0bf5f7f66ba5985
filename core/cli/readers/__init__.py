"""``readers …``: scores of answers by k; have models answer from the passages of runs."""

from __future__ import annotations

import typer

from core.cli.readers import job, show

app = typer.Typer(
    help="Readers: what the passages are worth to the answer. `readers --run R` scores them by k, "
    "`readers run SPEC` has models answer from the final rankings of stored runs.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.callback(invoke_without_command=True)(show.show)
app.command("plan")(job.plan)
app.command("run")(job.run)
app.command("resume")(job.resume)
app.command("status")(job.status)
