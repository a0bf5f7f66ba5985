"""``diagnose``: what an embedder makes of names and of noise."""

from __future__ import annotations

import typer

from core.cli.diagnose import names, noise
from core.cli.runs.paid import add_resume

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def main() -> None:
    """Find out what an embedder makes of names and of noise."""


app.command("names")(names.run)
add_resume(app, "resume", names.RESUME, names.load_work)
app.command("questions")(names.in_questions)
app.command("noise")(noise.noise)
app.command("robust")(noise.robust)
