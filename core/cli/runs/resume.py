"""``resume NAME``: go on with an evaluation that was stopped, failed or killed."""

from __future__ import annotations

from inspect import cleandoc
from typing import Annotated

import typer

from core.cli.context import Context
from core.cli.output import Format, FormatOption, complain
from core.cli.runs import evaluating, manifest


def run(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(help="Its name or id; see data/evaluations.", show_default=False)],
    *,
    budget: Annotated[
        float | None, typer.Option(min=0, help="The most dollars in all, instead of the one it had.")
    ] = None,
    form: FormatOption = Format.TABLE,
) -> None:
    """Go on with an evaluation where it stopped; a finished one is left as it is.

    Stacks that are in the store are not run again, and calls that were answered are not paid again. The
    budget counts what was spent before.
    """
    context: Context = ctx.obj
    job, problems = manifest.continued(context, name)
    for problem in problems:
        complain(f"{problem.severity}: {problem}")
    evaluating.execute(context, evaluating.with_budget(job, budget), form)


run.__doc__ = f"{cleandoc(run.__doc__ or '')}\n\n{evaluating.CODES}"
