"""``run SPEC``: execute a sweep, resumable and within its budget, or repeat one from a manifest."""

from __future__ import annotations

from inspect import cleandoc
from typing import Annotated

import typer

from core.cli.context import Context, DryRunOption, MaybeSpec, YesOption
from core.cli.output import Format, FormatOption, complain, emit
from core.cli.runs import evaluating, manifest
from core.cli.runs.plan import SplitOption
from core.errors import InputError
from core.files import read_json
from core.views.run.plan import search_rows, search_words

OnOption = Annotated[
    str,
    typer.Option(
        help='The cluster that does it: "ray" starts one of this machine, "ray://host:10001" joins one,'
        ' "configured" the one in CLQ_RAY_ADDRESS.',
        show_default=False,
    ),
]


def run(
    ctx: typer.Context,
    spec: MaybeSpec = None,
    *,
    from_manifest: Annotated[
        str | None,
        typer.Option(
            "--manifest",
            help="Repeat an evaluation or one of its runs instead: file of a manifest, id or name.",
        ),
    ] = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    again: Annotated[
        bool, typer.Option("--again", help="Measure anew what has been measured; it is paid for anew.")
    ] = False,
    budget: Annotated[
        float | None, typer.Option(min=0, help="The most dollars, instead of the specification's.")
    ] = None,
    split: SplitOption = None,
    on: OnOption = "",
    form: FormatOption = Format.TABLE,
) -> None:
    """Run the stacks of a specification on its collection and store what was measured.

    What was begun before goes on where it stopped: stacks that are in the store are not run again, and calls
    that were answered are not paid again.
    """
    # Here because the engines take a second to load, which no other command should wait for.
    from core.cli.runs import plan as planning  # noqa: PLC0415
    from core.pipeline.evaluate.artifacts import Artifacts  # noqa: PLC0415
    from core.pipeline.evaluate.cluster.nodes import sharing  # noqa: PLC0415
    from core.pipeline.evaluate.folder import ARTIFACTS  # noqa: PLC0415
    from core.pipeline.sweep import load  # noqa: PLC0415
    from core.pipeline.sweep.plan import plan  # noqa: PLC0415
    from core.readers.plan import with_readers  # noqa: PLC0415

    if (spec is None) == (from_manifest is None):
        raise typer.BadParameter("Name a specification or a --manifest.", param_hint="SPEC")
    context: Context = ctx.obj
    with sharing(on):
        if from_manifest is not None:
            job, problems = manifest.job_of(context, from_manifest, to_run=not dry_run)
        else:
            job, problems = manifest.read(context, load(spec or "", split=split), to_run=not dry_run)
    if again:
        job = manifest.anew(job)
    job = evaluating.with_budget(job, budget)
    artifacts = Artifacts(evaluating.work_of(context) / ARTIFACTS)
    made = plan(job, built=lambda step: artifacts.find(step) is not None, problems=problems)
    made = with_readers(made, job)
    if dry_run:
        planning.show(made, form)
        return
    for problem in made.problems:
        complain(f"{problem.severity}: {problem}")
    if not evaluating.agreed(made.usd, yes=yes):
        raise typer.Exit(1)
    evaluating.execute(context, job, form, on)


run.__doc__ = f"{cleandoc(run.__doc__ or '')}\n\n{evaluating.CODES}"


def resume(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(help="Its name or id; see data/evaluations.", show_default=False)],
    *,
    budget: Annotated[
        float | None, typer.Option(min=0, help="The most dollars in all, instead of the one it had.")
    ] = None,
    on: OnOption = "",
    form: FormatOption = Format.TABLE,
) -> None:
    """Go on with an evaluation where it stopped; a finished one is left as it is.

    Stacks that are in the store are not run again, and calls that were answered are not paid again. The
    budget counts what was spent before.
    """
    context: Context = ctx.obj
    from core.pipeline.evaluate.cluster.nodes import sharing  # noqa: PLC0415 - with the engines, a second

    with sharing(on):
        job, problems = manifest.continued(context, name)
    for problem in problems:
        complain(f"{problem.severity}: {problem}")
    evaluating.execute(context, evaluating.with_budget(job, budget), form, on)


resume.__doc__ = f"{cleandoc(resume.__doc__ or '')}\n\n{evaluating.CODES}"


def search(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(help="Its name or id; see data/evaluations.", show_default=False)],
    *,
    form: FormatOption = Format.TABLE,
) -> None:
    """Show what a search began, and what it dropped: after how many queries, and beaten by whom."""
    from core.pipeline.evaluate import folder  # noqa: PLC0415 - with the engines, a second

    place = folder.find(evaluating.work_of(ctx.obj), name)
    found = read_json(place.search)
    if found is None:
        raise InputError(
            "It was no search.", where=place.path.name, do='Give its axes the method "search" and run it.'
        )
    complain(f"search: {search_words(found)}")
    complain(f"optuna-dashboard sqlite:///{place.study}")
    emit(search_rows(found), form)
