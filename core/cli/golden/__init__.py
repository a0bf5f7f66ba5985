"""``golden …``: build golden sets, judge, refine, and see how far that is."""

from __future__ import annotations

import typer

from core.cli.golden import build, new, simulate
from core.cli.golden import next as next_
from core.cli.runs.paid import add_commands

app = typer.Typer(
    help="Build golden sets of texts and questions: `golden new TEXTS > golden.toml` writes down what is "
    "wanted, `golden build golden.toml` has it judged.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.command("new")(new.run)
add_commands(app, build.WORK)
app.command("simulate")(simulate.run)
app.command("next")(next_.run)
