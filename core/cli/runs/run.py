"""``run SPEC``: execute a sweep, resumable and within its budget, or repeat one from a manifest.

``demo``: load the published evidence and shipped results; actually run the demo stacks on request.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import polars as pl
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from core.cli import runs
from core.cli.base import Context, complain
from core.cli.context import BudgetOption, DryRunOption, Format, FormatOption, MaybeSpec, YesOption, emit
from core.cli.runs import plan as planning
from core.cli.runs.plan import SplitOption
from core.errors import InputError
from core.files import read_json
from core.jobs import JobStatus, State, Tracker
from core.prices import PriceBook
from core.records import Batch
from core.work.names import stored
from core.work.sweep.words import search_rows, search_words

OnOption = Annotated[
    str,
    typer.Option(
        help='The cluster that does it: "ray" starts one of this machine, "ray://host:10001" joins one,'
        ' "configured" the one in CLQ_RAY_ADDRESS.',
        show_default=False,
    ),
]

NameArgument = Annotated[
    str, typer.Argument(help="Its name or id; see data/evaluations.", show_default=False)
]


@runs.coded
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
    budget: BudgetOption = None,
    split: SplitOption = None,
    on: OnOption = "",
    form: FormatOption = Format.TABLE,
) -> None:
    """Run the stacks of a specification on its collection and store what was measured.

    What was begun before goes on where it stopped: stacks that are in the store are not run again, and calls
    that were answered are not paid again.
    """
    # Imported here as the engines take a second to load, and no other command should wait for them.
    from core.pipeline.evaluate.artifacts import Artifacts  # noqa: PLC0415
    from core.pipeline.evaluate.cluster.nodes import sharing  # noqa: PLC0415
    from core.pipeline.evaluate.folder import ARTIFACTS  # noqa: PLC0415
    from core.pipeline.sweep import load  # noqa: PLC0415
    from core.pipeline.sweep.plan import plan  # noqa: PLC0415
    from core.work.readers.plan import with_readers  # noqa: PLC0415
    from core.work.sweep.into import with_budget  # noqa: PLC0415

    if (spec is None) == (from_manifest is None):
        raise typer.BadParameter("Name a specification or a --manifest.", param_hint="SPEC")
    context: Context = ctx.obj
    with sharing(on):
        if from_manifest is not None:
            job, problems = planning.job_of(context, from_manifest, to_run=not dry_run)
        else:
            job, problems = planning.read(context, load(spec or "", split=split), to_run=not dry_run)
    if again:
        job = planning.anew(job)
    job = with_budget(job, budget)
    artifacts = Artifacts(runs.work_of(context) / ARTIFACTS)
    planned = plan(job, built=lambda step: artifacts.find(step) is not None, problems=problems)
    planned = with_readers(planned, job)
    if dry_run:
        planning.show(planned, form)
        return
    runs.warn(planned.problems)
    if not runs.agreed(planned.usd, yes=yes):
        raise typer.Exit(1)
    runs.execute(context, job, form, on)


@runs.coded
def resume(
    ctx: typer.Context,
    name: NameArgument,
    *,
    budget: BudgetOption = None,
    on: OnOption = "",
    form: FormatOption = Format.TABLE,
) -> None:
    """Go on with an evaluation where it stopped; a finished one is left as it is.

    Stacks that are in the store are not run again, and calls that were answered are not paid again. The
    budget counts what was spent before.
    """
    context: Context = ctx.obj
    from core.pipeline.evaluate.cluster.nodes import sharing  # noqa: PLC0415 - with the engines, a second
    from core.work.sweep.into import with_budget  # noqa: PLC0415

    with sharing(on):
        job, problems = planning.continued(context, name)
    runs.warn(problems)
    runs.execute(context, with_budget(job, budget), form, on)


def search(
    ctx: typer.Context,
    name: NameArgument,
    *,
    form: FormatOption = Format.TABLE,
) -> None:
    """Show what a search began, and what it dropped: after how many queries, and beaten by whom."""
    from core.pipeline.evaluate import folder  # noqa: PLC0415 - with the engines, a second

    place = folder.find(runs.work_of(ctx.obj), name)
    report = read_json(place.search)
    if report is None:
        raise InputError(
            "It was no search.", where=place.path.name, do='Give its axes the method "search" and run it.'
        )
    complain(f"search: {search_words(report)}")
    complain(f"optuna-dashboard sqlite:///{place.study}")
    emit(search_rows(report), form)


def demo(
    ctx: typer.Context,
    *,
    if_empty: Annotated[
        bool, typer.Option("--if-empty", help="Do nothing if the store has runs already.")
    ] = False,
    measure: Annotated[
        bool,
        typer.Option(
            "--measure",
            help="Measure stacks on this machine too, the workspaces python-docs and python-names.",
        ),
    ] = False,
    shipped: Annotated[bool, typer.Option("--shipped", hidden=True)] = False,  # what is done without options
    status: Annotated[Path | None, typer.Option(hidden=True, help="File that is told how far it is.")] = None,
    form: FormatOption = Format.TABLE,
) -> None:
    """Fill the store with the published evidence and with stacks whose results are shipped, in seconds."""
    context: Context = ctx.obj
    if if_empty and context.store().read().runs().height:
        complain("The store has runs already; nothing to do.")
        return
    # Imported here as the formats take a second to load, and no other command should wait for them.
    from core.importers.formats.published import published_batch  # noqa: PLC0415
    from core.importers.formats.published.readers import published_readers  # noqa: PLC0415
    from core.pipeline import demo_docs, demo_filters  # noqa: PLC0415

    tracker = Tracker(JobStatus(name="The demo"), path=status)
    tracker.tell(stage="loading")
    workspace, names = demo_docs.shipped()
    help_desk, runs_today = demo_docs.running(workspace)
    batches = [workspace, help_desk, demo_filters.shipped(), published_batch(), published_readers()]
    summary = "results that are shipped"
    if measure and not shipped:
        found, names, summary = _measured(context.books()["list"], tracker)
        batches += found
    # Everything is written at once: a store has the whole demo or none of it.
    with context.write("demo", summary) as writer:
        for batch in batches:
            writer.add(batch)
        stored.add(writer, context.store().read(), names)
        writer.mark(runs_today)
    tracker.close(State.FINISHED, summary)
    complain(f"{summary}, in the store {context.store().path}")
    complain("next: `python -m core ui`, or `python -m core decide --collection docs-search --sla-ms 10`")
    rows = [
        (run.run_id, run.label, run.collection_id, run.origin.value)
        for batch in batches
        for run in batch.runs
    ]
    runs = pl.DataFrame(rows, schema=["run_id", "label", "collection_id", "origin"], orient="row")
    if form is Format.TABLE:  # 130 lines would bury the summary
        runs = runs.group_by("collection_id", "origin", maintain_order=True).len("runs")
    emit(runs, form)


def _measured(book: PriceBook, tracker: Tracker[JobStatus]) -> tuple[list[Batch], Batch, str]:
    """Run the stacks of both workspaces here; return them, name figures, and a summary line."""
    from core.pipeline import demo_names  # noqa: PLC0415
    from core.pipeline.demo import run_demo  # noqa: PLC0415
    from core.work.names.job import demo_batch  # noqa: PLC0415 - the engines take a second to load
    from core.work.trial import answered  # noqa: PLC0415

    batches: list[Batch] = []
    with _bar() as bar:
        task = bar.add_task("start", total=None)

        def tell(done: int, total: int, label: str) -> None:
            bar.update(task, completed=done, total=total, description=label)
            tracker.tell(done=done, total=total, stage=label)

        filled = run_demo(batches.append, tell)
        naming = demo_names.measured(tell)
        batches += [*naming, answered(naming, book)]
        bar.update(task, description="names in embedders")
        named = sum(len(batch.runs) for batch in batches) - len(filled.runs)
        return batches, demo_batch(book), f"{filled.summary}; {named} runs with questions that name something"


def _bar() -> Progress:
    """Return a progress bar on standard error, so that the result can be piped."""
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
    return Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True))
