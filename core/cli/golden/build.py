"""``golden build SPEC`` and ``golden resume NAME``: build a golden set, resumable and within its budget."""

from __future__ import annotations

from inspect import cleandoc
from typing import TYPE_CHECKING, Annotated

import typer

from core.cli.context import Context
from core.cli.golden import plan as planning
from core.cli.golden.plan import SpecArgument
from core.cli.output import Format, FormatOption, complain, emit
from core.cli.runs.evaluating import CODES, INTERRUPTED, agreed, work_of, working
from core.records import Batch
from core.views.golden.build import landing, words

if TYPE_CHECKING:
    from core.golden.job import GoldenJob
    from core.golden.spec import GoldenSpec

BudgetOption = Annotated[
    float | None, typer.Option(min=0, help="The most dollars in all, instead of the specification's.")
]


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
    """Build the golden set of a specification, or what is left of it; nothing is judged or paid twice."""
    from core.golden.plan import candidates, plan  # noqa: PLC0415 - with the engines, a second
    from core.golden.spec import load  # noqa: PLC0415

    context: Context = ctx.obj
    job = _job(context, load(spec), budget, to_run=not dry_run)
    if dry_run:
        planning.show(plan(job, candidates(job)), form)
        return
    if not yes and not agreed(plan(job, candidates(job)).usd, yes=yes):
        raise typer.Exit(1)
    execute(context, job, form)


run.__doc__ = f"{cleandoc(run.__doc__ or '')}\n\n{CODES}"


def resume(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(help="Its name or id; see `golden status`.", show_default=False)],
    *,
    budget: BudgetOption = None,
    form: FormatOption = Format.TABLE,
) -> None:
    """Go on with a build where it stopped; the budget counts what was spent before."""
    from core.golden.spec import load  # noqa: PLC0415
    from core.pipeline.evaluate import folder  # noqa: PLC0415

    context: Context = ctx.obj
    found = folder.find(landing.work_of(context.store().path), name, "build")
    execute(context, _job(context, load(found.spec), budget, to_run=True), form)


resume.__doc__ = f"{cleandoc(resume.__doc__ or '')}\n\n{CODES}"


def _job(context: Context, spec: GoldenSpec, budget: float | None, *, to_run: bool) -> GoldenJob:
    spec = spec if budget is None else spec.model_copy(update={"budget_usd": budget})
    job, problems = landing.read(context.store().read(), spec, context.books(), to_run=to_run)
    for problem in problems:
        complain(f"{problem.severity}: {problem}")
    return job


def execute(context: Context, job: GoldenJob, form: Format) -> None:
    """Build into the store, and print the golden set."""
    from core.golden.build import run_job  # noqa: PLC0415
    from core.pipeline.evaluate import State  # noqa: PLC0415

    store = context.store()

    def sink(batch: Batch) -> None:
        with context.write("golden set", f"{job.spec.name}: what is judged") as writer:
            writer.add(batch)

    with working("what was judged is kept, and golden resume goes on") as (tell, cancelled):
        outcome = run_job(
            job,
            sink=sink,
            land=lambda batch: landing.land(store, batch),
            work=landing.work_of(store.path),
            shared=work_of(context),
            progress=tell,
            cancelled=cancelled,
        )
    complain(words.ended(outcome.status))
    if outcome.status.state is State.CANCELLED:
        raise typer.Exit(INTERRUPTED)
    made = store.read().golden_sets().filter(golden_set_id=outcome.landed)
    emit(made.select("golden_set_id", "collection_id", "name", "judge", "queries", "judgements"), form)
