"""``readers plan|run|resume|status``: answers of readers, resumable and within a budget."""

from __future__ import annotations

import json
from inspect import cleandoc
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from core.cli.context import Context
from core.cli.output import Format, FormatOption, complain, emit
from core.cli.runs.evaluating import CODES, INTERRUPTED, agreed, work_of, working
from core.views.readers import asking as words
from core.views.readers import landing
from core.views.run.plan import line_rows

if TYPE_CHECKING:
    from core.readers.job import ReaderJob
    from core.readers.plan import ReaderPlan
    from core.readers.spec import ReaderSpec

SpecArgument = Annotated[
    Path, typer.Argument(help="A specification: .toml, .yaml or .json.", show_default=False)
]
BudgetOption = Annotated[
    float | None, typer.Option(min=0, help="The most dollars in all, instead of the specification's.")
]


def plan(ctx: typer.Context, spec: SpecArgument, form: FormatOption = Format.TABLE) -> None:
    """Print how many answers there will be, with calls, tokens, dollars and time; nothing is spent."""
    # Here because the engines take a second to load, which no other command should wait for.
    from core.readers import plan as planning  # noqa: PLC0415
    from core.readers.spec import load  # noqa: PLC0415

    _show(planning.plan(_job(ctx.obj, load(spec), None, to_run=False)), form)


def run(
    ctx: typer.Context,
    spec: SpecArgument,
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what it takes; spend and write nothing.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask at the terminal before it costs.")] = False,
    budget: BudgetOption = None,
    form: FormatOption = Format.TABLE,
) -> None:
    """Have the readers of a specification answer, or what is left of it; nothing is paid twice."""
    from core.readers import plan as planning  # noqa: PLC0415
    from core.readers.spec import load  # noqa: PLC0415

    job = _job(ctx.obj, load(spec), budget, to_run=not dry_run)
    if dry_run:
        _show(planning.plan(job), form)
        return
    if not yes and not agreed(planning.plan(job).usd, yes=yes):
        raise typer.Exit(1)
    _execute(ctx.obj, job, form)


run.__doc__ = f"{cleandoc(run.__doc__ or '')}\n\n{CODES}"


def resume(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(help="Its name or id; see `readers status`.", show_default=False)],
    *,
    budget: BudgetOption = None,
    form: FormatOption = Format.TABLE,
) -> None:
    """Go on where readers stopped; the budget counts what was spent before."""
    from core.pipeline.evaluate import folder  # noqa: PLC0415
    from core.readers.spec import load  # noqa: PLC0415

    context: Context = ctx.obj
    place = folder.find(landing.work_of(context.store().path), name, "reader job")
    _execute(context, _job(context, load(place.spec), budget, to_run=True), form)


resume.__doc__ = f"{cleandoc(resume.__doc__ or '')}\n\n{CODES}"


def status(ctx: typer.Context, form: FormatOption = Format.TABLE) -> None:
    """List the reader jobs that were begun, newest first."""
    context: Context = ctx.obj
    known = landing.known(context.store().path)
    emit(words.jobs([(one.name, one.status) for one in known]), form, empty="No reader was asked here.")


def _job(context: Context, spec: ReaderSpec, budget: float | None, *, to_run: bool) -> ReaderJob:
    spec = spec if budget is None else spec.model_copy(update={"budget_usd": budget})
    job, problems = landing.read(context.store().read(), spec, context.books(), to_run=to_run)
    for problem in problems:
        complain(f"{problem.severity}: {problem}")
    return job


def _show(made: ReaderPlan, form: Format) -> None:
    """Print a plan, and its problems on standard error."""
    for problem in made.problems:
        complain(f"{problem.severity}: {problem}")
    if form is Format.JSON:
        typer.echo(json.dumps(words.as_json(made), ensure_ascii=False, indent=2, allow_nan=False))
        return
    if form is Format.TABLE:
        typer.echo(words.size_of(made))
    if made.lines or form is Format.CSV:
        emit(line_rows(made), form)
    if form is Format.TABLE:
        typer.echo(words.dollars(made))


def _execute(context: Context, job: ReaderJob, form: Format) -> None:
    """Have them answer into the store, and print how many answers each run has."""
    from core.pipeline.evaluate import State  # noqa: PLC0415
    from core.readers.run import run_job  # noqa: PLC0415

    store = context.store()
    with working("what was answered is kept, and readers resume goes on") as (tell, cancelled):
        outcome = run_job(
            job,
            land=lambda batch: landing.land(store, batch),
            work=landing.work_of(store.path),
            shared=work_of(context),
            progress=tell,
            cancelled=cancelled,
        )
    complain(words.ended(outcome.status))
    if outcome.status.state is State.CANCELLED:
        raise typer.Exit(INTERRUPTED)
    answers = store.read().answers([each.run_id for each in job.material.replays])
    emit(words.answered(answers), form)
