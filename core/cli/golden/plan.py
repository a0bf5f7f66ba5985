"""``golden plan SPEC``: what building a golden set takes; it spends nothing and writes nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from core.cli.context import Context
from core.cli.output import Format, FormatOption, complain, emit
from core.views.golden.build import landing, words
from core.views.run.plan import line_rows

if TYPE_CHECKING:
    from core.golden.plan import GoldenPlan

SpecArgument = Annotated[
    Path, typer.Argument(help="A specification: .toml, .yaml or .json.", show_default=False)
]


def run(ctx: typer.Context, spec: SpecArgument, form: FormatOption = Format.TABLE) -> None:
    """Print how many texts will be judged, with calls, tokens, dollars and time."""
    # Here because the engines take a second to load, which no other command should wait for.
    from core.golden.plan import candidates, plan  # noqa: PLC0415
    from core.golden.spec import load  # noqa: PLC0415

    context: Context = ctx.obj
    job, problems = landing.read(context.store().read(), load(spec), context.books(), to_run=False)
    show(plan(job, candidates(job), problems=problems), form)


def show(made: GoldenPlan, form: Format) -> None:
    """Print a plan, and its problems on standard error."""
    for problem in made.problems:
        complain(f"{problem.severity}: {problem}")
    if form is Format.JSON:
        typer.echo(json.dumps(words.as_json(made), ensure_ascii=False, indent=2, allow_nan=False))
        return
    if form is Format.CSV:
        emit(line_rows(made), form)
        return
    typer.echo(words.size_of(made))
    if made.lines:
        emit(line_rows(made), form)
    typer.echo(words.dollars(made))
