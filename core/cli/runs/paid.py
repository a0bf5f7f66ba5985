"""Commands for work defined by a specification and limited by a budget: plan, start, resume, status."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from core.cli.base import Context, complain
from core.cli.context import BudgetOption, DryRunOption, Format, FormatOption, SpecArgument, YesOption, emit
from core.cli.runs import CODES, agreed, carried_out, leave_if_cancelled, warn
from core.work.paid import as_json, line_rows

if TYPE_CHECKING:  # the engines take a second to load, and no other command should wait for them
    from core.pipeline.evaluate.session import Result
    from core.pipeline.sweep.problems import Problem
    from core.work.golden.plan import GoldenPlan
    from core.work.readers.plan import ReaderPlan
    from core.work.work import Work

J = TypeVar("J")
P = TypeVar("P", bound="GoldenPlan | ReaderPlan")
R = TypeVar("R", bound="Result")
Show = Callable[[Context, J, R, Format], None]
"""Prints the results that a job brought into the store."""


def add_commands(
    app: typer.Typer,
    helps: Mapping[str, str],
    load: Callable[[], Work[J, P, R]],
    show: Show[J, R],
    empty: str,
) -> None:
    """Add the four commands of a kind of work.

    Args:
        helps: Help text of each command by name: plan, the one that starts, resume, status.
        load: Loads the engines.
        empty: Message to print if there are no jobs.
    """
    first, begins, resumes, last = helps.items()

    @app.command(first[0], help=first[1])
    def _plan(ctx: typer.Context, spec: SpecArgument, form: FormatOption = Format.TABLE) -> None:
        work = load()
        job, problems = _read(work, ctx.obj, spec, None, to_run=False)
        _show(work, work.plan(job, problems), form)

    @app.command(begins[0], help=f"{begins[1]}\n\n{CODES}")
    def _run(
        ctx: typer.Context,
        spec: SpecArgument,
        *,
        dry_run: DryRunOption = False,
        yes: YesOption = False,
        budget: BudgetOption = None,
        form: FormatOption = Format.TABLE,
    ) -> None:
        work = load()
        job, problems = _read(work, ctx.obj, spec, budget, to_run=not dry_run)
        if dry_run:
            _show(work, work.plan(job, problems), form)
            return
        warn(problems)
        if not yes and not agreed(work.plan(job, ()).usd, yes=yes):
            raise typer.Exit(1)
        execute(work, ctx.obj, job, show, form)

    add_resume(app, *resumes, load, show)

    add_status(app, *last, load, empty)


def add_status(
    app: typer.Typer, name: str, help_text: str, load: Callable[[], Work[Any, Any, Any]], empty: str
) -> None:
    """Add the command that lists started jobs.

    Args:
        empty: Message to print if there are none.
    """

    @app.command(name, help=help_text)
    def _status(ctx: typer.Context, form: FormatOption = Format.TABLE) -> None:
        work = load()
        known = work.known(ctx.obj.store().path)
        emit(work.table([(one.name, one.status) for one in known]), form, empty=empty)


def add_resume(
    app: typer.Typer,
    name: str,
    help_text: str,
    load: Callable[[], Work[J, Any, R]],
    show: Show[J, R],
) -> None:
    """Add the command that resumes work where it stopped."""

    @app.command(name, help=f"{help_text}\n\n{CODES}")
    def _resume(
        ctx: typer.Context,
        name: Annotated[
            str, typer.Argument(help="Its name or id, as `status` or its page lists it.", show_default=False)
        ],
        *,
        budget: BudgetOption = None,
        form: FormatOption = Format.TABLE,
    ) -> None:
        from core.pipeline.evaluate import folder  # noqa: PLC0415

        work = load()
        begun = folder.find(work.work_of(ctx.obj.store().path), name, work.noun)
        job, problems = _read(work, ctx.obj, begun.spec, budget, to_run=True)
        warn(problems)
        execute(work, ctx.obj, job, show, form)


def _read(
    work: Work[J, Any, Any], context: Context, path: Path, budget: float | None, *, to_run: bool
) -> tuple[J, list[Problem]]:
    """Read a specification and its files, with another budget if one is given."""
    from core.pipeline.sweep import load_as  # noqa: PLC0415

    spec = load_as(work.model, path)
    spec = spec if budget is None else spec.model_copy(update={"budget_usd": budget})
    return work.read(context.store().read(), spec, context.books(), to_run=to_run)


def _show(work: Work[Any, P, Any], plan: P, form: Format) -> None:
    warn(plan.problems)
    if form is Format.JSON:
        typer.echo(json.dumps(as_json(plan), ensure_ascii=False, indent=2, allow_nan=False))
        return
    if form is Format.TABLE:
        typer.echo(work.size_of(plan))
    if plan.lines or form is Format.CSV:
        emit(line_rows(plan), form)
    if form is Format.TABLE:
        typer.echo(work.costs(plan))


def execute(work: Work[J, Any, R], context: Context, job: J, show: Show[J, R], form: Format) -> None:
    """Do the work into the store, report the outcome, and print the results."""
    result = carried_out(context, work.folder, work.kept, partial(work.run, context.store(), job))
    complain(work.ended(result.status))
    leave_if_cancelled(result)
    show(context, job, result, form)
