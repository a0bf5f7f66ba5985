"""``golden …``: build golden sets, judge, refine, and see how far that is."""

from __future__ import annotations

import typer

from core.cli.golden import build, new, plan, simulate, status
from core.cli.golden import next as next_

app = typer.Typer(
    help="Build golden sets of texts and questions: `golden new TEXTS > golden.toml` writes down what is "
    "wanted, `golden build golden.toml` has it judged.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.command("new")(new.run)
app.command("plan")(plan.run)
app.command("build")(build.run)
app.command("resume")(build.resume)
app.command("status")(status.run)
app.command("simulate")(simulate.run)
app.command("next")(next_.run)
