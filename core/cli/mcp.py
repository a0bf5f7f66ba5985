"""``mcp``: a server for agents over standard input and output."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from core.cli.base import Context


def run(
    ctx: typer.Context,
    *,
    allow_write: Annotated[
        bool,
        typer.Option("--allow-write", help="Also offer tools that import files and run evaluations."),
    ] = False,
    budget: Annotated[
        float, typer.Option(min=0, help="With --allow-write: the most dollars that runs may cost in all.")
    ] = 0.0,
    folder: Annotated[
        Path,
        typer.Option(help="Folder whose files the tools may read.", exists=True, file_okay=False),
    ] = Path(),
    skill: Annotated[
        bool, typer.Option("--skill", help="Print the skill file instead: when to use which tool.")
    ] = False,
) -> None:
    """Serve agents by the Model Context Protocol: read-only tools that are the pages and commands."""
    # Imported here as the server is an extra, and loads the decision modules, which takes a second.
    from core.agents.answers import Answers  # noqa: PLC0415
    from core.agents.server import SKILL, make  # noqa: PLC0415
    from core.agents.writes import Writes  # noqa: PLC0415
    from core.api.store import Results  # noqa: PLC0415

    if skill:
        typer.echo(SKILL.read_text(encoding="utf-8"), nl=False)
        return
    if budget and not allow_write:
        raise typer.BadParameter("A budget means nothing without --allow-write.", param_hint="--budget")
    context: Context = ctx.obj
    answers = Answers(Results(context.store()), folder.absolute())
    make(answers, Writes(answers, budget) if allow_write else None).run("stdio")
