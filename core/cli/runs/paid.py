"""Commands of work that a specification asks for and a budget limits: plan, begin, resume, status."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar

import polars as pl
import typer

from core.cli.context import (
    BudgetOption,
    Context,
    DryRunOption,
    Format,
    FormatOption,
    SpecArgument,
    YesOption,
    complain,
    emit,
)
from core.cli.runs import CODES, INTERRUPTED, agreed, warn, work_of, working
from core.views.run.paid import as_json, dollars, line_rows

if TYPE_CHECKING:  # the engines take a second to load, which no other command should wait for
    from core.golden.plan import GoldenPlan
    from core.pipeline.evaluate import Status
    from core.pipeline.evaluate.launch import Launcher
    from core.pipeline.evaluate.turn import Result, Site
    from core.pipeline.sweep.problems import Problem
    from core.readers.plan import ReaderPlan

J = TypeVar("J")
P = TypeVar("P", bound="GoldenPlan | ReaderPlan")


@dataclass(frozen=True, slots=True, kw_only=True)
class Work(Generic[J]):
    """A kind of paid work: how it is read, done and told of."""

    noun: str
    kept: str  # what becomes of one that is interrupted
    launcher: Launcher
    read: Callable[[Context, Any, bool], tuple[J, list[Problem]]]  # a specification, and whether it is to run
    carry_out: Callable[[Context, J, Site], Result]
    landed: Callable[[Context, J, Result, Format], None]  # prints what it made
    ended: Callable[[Status], str] | None = None  # how it ended, in words


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned(Work[J], Generic[J, P]):
    """Paid work that a specification alone asks for."""

    plan: Callable[[J, Sequence[Problem]], P]
    size_of: Callable[[P], str]  # what will be done, in words
    table: Callable[[Sequence[tuple[str, Status]]], pl.DataFrame]  # all that were begun
    empty: str  # said where none was begun


def add_commands(app: typer.Typer, helps: Mapping[str, str], load: Callable[[], Planned[J, P]]) -> None:
    """Add the four commands of a kind of work.

    Args:
        helps: Of each command by its name: plan, the one that begins, resume, status.
        load: Loads the engines.
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
        execute(work, ctx.obj, job, form)

    add_resume(app, *resumes, load)

    @app.command(last[0], help=last[1])
    def _status(ctx: typer.Context, form: FormatOption = Format.TABLE) -> None:
        work = load()
        known = work.launcher.known(ctx.obj.store().path)
        emit(work.table([(one.name, one.status) for one in known]), form, empty=work.empty)


def add_resume(app: typer.Typer, name: str, help_text: str, load: Callable[[], Work[J]]) -> None:
    """Add the command that goes on with work where it stopped."""

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
        begun = folder.find(work.launcher.work_of(ctx.obj.store().path), name, work.noun)
        job, problems = _read(work, ctx.obj, begun.spec, budget, to_run=True)
        warn(problems)
        execute(work, ctx.obj, job, form)


def _read(
    work: Work[J], context: Context, path: Path, budget: float | None, *, to_run: bool
) -> tuple[J, list[Problem]]:
    """Read a specification and what it names, with another budget where one is given."""
    from core.pipeline.sweep import load_as  # noqa: PLC0415

    spec = load_as(work.launcher.model, path)
    spec = spec if budget is None else spec.model_copy(update={"budget_usd": budget})
    return work.read(context, spec, to_run)


def _show(work: Planned[J, P], plan: P, form: Format) -> None:
    warn(plan.problems)
    if form is Format.JSON:
        typer.echo(json.dumps(as_json(plan), ensure_ascii=False, indent=2, allow_nan=False))
        return
    if form is Format.TABLE:
        typer.echo(work.size_of(plan))
    if plan.lines or form is Format.CSV:
        emit(line_rows(plan), form)
    if form is Format.TABLE:
        typer.echo(dollars(plan))


def execute(work: Work[J], context: Context, job: J, form: Format) -> None:
    """Do it into the store, and print what it made."""
    outcome = carried_out(
        context, work.launcher.folder, work.kept, lambda site: work.carry_out(context, job, site), work.ended
    )
    work.landed(context, job, outcome, form)


def carried_out(
    context: Context,
    folder: str,
    kept: str,
    do: Callable[[Site], Result],
    ended: Callable[[Status], str] | None = None,
) -> Result:
    """Do paid work with a bar, say how it ended, and leave with the exit code of what ended early."""
    from core.pipeline.evaluate import State  # noqa: PLC0415
    from core.pipeline.evaluate.turn import Site  # noqa: PLC0415

    place = context.store().path.absolute().parent / folder
    with working(kept) as (tell, cancelled):
        outcome = do(Site(work=place, shared=work_of(context), progress=tell, cancelled=cancelled))
    if ended is not None:
        complain(ended(outcome.status))
    if outcome.status.state is State.CANCELLED:
        raise typer.Exit(INTERRUPTED)
    return outcome
